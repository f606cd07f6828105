"""The judge of joint layout assignment takes what is right and refuses planted faults."""

from pathlib import Path

import pytest
from attrs import evolve

from layoutsim.experiments.joint import JointResult, assign_jointly
from layoutsim.ir import Module, Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.load import load
from layoutsim.testing.joint_judge import judge_joint
from layoutsim.text import parse_module

pytest.importorskip("scipy")

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"

_FORCED = """HloModule forced, entry_computation_layout={(f32[8,16]{1,0})->f32[8,16]{0,1}}

ENTRY main {
  p = f32[8,16] parameter(0)
  ROOT n = f32[8,16] negate(p)
}
"""


def _forced() -> tuple[Module, JointResult]:
    module = parse_module(_FORCED)
    return module, assign_jointly(module)


def test_a_right_answer_stands() -> None:
    verdict = judge_joint(*_forced())

    assert (verdict.faults, verdict.not_executed) == ((), "")


def test_an_answer_that_computes_something_else_is_refused() -> None:
    result = _forced()[1]
    wrong = parse_module(_FORCED.replace("negate", "abs"))
    verdict = judge_joint(wrong, result)

    assert any("negate" in fault for fault in verdict.faults)


def test_an_answer_with_its_operands_the_wrong_way_round_is_refused_by_its_values() -> None:
    module = parse_module(
        "HloModule m\nENTRY e {\n  p = f32[8,16] parameter(0)\n  q = f32[8,16] parameter(1)\n"
        "  ROOT n = f32[8,16] subtract(p, q)\n}\n"
    )
    result = assign_jointly(module)
    planted = clone_module(result.module)
    n, p, q = (planted.find("e", name) for name in "npq")
    n.replace_operand(0, q)
    n.replace_operand(1, p)

    (fault,) = judge_joint(module, evolve(result, module=planted)).faults
    assert fault.startswith("on device 0 the result differs: element ")


def test_an_answer_without_the_copy_that_the_entry_demands_is_refused() -> None:
    module, result = _forced()
    planted = clone_module(result.module)
    (copy,) = [i for i in planted.entry.instructions if i.opcode is Opcode.COPY]
    planted.entry.root = copy.operand(0)

    assert judge_joint(module, evolve(result, module=planted)).faults != ()


def test_an_answer_that_moves_more_than_xla_is_refused() -> None:
    module, result = _forced()
    verdict = judge_joint(module, evolve(result, xla=evolve(result.xla, copied=0, transposed=0)))

    assert verdict.faults == ("512 bytes moved, XLA 0",)


@pytest.mark.parametrize("name", ["gathers", "loops", "collectives", "lora_axis1flax"])
def test_joint_answers_for_programs_stand(name: str) -> None:
    module = load(next((_FIXTURES / name / "gpu-0.10.2").glob("before_layout*")))
    verdict = judge_joint(module, assign_jointly(module, time_limit=5.0))

    assert (verdict.faults, verdict.not_executed) == ((), "")
