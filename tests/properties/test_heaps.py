"""Heaps: every placement is judged valid and at least the lower bound, and ours is never larger than XLA's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutsim.memory.heaps import (
    AnytimeHeap,
    BestFit,
    ChooseBest,
    ConstrainedBestFit,
    HeapAlgorithm,
    Order,
    live_peak,
    xla_heap,
)
from layoutsim.memory.problem import Problem
from layoutsim.memory.problem_csv import print_problem_csv, read_problem_csv
from layoutsim.testing.strategies import problems
from layoutsim.testing.trial import placement_faults

HEAPS: list[HeapAlgorithm] = [
    BestFit(Order.SPATIAL),
    BestFit(Order.TEMPORAL),
    ConstrainedBestFit(Order.SPATIAL),
    ChooseBest((BestFit(Order.TEMPORAL), BestFit(Order.SPATIAL))),
    xla_heap(),
    AnytimeHeap(steps=300),
]


@pytest.mark.parametrize("heap", HEAPS, ids=lambda heap: heap.name)
@given(problem=problems())
def test_placements_are_valid_and_at_least_the_lower_bound(heap: HeapAlgorithm, problem: Problem) -> None:
    assert placement_faults(problem, heap.pack(problem), heap.name) == []


@pytest.mark.parametrize("heap", HEAPS, ids=lambda heap: heap.name)
@given(problem=problems())
def test_placements_are_the_same_every_time(heap: HeapAlgorithm, problem: Problem) -> None:
    assert heap.pack(problem) == heap.pack(problem)


@given(problems())
def test_our_heap_is_between_the_bound_and_xlas(problem: Problem) -> None:
    assert live_peak(problem) <= AnytimeHeap(steps=300).pack(problem).size <= xla_heap().pack(problem).size


@given(problems(), st.integers(1, 5000))
def test_heaps_of_limited_size_are_valid(problem: Problem, limit: int) -> None:
    placement = ConstrainedBestFit(Order.SPATIAL, limit).pack(problem)

    assert placement_faults(problem, placement, "limited") == []


@given(problems())
def test_problems_are_read_back_from_csv(problem: Problem) -> None:
    placement = xla_heap().pack(problem)
    text = print_problem_csv(problem, placement)
    again = read_problem_csv(text)

    assert live_peak(again.problem) == live_peak(problem)
    assert again.placement is not None
    assert placement_faults(again.problem, again.placement, "read") == []
