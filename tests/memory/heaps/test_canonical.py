"""The exact search finds a placement where there is one, and shows where there is none."""

import random
from itertools import product

import pytest

from layoutsim.memory.heaps.budget import Budget
from layoutsim.memory.heaps.canonical import CanonicalSearch, Outcome
from layoutsim.memory.heaps.conflicts import ConflictGraph
from layoutsim.memory.heaps.lower_bound import live_peak
from layoutsim.memory.problem import EventRecorder, Problem
from tests.memory.heaps.instances import cut_rectangle
from tests.memory.packing import problem_from


def solve(problem: Problem, capacity: int, steps: int = 10_000) -> Outcome:
    return CanonicalSearch(ConflictGraph(problem)).solve(capacity, Budget(steps))[0]


def fits(problem: Problem, capacity: int) -> bool:
    """Tries every combination of offsets."""
    graph = ConflictGraph(problem)
    sizes = graph.sizes.tolist()
    pairs = [(a, b) for a in range(len(graph)) for b in graph.neighbours(a).tolist() if b < a]
    for offsets in product(*(range(capacity - size + 1) for size in sizes)):
        if all(offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a] for a, b in pairs):
            return True
    return False


def test_what_fits_is_solved_and_what_does_not_is_impossible():
    generator = random.Random(4)
    for _ in range(60):
        problem = small_problem(generator)
        for capacity in range(live_peak(problem), live_peak(problem) + 2):
            expected = Outcome.SOLVED if fits(problem, capacity) else Outcome.IMPOSSIBLE

            assert solve(problem, capacity) is expected


def test_a_solution_has_no_overlaps_and_keeps_to_the_capacity():
    problem = cut_rectangle(random.Random(5), pieces=60, time=1000, memory=10_000)
    graph = ConflictGraph(problem)
    outcome, offsets = CanonicalSearch(graph).solve(10_000, Budget(200_000))

    assert outcome is Outcome.SOLVED
    assert offsets is not None
    tops = offsets + graph.sizes
    assert (offsets.min(), tops.max()) == (0, 10_000)
    for group in range(len(graph)):
        others = graph.neighbours(group)
        assert not ((offsets[others] < tops[group]) & (tops[others] > offsets[group])).any()


def test_less_than_the_live_bytes_is_impossible():
    assert solve(problem_from("a10 b10 -a -b"), 19) is Outcome.IMPOSSIBLE


def test_it_gives_up_when_the_budget_is_spent():
    problem = cut_rectangle(random.Random(6), pieces=150, time=1000, memory=10_000)

    assert solve(problem, 10_000, steps=5) is Outcome.GAVE_UP


@pytest.mark.parametrize("capacity", [8, 9])
def test_a_group_with_a_gap_leaves_room_in_between(capacity: int):
    # a and its mate c share 8 bytes; b lives between them
    assert solve(problem_from("a8 -a b8 -b c=a:8 -c"), capacity) is Outcome.SOLVED


def small_problem(generator: random.Random) -> Problem:
    recorder = EventRecorder()
    alive: list[int] = []
    for interval_id in range(5):
        recorder.alloc(interval_id, generator.randint(1, 4))
        alive.append(interval_id)
        while len(alive) > 1 and generator.random() < 0.55:
            recorder.free(alive.pop(generator.randrange(len(alive))))
    return recorder.finish()
