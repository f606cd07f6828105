"""Our own heap: never larger than XLA's, right, deterministic, and tight where that can be reached."""

import random

import pytest

from layoutsim.errors import InputError
from layoutsim.memory.check import check_placement
from layoutsim.memory.heaps import AnytimeHeap, live_peak, xla_heap
from layoutsim.memory.problem import EventRecorder, Interval, Problem
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from


def cut_rectangle(generator: random.Random, pieces: int, time: int, memory: int) -> Problem:
    """A rectangle of time and memory cut into pieces: they can be packed without a free byte, however hard that is."""
    rectangles = [(0, time, 0, memory)]
    while len(rectangles) < pieces:
        start, end, low, high = rectangles.pop(generator.randrange(len(rectangles)))
        if (end - start) * memory > (high - low) * time and end - start > 1:
            cut = generator.randrange(start + 1, end)
            rectangles += [(start, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = generator.randrange(low + 1, high)
            rectangles += [(start, end, low, cut), (start, end, cut, high)]
        else:
            rectangles.append((start, end, low, high))
    return Problem(tuple(Interval(i, start, end - 1, high - low) for i, (start, end, low, high) in enumerate(rectangles)))


def stream(buffers: int, live: int, seed: int) -> Problem:
    """Buffers of very different sizes that come and go, about ``live`` at a time."""
    generator = random.Random(seed)
    recorder = EventRecorder()
    alive: list[int] = []
    for interval_id in range(buffers):
        recorder.alloc(interval_id, int(2 ** generator.uniform(8, 24)))
        alive.append(interval_id)
        while len(alive) > live:
            recorder.free(alive.pop(generator.randrange(len(alive))))
    return recorder.finish(alignment=256)


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
