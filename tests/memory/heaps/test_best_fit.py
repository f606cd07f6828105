"""XLA's best fit: checklist 49 to 53 of the memory spec, and the index against a slow search."""

import random

import pytest

from layoutsim.memory.heaps import BestFit, Order
from layoutsim.memory.problem import EventRecorder, Problem
from tests.memory.packing import problem_from, slow_best_fit


def offsets(problem: Problem, order: Order = Order.SPATIAL) -> dict[str, int]:
    chunks = BestFit(order).pack(problem).chunks
    return {interval.name: chunks[interval.id].offset for interval in problem.intervals}


def size(problem: Problem, order: Order = Order.SPATIAL) -> int:
    return BestFit(order).pack(problem).size


@pytest.mark.checklist(49)
def test_larger_buffers_are_placed_first():
    problem = problem_from("a10 b30 c20 d40 -a -b -c -d")

    # d 0..40, b 40..70, c 70..90, a 90..100
    assert offsets(problem) == {"d": 0, "b": 40, "c": 70, "a": 90}
    assert size(problem) == 100


@pytest.mark.checklist(50)
def test_chunks_start_at_multiples_of_the_alignment():
    problem = problem_from("a10 b20 c50 -a d40 -b -c -d", alignment=20)

    # c 0..50, then from 60: d 60..100 and (before it in time) a 60..70, b 100..120
    assert offsets(problem) == {"c": 0, "a": 60, "d": 60, "b": 100}
    assert size(problem) == 120


@pytest.mark.checklist(51)
def test_the_smallest_hole_wins():
    problem = problem_from("a10 b20 c40 -a d30 e50 -b -c -d -e")

    assert offsets(problem) == {"e": 0, "c": 50, "d": 90, "a": 90, "b": 120}
    assert size(problem) == 140


@pytest.mark.checklist(52)
def test_sharing_after_the_end_of_the_source_keeps_its_place():
    problem = problem_from("a40 -a b20 -b c=a:40 -c")

    assert offsets(problem) == {"a": 0, "b": 0, "c": 0}
    assert size(problem) == 40


@pytest.mark.checklist(52)
def test_a_buffer_alive_with_one_mate_is_kept_off_the_chunk_of_all_mates():
    problem = problem_from("a40 -a b20 c=a:40 -b -c")

    assert offsets(problem) == {"a": 0, "b": 40, "c": 0}
    assert size(problem) == 60


@pytest.mark.checklist(52)
def test_a_group_goes_above_a_larger_buffer_that_lives_between_its_members():
    problem = problem_from("a10 -a b30 c=a:10 -b -c")

    assert offsets(problem) == {"b": 0, "a": 30, "c": 30}
    assert size(problem) == 40


@pytest.mark.parametrize(("size_of_c", "chunk", "total"), [(30, 40, 60), (50, 50, 70)])
@pytest.mark.checklist(53)
def test_the_chunk_of_mates_is_as_large_as_the_largest(size_of_c: int, chunk: int, total: int):
    problem = problem_from(f"a40 -a b20 c=a:{size_of_c} -b -c")
    placement = BestFit().pack(problem)

    assert [placement.chunks[i].size for i in (0, 2)] == [chunk, chunk]
    assert placement.chunks[1].offset == chunk
    assert placement.size == total


@pytest.mark.checklist(48)
def test_a_chain_of_mates_grows_to_the_largest():
    problem = problem_from("a10 b=a:10 -a c=b:20 -b d=c:30 -c -d")
    placement = BestFit().pack(problem)

    assert [placement.chunks[i].size for i in range(4)] == [30, 30, 30, 30]
    assert placement.size == 30


def test_temporal_order_places_long_lives_first():
    problem = problem_from("a10 b40 -b c40 -c -a")

    assert offsets(problem, Order.TEMPORAL) == {"a": 0, "b": 10, "c": 10}
    assert offsets(problem, Order.SPATIAL) == {"a": 40, "b": 0, "c": 0}


def test_temporal_order_counts_the_life_of_the_whole_group():
    # a alone lives 1 tick and would be placed last; with its mate c it lives longest.
    problem = problem_from("a10 -a b20 e60 -e c=a:10 -b -c")

    assert offsets(problem, Order.TEMPORAL) == {"a": 0, "c": 0, "b": 10, "e": 30}


def test_equal_size_and_duration_are_placed_by_id():
    recorder = EventRecorder()
    for interval_id in (7, 3):
        recorder.alloc(interval_id, 8)
    for interval_id in (7, 3):
        recorder.free(interval_id)
    chunks = BestFit().pack(recorder.finish()).chunks

    assert {i: chunk.offset for i, chunk in chunks.items()} == {3: 0, 7: 8}


def test_buffers_of_size_zero_are_at_offset_zero_and_take_no_tick():
    recorder = EventRecorder()
    recorder.alloc(0, 0)
    recorder.alloc(1, 8)
    recorder.share_with(2, 0, 0)
    for interval_id in (0, 1, 2):
        recorder.free(interval_id)
    problem = recorder.finish()

    assert [(i.start, i.end) for i in problem.intervals] == [(0, 1)]
    assert {i: (c.offset, c.size) for i, c in BestFit().pack(problem).chunks.items()} == {0: (0, 0), 1: (0, 8), 2: (0, 0)}


def test_an_empty_problem_has_an_empty_heap():
    placement = BestFit().pack(EventRecorder().finish())

    assert placement.size == 0
    assert dict(placement.chunks) == {}


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("alignment", [1, 16, 24])
def test_the_index_places_as_a_search_over_all_pairs_does(order: Order, alignment: int):
    generator = random.Random(alignment)
    for _ in range(60):
        problem = random_problem(generator, alignment)
        chunks = BestFit(order).pack(problem).chunks
        expected = slow_best_fit(problem, order.sort(problem.groups))

        assert {root: chunks[root].offset for root in expected} == expected


def random_problem(generator: random.Random, alignment: int) -> Problem:
    recorder = EventRecorder()
    alive: list[int] = []
    begun: list[int] = []
    for interval_id in range(generator.randint(1, 60)):
        interval_size = generator.choice([1, 3, 8, 16, 17, 40, 100])
        if begun and generator.random() < 0.25:
            recorder.share_with(interval_id, generator.choice(begun), interval_size)
        else:
            recorder.alloc(interval_id, interval_size)
        alive.append(interval_id)
        begun.append(interval_id)
        while alive and generator.random() < 0.45:
            recorder.free(alive.pop(generator.randrange(len(alive))))
    for interval_id in alive:
        recorder.free(interval_id)
    return recorder.finish(alignment)
