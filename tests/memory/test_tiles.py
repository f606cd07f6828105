"""Bytes of tiled arrays, padding, and the order of dimensions that wastes least."""

import pytest

from layoutsim.errors import UnsupportedError
from layoutsim.ir.element_type import ElementType
from layoutsim.ir.layout import Layout
from layoutsim.ir.shape import TOKEN, UNBOUNDED, ArrayShape, tuple_shape
from layoutsim.memory.tiles import (
    has_tiles,
    memory_space_name,
    padded_bytes,
    tile_padding,
    tiled_dimensions,
    total_padded_bytes,
)

MIB = 2**20


def tiled(
    element_type: ElementType, dimensions: tuple[int, ...], order: tuple[int, ...], *tiles: tuple[int | None, ...], **more: int
) -> ArrayShape:
    return ArrayShape(element_type, dimensions, Layout(order, tiles, **more))


def test_covered_dimensions_are_rounded_up_to_whole_tiles():
    shape = tiled(ElementType.F32, (9, 18), (1, 0), (8, 128))

    assert tiled_dimensions(shape) == (2, 1, 8, 128)
    # 16 x 128 x 4
    assert padded_bytes(shape) == 8192


def test_tiles_cover_the_minor_dimensions_of_the_layout():
    shape = tiled(ElementType.F32, (18, 9), (0, 1), (8, 128))

    assert padded_bytes(shape) == 8192


def test_a_scalar_takes_a_whole_tile():
    # 128 x 4
    assert padded_bytes(tiled(ElementType.F32, (), (), (128,))) == 512


def test_a_second_tile_that_divides_the_first_adds_nothing():
    one = tiled(ElementType.BF16, (16, 128), (1, 0), (8, 128))
    two = tiled(ElementType.BF16, (16, 128), (1, 0), (8, 128), (2, 1))

    assert tiled_dimensions(two) == (2, 1, 4, 128, 2, 1)
    assert padded_bytes(one) == padded_bytes(two) == 16 * 128 * 2


def test_a_second_tile_that_does_not_divide_the_first_pads_it():
    # the tile (1,128) becomes (2,128): 4 x 2 x 128 x 2 bytes
    assert padded_bytes(tiled(ElementType.BF16, (4, 128), (1, 0), (1, 128), (2, 1))) == 2048


def test_three_tiles_are_cut_one_after_another():
    # 3000 -> 12 x 256; 256 -> 2 x 128; (2,128) by (2,1): no more padding
    assert padded_bytes(tiled(ElementType.BF16, (3000,), (0,), (256,), (128,), (2, 1))) == 12 * 256 * 2


def test_a_star_joins_a_dimension_with_the_next_more_minor_one():
    shape = tiled(ElementType.F32, (3, 5, 7), (2, 1, 0), (None, 8))

    assert tiled_dimensions(shape) == (3, 5, 8)  # 5 x 7 = 35 elements are 5 tiles of 8
    assert padded_bytes(shape) == 3 * 40 * 4


def test_elements_may_be_narrower_than_a_byte():
    assert padded_bytes(tiled(ElementType.S4, (4096, 256), (1, 0), (64, 128), (8, 1), element_size_bits=4)) == 4096 * 256 // 2


def test_tail_padding_and_prefix_are_added():
    assert padded_bytes(tiled(ElementType.S8, (13,), (0,), tail_padding_alignment=8)) == 16
    assert padded_bytes(tiled(ElementType.S8, (13,), (0,), metadata_prefix_bytes=4)) == 17


def test_an_empty_array_takes_nothing():
    assert padded_bytes(tiled(ElementType.F32, (0, 5), (1, 0), (8, 128))) == 0


def test_arrays_without_tiles_and_tables_are_as_large_as_their_data():
    plain = tiled(ElementType.F32, (9, 18), (1, 0))
    both = tuple_shape((plain, tiled(ElementType.F32, (9, 18), (1, 0), (8, 128)), TOKEN))

    assert padded_bytes(plain) == 9 * 18 * 4
    assert padded_bytes(both) == 3 * 8
    assert total_padded_bytes(both) == 9 * 18 * 4 + 8192
    assert (has_tiles(plain), has_tiles(both)) == (False, True)


def test_an_unbounded_dimension_has_no_size():
    with pytest.raises(UnsupportedError, match="unbounded"):
        padded_bytes(ArrayShape(ElementType.F32, (UNBOUNDED,), Layout((0,), ((128,),)), (True,)))


@pytest.mark.parametrize(
    ("shape", "data_bytes", "padded", "best"),
    [
        # 2048 x 1: the size-1 dimension is second most minor and becomes 4.
        (tiled(ElementType.BF16, (2048, 1, 2048, 128), (0, 1, 3, 2), (4, 128), (2, 1)), 1024 * MIB, 4096 * MIB, 1024 * MIB),
        # 10 becomes 128; the other way round it becomes 16.
        (tiled(ElementType.S32, (29360128, 10), (1, 0), (8, 128)), 1120 * MIB, 14336 * MIB, 1792 * MIB),
        (tiled(ElementType.F32, (29184, 1, 2560), (2, 1, 0), (2, 128)), 285 * MIB, 570 * MIB, 285 * MIB),
        (tiled(ElementType.F32, (4, 128, 128, 9, 18), (4, 3, 0, 2, 1), (8, 128)), 81 * MIB // 2, 512 * MIB, 81 * MIB // 2),
    ],
)
def test_padding_and_what_the_best_order_would_save(shape: ArrayShape, data_bytes: int, padded: int, best: int):
    padding = tile_padding(shape)

    assert (padding.data_bytes, padding.padded_bytes, padding.best_padded_bytes) == (data_bytes, padded, best)
    assert padding.padding_bytes == padded - data_bytes
    assert padding.saved_by_best_order == padded - best
    assert padded_bytes(ArrayShape(shape.element_type, shape.dimensions, shape.layout.with_order(padding.best_order))) == best


def test_the_present_order_is_kept_where_no_other_is_better():
    shape = tiled(ElementType.F32, (128, 128, 128), (0, 2, 1), (8, 128))

    assert tile_padding(shape).best_order == (0, 2, 1)
    assert tile_padding(tiled(ElementType.F32, (9, 18), (0, 1))).best_order == (0, 1)


def test_memory_spaces_are_named():
    assert [memory_space_name(n) for n in (0, 1, 5, 7)] == ["HBM", "VMEM", "host", "memory space 7"]
