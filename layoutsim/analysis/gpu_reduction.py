"""Which reductions XLA:GPU emits with its reduction emitter (``xla/service/gpu/reduction_utils.cc``).

1. The kept dimensions, or the reduced ones, lie next to each other in memory. The shape then is major x middle x minor, and
   it is a *row* reduction (the minor part is reduced) or a *column* reduction (the middle part is).
2. A row reduction is worth it from 32 elements on, or if their number divides 32. A column reduction of few elements is not.
3. Behind other operations of a fusion it must also be free of races: one block must see all of a row or column.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.shape import ArrayShape, order_or_default

_WARP = 32
_MAX_BATCH = 8
_ROW_BOUND = 1024 * 16
_COLUMN_BOUND = _WARP * 128


@frozen
class ReductionDimensions:
    """Sizes of major, middle and minor part; a row reduction keeps the middle, a column reduction reduces it."""

    is_row: bool
    sizes: tuple[int, int, int]


def reduction_dimensions(reduce: Instruction) -> ReductionDimensions | None:
    """The dimensions of a reduction over neighbours, or ``None``; rule (1)."""
    shape = reduce.operand(0).shape
    assert isinstance(shape, ArrayShape), reduce
    reduced = set(reduce.payload_as(DimensionsPayload).dimensions)
    kept = [d for d in range(shape.rank) if d not in reduced]
    if not kept:
        return ReductionDimensions(True, (1, 1, shape.element_count))
    if _are_neighbours(shape, kept):
        major, middle, minor = _parts(shape, kept)
        if middle == 1:
            return ReductionDimensions(True, (1, 1, major * minor))
        if minor == 1:
            return ReductionDimensions(False, (1, major, middle))
        return ReductionDimensions(True, (major, middle, minor))
    if not _are_neighbours(shape, reduced):
        return None
    major, middle, minor = _parts(shape, reduced)
    if minor == 1:
        return ReductionDimensions(True, (1, major, middle))
    return ReductionDimensions(False, (major, middle, minor))


def is_real_reduction_hero(root: Instruction, hero: Instruction) -> bool:
    """Whether the fusion output ``root``, computed from ``hero``, is written by the reduction emitter."""
    if hero.opcode is not Opcode.REDUCE:
        return False
    dimensions = reduction_dimensions(hero)
    if dimensions is None or not _is_worth_it(dimensions):
        return False
    return root is hero or _is_race_free(dimensions)


def _is_worth_it(dimensions: ReductionDimensions) -> bool:
    """Rule (2)."""
    _, middle, minor = dimensions.sizes
    if dimensions.is_row:
        return minor >= _WARP or (minor > 0 and _WARP % minor == 0)
    is_small = (
        middle < _WARP
        or (middle < 2 * _WARP and minor < _WARP)
        or (middle < 4 * _WARP and minor < 8)
        or (middle < 8 * _WARP and minor < 3)
    )
    return not is_small


def _is_race_free(dimensions: ReductionDimensions) -> bool:
    """Rule (3)."""
    major, middle, minor = dimensions.sizes
    return (minor <= _ROW_BOUND and major <= _MAX_BATCH) if dimensions.is_row else middle <= _COLUMN_BOUND


def _are_neighbours(shape: ArrayShape, dimensions: Collection[int]) -> bool:
    ranks = sorted(rank for rank, d in enumerate(order_or_default(shape)) if d in dimensions)
    return not ranks or ranks[-1] - ranks[0] == len(ranks) - 1


def _parts(shape: ArrayShape, middle: Collection[int]) -> tuple[int, int, int]:
    """Sizes more major than the ``middle`` dimensions, of them, and more minor."""
    sizes = {"minor": 1, "middle": 1, "major": 1}
    part = "minor"
    for dimension in order_or_default(shape):
        if part == "minor" and dimension in middle:
            part = "middle"
        elif part == "middle" and dimension not in middle:
            part = "major"
        sizes[part] *= shape.dimensions[dimension]
    return sizes["major"], sizes["middle"], sizes["minor"]
