"""What ignoring dimensions of size 1 saves.

"The degenerate-aware rule never copies more bytes than the positional one" is false: layouts spread by heuristics, and an order
that the positional rule forces for no reason can happen to suit what comes later. :data:`COUNTEREXAMPLE` is the smallest module
that was found, and of the recorded training steps ``lora_axis1flax`` is one (there, the real compiler's own way of ignoring
such dimensions, since jax 0.6.2, costs the same). What does hold:

1. Of a collective on its own, as frontends write it, it costs the same: both rules demand the same order in memory.
2. For stacks of weights sliced layer by layer and gathered, the case it is made for, it never costs more.
3. The recorded training steps cost what :data:`STEPS` says.
"""

from pathlib import Path

import pytest
from hypothesis import find, given, settings

from layoutsim.experiments import simulate
from layoutsim.ir import Module
from layoutsim.load import load
from layoutsim.text import parse_module
from layoutsim.verify import check
from tests.properties.stacks import single_collectives, stack_modules

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"
POSITIONAL = "flatten-call-graph,layout-assignment{backend=gpu}"
AWARE = (
    "flatten-call-graph,layout-assignment{backend=gpu all-gather=ignore-degenerate reduce-scatter=ignore-degenerate "
    "all-to-all=ignore-degenerate ragged-all-to-all=ignore-degenerate}"
)


def transposing_bytes(module: Module, rules: str) -> int:
    """Bytes of the transposing copies, those in loops as often as they run."""
    return sum(copy.size_bytes * (copy.runs or 1) for copy in simulate(module, rules, measure_memory=False).transposing_copies)


def saves(module: Module, *, aware: str = AWARE, reference: str = POSITIONAL) -> bool:
    """Whether ``aware`` copies at most what the positional rule does."""
    return transposing_bytes(module, aware) <= transposing_bytes(module, reference)


@given(single_collectives())
def test_of_a_collective_alone_it_costs_the_same(module: Module) -> None:
    check(module)

    assert transposing_bytes(module, AWARE) == transposing_bytes(module, POSITIONAL)


@given(stack_modules())
def test_of_gathered_stacks_it_never_costs_more(module: Module) -> None:
    check(module)

    assert saves(module)


STEPS = {
    "lora_axis0": (540_672, 0),
    "lora_axis1": (49_152, 0),
    "lora_axis1flax": (49_152, 491_520),
    "lora_minor": (1_130_496, 1_081_344),
    "lora_mixed": (540_672, 196_608),
}
"""Bytes of transposing copies under the positional and under the other rule."""


@pytest.mark.parametrize("step", STEPS)
def test_bytes_of_recorded_training_steps(step: str) -> None:
    module = load(FIXTURES / step / "gpu-0.6.1" / "before_layout.hlo.gz")

    assert (transposing_bytes(module, POSITIONAL), transposing_bytes(module, AWARE)) == STEPS[step]


COUNTEREXAMPLE = """HloModule more, replica_count=4
ENTRY main {
  p = f32[1,4,1,1] parameter(0)
  exchanged = f32[1,4,1,1] all-to-all(p), replica_groups={{0,1,2,3}}, dimensions={1}
  both = f32[2,4,1,1] concatenate(exchanged, p), dimensions={0}
  ROOT turned = f32[1,1,4,2] transpose(both), dimensions={2,3,1,0}
}
"""


def test_it_can_copy_more() -> None:
    """The positional rule makes the concatenation ``{3,2,0,1}``, so that the transpose is free. That was not its intention."""
    module = parse_module(COUNTEREXAMPLE)

    assert transposing_bytes(module, POSITIONAL) == 0
    assert transposing_bytes(module, AWARE) == 32  # 2 * 4 elements of 4 bytes


def test_a_rule_that_copies_more_is_caught() -> None:
    """The positional rule in the place of the other one: there are stacks that show it."""
    some = settings(max_examples=500, derandomize=True, database=None)

    found = find(stack_modules(), lambda module: not saves(module, aware=POSITIONAL, reference=AWARE), settings=some)

    assert transposing_bytes(found, POSITIONAL) > transposing_bytes(found, AWARE)


def test_a_rule_that_demands_another_order_is_caught() -> None:
    """The generic backend demands nothing of a collective."""
    some = settings(max_examples=500, derandomize=True, database=None)
    free = POSITIONAL.replace("{backend=gpu}", "")

    assert find(single_collectives(), lambda m: transposing_bytes(m, free) != transposing_bytes(m, POSITIONAL), settings=some)
