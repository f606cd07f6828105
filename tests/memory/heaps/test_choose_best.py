import pytest

from layoutsim.errors import InputError
from layoutsim.memory.heaps import BestFit, ChooseBest, Order, xla_heap
from tests.memory.packing import problem_from


def test_spatial_wins_ties():
    problem = problem_from("a10 b40 -b c40 -c -a")
    spatial, temporal = (BestFit(order).pack(problem) for order in Order)

    assert spatial.size == temporal.size
    assert xla_heap().pack(problem) == spatial


def test_temporal_wins_where_it_is_smaller():
    # spatial: b 0..50, a 50..90, c 0..40, d 90..130; temporal: a 0..40, c 40..80, d 80..120, b 40..90
    problem = problem_from("a40 b50 -b c40 d40 -c -d -a")

    assert [BestFit(order).pack(problem).size for order in Order] == [130, 120]
    assert xla_heap().pack(problem) == BestFit(Order.TEMPORAL).pack(problem)


def test_no_algorithm_is_refused():
    with pytest.raises(InputError, match="at least one"):
        ChooseBest(())
