"""The judge of assignments accepts right ones and names the values that get in each other's way in broken ones."""

import pytest
from attrs import evolve

from layoutsim.errors import InputError
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.judge import judge_assignment
from layoutsim.memory.profile import GPU
from layoutsim.memory.report_format import AssignmentReport, ReportedAllocation, ReportedValue
from layoutsim.memory.reported import assignment_report
from layoutsim.text import parse_module

MODULE = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[100]{0} parameter(0)
  a = f32[100]{0} negate(p)
  b = f32[100]{0} reverse(a), dimensions={0}
  c = f32[100]{0} reverse(b), dimensions={0}
  d = f32[100]{0} add(b, c)
  e = f32[200]{0} concatenate(d, b), dimensions={0}
  ROOT r = f32[1]{0} slice(e), slice={[0:1]}
}
"""

TAKE_OVER = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[100]{0} parameter(0)
  a = f32[100]{0} negate(p)
  c = f32[100]{0} WRITES
  d = f32[200]{0} concatenate(c, c), dimensions={0}
  ROOT r = f32[1]{0} slice(d), slice={[0:1]}
}
"""


@pytest.fixture(scope="module")
def assignment() -> BufferAssignment:
    return assign_buffers(parse_module(MODULE), GPU)


def judge(assignment: BufferAssignment, report: AssignmentReport) -> list[str]:
    overlaps = judge_assignment(report, assignment.aliases, assignment.ranges)
    return [f"{o.first.name} {o.second.name} {o.low}..{o.high}" for o in overlaps]


def moved(report: AssignmentReport, name: str, offset: int) -> AssignmentReport:
    """The report with one value at another offset."""

    def move(value: ReportedValue) -> ReportedValue:
        return evolve(value, offset=offset) if value.value.name == name else value

    def change(allocation: ReportedAllocation) -> ReportedAllocation:
        return evolve(allocation, values=tuple(map(move, allocation.values)))

    return evolve(report, allocations=tuple(map(change, report.allocations)))


def test_our_assignment_is_accepted(assignment: BufferAssignment):
    assert judge(assignment, assignment_report(assignment)) == []


def test_a_value_moved_onto_a_live_one_is_found(assignment: BufferAssignment):
    report = assignment_report(assignment)
    places = {v.value.name: v.offset for a in report.allocations for v in a.values if a.preallocated_temp}

    # b is live while c is; d takes over c's place
    assert places["b"] != places["c"] == places["d"]
    assert judge(assignment, moved(report, "c", places["b"])) == [f"<2 b> <3 c> {places['b']}..{places['b'] + 400}"]


def test_a_partial_overlap_is_found_with_its_bytes(assignment: BufferAssignment):
    report = assignment_report(assignment)
    places = {v.value.name: v.offset for a in report.allocations for v in a.values if a.preallocated_temp}
    low, high = places["b"] + 256, places["b"] + 400

    assert judge(assignment, moved(report, "c", low))[0].endswith(f"{low}..{high}")


def test_taking_over_the_operand_is_allowed_only_where_the_rules_allow_it():
    # c reads a backwards while it is written: a reverse cannot work in its operand's place, a negate can.
    for instruction, expected in (("negate(a)", []), ("reverse(a), dimensions={0}", ["<1 a> <2 c> 0..400"])):
        assignment = assign_buffers(parse_module(TAKE_OVER.replace("WRITES", instruction)), GPU)
        report = moved(moved(assignment_report(assignment), "a", 0), "c", 0)

        assert judge(assignment, report) == expected


def test_a_report_of_another_module_is_refused(assignment: BufferAssignment):
    other = parse_module(MODULE.replace("a = f32", "x = f32").replace("(a)", "(x)"))

    with pytest.raises(InputError, match="which the module does not have"):
        judge(assignment, assignment_report(assign_buffers(other, GPU)))
