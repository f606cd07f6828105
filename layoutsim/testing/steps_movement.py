"""Steps that move, select and repeat elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from layoutsim.build import array_of
from layoutsim.ir import Opcode, array_shape
from layoutsim.ir.payloads import DimensionsPayload, GatherPayload, PadPayload, ScatterPayload
from layoutsim.testing.chooser import Chooser, chance, permutation, subset
from layoutsim.testing.scope import COMMON_SIZES, F32, MAX_ELEMENTS, S32, Scope, scalar_function


def transpose(scope: Scope) -> None:
    """Any order of dimensions."""
    operand = scope.any_array(lambda s: s.rank > 1)
    scope.keep(scope.builder.transpose(operand, permutation(scope.chooser, array_of(operand).rank)))


def reshape(scope: Scope) -> None:
    """Insert and drop size-1 dimensions, merge and split neighbours: bitcasts and others."""
    operand = scope.any_array()
    sizes = reshaped(scope.chooser, array_of(operand).dimensions)
    scope.keep(scope.builder.reshape(operand, sizes))


def reshaped(chooser: Chooser, sizes: Sequence[int]) -> tuple[int, ...]:
    """Other dimensions with the same product."""
    new = list(sizes)
    for _ in range(chooser.integer(1, 3)):
        edit = chooser.pick((_insert_one, _drop_ones, _merge, _split, _refactor))
        new = edit(chooser, new)
    return tuple(new) if len(new) <= 5 else tuple(sizes)


def _insert_one(chooser: Chooser, sizes: list[int]) -> list[int]:
    at = chooser.integer(0, len(sizes))
    return [*sizes[:at], 1, *sizes[at:]]


def _drop_ones(chooser: Chooser, sizes: list[int]) -> list[int]:
    ones = [d for d, size in enumerate(sizes) if size == 1]
    dropped = set(subset(chooser, ones, at_least=1))
    return [size for d, size in enumerate(sizes) if d not in dropped]


def _merge(chooser: Chooser, sizes: list[int]) -> list[int]:
    if len(sizes) < 2:
        return sizes
    at = chooser.integer(0, len(sizes) - 2)
    return [*sizes[:at], sizes[at] * sizes[at + 1], *sizes[at + 2 :]]


def _split(chooser: Chooser, sizes: list[int]) -> list[int]:
    splittable = [d for d, size in enumerate(sizes) if size > 3 and _divisors(size)]
    if not splittable:
        return sizes
    at = chooser.pick(splittable)
    factor = chooser.pick(_divisors(sizes[at]))
    return [*sizes[:at], factor, sizes[at] // factor, *sizes[at + 1 :]]


def _refactor(chooser: Chooser, sizes: list[int]) -> list[int]:
    """The same number of elements, cut up anew."""
    count = math.prod(sizes)
    divisors = _divisors(count)
    if not divisors:
        return sizes
    first = chooser.pick(divisors)
    return [first, count // first]


def _divisors(size: int) -> list[int]:
    return [d for d in range(2, size) if size % d == 0] if 1 < size <= MAX_ELEMENTS else []


def broadcast(scope: Scope) -> None:
    """New dimensions among the old ones, which keep their order or, rarely, not."""
    operand = scope.any_array(lambda s: s.element_count <= MAX_ELEMENTS // 8)
    shape = array_of(operand)
    sizes, kept = list(shape.dimensions), list(range(shape.rank))
    for _ in range(scope.chooser.integer(1, 2)):
        at = scope.chooser.integer(0, len(sizes))
        sizes.insert(at, scope.chooser.pick(COMMON_SIZES))
        kept = [d + (d >= at) for d in kept]
    scope.keep(scope.builder.broadcast(operand, sizes, kept))


def slices(scope: Scope) -> None:
    """A static slice, sometimes with strides, sometimes empty."""
    operand = scope.any_array(lambda s: s.rank > 0)
    starts: list[int] = []
    limits: list[int] = []
    strides: list[int] = []
    for size in array_of(operand).dimensions:
        start = scope.chooser.integer(0, max(0, size - 1))
        starts.append(start)
        limits.append(scope.chooser.integer(min(size, start + 1), size))
        strides.append(2 if chance(scope.chooser, 10) else 1)
    scope.keep(scope.builder.slice(operand, starts, limits, strides))


def dynamic_slice(scope: Scope) -> None:
    """A slice at an index known at run time, of full, unit or other size per dimension."""
    operand = scope.any_array(lambda s: s.rank > 0)
    shape = array_of(operand)
    sizes = _smaller(scope.chooser, shape.dimensions)
    scope.keep(scope.builder.dynamic_slice(operand, [scope.index() for _ in sizes], sizes))


def dynamic_update_slice(scope: Scope) -> None:
    """An update at an index known at run time."""
    operand = scope.any_array(lambda s: s.rank > 0)
    shape = array_of(operand)
    update = scope.array_of(shape.element_type, _smaller(scope.chooser, shape.dimensions))
    scope.keep(scope.builder.dynamic_update_slice(operand, update, [scope.index() for _ in shape.dimensions]))


def _smaller(chooser: Chooser, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(chooser.pick((size, min(size, 1), chooser.integer(min(size, 1), size))) for size in sizes)


def concatenate(scope: Scope) -> None:
    """Two or three operands, of the same or of another size in the concatenated dimension."""
    first = scope.any_array(lambda s: s.rank > 0)
    shape = array_of(first)
    dimension = scope.chooser.integer(0, shape.rank - 1)
    operands = [first]
    for _ in range(scope.chooser.integer(1, 2)):
        sizes = list(shape.dimensions)
        if chance(scope.chooser, 50):
            sizes[dimension] = scope.chooser.pick(COMMON_SIZES)
        operands.append(scope.array_of(shape.element_type, sizes))
    scope.keep(scope.builder.concatenate(operands, dimension))


def pad(scope: Scope) -> None:
    """Edges, some of them negative, and interior padding."""
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_count <= MAX_ELEMENTS // 8)
    shape = array_of(operand)
    low = tuple(scope.chooser.integer(0, 1) for _ in shape.dimensions)
    high = tuple(-1 if size > 1 and chance(scope.chooser, 10) else scope.chooser.integer(0, 2) for size in shape.dimensions)
    interior = tuple(int(chance(scope.chooser, 10)) for _ in shape.dimensions)
    value = scope.array_of(shape.element_type, ())
    scope.keep(scope.builder.apply(Opcode.PAD, operand, value, payload=PadPayload(low, high, interior)))


def reverse(scope: Scope) -> None:
    """Some dimensions backwards."""
    operand = scope.any_array(lambda s: s.rank > 0)
    dimensions = subset(scope.chooser, range(array_of(operand).rank), at_least=1)
    scope.keep(scope.builder.apply(Opcode.REVERSE, operand, payload=DimensionsPayload(tuple(dimensions))))


def iota(scope: Scope) -> None:
    """Numbers along a dimension."""
    shape = scope.random_shape(element_type=scope.chooser.pick((F32, S32)))
    if shape.rank:
        scope.keep(scope.builder.iota(shape, scope.chooser.integer(0, shape.rank - 1)))


def gather(scope: Scope) -> None:
    """Whole slices along one dimension, as an embedding look-up does."""
    operand = scope.any_array(lambda s: s.rank > 0 and 0 not in s.dimensions)
    shape, chooser = array_of(operand), scope.chooser
    axis = chooser.integer(0, shape.rank - 1)
    batch = tuple(chooser.pick(COMMON_SIZES) for _ in range(chooser.integer(1, 2)))
    indices = scope.array_of(S32, (*batch, 1) if chance(chooser, 50) else batch)
    rank = len(batch) + shape.rank - 1
    offset = sorted(permutation(chooser, rank)[: shape.rank - 1])
    payload = GatherPayload(
        offset_dims=tuple(offset),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=len(batch),
        slice_sizes=tuple(1 if d == axis else size for d, size in enumerate(shape.dimensions)),
    )
    if shape.element_count // max(1, shape.dimensions[axis]) * math.prod(batch) <= MAX_ELEMENTS:
        scope.keep(scope.builder.apply(Opcode.GATHER, operand, indices, payload=payload))


def scatter(scope: Scope) -> None:
    """Whole slices added along one dimension."""
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type in (F32, S32) and 0 not in s.dimensions)
    shape, chooser = array_of(operand), scope.chooser
    axis = chooser.integer(0, shape.rank - 1)
    count = chooser.pick(COMMON_SIZES)
    rest = [size for d, size in enumerate(shape.dimensions) if d != axis]
    at = chooser.integer(0, len(rest))
    updates = scope.array_of(shape.element_type, (*rest[:at], count, *rest[at:]))
    payload = ScatterPayload(
        update_window_dims=tuple(d for d in range(len(rest) + 1) if d != at),
        inserted_window_dims=(axis,),
        scatter_dims_to_operand_dims=(axis,),
        index_vector_dim=1,
    )
    combiner = scalar_function(scope, Opcode.ADD, shape.element_type)
    indices = scope.array_of(S32, (count, 1) if chance(chooser, 50) else (count,))
    scope.keep(scope.builder.apply(Opcode.SCATTER, operand, indices, updates, payload=payload, calls=[combiner]))


def rounded_copy(scope: Scope) -> None:
    """A copy, sometimes into another layout."""
    operand = scope.any_array()
    shape = array_of(operand)
    order = permutation(scope.chooser, shape.rank) if chance(scope.chooser, 50) else None
    scope.keep(scope.builder.copy(operand, order))


def constant_matrix(scope: Scope) -> None:
    """A constant whose literal has a layout of its own."""
    import numpy as np

    shape = array_shape(F32, (scope.chooser.pick((2, 3)), scope.chooser.pick((2, 3))))
    values = np.arange(shape.element_count, dtype=np.float32).reshape(shape.dimensions)
    scope.keep(scope.builder.constant(values))
