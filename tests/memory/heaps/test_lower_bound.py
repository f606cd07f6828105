"""Lower bounds: checklist 56 of the memory spec, and the bound over groups."""

import random

import pytest

from layoutsim.memory.heaps import BestFit, LowerBound, Order, event_peak, live_peak
from layoutsim.memory.problem import EventRecorder
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from


@pytest.mark.checklist(56)
def test_all_alive_at_once_adds_up():
    # 10 + 20 + 30 + 30
    assert event_peak(problem_from("a10 b20 c30 d30 -a -b -c -d")) == 90


@pytest.mark.checklist(56)
def test_freed_bytes_do_not_count():
    # 10 + 20 = 30; without the 10, 20 + ... = at most 10 + 30
    assert event_peak(problem_from("a10 b20 -b c30 -c d5 -a -d")) == 40


@pytest.mark.checklist(56)
def test_an_empty_problem_needs_nothing():
    problem = EventRecorder().finish()

    assert (event_peak(problem), live_peak(problem)) == (0, 0)
    assert LowerBound().pack(problem).size == 0


def test_mates_alive_at_once_count_twice_by_events_and_once_by_groups():
    problem = problem_from("a40 b=a:40 -a -b")

    assert (event_peak(problem), live_peak(problem)) == (80, 40)


def test_a_group_counts_with_its_largest_member():
    # b and the 50 bytes of the chunk of a and c
    assert live_peak(problem_from("a40 -a b20 c=a:50 -b -c")) == 70


def test_alignment_counts_except_for_the_last_chunk():
    # 20 + 20 + 20 rounded up, but the last of them may end the heap after 10
    assert live_peak(problem_from("a10 b10 c10 -a -b -c", alignment=20)) == 50


def test_no_placement_is_below_the_bound():
    generator = random.Random(1)
    for _ in range(100):
        problem = random_problem(generator, alignment=16)

        assert all(live_peak(problem) <= BestFit(order).pack(problem).size for order in Order)
