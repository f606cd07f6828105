"""Layouts are bijections: strided addressing covers each byte of an array once, and memory gives back what it was given."""

from itertools import permutations
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layoutsim.interp.strided import (
    PADDING,
    from_memory,
    memory_dtype,
    physical_bytes,
    physical_slots,
    reinterpret,
    strided_view,
    to_codes,
    to_memory,
)
from layoutsim.interp.values import value_from
from layoutsim.ir import ArrayShape, ElementType, byte_size
from layoutsim.passes.layout_assignment.layout_math import move_to_major
from layoutsim.testing.strategies import array_shapes, layouts
from layoutsim.verify import reshape_is_bitcast

WHOLE_BYTES = tuple(t for t in ElementType if t.bits >= 8)

Array = np.ndarray[Any, np.dtype[Any]]


def addresses(shape: ArrayShape, minor_to_major: tuple[int, ...]) -> list[int]:
    """Byte offset of every element in row-major logical order, by the definition of a layout."""
    strides = [0] * shape.rank
    step = shape.element_type.storage_bytes
    for dimension in minor_to_major:
        strides[dimension] = step
        step *= shape.dimensions[dimension]
    return [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*shape.dimensions)]


def is_bijection(offsets: list[int], shape: ArrayShape) -> bool:
    """Whether the elements at these offsets take each byte of the array once."""
    size = shape.element_type.storage_bytes
    return sorted(o + b for o in offsets for b in range(size)) == list(range(byte_size(shape)))


@given(array_shapes(element_types=WHOLE_BYTES))
def test_addressing_by_layout_is_a_bijection(shape: ArrayShape) -> None:
    assert is_bijection(addresses(shape, shape.minor_to_major), shape)


@given(array_shapes(element_types=WHOLE_BYTES))
def test_strided_views_address_by_layout(shape: ArrayShape) -> None:
    memory = np.zeros(byte_size(shape), np.uint8)
    view = strided_view(memory, 0, shape)
    offsets = addresses(shape, shape.minor_to_major)

    for index, offset in zip(np.ndindex(*shape.dimensions), offsets, strict=True):
        memory[:] = 0
        memory[offset] = 1

        assert (np.argwhere(view != 0) == np.array(index)).all() and np.count_nonzero(view) == 1


@given(array_shapes(tiles=True))
def test_memory_gives_back_what_it_was_given(shape: ArrayShape) -> None:
    values = _values(shape)
    data = to_memory(values, shape)

    assert len(data) == physical_bytes(shape)
    assert np.array_equal(from_memory(data, shape), values)


@given(array_shapes(tiles=True))
def test_tiles_hold_every_element_once(shape: ArrayShape) -> None:
    slots = physical_slots(shape)

    assert sorted(slots[slots != PADDING].tolist()) == list(range(shape.element_count))


@given(array_shapes(max_rank=4), st.data())
def test_a_bitcast_and_back_changes_nothing(shape: ArrayShape, data: st.DataObject) -> None:
    other = shape.with_layout(data.draw(layouts(shape.rank)))
    values = _values(shape)

    back = reinterpret(reinterpret(values, shape, other), other, shape)
    assert np.array_equal(back, values, equal_nan=True)


@given(array_shapes(max_rank=4), st.data())
def test_layouts_that_the_verifier_calls_a_bitcast_hold_the_same_bytes(shape: ArrayShape, data: st.DataObject) -> None:
    other = shape.with_layout(data.draw(layouts(shape.rank)))
    numbered = np.arange(shape.element_count).reshape(shape.dimensions)
    moved = not np.array_equal(reinterpret(numbered, shape, other), numbered)

    assert reshape_is_bitcast(shape, other) is not moved


def test_moving_a_dimension_keeps_the_order_a_permutation() -> None:
    for order in permutations(range(4)):
        for dimension in range(4):
            assert sorted(move_to_major(order, dimension)) == [0, 1, 2, 3]


def test_an_address_that_forgets_a_dimension_is_caught() -> None:
    from layoutsim.ir import array_shape

    shape = array_shape(ElementType.F32, (2, 3))

    assert is_bijection(addresses(shape, (1, 0)), shape)
    assert not is_bijection(addresses(shape, (1,)), shape)
    assert not is_bijection(addresses(shape, (1, 1)), shape)


def _values(shape: ArrayShape) -> Array:
    """Different codes for different elements, as far as the type has so many."""
    count = shape.element_count
    numbers = (np.arange(count) % (2 ** min(shape.element_type.bits - 1, 6))).reshape(shape.dimensions)
    values = value_from(numbers != 0 if shape.element_type.is_pred else numbers, shape)
    assert isinstance(values, np.ndarray)
    assert to_codes(values, shape.element_type).dtype == memory_dtype(shape.element_type)
    return values
