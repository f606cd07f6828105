"""Scheduled modules held against each other."""

import pytest

from layoutsim.errors import InputError
from layoutsim.passes.schedule.compare import compare_schedules
from layoutsim.text import parse_module

MODULE = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8] parameter(0)
  copy.4 = f32[8] copy(p)
  copy.5 = f32[8] copy(p)
  n = f32[8] negate(copy.4)
  a = f32[8] abs(copy.5), control-predecessors={n}
  ROOT t = (f32[8], f32[8]) tuple(n, a)
}
"""


def _outcome(change_from: str, change_to: str):
    assert change_from in MODULE
    return compare_schedules(parse_module(MODULE), parse_module(MODULE.replace(change_from, change_to)))


def test_added_instructions_are_matched_by_what_they_are() -> None:
    outcome = _outcome("copy.4", "copy.77")

    assert outcome.equal
    assert outcome.names == 1
    assert str(outcome) == "copies equal (2/2), control edges equal, schedule equal"


def test_missing_copy_is_named() -> None:
    outcome = _outcome("  copy.5 = f32[8] copy(p)\n", "  u = f32[8] sine(p)\n  copy.5 = f32[8] copy(u)\n")

    assert not outcome.copies_equal
    assert (outcome.copies_ours, outcome.copies_theirs) == (2, 2)
    assert "copy.5" in str(outcome.copies[0])


def test_first_difference_of_the_order_is_named() -> None:
    lines = "  n = f32[8] negate(copy.4)\n  a = f32[8] abs(copy.5), control-predecessors={n}\n"
    n, a = lines.splitlines(keepends=True)
    outcome = _outcome(lines, a.replace(", control-predecessors={n}", "") + n)

    assert outcome.copies_equal
    assert not outcome.schedule_equal
    assert [difference.position for difference in outcome.order] == [3]
    assert "negate" in outcome.order[0].ours
    assert "abs" in outcome.order[0].theirs


def test_missing_control_edge_is_named() -> None:
    outcome = _outcome(", control-predecessors={n}", "")

    assert outcome.schedule_equal
    assert not outcome.equal
    assert [str(d) for d in outcome.control_edges] == ["e: ours control edge n -> a, theirs (none)"]


def test_other_root_is_named() -> None:
    outcome = _outcome("ROOT t = (f32[8], f32[8]) tuple(n, a)", "ROOT t = (f32[8], f32[8]) tuple(a, n)")

    assert len(outcome.roots) == 1


def test_both_need_a_schedule() -> None:
    with pytest.raises(InputError, match="module m has no schedule to compare"):
        compare_schedules(parse_module(MODULE), parse_module(MODULE.replace(", is_scheduled=true", "")))
