"""Variants of copy insertion and of how layout assignment goes about it: what they never cost, and that they compute the same.

Of the orders of propagation, of priorities and of the order of computations nothing of the kind holds: each copies more than
XLA's on some modules and less on others (``tests/passes/layout_assignment/test_procedure.py`` has modules of both kinds).
"""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutsim.ir import Module, Opcode, byte_size
from layoutsim.passes.presets import resolve_preset
from layoutsim.testing.strategies import modules
from layoutsim.testing.trial import Trial
from layoutsim.verify import verify
from tests.properties.test_passes import LAID_OUT, LIMITS, faults, limits, tried

PIPELINES = [
    "xla-gpu-0.10.2{conditional=symmetric}",
    "xla-gpu-0.10.2{in-place=through-bitcasts}",
    "xla-gpu-0.10.2{copies=modulo-degenerate}",
    "xla-cpu-0.10.2{conditional=symmetric in-place=through-bitcasts copies=modulo-degenerate}",
]


@pytest.mark.parametrize("pipeline", PIPELINES)
@given(data=st.data())
def test_pipeline_keeps_every_claim(pipeline: str, data: st.DataObject) -> None:
    module = data.draw(limits("cpu" if "cpu" in pipeline else "gpu").flatmap(modules))
    assume(not verify(module))

    assert faults(tried(resolve_preset(pipeline).to_text(), module)) == {}


def copied_bytes(trial: Trial) -> int:
    """Bytes of the copies that are left, each counted once."""
    return sum(byte_size(i.shape) for c in trial.final.computations for i in c.instructions if i.opcode is Opcode.COPY)


@given(modules(LIMITS))
def test_symmetric_conditionals_never_leave_more_bytes_of_copies(module: Module) -> None:
    assume(not verify(module))
    by_xla, symmetric = (tried(f"{LAID_OUT},copy-insertion{o}", module) for o in ("", "{conditional=symmetric}"))

    assert copied_bytes(symmetric) <= copied_bytes(by_xla)


@given(modules(LIMITS))
def test_comparing_modulo_degenerate_changes_no_layout_and_removes_exactly_the_copies_that_move_nothing(module: Module) -> None:
    assume(not verify(module))
    exact, modulo = (
        tried(f"flatten-call-graph,layout-assignment{{backend=gpu{o}}}", module) for o in ("", " copies=modulo-degenerate")
    )
    was = {(c.name, i.name): str(i.shape) for c in module.computations for i in c.instructions}

    assert inserted(modulo, was) <= inserted(exact, was)
    assert shapes(modulo, was) == shapes(exact, was)


def inserted(trial: Trial, was: dict[tuple[str, str], str]) -> int:
    """How many copies are new."""
    return sum(
        i.opcode is Opcode.COPY and (c.name, i.name) not in was for c in trial.final.computations for i in c.instructions
    )


def shapes(trial: Trial, was: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """With layouts, of what was there before."""
    all_shapes = {(c.name, i.name): str(i.shape) for c in trial.final.computations for i in c.instructions}
    return {place: all_shapes[place] for place in was}
