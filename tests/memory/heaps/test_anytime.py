"""Our own heap: never larger than XLA's, right, deterministic, and tight where that can be reached."""

import random

import pytest

from layoutsim.errors import InputError
from layoutsim.memory.check import check_placement
from layoutsim.memory.heaps import AnytimeHeap, live_peak, xla_heap
from layoutsim.memory.problem import EventRecorder
from tests.memory.heaps.instances import cut_rectangle, stream
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from


def test_placements_are_right_and_never_larger_than_xlas():
    generator = random.Random(11)
    for _ in range(40):
        problem = random_problem(generator, alignment=16)
        placement = AnytimeHeap(steps=200).pack(problem)

        assert check_placement(problem, placement) == ()
        assert live_peak(problem) <= placement.size <= xla_heap().pack(problem).size


def test_a_gap_that_both_orders_leave_is_closed():
    # a and c must lie at one end together, so that d fits beside them: 40 + 40 + 40
    problem = problem_from("a40 b50 -b c40 -c d40 e40 -a f80 -d -e -f")
    placement = AnytimeHeap().pack(problem)

    assert check_placement(problem, placement) == ()
    assert placement.size == live_peak(problem)


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_rectangle_is_put_together_again(seed: int):
    problem = cut_rectangle(random.Random(seed), pieces=40, time=1000, memory=10_000)
    placement = AnytimeHeap().pack(problem)

    assert check_placement(problem, placement) == ()
    assert placement.size == live_peak(problem) == 10_000


@pytest.mark.parametrize(("buffers", "live"), [(400, 40), (1500, 60)])
def test_many_buffers_come_within_one_percent_of_the_bound(buffers: int, live: int):
    problem = stream(buffers, live, seed=1)
    placement = AnytimeHeap().pack(problem)

    assert check_placement(problem, placement) == ()
    assert placement.size <= 1.01 * live_peak(problem)


def test_the_same_steps_give_the_same_placement():
    problem = stream(300, 30, seed=2)

    assert AnytimeHeap(steps=500).pack(problem) == AnytimeHeap(steps=500).pack(problem)


def test_a_problem_too_large_for_the_exact_search_is_searched_once_more_if_far_from_the_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("layoutsim.memory.heaps.anytime._CANONICAL_PAIRS", 0)
    monkeypatch.setattr("layoutsim.memory.heaps.anytime._EJECTION_STEPS", 3_000)
    problem = stream(200, 25, seed=2)
    once = AnytimeHeap(steps=3_000 + 2 * 200).pack(problem)
    twice = AnytimeHeap().pack(problem)

    assert check_placement(problem, twice) == ()
    assert twice.size < once.size


def test_without_steps_or_time_it_is_xlas_placement():
    problem = stream(300, 30, seed=2)
    xla = xla_heap().pack(problem)

    assert AnytimeHeap(steps=0).pack(problem) == xla
    assert AnytimeHeap(seconds=0.0).pack(problem).size <= xla.size


def test_intervals_of_size_zero_keep_a_chunk():
    recorder = EventRecorder()
    recorder.alloc(5, 0)
    recorder.alloc(6, 10)
    recorder.free(6)

    assert sorted(AnytimeHeap().pack(recorder.finish()).chunks) == [5, 6]


def test_a_negative_budget_is_refused():
    with pytest.raises(InputError, match="cannot be negative, got -1 and None"):
        AnytimeHeap(steps=-1)
