"""Schedules respect dependencies, and whatever the schedule, a module computes the same inside its assigned memory."""

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from layoutsim.errors import LayoutsimError
from layoutsim.ir import Module, Schedule
from layoutsim.ir.clone import clone_module
from layoutsim.passes import parse_pipeline
from layoutsim.passes.schedule import Algorithm
from layoutsim.testing.problems import random_schedule
from layoutsim.testing.strategies import modules
from layoutsim.testing.trial import run_trial
from layoutsim.verify import verify
from tests.properties.test_passes import LAID_OUT, LIMITS, faults, limits, prepared

READY = f"{LAID_OUT},copy-insertion"


def breaks_dependencies(module: Module) -> bool:
    """Whether an instruction runs before something it needs, by definition."""
    assert module.schedule is not None
    for order in module.schedule.sequences.values():
        done: set[object] = set()
        for instruction in order:
            if not done.issuperset((*instruction.operands, *instruction.control_predecessors)):
                return True
            done.add(instruction)
    return False


@pytest.mark.parametrize("algorithm", Algorithm, ids=lambda a: a.value)
@given(module=modules(LIMITS))
def test_schedulers_respect_dependencies(algorithm: Algorithm, module: Module) -> None:
    work = prepared(module, READY)
    parse_pipeline(f"schedule{{algorithm={algorithm.value}}}").run(work)

    assert not breaks_dependencies(work)
    assert {c.name for c in work.schedule.sequences} >= {work.entry.name}


@given(limits().flatmap(modules), st.integers(0, 10**6))
def test_under_any_schedule_the_module_computes_the_same_in_its_memory(module: Module, seed: int) -> None:
    work = prepared(module, READY)
    work.schedule = random_schedule(seed, work)
    assert not breaks_dependencies(work)

    trial = run_trial((), work, backend="gpu", seed=seed)

    assert faults(trial, ("valid", "schedule", "same results", "memory")) == {}


@given(modules(LIMITS), st.integers(0, 10**6))
def test_copies_removed_under_any_schedule_were_not_needed(module: Module, seed: int) -> None:
    work = prepared(module, READY)
    work.schedule = random_schedule(seed, work)
    try:
        trial = run_trial(parse_pipeline("post-scheduling-copies").passes, work, backend="gpu", seed=seed)
    except LayoutsimError as error:
        event(f"refused: {error}")
        assume(False)
        raise

    assert faults(trial) == {}


def test_a_schedule_that_breaks_dependencies_is_caught() -> None:
    from layoutsim.testing import random_module

    for seed in range(20):
        module = random_module(seed, LIMITS)
        work = clone_module(module)
        work.schedule = Schedule({work.entry: list(reversed(work.entry.instructions))})
        if work.entry.root.operand_count:
            assert breaks_dependencies(work)
            assert "schedule" in faults(run_trial((), work), ("schedule",))
            assert any("[H3]" in str(finding) for finding in verify(work))
