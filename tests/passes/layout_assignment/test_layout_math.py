"""Arithmetic of layouts (layout spec, section 2)."""

import itertools
import math

import pytest

from layoutsim.errors import LayoutError
from layoutsim.passes.layout_assignment.layout_math import (
    align,
    align_in_place,
    append_minor,
    common_factors,
    delete_dimensions,
    equal_without_ones,
    is_matrix,
    keep_dimensions,
    move_to_major,
    move_to_minor,
    only_ones_change,
    reshape_is_bitcast,
    transpose_is_bitcast,
    transpose_operand_order,
    transpose_result_order,
)


def test_moving_dimensions_keeps_the_order_of_the_others() -> None:
    assert move_to_major((2, 1, 0), 1) == (2, 0, 1)
    assert move_to_minor((2, 1, 0), 1) == (1, 2, 0)
    assert move_to_major((2, 0, 1), 1) == (2, 0, 1)


def test_deleting_dimensions_renumbers_the_others() -> None:
    assert delete_dimensions((2, 0, 1), [0]) == (1, 0)
    assert keep_dimensions((3, 1, 0, 2), (1, 3)) == (1, 0)
    assert append_minor((1, 0)) == (2, 1, 0)


@pytest.mark.parametrize(
    ("a", "b", "cuts"),
    [
        ((2, 3), (2, 3), ((0, 0), (1, 1), (2, 2))),
        ((6, 4), (2, 3, 4), ((0, 0), (1, 2), (2, 3))),
        ((2, 3, 4), (6, 4), ((0, 0), (2, 1), (3, 2))),
        ((2, 3, 4), (4, 3, 2), ((0, 0), (3, 3))),
        ((1, 6), (6,), ((0, 0), (1, 0), (2, 1))),
        ((0, 10, 3), (0, 3), ((0, 0), (3, 2))),
        ((2, 0, 3), (2, 3, 0), ((0, 0), (1, 1), (3, 3))),
    ],
)
def test_common_factors_are_the_smallest_groups_of_equal_product(
    a: tuple[int, ...], b: tuple[int, ...], cuts: tuple[tuple[int, int], ...]
) -> None:
    assert common_factors(a, b) == cuts


def test_a_reshape_that_only_moves_ones_is_recognised() -> None:
    assert only_ones_change((10, 20), (1, 10, 1, 20))
    assert only_ones_change((1, 4, 1), (4,))
    assert not only_ones_change((10, 20), (20, 10))
    assert not only_ones_change((200,), (10, 20))


def test_an_aligned_reshape_is_a_bitcast_for_every_layout_of_small_arrays() -> None:
    shapes = [s for rank in (1, 2, 3) for s in itertools.product((1, 2, 3, 4, 6), repeat=rank) if math.prod(s) in (12, 24)]
    for source, target in itertools.product(shapes, shapes):
        if math.prod(source) != math.prod(target):
            continue
        for order in itertools.permutations(range(len(source))):
            aligned = align(source, order, target)
            in_place = align_in_place(source, order, target, tuple(range(len(target))))
            assert (aligned is None) == (in_place is None)
            if aligned is not None and in_place is not None:
                assert reshape_is_bitcast(source, order, target, aligned)
                assert reshape_is_bitcast(source, order, target, in_place)


def test_dimensions_of_size_1_come_most_major_or_stay_in_place() -> None:
    assert align((10, 20), (0, 1), (1, 10, 1, 20)) == (1, 3, 2, 0)
    assert align_in_place((10, 20), (0, 1), (1, 10, 1, 20), (3, 2, 1, 0)) == (1, 0, 3, 2)
    assert align_in_place((1,), (0,), (1, 1), (0, 1)) == (0, 1)


def test_a_group_that_is_not_contiguous_cannot_be_aligned() -> None:
    assert align((2, 3, 4), (0, 1, 2), (6, 4)) is None
    assert align((2, 3, 4), (1, 0, 2), (6, 4)) == (0, 1)


def test_empty_arrays_are_always_bitcasts() -> None:
    assert reshape_is_bitcast((0, 3), (0, 1), (3, 0), (1, 0))


def test_orders_around_a_transpose_are_inverse() -> None:
    for permutation in itertools.permutations(range(4)):
        for order in itertools.permutations(range(4)):
            result = transpose_result_order(order, permutation)
            assert transpose_operand_order(result, permutation) == order
            assert transpose_is_bitcast(order, result, permutation)


@pytest.mark.parametrize(
    ("order", "batch", "rows", "columns", "expected"),
    [
        ((2, 1, 0), (0,), (1,), (2,), True),
        ((1, 2, 0), (0,), (1,), (2,), True),
        ((0, 1, 2), (0,), (1,), (2,), False),  # batch most minor
        ((2, 0, 1), (0,), (1,), (2,), True),  # rows, batch, columns
        ((3, 1, 2, 0), (0,), (1, 2), (3,), False),  # rows out of order
        ((3, 2, 1, 0), (0,), (1, 2), (3,), True),
        ((0, 1), (0,), (1,), (), False),
        ((1, 0), (0,), (1,), (), True),
        ((0,), (), (0,), (), True),
        ((0,), (0,), (), (), False),
    ],
)
def test_matrices_have_their_groups_in_one_piece(
    order: tuple[int, ...], batch: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...], expected: bool
) -> None:
    assert is_matrix(order, batch, rows, columns) is expected


def test_orders_that_differ_in_ones_only_are_equal_in_memory() -> None:
    assert equal_without_ones((1, 4, 8), (2, 1, 0), (2, 0, 1))
    assert not equal_without_ones((2, 4, 8), (2, 1, 0), (2, 0, 1))


def test_an_order_of_another_rank_is_a_layout_error() -> None:
    with pytest.raises(LayoutError, match=r"layout \{1,0\} does not fit an array of rank 3"):
        align((2, 8, 7), (1, 0), (4, 4, 7))
