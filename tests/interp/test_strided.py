"""Values in memory: orders, views, tiles, packed elements, and bitcasts that are none."""

from itertools import permutations

import ml_dtypes
import numpy as np
import pytest

from layoutsim.errors import UnsupportedError
from layoutsim.interp import EvaluationError, evaluate
from layoutsim.interp.strided import from_memory, physical_bytes, physical_slots, strided_view, to_memory
from layoutsim.ir import ArrayShape
from layoutsim.text import parse_module, parse_shape

NARROW = {
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
}


def shape_of(text: str) -> ArrayShape:
    shape = parse_shape(text)
    assert isinstance(shape, ArrayShape)
    return shape


def numbers(shape: ArrayShape) -> np.ndarray:
    return np.arange(shape.element_count, dtype=np.int32).reshape(shape.dimensions)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_memory_is_in_layout_order(order: tuple[int, ...]) -> None:
    shape = shape_of(f"s32[2,3,4]{{{','.join(map(str, order))}}}")
    values = numbers(shape)

    data = to_memory(values, shape).view(np.int32)

    assert data.tolist() == values.transpose(order[::-1]).reshape(-1).tolist()
    assert from_memory(data.view(np.uint8), shape).tolist() == values.tolist()


def test_a_strided_view_reads_and_writes_memory() -> None:
    shape = shape_of("s32[2,3]{0,1}")
    memory = np.zeros(64, np.uint8)

    strided_view(memory, 8, shape)[...] = [[1, 2, 3], [4, 5, 6]]

    assert memory[8:32].view(np.int32).tolist() == [1, 4, 2, 5, 3, 6]


def test_tiled_memory_has_no_strided_view() -> None:
    with pytest.raises(UnsupportedError, match="tiles and packed elements have no strided view"):
        strided_view(np.zeros(64, np.uint8), 0, shape_of("s32[2,3]{1,0:T(2,2)}"))


def test_tiles_are_stored_one_after_the_other_with_padding() -> None:
    shape = shape_of("s32[3,5]{1,0:T(2,4)}")

    # Two rows of two tiles of 2x4; elements are numbered 5 * row + column, -1 is padding.
    expected = [
        *[0, 1, 2, 3, 5, 6, 7, 8],
        *[4, -1, -1, -1, 9, -1, -1, -1],
        *[10, 11, 12, 13, -1, -1, -1, -1],
        *[14, -1, -1, -1, -1, -1, -1, -1],
    ]
    assert physical_slots(shape).tolist() == expected
    assert physical_bytes(shape) == 4 * 32


def test_a_second_tile_cuts_the_inside_of_the_first() -> None:
    shape = shape_of("bf16[4,2]{1,0:T(4,2)(2,1)}")

    # The 4x2 tile holds two 2x1 cells a row of cells: (0,0) (1,0), (0,1) (1,1), then rows 2 and 3.
    assert physical_slots(shape).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize(
    "text", ["f32[5,7,3]{0,2,1:T(4,2)}", "bf16[9,130]{1,0:T(8,128)(2,1)}", "s8[3]{0:T(8)}", "pred[2,2]{0,1}"]
)
def test_memory_gives_back_what_was_stored(text: str) -> None:
    shape = shape_of(text)
    values = (numbers(shape) % 2).astype(bool) if shape.element_type.is_pred else numbers(shape) % 100
    values = values.astype(np.float32) if shape.element_type.is_floating else values
    values = values.astype(np.int8) if str(shape.element_type) == "s8" else values

    assert from_memory(to_memory(values, shape), shape).tolist() == values.tolist()


def test_four_bit_elements_are_packed_low_bits_first() -> None:
    shape = shape_of("s4[5]{0:E(4)}")
    values = np.int8([1, -1, 7, -8, 3])

    data = to_memory(values, shape)

    assert data.tolist() == [0xF1, 0x87, 0x03]
    assert from_memory(data, shape).tolist() == values.tolist()


@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_have_their_own_bits_in_memory(name: str) -> None:
    values = np.float32([0, -0.0, 1, -1.5, 0.25, 2]) if "fnuz" not in name else np.float32([0, 1, -1.5, 0.25, 2])
    shape = shape_of(f"{name}[{len(values)}]")

    assert to_memory(values, shape).tobytes() == values.astype(NARROW[name]).tobytes()


def test_a_bitcast_reads_memory_as_it_is() -> None:
    module = parse_module("HloModule m\nENTRY e { x = s32[2,3]{1,0} parameter(0)\n ROOT y = s32[3,2]{0,1} bitcast(x) }")

    assert np.asarray(evaluate(module, [[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 4], [2, 5], [3, 6]]


def test_a_transpose_that_is_wrongly_called_a_bitcast_changes_values() -> None:
    right = parse_module(
        "HloModule m\nENTRY e { x = s32[2,3] parameter(0)\n ROOT y = s32[3,2] transpose(x), dimensions={1,0} }"
    )
    wrong = parse_module("HloModule m\nENTRY e { x = s32[2,3] parameter(0)\n ROOT y = s32[3,2] bitcast(x) }")
    x = [[1, 2, 3], [4, 5, 6]]

    assert np.asarray(evaluate(right, x)).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert np.asarray(evaluate(wrong, x)).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_a_bitcast_may_change_the_element_type() -> None:
    module = parse_module("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = u8[8] bitcast(x) }")

    assert np.asarray(evaluate(module, [1, -2])).tolist() == [0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0]


def test_a_bitcast_between_different_sizes_is_an_error() -> None:
    module = parse_module("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[3] bitcast(x) }")

    with pytest.raises(EvaluationError, match="e/y: bitcast from"):
        evaluate(module, [1, 2])
