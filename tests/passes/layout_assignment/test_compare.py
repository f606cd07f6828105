"""Comparing our result with a compiler's."""

from layoutsim.passes.layout_assignment import assign_layouts
from layoutsim.passes.layout_assignment.compare import compare_layouts, instruction_names
from layoutsim.text import parse_module
from tests.passes.layout_assignment.running import GPU
from tests.passes.layout_assignment.test_gpu import GATHER

THEIRS = """
HloModule m, replica_count=8, entry_computation_layout={(f32[1,4,8]{2,1,0})->f32[1,32,8]{2,1,0}}
ENTRY e {
  p = f32[1,4,8]{2,1,0} parameter(0)
  copy.7 = f32[1,4,8]{2,0,1} copy(p)
  g = f32[1,32,8]{2,0,1} all-gather(copy.7), dimensions={1}, replica_groups={{0,1,2,3,4,5,6,7}}
  n = f32[1,32,8]{2,0,1} negate(g)
  ROOT copy.9 = f32[1,32,8]{2,1,0} copy(n)
}"""


def _compare(theirs: str):
    ours = parse_module(GATHER)
    names = instruction_names(ours)
    assign_layouts(ours, GPU)
    return compare_layouts(names, ours, parse_module(theirs))


def test_names_of_inserted_copies_do_not_matter() -> None:
    found = _compare(THEIRS)

    assert found.mismatches == ()
    assert (found.instructions, found.copies_ours, found.copies_theirs) == (3, 2, 2)


def test_a_missing_copy_and_another_layout_are_reported() -> None:
    found = _compare(
        """
HloModule m, replica_count=8, entry_computation_layout={(f32[1,4,8]{2,1,0})->f32[1,32,8]{2,1,0}}
ENTRY e {
  p = f32[1,4,8]{2,1,0} parameter(0)
  g = f32[1,32,8]{2,1,0} all-gather(p), dimensions={1}, replica_groups={{0,1,2,3,4,5,6,7}}
  ROOT n = f32[1,32,8]{2,1,0} negate(g)
}"""
    )

    assert [(m.name, m.ours, m.theirs) for m in found.mismatches] == [
        ("g", "f32[1,32,8]{2,0,1}", "f32[1,32,8]{2,1,0}"),
        ("g", "operand 0 = f32[1,4,8]{2,0,1} copy(p)", "operand 0 = p"),
        ("n", "f32[1,32,8]{2,0,1}", "f32[1,32,8]{2,1,0}"),
        ("(root)", "f32[1,32,8]{2,1,0} copy(n)", "n"),
    ]
    assert found.to_json()["copies_theirs"] == 0


def test_entry_layouts_are_compared() -> None:
    found = _compare(THEIRS.replace("->f32[1,32,8]{2,1,0}}", "->f32[1,32,8]{0,1,2}}"))

    assert [m.name for m in found.mismatches] == ["(entry layout)"]
