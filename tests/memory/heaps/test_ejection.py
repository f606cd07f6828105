"""Local search below a target: what can stay stays, what is worth least is pushed out, and the steps are counted."""

import random

import numpy as np
import pytest

from layoutsim.memory.heaps import live_peak, xla_heap
from layoutsim.memory.heaps.budget import Budget
from layoutsim.memory.heaps.conflicts import ConflictGraph
from layoutsim.memory.heaps.ejection import EjectionSearch
from layoutsim.memory.problem import Problem
from tests.memory.heaps.instances import cut_rectangle
from tests.memory.packing import problem_from


def improve(problem: Problem, start: dict[int, int], target: int, steps: int = 1000) -> dict[int, int] | None:
    """The offsets found, by id."""
    graph = ConflictGraph(problem)
    ids = [group.root.id for group in graph.groups]
    found = EjectionSearch(graph).run(np.array([start[i] for i in ids], dtype=np.int64), target, Budget(steps))
    return None if found is None else dict(zip(ids, found.tolist(), strict=True))


def ids_by_size(problem: Problem) -> dict[int, int]:
    return {interval.size: interval.id for interval in problem.intervals}


def test_what_ends_above_the_target_moves_into_a_hole_and_the_rest_stays():
    problem = problem_from("a10 b20 -b c15 -c -a")
    a, b, c = (ids_by_size(problem)[size] for size in (10, 20, 15))

    assert improve(problem, {a: 0, b: 10, c: 30}, target=30) == {a: 0, b: 10, c: 10}


def test_what_is_worth_least_together_is_pushed_out():
    # Below 20, c (9 bytes) can only lie where a is, or where b and d are. Worth is the root of the size times the number of
    # those live together, itself included: a sqrt(11 * 2) = 4.7; b and d sqrt(4 * 3) + sqrt(5 * 3) = 7.3. So a makes room.
    problem = problem_from("c9 a11 -a b4 d5 -b -d -c")
    a, b, c, d = (ids_by_size(problem)[size] for size in (11, 4, 9, 5))

    assert improve(problem, {a: 0, b: 11, c: 20, d: 15}, target=20) == {a: 9, b: 11, c: 0, d: 15}


def test_without_steps_nothing_is_found():
    problem = problem_from("a10 b20 -b c15 -c -a")
    a, b, c = (ids_by_size(problem)[size] for size in (10, 20, 15))

    assert improve(problem, {a: 0, b: 10, c: 30}, target=30, steps=0) is None


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_ends_below_the_target_and_nothing_overlaps(seed: int):
    problem = cut_rectangle(random.Random(seed), pieces=30, time=100, memory=1000)
    target = live_peak(problem) * 23 // 20
    chunks = xla_heap().pack(problem).chunks
    # everything twice as high as XLA's heap has it, so that much has to move
    found = improve(problem, {i: 2 * chunks[i].offset for i in chunks}, target, steps=20_000)
    assert found is not None

    sizes = {interval.id: interval.size for interval in problem.intervals}
    assert all(0 <= offset <= target - sizes[i] for i, offset in found.items())
    for one in problem.intervals:
        for other in problem.intervals:
            if one.id < other.id and one.start <= other.end and other.start <= one.end:
                low, high = sorted((one.id, other.id), key=found.__getitem__)
                assert found[low] + sizes[low] <= found[high]
