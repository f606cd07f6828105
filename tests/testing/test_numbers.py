"""Comparing numbers with the real compiler: a compiler that is played here by the interpreter itself, right or wrong."""

from collections.abc import Sequence

import numpy as np
import pytest

from layoutsim.interp import Interpreter
from layoutsim.interp.values import arrays_of
from layoutsim.ir import Module
from layoutsim.oracle import Execution
from layoutsim.testing.numbers import OPERATIONS, Kind, Verdict, compare_numbers, programs, run_numbers
from layoutsim.text import parse_module

Arrays = tuple[np.ndarray, ...]

CHAIN = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] exponential(x)
  b = (f32[4], f32[4]) tuple(a, x)
  ROOT c = f32[4] add(a, x)
}
"""


class Played:
    """Answers what the interpreter computes; ``spoil`` changes the leaves of the first device."""

    devices = 1
    release = "played"

    def __init__(self, spoil: object = lambda asked, leaves: leaves, answer: Execution | None = None) -> None:
        self.spoil, self.answer, self.asked = spoil, answer, 0

    def start(self) -> str:
        return self.release

    def execute(self, module: Module, arguments: Sequence[Sequence[np.ndarray]], types: Sequence[str]) -> Execution:
        self.asked += 1
        if self.answer is not None:
            return self.answer
        results = Interpreter(module).run(arguments)
        leaves = [tuple(arrays_of(result)) for result in results]
        return Execution((self.spoil(self.asked, leaves[0]), *leaves[1:]))


def _spoiled(number: int, when: int = 1) -> object:
    def spoil(asked: int, leaves: Arrays) -> Arrays:
        return tuple(leaf + (1 if (i, asked) == (number, when) else 0) for i, leaf in enumerate(leaves))

    return spoil


def test_equal_numbers_agree() -> None:
    assert compare_numbers(parse_module(CHAIN), Played()).verdict is Verdict.AGREES


@pytest.mark.parametrize(("leaf", "name"), [(0, "a"), (1, "b"), (3, "c")])
def test_the_instruction_that_differs_is_named(leaf: int, name: str) -> None:
    found = compare_numbers(parse_module(CHAIN), Played(_spoiled(leaf)))

    # The result of the first question is (a, b{0}, b{1}, c). A wrong operand changes what c must be, but a comes first.
    assert (found.verdict, found.details.split(":")[0]) == (Verdict.DIFFERS, f"device 0, {name}")


def test_what_differs_only_in_the_end_is_counted_apart() -> None:
    assert compare_numbers(parse_module(CHAIN), Played(_spoiled(0, when=2))).verdict is Verdict.ROUNDING


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Execution(note="UNIMPLEMENTED: no such thing"), Verdict.COMPILER_REFUSES),
        (Execution(note="", aborted=True), Verdict.COMPILER_DIES),
    ],
)
def test_a_compiler_that_does_not_answer_is_no_failure(answer: Execution, verdict: Verdict) -> None:
    found = compare_numbers(parse_module(CHAIN), Played(answer=answer))

    assert (found.verdict, found.is_failure) == (verdict, False)


def test_random_numbers_and_feeds_are_not_compared() -> None:
    text = """HloModule m
      ENTRY e { a = f32[] constant(0)  b = f32[] constant(1)  ROOT r = f32[2] rng(a, b), distribution=rng_uniform }"""

    assert compare_numbers(parse_module(text), Played()).verdict is Verdict.NOT_COMPARED


@pytest.mark.parametrize("kind", [programs(1), OPERATIONS], ids=["programs", "operations"])
def test_a_run_counts_and_reports(kind: Kind) -> None:
    told: list[int] = []

    run = run_numbers(range(6), Played(_spoiled(0)), kind=kind, report=lambda seed, _: told.append(seed))

    assert run.verdicts.total() == 6
    assert list(run.failures) == told
    assert run.verdicts[Verdict.DIFFERS] == len(told) > 0
    assert str(run).startswith("6 modules in ")
