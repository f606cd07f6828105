"""One transpose instead of two around an all-gather (layout spec, 15.E)."""

import pytest

from layoutsim.ir import Instruction, Module, shape_text
from layoutsim.passes.all_gather_major_dimension import AllGatherMajorDimension
from layoutsim.text import parse_module


def around(copied: str, gathered: str, final: str, dimension: int, given: str = "s4[3,7,4]{2,1,0}", more: str = "") -> Module:
    return parse_module(
        f"""
HloModule m, replica_count=2
ENTRY e {{
  p = {given} parameter(0)
  c = {copied} copy(p)
  g = {gathered} all-gather(c), dimensions={{{dimension}}}, replica_groups={{{{0,1}}}}
  {more or f"ROOT d = {final} copy(g)"}
}}"""
    )


def chain(value: Instruction) -> list[str]:
    out = [f"{value.opcode} {shape_text(value.shape)}"]
    return out + (chain(value.operand(0)) if value.operand_count else [])


def test_the_input_is_gathered_along_its_most_major_dimension() -> None:  # E1
    module = around("s4[3,7,4]{1,0,2}", "s4[3,7,8]{1,0,2}", "s4[3,7,8]{0,2,1}", 2)
    outcome = AllGatherMajorDimension().run(module)

    assert outcome.changed
    assert chain(module.entry.root) == [
        "bitcast s4[3,7,8]{0,2,1}",
        "copy s4[2,3,7,4]{1,3,0,2}",
        "bitcast s4[2,3,7,4]{3,2,1,0}",
        "all-gather s4[6,7,4]{2,1,0}",
        "parameter s4[3,7,4]{2,1,0}",
    ]


def test_a_gather_in_the_middle() -> None:  # E2
    module = around("s4[8,16,32]{2,0,1}", "s4[8,64,32]{2,0,1}", "s4[8,64,32]{2,1,0}", 1, given="s4[8,16,32]{2,1,0}")
    AllGatherMajorDimension().run(module)

    assert chain(module.entry.root) == [
        "bitcast s4[8,64,32]{2,1,0}",
        "copy s4[4,8,16,32]{3,2,0,1}",
        "bitcast s4[4,8,16,32]{3,2,1,0}",
        "all-gather s4[32,16,32]{2,1,0}",
        "parameter s4[8,16,32]{2,1,0}",
    ]


def test_an_input_whose_major_dimension_is_not_the_first() -> None:  # E3
    module = around("s4[3,7,4]{1,0,2}", "s4[3,7,8]{1,0,2}", "s4[3,7,8]{2,1,0}", 2, given="s4[3,7,4]{2,0,1}")
    AllGatherMajorDimension().run(module)
    _, copy, split, gather, _ = chain(module.entry.root)

    assert gather == "all-gather s4[3,14,4]{2,0,1}"
    assert split == "bitcast s4[3,2,7,4]{3,0,2,1}"
    assert copy == "copy s4[3,2,7,4]{3,1,2,0}"


@pytest.mark.parametrize(
    "more",
    [
        "ROOT d = s4[3,7,8]{1,0,2} negate(g)",  # E6: no copy behind
        "d = s4[3,7,8]{2,1,0} copy(g)\n ROOT t = (s4[3,7,8], s4[3,7,8]) tuple(d, g)",  # E8: the gather has another user
        "d = s4[3,7,8]{2,1,0} copy(g)\n ROOT t = (s4[3,7,8], s4[3,7,4]) tuple(d, c)",  # E7: the copy has another user
    ],
)
def test_other_neighbourhoods_are_left_alone(more: str) -> None:
    module = around("s4[3,7,4]{1,0,2}", "s4[3,7,8]{1,0,2}", "", 2, more=more)
    before = module.to_text()

    assert not AllGatherMajorDimension().run(module).changed
    assert module.to_text() == before
