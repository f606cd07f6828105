"""Movements: what only copies, transposes or converts."""

import pytest

from layoutsim.ir.instruction import Instruction
from layoutsim.memory.movement import movement_of
from layoutsim.text import parse_module


def root(body: str, fused: str = "") -> Instruction:
    return parse_module(f"HloModule m\n{fused}\nENTRY e {{\n{body}\n}}\n").entry.root


@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ("  p = f32[4,8]{1,0} parameter(0)\n  ROOT c = f32[4,8]{0,1} copy(p)", True),
        ("  p = f32[4,8]{1,0} parameter(0)\n  ROOT c = f32[4,8]{1,0} copy(p)", False),
        ("  p = f32[1,8]{1,0} parameter(0)\n  ROOT c = f32[1,8]{0,1} copy(p)", False),
        ("  p = f32[4,8]{1,0} parameter(0)\n  ROOT t = f32[8,4]{1,0} transpose(p), dimensions={1,0}", True),
        ("  p = f32[4,8]{1,0} parameter(0)\n  ROOT t = f32[8,4]{0,1} transpose(p), dimensions={1,0}", False),
        ("  p = f32[4,1,8]{2,1,0} parameter(0)\n  ROOT t = f32[1,4,8]{2,1,0} transpose(p), dimensions={1,0,2}", False),
        ("  p = f32[0,8]{1,0} parameter(0)\n  ROOT c = f32[0,8]{0,1} copy(p)", False),
    ],
)
def test_bytes_move_if_dimensions_larger_than_one_change_order(body: str, moves: bool):
    movement = movement_of(root(body))

    assert movement is not None
    assert movement.transposes is moves


FUSED = """
fused {
  a = bf16[4,8]{1,0} parameter(0)
  b = f32[4,8]{1,0} convert(a)
  c = f32[8,4]{1,0} transpose(b), dimensions={1,0}
  d = f32[4,8]{1,0} exponential(b)
  ROOT t = (f32[8,4]{1,0}, f32[4,8]{1,0}) tuple(c, d)
}
"""


def test_a_fusions_output_is_followed_to_its_operand():
    fusion = root(
        "  p = bf16[4,8]{1,0} parameter(0)\n  ROOT f = (f32[8,4]{1,0}, f32[4,8]{1,0}) fusion(p), kind=kLoop, calls=fused",
        FUSED,
    )
    movement = movement_of(fusion, (0,))

    assert movement is not None
    assert [step.name for step in movement.steps] == ["c", "b"]
    assert movement.source is fusion.operand(0)
    assert (movement.transposes, movement.widens, movement.converts) == (True, True, True)
    assert movement_of(fusion, (1,)) is None


def test_what_computes_is_no_movement():
    assert movement_of(root("  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)")) is None


def test_narrowing_is_not_widening():
    movement = movement_of(root("  p = f32[4]{0} parameter(0)\n  ROOT n = bf16[4]{0} convert(p)"))

    assert movement is not None
    assert (movement.widens, movement.converts) == (False, True)
