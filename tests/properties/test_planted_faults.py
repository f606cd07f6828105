"""Every claim of ``check_pass`` catches a pass that breaks it, and makes the failure small."""

import pytest

from layoutsim.passes import Pass
from layoutsim.passes.registry import parse_pipeline
from layoutsim.testing import Limits
from layoutsim.testing.check import ACROSS_PROCESSES, RUNS, CheckFailedError, check_heap, check_pass
from layoutsim.text import ParseOptions, parse_module
from tests.properties import faults

LAID_OUT = "flatten-call-graph,layout-assignment{backend=gpu}"
FAULTS = [
    (faults.Crash(), RUNS, "", "AssertionError: too many instructions", 13),
    (faults.WrongShape(), "valid", "", "transpose", 3),
    (faults.Liar(), "honest", "", "says that it changed nothing", 2),
    (faults.Forgetful(), "repeatable", "", "gives another module each time", 1),
    (faults.Unreadable(), "prints", "", "is not read", 1),
    (faults.MergeTransposes(), "same results", "", "differs", 3),
    (faults.SwapOperands(), "same results", "", "differs", 3),
    (faults.NextDevice(), "same results", "", "on device", 3),
    (faults.FreeGathers(), "layouts", "", "must be most major", 2),
    (faults.SpoiledLayouts(spoil=faults.turn_loop_bodies), "layouts", "", "body", 20),
    (faults.SpoiledLayouts(spoil=faults.turn_parameters), "layouts", "", "of the entry layout", 1),
    (faults.SpoiledLayouts(spoil=faults.unset_one), "layouts", "", "has no layout", 1),
    (faults.SpoiledLayouts(spoil=faults.drop_an_instruction), "layouts", "", "is gone", 4),
    (faults.BackwardSchedule(), "schedule", "", "runs before", 8),
    (faults.DropCopies(), "memory", f"{LAID_OUT},copy-insertion", "in its assigned memory", 20),
]


def _then_schedule(subject: Pass, claim: str) -> object:
    """Memory can be judged where there is a schedule."""
    if claim != "memory":
        return subject
    return parse_pipeline("schedule").__class__((subject, *parse_pipeline("schedule").passes))


def _limits(subject: Pass) -> Limits:
    """Everything, or where that would take long, what the fault needs."""
    only = {"merge-transposes": {"transpose"}, "next-device": {"collective_permute", "unary"}}
    return Limits(devices=4, executable=True, only=frozenset(only.get(subject.name, ())))


@pytest.mark.parametrize(("subject", "claim", "after", "says", "at_most"), FAULTS, ids=lambda v: getattr(v, "name", None))
def test_fault_is_caught_and_made_small(subject: Pass, claim: str, after: str, says: str, at_most: int) -> None:
    with pytest.raises(CheckFailedError) as caught:
        check_pass(_then_schedule(subject, claim), after=after, examples=400, claims=[claim], limits=_limits(subject))

    failure = caught.value.report.failure
    assert failure.claim == claim
    assert says in failure.message
    module = parse_module(failure.before, options=ParseOptions(keep_module_auto_layouts=True))
    assert module.instruction_count <= at_most, failure.before


def test_dependence_on_hashes_shows_in_another_process() -> None:
    with pytest.raises(CheckFailedError, match="under another hash seed") as caught:
        check_pass(faults.HashOrder(), examples=5, claims=[ACROSS_PROCESSES])

    assert caught.value.report.failure.claim == ACROSS_PROCESSES


@pytest.mark.parametrize(
    ("heap", "says"),
    [
        (faults.AllAtZero(), "are both live"),
        (faults.Unaligned(), "is not a multiple of"),
        (faults.Loser(), "has no chunk"),
        (faults.Understated(), "are not within heap"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_wrong_placement_is_caught(heap: object, says: str) -> None:
    with pytest.raises(CheckFailedError, match=says):
        check_heap(heap)
