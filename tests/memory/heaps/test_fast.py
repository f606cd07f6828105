"""Fast merge and fast split: checklist 55 of the memory spec, and that their placements are right."""

import random

import pytest

from layoutsim.memory.check import check_placement
from layoutsim.memory.heaps import ConstrainedBestFit, FastMerge, FastSplit
from layoutsim.memory.problem import Placement
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from

FOUR = problem_from("a10 b30 c20 d40 -a -b -c -d")


def named(placement: Placement) -> list[dict[str, int]]:
    return [{"abcd"[i]: chunk.offset for i, chunk in heap.chunks.items()} for heap in placement.heaps]


@pytest.mark.checklist(55)
def test_fast_merge_goes_by_time_and_moves_on_to_the_next_heap_at_the_limit():
    placement = FastMerge(limit_bytes=50).pack(FOUR)

    # a 0..10 and b 10..40 in the first; c in the second; d, too large beside c, in the third
    assert named(placement) == [{"a": 0, "b": 10}, {"c": 0}, {"d": 0}]
    assert placement.size == 40 + 20 + 40 == 100


@pytest.mark.checklist(55)
def test_fast_split_is_best_fit_for_few_buffers():
    placement = FastSplit(limit_bytes=50).pack(FOUR)

    assert [heap.size for heap in placement.heaps] == [50, 50]
    assert placement == ConstrainedBestFit(limit_bytes=50).pack(FOUR)


def test_fast_split_puts_the_small_rest_above_what_best_fit_placed():
    # d is placed by best fit; a, b and c follow in order of time above its 40 bytes
    placement = FastSplit(searched=1).pack(FOUR)

    assert named(placement) == [{"a": 40, "b": 50, "c": 80, "d": 0}]


def test_freed_stretches_join_and_the_smallest_that_fits_is_taken():
    # a and b leave 30 bytes at 0, d leaves 20 at 40; f takes the 20
    problem = problem_from("a10 b20 c10 d20 e10 -a -b -d f15 -c -e -f")

    assert FastMerge().pack(problem).chunks[5].offset == 40


def test_what_aligning_skips_is_taken_along():
    problem = problem_from("a10 b10 -a c8 -b -c", alignment=16)
    chunks = FastMerge().pack(problem).chunks

    assert [chunks[i].offset for i in range(3)] == [0, 16, 0]


@pytest.mark.parametrize(
    "algorithm", [FastMerge(), FastMerge(60), FastSplit(), FastSplit(60, searched=5), FastSplit(searched=5)]
)
def test_placements_are_right(algorithm: FastMerge | FastSplit):
    generator = random.Random(9)
    for _ in range(60):
        problem = random_problem(generator, alignment=16)

        assert check_placement(problem, algorithm.pack(problem)) == ()
