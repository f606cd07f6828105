"""Printing ``memory-usage-report.txt`` from an assignment."""

import pytest

from layoutsim.memory.report_format import AssignmentReport, ReportedAllocation, ReportedValue
from layoutsim.memory.report_format_usage import human_bytes, print_memory_usage_report
from layoutsim.memory.report_format_values import ValueName


def value(value_id: int, size: int, offset: int, shape: str = "f32[4]{0}") -> ReportedValue:
    return ReportedValue(ValueName(value_id, f"v{value_id}"), size, offset, shape)


def rows(*values: ReportedValue) -> list[str]:
    report = AssignmentReport((ReportedAllocation(0, 10_000, values=values),))
    return print_memory_usage_report(report).splitlines()[4:-2]


def test_the_whole_report_of_one_allocation():
    report = AssignmentReport((ReportedAllocation(0, 2048, values=(value(1, 1024, 0), value(2, 512, 1024))),))

    assert print_memory_usage_report(report) == (
        "Memory Space: default (color=0)\n"
        "Total bytes: 2048 (2.0KiB)\n"
        "  cumulative_size;       size;       offset; used_by_n_values; shapes_list\n"
        "  ------------------------------------------------------------\n"
        "     1.0KiB( 67%);     1.0KiB;            0;                1; f32[4]\n"
        "     1.5KiB(100%);       512B;         1024;                1; f32[4]\n"
        "\n"
        "\n"
    )


def test_values_at_one_offset_are_one_row_with_the_largest_size():
    (row,) = rows(value(1, 16, 0), value(2, 48, 0))

    assert row == "        48B(100%);        48B;            0;                2; 2\u00d7f32[4]"


def test_shapes_are_counted_without_layout_and_sorted_by_count():
    (row,) = rows(
        value(1, 8, 0, "f32[2,1]{1,0}"), value(2, 8, 0, "(s32[], f32[2]{0})"), value(3, 8, 0, "f32[2,1]{0,1:T(8,128)}")
    )

    assert row.endswith("; (s32[], f32[2]), 2\u00d7f32[2,1]")


def test_rows_of_equal_size_are_sorted_by_their_largest_id():
    assert [row.split(";")[2].strip() for row in rows(value(1, 8, 0), value(3, 8, 16), value(2, 8, 0), value(4, 8, 8))] == [
        "0",
        "16",
        "8",
    ]


def test_an_allocation_without_bytes_has_no_percentage():
    assert rows(value(1, 0, 0, "f32[0]{0}")) == ["         0B(-nan%);         0B;            0;                1; f32[0]"]


def test_after_fifty_rows_a_small_rest_is_not_shown():
    shown = rows(*(value(i, 10, 10 * i) for i in range(60)))

    # 57 rows of 10 bytes leave 30 of 600: that is not less than 5 %, 20 is.
    assert len(shown) == 59
    assert shown[-1] == "  The rest 2 values are less than 5% of the total size and not shown."


def test_memory_spaces_have_sections_of_their_own():
    allocations = (ReportedAllocation(0, 8, color=5), ReportedAllocation(1, 8), ReportedAllocation(2, 24, color=9))
    text = print_memory_usage_report(AssignmentReport(allocations))

    assert [line for line in text.splitlines() if line.startswith("Memory Space")] == [
        "Memory Space: default (color=0)",
        "Memory Space: cmem (color=5)",
        "Memory Space: color_9 (color=9)",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (1024**2 - 1, "1024.0KiB"),
        (1024**2, "1.00MiB"),
        (1573400, "1.50MiB"),
        (1024**3 - 1, "1024.00MiB"),
        (15032385536, "14.00GiB"),
        (3 * 1024**4, "3.00TiB"),
        (2**62, "4.00EiB"),
    ],
)
def test_sizes_are_printed_as_xla_does(size: int, text: str):
    assert human_bytes(size) == text
