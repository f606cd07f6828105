"""Differences of two buffer assignments."""

from layoutsim.memory.report_format import parse_assignment_report
from layoutsim.report.buffer_diff import compare_assignments

REPORT = """BufferAssignment:
allocation 0: size 32, parameter 0, shape |f32[8]| at ShapeIndex {}:
 value: <0 p @0> (size=32,offset=0): f32[8]{0}
allocation 1: size 96, preallocated-temp:
 value: <1 a @0> (size=32,offset=0): f32[8]{0}
 value: <2 b @0> (size=32,offset=64): f32[8]{0}
"""


def _kinds(changed: str) -> list[str]:
    ours, theirs = parse_assignment_report(changed), parse_assignment_report(REPORT)
    return sorted(d.kind for d in compare_assignments(ours, theirs).differences)


def test_equal_reports_agree() -> None:
    assert _kinds(REPORT) == []


def test_ids_do_not_matter() -> None:
    assert _kinds(REPORT.replace("<1 a", "<7 a")) == []


def test_another_offset_is_found() -> None:
    assert _kinds(REPORT.replace("offset=64", "offset=32")) == ["offset"]


def test_another_size_changes_the_allocations() -> None:
    # One allocation of 96 bytes too few, one of 128 too many.
    assert _kinds(REPORT.replace("size 96", "size 128")) == ["allocations", "allocations"]


def test_a_value_that_is_elsewhere_is_found() -> None:
    moved = REPORT.replace(" value: <2 b @0> (size=32,offset=64): f32[8]{0}\n", "") + (
        "allocation 2: size 32, preallocated-temp:\n value: <2 b @0> (size=32,offset=64): f32[8]{0}\n"
    )

    assert _kinds(moved) == ["allocations", "sharing"]


def test_totals_are_those_of_all_allocations_and_of_temporaries() -> None:
    comparison = compare_assignments(parse_assignment_report(REPORT), parse_assignment_report(REPORT))

    assert comparison.ours_total_bytes == 32 + 96
    assert comparison.theirs_temp_bytes == 96
