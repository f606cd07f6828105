"""Several heaps under a limit: checklist 54 of the memory spec."""

import random

import pytest

from layoutsim.memory.heaps import BestFit, ConstrainedBestFit, Order
from layoutsim.memory.problem import EventRecorder, Problem
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from

FOUR = "a10 b30 c20 d40 -a -b -c -d"


def heaps(problem: Problem, limit: int) -> list[dict[str, int]]:
    names = {interval.id: interval.name for interval in problem.intervals}
    placement = ConstrainedBestFit(limit_bytes=limit).pack(problem)
    return [{names[i]: chunk.offset for i, chunk in heap.chunks.items()} for heap in placement.heaps]


@pytest.mark.checklist(54)
def test_a_heap_takes_what_fits_within_the_limit_and_the_next_heap_the_rest():
    problem = problem_from(FOUR)

    assert heaps(problem, 50) == [{"d": 0, "a": 40}, {"b": 0, "c": 30}]
    assert ConstrainedBestFit(limit_bytes=50).pack(problem).size == 100


@pytest.mark.checklist(54)
def test_the_limit_counts_aligned_offsets():
    problem = problem_from("a10 b20 c50 -a d40 -b -c -d", alignment=20)
    placement = ConstrainedBestFit(limit_bytes=70).pack(problem)

    # c 0..50 and a 60..70; then d 0..40 and b 40..60
    assert [heap.size for heap in placement.heaps] == [70, 60]


@pytest.mark.checklist(54)
def test_mates_move_to_the_next_heap_together():
    problem = problem_from("a40 -a b20 c=a:40 -b -c")

    assert heaps(problem, 50) == [{"a": 0, "c": 0}, {"b": 0}]
    assert ConstrainedBestFit(limit_bytes=50).pack(problem).size == 60


def test_a_buffer_above_the_limit_gets_a_heap_of_its_own():
    problem = problem_from("a90 b10 -a -b")

    assert heaps(problem, 50) == [{"a": 0}, {"b": 0}]


def test_without_limit_there_is_one_heap_the_same_as_best_fit():
    problem = problem_from(FOUR)

    assert ConstrainedBestFit().pack(problem) == BestFit().pack(problem)


@pytest.mark.checklist(56)
def test_no_interval_makes_one_empty_heap():
    placement = ConstrainedBestFit(limit_bytes=50).pack(EventRecorder().finish())

    assert [(dict(heap.chunks), heap.size) for heap in placement.heaps] == [({}, 0)]


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("limit", [None, 60, 150])
def test_packing_below_a_size_is_packing_or_nothing(order: Order, limit: int | None):
    generator = random.Random(5)
    for _ in range(40):
        problem = random_problem(generator, alignment=8)
        algorithm = ConstrainedBestFit(order, limit)
        placement = algorithm.pack(problem)

        assert algorithm.pack_below(problem, placement.size + 1) == placement
        assert algorithm.pack_below(problem, placement.size) is None
