"""One transpose instead of two around a reduce-scatter."""

import pytest

from layoutsim.ir import Instruction, Module, shape_text
from layoutsim.passes.reduce_scatter_major_dimension import ReduceScatterMajorDimension
from layoutsim.testing import check_pass
from layoutsim.text import parse_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, verify


def around(given: str, copied: str, scattered: str, final: str, dimension: int, more: str = "") -> Module:
    return parse_module(f"""HloModule m, replica_count=2
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  p = f32{given} parameter(0)
  c = f32{copied} copy(p)
  s = f32{scattered} reduce-scatter(c), dimensions={{{dimension}}}, replica_groups={{{{0,1}}}}, to_apply=add
  {more or f"ROOT d = f32{final} copy(s)"}
}}""")


LAST = ("[3,7,8]{2,1,0}", "[3,7,8]{1,0,2}", "[3,7,4]{1,0,2}", "[3,7,4]{2,1,0}", 2)
MIDDLE = ("[4,6,5]{2,1,0}", "[4,6,5]{2,0,1}", "[4,3,5]{2,0,1}", "[4,3,5]{0,1,2}", 1)
OTHER_ORDER = ("[3,7,8]{0,2,1}", "[3,7,8]{1,0,2}", "[3,7,4]{1,0,2}", "[3,7,4]{2,0,1}", 2)


def chain(value: Instruction) -> list[str]:
    out = [f"{value.opcode} {shape_text(value.shape)}"]
    return out + (chain(value.operand(0)) if value.operand_count else [])


def test_the_result_is_scattered_along_its_most_major_dimension() -> None:
    module = around(*LAST)
    outcome = ReduceScatterMajorDimension().run(module)

    assert outcome.changed
    assert chain(module.entry.root) == [
        "reduce-scatter f32[3,7,4]{2,1,0}",
        "bitcast f32[6,7,4]{2,1,0}",
        "copy f32[3,7,2,4]{3,1,0,2}",
        "bitcast f32[3,7,2,4]{3,2,1,0}",
        "parameter f32[3,7,8]{2,1,0}",
    ]
    assert module.entry.root.payload.dimension == 0


def test_a_result_whose_major_dimension_is_the_last() -> None:
    module = around(*MIDDLE)
    ReduceScatterMajorDimension().run(module)

    assert chain(module.entry.root)[:3] == [
        "reduce-scatter f32[4,3,5]{0,1,2}",
        "bitcast f32[4,3,10]{0,1,2}",
        "copy f32[4,2,3,5]{0,2,3,1}",
    ]


@pytest.mark.parametrize("arguments", [LAST, MIDDLE, OTHER_ORDER])
def test_it_computes_the_same(arguments: tuple[str, str, str, str, int]) -> None:
    module = around(*arguments)

    assert check_pass(ReduceScatterMajorDimension(), modules=[module]).failure is None
    ReduceScatterMajorDimension().run(module)
    assert verify(module, AFTER_LAYOUT_ASSIGNMENT) == []


@pytest.mark.parametrize(
    "more", ["ROOT n = f32[3,7,4]{1,0,2} negate(s)", "d = f32[3,7,4] copy(s)\n  ROOT t = (f32[3,7,4], f32[3,7,4]) tuple(d, s)"]
)
def test_without_both_copies_nothing_changes(more: str) -> None:
    module = around(*LAST, more=more)
    before = module.to_text()

    assert not ReduceScatterMajorDimension().run(module).changed
    assert module.to_text() == before
