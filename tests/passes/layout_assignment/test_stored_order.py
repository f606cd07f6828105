"""Pairs of dumps whose compiler stored instructions, or users of one, in another order than it printed them."""

from layoutsim.passes.layout_assignment import BackendName, LayoutAssignment, assign_layouts, cpu_backend, gpu_backend
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.text import parse_module

BEFORE = """
HloModule m, replica_count=4, entry_computation_layout={(f32[2,4,1,8]{3,2,1,0})->f32[2,16,8]{2,1,0}}
ENTRY e {
  p = f32[2,4,1,8] parameter(0)
  r = f32[2,4,8] reshape(p)
  ROOT g = f32[2,16,8] all-gather(r), dimensions={1}, replica_groups={{0,1,2,3}}
}"""
CPU = LayoutAssignment(BackendName.CPU)


def _compiled(stored: list[str]):
    """What a compiler makes of the module that stores its instructions in this order."""
    module = parse_module(BEFORE)
    named = {i.name: i for i in module.entry.instructions}
    module.entry.reorder(named[name] for name in stored)
    assign_layouts(module, cpu_backend())
    return module


def test_the_order_in_the_text_is_tried_first() -> None:
    found = check_against(parse_module(BEFORE), _compiled(["p", "r", "g"]), CPU)

    assert found.agrees
    assert found.stored_last == ()


def test_an_instruction_stored_behind_its_user_is_found() -> None:
    first, second = _compiled(["p", "r", "g"]), _compiled(["p", "g", "r"])
    assert first.to_text() != second.to_text()
    found = check_against(parse_module(BEFORE), second, CPU)

    assert found.agrees
    assert found.stored_last == ("e/r",)


def test_other_differences_stay_mismatches() -> None:
    theirs = parse_module(
        _compiled(["p", "r", "g"]).to_text().replace("f32[2,16,8]{2,0,1} all-gather", "f32[2,16,8]{0,2,1} all-gather")
    )
    found = check_against(parse_module(BEFORE), theirs, CPU)

    assert [m.name for m in found.mismatches] == ["g"]
    assert found.stored_last == ()


def test_the_module_before_stays_as_it_is() -> None:
    before = parse_module(BEFORE)
    text = before.to_text()
    check_against(before, _compiled(["p", "g", "r"]), CPU)

    assert before.to_text() == text


SYMMETRIZED = """
HloModule m, entry_computation_layout={(f32[4,4]{1,0})->(f32[4,4]{1,0}, f32[])}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
ENTRY e {
  p = f32[4,4] parameter(0)
  a = f32[4,4] negate(p)
  t = f32[4,4] transpose(a), dimensions={1,0}
  s = f32[4,4] add(a, t)
  h = f32[4,4] negate(s)
  i = f32[] constant(0)
  d = f32[] reduce(h, i), dimensions={0,1}, to_apply=sum
  ROOT r = (f32[4,4], f32[]) tuple(a, d)
}"""
"""``a`` tells its users its layout, the last one first; a transpose and what it is added to cannot both move nothing."""
GPU = LayoutAssignment(BackendName.GPU)


def _symmetrized(*, last: str):
    module = parse_module(SYMMETRIZED)
    module.entry.find(last).move_last_among_users()
    assign_layouts(module, gpu_backend())
    return module


def test_a_user_registered_before_its_rivals_is_found() -> None:
    first, second = _symmetrized(last="r"), _symmetrized(last="t")
    assert first.to_text() != second.to_text()
    found = check_against(parse_module(SYMMETRIZED), second, GPU)

    assert found.agrees
    assert found.stored_last == ()
    assert found.registered_last == ("e/t",)


def test_no_order_of_users_hides_another_difference() -> None:
    theirs = parse_module(_symmetrized(last="r").to_text().replace("h = f32[4,4]{1,0}", "h = f32[4,4]{0,1}"))
    found = check_against(parse_module(SYMMETRIZED), theirs, GPU)

    assert not found.agrees
    assert found.registered_last == ()
