"""Reading and printing ``buffer-assignment.txt``."""

import pytest

from layoutsim.errors import ParseError
from layoutsim.memory.report_format import (
    ReportedParameter,
    parse_assignment_report,
    print_assignment_report,
)
from layoutsim.memory.report_format_live_range import LiveRange
from layoutsim.memory.report_format_values import ValueName

REPORT = """\
BufferAssignment:
allocation 0: size 800, parameter 1, shape |f32[100]| at ShapeIndex {1}, maybe-live-out:
 value: <4 p{1} @0> (size=400,offset=0): f32[100]{0}
 value: <6 while.8{0} (phi) @0> (size=400,offset=0): f32[100]{0}
allocation 1: size 16, output shape is |(f32[100], f32[])|, maybe-live-out:
 value: <9 t{} @0> (size=16,offset=0): (f32[100]{0}, f32[])
allocation 2: size 4, constant:
 value: <2 c @0> (size=4,offset=0): f32[]
allocation 3: size 4, thread-local:
 value: <0 lhs @0> (size=4,offset=0): f32[]
allocation 4: size 1000, color 5, preallocated-temp:
 value: <5 a @5> (size=800,offset=0): f32[200]{0:S(5)}
 value: <7 b{0,1}> (size=200,offset=800): f32[50]{0}
 reused by buffers of a different color:
  value: <7 b{0,1}> (color=0)
"""

OLDER_SECTIONS = """\

Total bytes used: 1824 (1.8KiB)

Used values:
<2 c @0>
 positions:
  c
  t {1}
 uses:
  t, operand 1
 from instruction: %c = f32[] constant(1)
<9 t{} @0>
 positions:
  t {}
 uses:
 from instruction: %t = (f32[100]{0}, f32[]) tuple(%a, %c)


HloLiveRange (max 2):
  InstructionSequence:
    0:c
    1:t
  BufferLiveRange:
    c{}:0-2
    t{}:1-2
  Live ranges at 1 (peak):
    t{}: 16 bytes (cumulative: 16 bytes)
    c{}: 4 bytes (cumulative: 20 bytes)
"""


def test_reading_and_printing_gives_the_same_text():
    assert print_assignment_report(parse_assignment_report(REPORT)) == REPORT


def test_the_sections_of_older_releases_are_kept():
    report = parse_assignment_report(REPORT + OLDER_SECTIONS)

    assert report.used_values is not None
    assert report.used_values.values[0].uses == ("t, operand 1",)
    assert report.used_values.values[1].uses == ()
    assert report.live_range is not None
    assert report.live_range.ranges == (LiveRange("c", (), 0, 2), LiveRange("t", (), 1, 2))
    assert print_assignment_report(report) == REPORT + OLDER_SECTIONS


def test_a_missing_use_is_printed_as_none_where_the_release_does():
    newer = OLDER_SECTIONS.replace(" uses:\n from", " uses:\n  (none)\n from")
    report = parse_assignment_report(REPORT + newer)

    assert print_assignment_report(report) == REPORT + newer


def test_every_field_of_an_allocation_is_read():
    first, output, constant, local, temp = parse_assignment_report(REPORT).allocations

    assert first.parameter == ReportedParameter(1, "f32[100]", (1,))
    assert output.output_shape == "(f32[100], f32[])"
    assert [a.kind for a in (first, output, constant, local, temp)] == [
        "parameter",
        "output",
        "constant",
        "thread-local",
        "temp",
    ]
    assert (temp.index, temp.size, temp.color, temp.preallocated_temp) == (4, 1000, 5, True)
    assert temp.cross_color == ((ValueName(7, "b", (0, 1), color=None), 0),)


def test_every_field_of_a_value_is_read():
    value = parse_assignment_report(REPORT).allocations[0].values[1]

    assert value.value == ValueName(6, "while.8", (0,), is_phi=True)
    assert (value.size, value.offset, value.shape) == (400, 0, "f32[100]{0}")


def test_totals_add_up_the_allocations():
    report = parse_assignment_report(REPORT)

    # 800 + 16 + 4 + 4 + 1000
    assert report.total_bytes == 1824
    assert report.temp_bytes == 1000


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("BufferAssignment:", "Assignment:", 1, "expected 'BufferAssignment:'"),
        ("size 800, parameter", "size x, parameter", 2, "expected an allocation"),
        ("<4 p{1} @0>", "<four p>", 3, "expected a value like"),
        ("(size=400,offset=0)", "(size=400)", 3, "expected a value"),
        ("constant:", "frozen:", 7, "expected flags of constant"),
        ("output shape is |(f32[100], f32[])|, maybe-live-out", "maybe-live-out, constant", 5, "expected flags of"),
    ],
)
def test_a_line_that_xla_does_not_print_is_refused(old: str, new: str, line: int, message: str):
    with pytest.raises(ParseError, match=message) as caught:
        parse_assignment_report(REPORT.replace(old, new, 1))

    assert caught.value.line == line


def test_a_file_cut_within_a_line_is_refused():
    with pytest.raises(ParseError, match="is the file whole"):
        parse_assignment_report(REPORT[:-10])
