"""Bitcasts by arithmetic against bitcasts by counting where every element lies."""

from itertools import permutations

import numpy as np
import pytest

from layoutsim.ir import ArrayShape, ElementType, array_shape
from layoutsim.verify import reshape_is_bitcast

SIZES = [(12,), (1, 12), (3, 4), (4, 3), (2, 6), (2, 2, 3), (2, 3, 2), (3, 1, 4), (2, 1, 2, 3)]
SHAPES = [array_shape(ElementType.F32, sizes, order) for sizes in SIZES for order in permutations(range(len(sizes)))]


def _elements_in_memory(shape: ArrayShape) -> list[int]:
    """Row-major number of the element at each address."""
    numbered = np.arange(shape.element_count).reshape(shape.dimensions)
    assert shape.layout is not None
    return numbered.transpose(shape.layout.major_to_minor).ravel().tolist()


@pytest.mark.parametrize("source", SHAPES, ids=str)
def test_a_reshape_is_a_bitcast_where_no_element_moves(source: ArrayShape) -> None:
    expected = [_elements_in_memory(source) == _elements_in_memory(target) for target in SHAPES]

    assert expected == [reshape_is_bitcast(source, target) for target in SHAPES]


def test_nothing_moves_in_an_empty_array() -> None:
    empty = array_shape(ElementType.F32, (2, 0, 3), (0, 1, 2))

    assert reshape_is_bitcast(empty, array_shape(ElementType.F32, (0,)))


def test_arrays_of_different_sizes_are_no_bitcasts_of_each_other() -> None:
    assert not reshape_is_bitcast(array_shape(ElementType.F32, (2, 3)), array_shape(ElementType.F32, (2, 4)))
