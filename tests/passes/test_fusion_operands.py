"""Equal operands of fusions become one."""

from layoutsim.ir import Instruction, Module
from layoutsim.passes.fusion_operands import merge_equal_operands
from layoutsim.text import parse_module
from layoutsim.verify import verify


def module(operands: str, kind: str = "kLoop") -> Module:
    return parse_module(f"""
        HloModule m
        f {{ a = f32[4] parameter(0)
          b = f32[4] parameter(1)
          c = f32[4] parameter(2)
          d = f32[4] subtract(a, b)
          ROOT e = f32[4] subtract(d, c) }}
        ENTRY e {{ x = f32[4] parameter(0)
          y = f32[4] parameter(1)
          ROOT r = f32[4] fusion({operands}), kind={kind}, calls=f }}
    """)


def names(instructions: tuple[Instruction, ...]) -> list[str]:
    return [i.name for i in instructions]


def test_the_first_parameter_takes_over() -> None:
    changed = module("x, y, x")

    assert merge_equal_operands(changed.entry.root)

    body = changed.entry.root.to_apply
    assert names(changed.entry.root.operands) == ["x", "y"]
    assert names(body.parameters) == ["a", "b"]
    assert names(body.root.operands) == ["d", "a"]
    assert verify(changed) == []


def test_parameters_behind_a_removed_one_move_up() -> None:
    changed = module("x, x, y")

    assert merge_equal_operands(changed.entry.root)

    assert [(p.name, p.parameter_number) for p in changed.entry.root.to_apply.parameters] == [("a", 0), ("c", 1)]
    assert verify(changed) == []


def test_custom_fusions_stay() -> None:
    changed = module("x, x, x", kind="kCustom")

    assert not merge_equal_operands(changed.entry.root)
    assert names(changed.entry.root.operands) == ["x", "x", "x"]
