"""Tiled layouts: how many bytes an array really takes, how many of them are padding, and which order would waste least.

TPU arrays are stored in tiles, ``bf16[2048,10]{1,0:T(8,128)(2,1)}``:

1. Dimensions are taken in physical order, the most major first. A tile covers the last as many of them as it has sizes; an
   array of smaller rank gets leading dimensions of size 1.
2. Each covered dimension is cut into tiles and rounded up to whole ones: ``[2048, 10]`` becomes ``[256, 1, 8, 128]``.
3. A second tile cuts the first one's sizes again in the same way, ``(2,1)`` the ``[8, 128]``; the layout of the bytes
   changes, their number only if a size is no multiple.
4. ``*`` in a tile joins a dimension with the next more minor one before cutting.
5. ``L(n)`` rounds the number of elements up to a multiple of n; ``E(n)`` is the width of an element in bits; ``M(n)`` adds n
   bytes before the data.

Source: ``xla/layout.h``, "tiled layout" in the documentation of XLA; memory spaces as in ``xla/layout.h`` and TPU dumps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations
from math import prod

from attrs import evolve, frozen

from layoutsim.errors import UnsupportedError
from layoutsim.ir.layout import Layout
from layoutsim.ir.shape import UNBOUNDED, ArrayShape, Shape, array_leaves, byte_size

_TPU_MEMORY_SPACES = {0: "HBM", 1: "VMEM", 2: "sync flags", 5: "host", 6: "SMEM"}


@frozen
class TilePadding:
    """What tiles add to one array.

    Attributes:
        data_bytes: bytes of the elements.
        padded_bytes: bytes with padding.
        best_order: the ``minor_to_major`` that takes fewest bytes with the same tiles; the present one if none is better.
        best_padded_bytes: bytes in that order.
    """

    shape: ArrayShape
    data_bytes: int
    padded_bytes: int
    best_order: tuple[int, ...]
    best_padded_bytes: int

    @property
    def padding_bytes(self) -> int:
        return self.padded_bytes - self.data_bytes

    @property
    def saved_by_best_order(self) -> int:
        """Bytes that the best order takes less than the present one."""
        return self.padded_bytes - self.best_padded_bytes


def tile_padding(shape: ArrayShape) -> TilePadding:
    """Padding of one array, and the order of dimensions that would waste least.

    Raises:
        UnsupportedError: a dimension has no bound, so that the size is unknown.
    """
    padded = padded_bytes(shape)
    order, best = _best_order(shape)
    return TilePadding(shape, byte_size(shape), padded, order, best)


@cache
def padded_bytes(shape: Shape) -> int:
    """Bytes of a value's own buffer with tile padding; tables of pointers and tokens as without tiles.

    Raises:
        UnsupportedError: a dimension has no bound, so that the size is unknown.
    """
    if not isinstance(shape, ArrayShape) or shape.layout is None or _is_dense(shape.layout):
        return byte_size(shape)
    elements = prod(tiled_dimensions(shape))
    if shape.element_count:
        elements = _round_up(elements, shape.layout.tail_padding_alignment)
    bits = shape.layout.element_size_bits or shape.element_type.storage_bytes * 8
    return -(-elements * bits // 8) + shape.layout.metadata_prefix_bytes


@cache
def total_padded_bytes(shape: Shape) -> int:
    """Padded bytes of all array leaves together, pointer tables not counted."""
    return sum(padded_bytes(leaf) for _, leaf in array_leaves(shape))


def tiled_dimensions(shape: ArrayShape) -> tuple[int, ...]:
    """Sizes after all tiles, the most major first; their product is the number of elements with padding.

    Raises:
        UnsupportedError: a dimension has no bound.
    """
    if UNBOUNDED in shape.dimensions:
        raise UnsupportedError(f"{shape}: the bytes of an array with an unbounded dimension are unknown")
    layout = shape.layout
    assert layout is not None, f"{shape} has no layout"
    dimensions = tuple(shape.dimensions[d] for d in layout.major_to_minor)
    for tile in layout.tiles:
        dimensions = _cut(dimensions, tile)
    return dimensions


def has_tiles(shape: Shape) -> bool:
    """Whether an array of the shape is stored in tiles."""
    return any(leaf.layout is not None and leaf.layout.tiles for _, leaf in array_leaves(shape))


def memory_space_name(memory_space: int) -> str:
    """What a TPU dump means by ``S(n)``; spaces without a public name keep their number."""
    return _TPU_MEMORY_SPACES.get(memory_space, f"memory space {memory_space}")


def _cut(dimensions: tuple[int, ...], tile: tuple[int | None, ...]) -> tuple[int, ...]:
    """Rules (1), (2) and (4) for one tile."""
    dimensions = (1,) * (len(tile) - len(dimensions)) + dimensions
    untouched = dimensions[: len(dimensions) - len(tile)]
    covered = list(_join_starred(dimensions[len(untouched) :], tile))
    counts = tuple(-(-size // tile_size) for size, tile_size in covered)
    return untouched + counts + tuple(tile_size for _, tile_size in covered)


def _join_starred(dimensions: tuple[int, ...], tile: tuple[int | None, ...]) -> Iterator[tuple[int, int]]:
    """Pairs of a size and its tile size; a starred size is multiplied into the next one."""
    joined = 1
    for size, tile_size in zip(dimensions, tile, strict=True):
        joined *= size
        if tile_size is not None:
            yield joined, tile_size
            joined = 1


@cache
def _best_order(shape: ArrayShape) -> tuple[tuple[int, ...], int]:
    layout = shape.layout
    if layout is None or not layout.tiles:
        return (layout.minor_to_major if layout is not None else tuple(range(shape.rank))[::-1]), padded_bytes(shape)
    candidates = (
        (padded_bytes(_in_order(shape, layout, order)), number, order) for number, order in enumerate(_orders(layout))
    )
    best, _, order = min(candidates)
    return order, best


def _orders(layout: Layout) -> Iterator[tuple[int, ...]]:
    """Orders that can differ in padding, the present one first.

    Only which dimensions the first tile covers, and in which order, matters; the others keep their relative order.
    """
    covered = min(len(layout.tiles[0]), layout.rank)
    yield layout.minor_to_major
    for minor in permutations(layout.minor_to_major, covered):
        yield minor + tuple(d for d in layout.minor_to_major if d not in minor)


def _in_order(shape: ArrayShape, layout: Layout, order: tuple[int, ...]) -> ArrayShape:
    return evolve(shape, layout=evolve(layout, minor_to_major=order))


def _is_dense(layout: Layout) -> bool:
    return not layout.tiles and layout.tail_padding_alignment == 1 and not layout.metadata_prefix_bytes


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
