"""Entry layouts that are fixed, partly fixed or automatic, and inputs that alias outputs (layout spec, 15.A)."""

import pytest

from layoutsim.errors import LayoutError
from layoutsim.ir import shape_text
from layoutsim.passes.layout_assignment import GENERIC, assign_layouts
from layoutsim.text import parse_module
from tests.passes.layout_assignment.running import Run


def test_an_automatic_parameter_gets_the_layout_that_makes_its_transpose_free() -> None:  # A50
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[32,650], s32[16,1,18]{0,1,2})->(f32[650,32]{1,0}, s32[18,16,1]{0,1,2})}
ENTRY e {
  p = f32[32,650] parameter(0)
  t = f32[650,32] transpose(p), dimensions={1,0}
  i = s32[16,1,18] parameter(1)
  u = s32[18,16,1] transpose(i), dimensions={2,0,1}
  ROOT r = (f32[650,32], s32[18,16,1]) tuple(t, u)
}"""
    )

    assert run.entry_layout.startswith("({0,1}, {0,1,2}) -> ")


TUPLE_PARAMETER = """
HloModule m, entry_computation_layout={((f32[32,650]{0,1}, s32[16,1,18]SECOND))->(f32[208,100], s32[2,144])}
ENTRY e {
  p = (f32[32,650], s32[16,1,18]) parameter(0)
  x = f32[32,650] get-tuple-element(p), index=0
  r = f32[208,100] reshape(x)
  i = s32[16,1,18] get-tuple-element(p), index=1
  s = s32[2,144] reshape(i)
  ROOT t = (f32[208,100], s32[2,144]) tuple(r, s)
}"""


@pytest.mark.parametrize(("second", "expected"), [("{0,1,2}", "{0,1,2}"), ("", "{2,1,0}")])
def test_fixed_leaves_of_a_tuple_parameter_stay_and_free_ones_are_filled(second: str, expected: str) -> None:  # A51, A52
    run = Run(TUPLE_PARAMETER.replace("SECOND", second))

    assert run.entry_layout == f"(({{0,1}}, {expected})) -> ({{1,0}}, {{1,0}})"


@pytest.mark.parametrize(("parameter", "result"), [("", ""), ("", "{1,0}"), ("{1,0}", "")])
def test_an_aliased_input_and_output_end_with_one_layout(parameter: str, result: str) -> None:  # A53 to A55
    run = Run(
        f"""
HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }},
  entry_computation_layout={{(f32[65,65]{parameter}, f32[4225]{{0}})->f32[65,65]{result}}}
ENTRY e {{
  p = f32[65,65] parameter(0)
  q = f32[4225] parameter(1)
  r = f32[65,65] reshape(q)
  a = f32[65,65] add(p, r)
  ROOT t = f32[65,65] transpose(a), dimensions={{1,0}}
}}""".replace("may-alias) },\n  entry", "may-alias) }, entry")
    )
    entry = run.module.entry_layout
    assert entry is not None

    assert shape_text(entry.parameters[0]) == shape_text(entry.result)


def test_a_reduce_decides_its_layout_from_its_users_only() -> None:  # F2, generic part
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,16,64]{0,1,2})->f32[8,16]}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8,16,64] parameter(0)
  n = f32[8,16,64] negate(p)
  z = f32[] constant(0)
  ROOT r = f32[8,16] reduce(n, z), dimensions={2}, to_apply=sum
}"""
    )

    assert run.layouts("n", "r") == {"n": "{0,1,2}", "r": "{1,0}"}
    assert run.entry_layout == "({0,1,2}) -> {1,0}"


def test_a_module_without_parameters_runs() -> None:
    run = Run("HloModule m\nENTRY e { ROOT c = f32[2,3] constant({{1,2,3},{4,5,6}}) }")

    assert run.layout("c") == "{1,0}"


def test_entry_layouts_of_another_arity_are_refused() -> None:
    module = parse_module("HloModule m\nENTRY e { p = f32[2] parameter(0)\n ROOT n = f32[2] negate(p) }")
    other = parse_module("HloModule m\nENTRY e { ROOT c = f32[] constant(1) }")
    module.entry_layout = other.entry_layout

    with pytest.raises(LayoutError, match="entry layout has 0 parameters, expected 1"):
        assign_layouts(module, GENERIC)


def test_entry_layouts_of_another_shape_are_refused() -> None:
    module = parse_module("HloModule m\nENTRY e { p = f32[2] parameter(0)\n ROOT n = f32[2] negate(p) }")
    other = parse_module("HloModule m\nENTRY e { p = f32[3] parameter(0)\n ROOT n = f32[3] negate(p) }")
    module.entry_layout = other.entry_layout

    with pytest.raises(LayoutError, match=r"entry layout has f32\[3\]\{0\} for p, expected the layout of f32\[2\]\{0\}"):
        assign_layouts(module, GENERIC)


def test_two_copies_for_two_slots_of_one_value() -> None:  # F1, 7.6
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,16]{0,1}, f32[8,16]{1,0})->(f32[8,16]{1,0}, f32[8,16]{1,0})}
ENTRY e {
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  a = f32[8,16] add(p, p)
  b = f32[8,16] multiply(a, q)
  ROOT t = (f32[8,16], f32[8,16]) tuple(b, p)
}"""
    )

    assert run.operands("a") == ["copy{1,0}(p)", "copy{1,0}(p)"]
    assert run.expression(run.root) == "tuple(t[0], copy{1,0}(t[1]))"
    assert [c.copy.name for c in run.result.copies] == ["copy", "copy.1", "copy.2"]
    assert [i.name for i in run.root.operands] == ["get-tuple-element", "copy.2"]
