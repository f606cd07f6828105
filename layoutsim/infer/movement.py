"""Shape rules of data movement and construction (text spec, 3.5).

Rules that rearrange a copied shape (reverse, transpose, dynamic-update-slice, set-dimension-size) keep the operand's
layout; ``transpose`` moves it along, so that the inferred transpose is a bitcast. All others build a default layout.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutsim.infer.registry import Site, shape_rule
from layoutsim.infer.shapes import (
    dynamic_flags,
    higher_type,
    new_array,
    permuted,
    same_type_up_to_precision,
    scalar,
    sizes_agree,
    with_dynamic,
)
from layoutsim.ir import UNBOUNDED, ArrayShape, ElementType, Opcode, Shape, tuple_shape
from layoutsim.ir.payloads import (
    ConstantPayload,
    DimensionsPayload,
    DynamicSlicePayload,
    IotaPayload,
    PadPayload,
    SlicePayload,
    TupleIndexPayload,
)

Ints = tuple[int, ...]

_LARGEST_S32 = 2**31 - 1


# -- construction --------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.PARAMETER)
def _parameter(site: Site) -> Shape:
    return site.stated_shape()


@shape_rule(Opcode.CONSTANT)
def _constant(site: Site) -> Shape:
    return site.payload_as(ConstantPayload).literal.shape


@shape_rule(Opcode.IOTA)
def _iota(site: Site) -> Shape:
    dimension, result = site.payload_as(IotaPayload).iota_dimension, site.stated_array()
    if not 0 <= dimension < result.rank:
        site.fail(f"has iota_dimension {dimension}, expected one of the {result.rank} dimensions of {result}")
    if result.element_type.is_pred:
        site.fail("has element type pred, expected an integral, floating or complex type")
    return result


@shape_rule(Opcode.BROADCAST)
def _broadcast(site: Site) -> Shape:
    """Dimension ``i`` of the operand is dimension ``dimensions[i]`` of the result, of exactly the same size."""
    operand, result = site.array(0), site.stated_array()
    dimensions = site.payload_as(DimensionsPayload).dimensions
    if operand.element_type is not result.element_type:
        site.fail(f"has shape {result}, expected element type {operand.element_type} (same as operand 0)")
    if len(dimensions) != operand.rank:
        site.fail(f"has {len(dimensions)} dimensions, expected {operand.rank}, the rank of operand 0")
    for size, d in zip(operand.dimensions, dimensions, strict=True):
        if not 0 <= d < result.rank:
            site.fail(f"has dimensions {dimensions}, expected numbers in 0..{result.rank - 1}")
        if result.dimensions[d] != size:
            site.fail(f"has size {result.dimensions[d]} in dimension {d}, expected {size} of operand 0, {operand}")
    return result


@shape_rule(Opcode.TUPLE)
def _tuple(site: Site) -> Shape:
    return tuple_shape(site.operands)


@shape_rule(Opcode.GET_TUPLE_ELEMENT)
def _get_tuple_element(site: Site) -> Shape:
    elements, index = site.tuple(0).elements, site.payload_as(TupleIndexPayload).index
    if not 0 <= index < len(elements):
        site.fail(f"has index {index}, expected one of the {len(elements)} elements of {site.operands[0]}")
    return elements[index]


# -- rearrangement -------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.RESHAPE)
def _reshape(site: Site) -> Shape:
    operand, result = site.array(0), site.stated_array()
    if operand.element_type is not result.element_type:
        site.fail(f"has shape {result}, expected element type {operand.element_type} (same as operand 0)")
    dynamic = UNBOUNDED in (*operand.dimensions, *result.dimensions)
    if not dynamic and operand.element_count != result.element_count:
        site.fail(f"has {result.element_count} elements, expected {operand.element_count} of operand 0, {operand}")
    return result


@shape_rule(Opcode.BITCAST)
def _bitcast(site: Site) -> Shape:
    """Any array reads as any other; whether the bytes suffice depends on layouts, which the verifier looks at."""
    site.array(0)
    return site.stated_array()


@shape_rule(Opcode.DYNAMIC_RESHAPE)
def _dynamic_reshape(site: Site) -> Shape:
    result = _reshape(site)
    assert isinstance(result, ArrayShape), result
    if len(site.operands) != 1 + result.rank:
        site.fail(f"has {len(site.operands)} operands, expected 1 and one for each dimension of {result}")
    for number in range(1, len(site.operands)):
        if site.scalar(number).element_type is not ElementType.S32:
            site.fail(f"operand {number} has shape {site.operands[number]}, expected s32[]")
    return result


@shape_rule(Opcode.TRANSPOSE)
def _transpose(site: Site) -> Shape:
    operand, dimensions = site.array(0), site.payload_as(DimensionsPayload).dimensions
    if sorted(dimensions) != list(range(operand.rank)):
        site.fail(f"has dimensions {dimensions}, expected a permutation of the {operand.rank} dimensions of {operand}")
    return permuted(operand, dimensions)


@shape_rule(Opcode.REVERSE)
def _reverse(site: Site) -> Shape:
    operand = site.array(0)
    site.distinct("dimensions", site.payload_as(DimensionsPayload).dimensions, operand.rank)
    return operand


@shape_rule(Opcode.CONCATENATE)
def _concatenate(site: Site) -> Shape:
    if not site.operands:
        site.fail("has no operands, expected at least one")
    first, *others = shapes = site.arrays()
    (dimension,) = _one_dimension(site, first)
    for number, other in enumerate(others, 1):
        if not same_type_up_to_precision(first.element_type, other.element_type):
            site.fail(f"operand {number} has shape {other}, expected element type {first.element_type} (same as operand 0)")
        others_agree = other.rank == first.rank and all(
            d == dimension or sizes_agree(a, b) for d, (a, b) in enumerate(zip(first.dimensions, other.dimensions, strict=True))
        )
        if not others_agree:
            site.fail(f"operand {number} has shape {other}, expected {first} (same as operand 0) but for dimension {dimension}")
    sizes = [_concatenated(site, shapes, d) if d == dimension else _common(site, shapes, d) for d in range(first.rank)]
    return new_array(
        higher_type(*(shape.element_type for shape in shapes)), (size for size, _ in sizes), (dynamic for _, dynamic in sizes)
    )


def _one_dimension(site: Site, operand: ArrayShape) -> Ints:
    dimensions = site.payload_as(DimensionsPayload).dimensions
    if len(dimensions) != 1 or not 0 <= dimensions[0] < operand.rank:
        site.fail(f"has dimensions {dimensions}, expected one of the {operand.rank} dimensions of {operand}")
    return dimensions


def _concatenated(site: Site, shapes: Sequence[ArrayShape], dimension: int) -> tuple[int, bool]:
    """Sum of the sizes, unbounded or dynamic where any part is."""
    sizes = [shape.dimensions[dimension] for shape in shapes]
    if UNBOUNDED in sizes:
        return UNBOUNDED, True
    return sum(sizes), any(dynamic_flags(shape)[dimension] for shape in shapes)


def _common(site: Site, shapes: Sequence[ArrayShape], dimension: int) -> tuple[int, bool]:
    """The one bounded size, dynamic where an operand with a bound is."""
    bounded = [s for s in shapes if s.dimensions[dimension] != UNBOUNDED]
    if not bounded:
        return UNBOUNDED, True
    return bounded[0].dimensions[dimension], any(dynamic_flags(s)[dimension] for s in bounded)


@shape_rule(Opcode.PAD)
def _pad(site: Site) -> Shape:
    operand, value, padding = site.array(0), site.scalar(1), site.payload_as(PadPayload)
    if not same_type_up_to_precision(operand.element_type, value.element_type):
        site.fail(f"operand 1 has shape {value}, expected element type {operand.element_type} (same as operand 0)")
    if not len(padding.low) == len(padding.high) == len(padding.interior) == operand.rank:
        counts = f"{len(padding.low)} low, {len(padding.high)} high and {len(padding.interior)} interior"
        site.fail(f"has {counts} padding numbers, expected {operand.rank} of each, the rank of operand 0")
    if any(interior < 0 for interior in padding.interior):
        site.fail(f"has interior padding {padding.interior}, expected no negative number")
    sizes: list[int] = []
    for d, (size, low, high, interior) in enumerate(
        zip(operand.dimensions, padding.low, padding.high, padding.interior, strict=True)
    ):
        padded = UNBOUNDED if size == UNBOUNDED else size + low + high + max(size - 1, 0) * interior
        if padded < 0 and size != UNBOUNDED:
            site.fail(f"has size {padded} in dimension {d}, expected no negative size")
        sizes.append(padded)
    return new_array(higher_type(operand.element_type, value.element_type), sizes, dynamic_flags(operand))


# -- slices --------------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.SLICE)
def _slice(site: Site) -> Shape:
    operand, payload = site.array(0), site.payload_as(SlicePayload)
    if not len(payload.starts) == len(payload.limits) == len(payload.strides) == operand.rank:
        site.fail(f"has {len(payload.starts)} ranges, expected {operand.rank}, the rank of operand 0")
    sizes: list[int] = []
    for d, (size, start, limit, stride) in enumerate(
        zip(operand.dimensions, payload.starts, payload.limits, payload.strides, strict=True)
    ):
        if not 0 <= start <= limit or (size != UNBOUNDED and limit > size):
            site.fail(f"has range [{start}:{limit}] in dimension {d}, expected one inside [0:{size}]")
        if stride <= 0:
            site.fail(f"has stride {stride} in dimension {d}, expected at least 1")
        sizes.append(-(-(limit - start) // stride))
    # One element of a dynamic dimension is always there.
    bounded = (
        flag and old != UNBOUNDED and new != 1
        for flag, old, new in zip(dynamic_flags(operand), operand.dimensions, sizes, strict=True)
    )
    return new_array(operand.element_type, sizes, bounded)


@shape_rule(Opcode.DYNAMIC_SLICE)
def _dynamic_slice(site: Site) -> Shape:
    operand, sizes = site.array(0), site.payload_as(DynamicSlicePayload).dynamic_slice_sizes
    _check_start_indices(site, operand, first=1)
    if len(sizes) != operand.rank:
        site.fail(f"has {len(sizes)} dynamic_slice_sizes, expected {operand.rank}, the rank of operand 0")
    for d, (size, whole) in enumerate(zip(sizes, operand.dimensions, strict=True)):
        if size < 0 or (whole != UNBOUNDED and size > whole):
            site.fail(f"has slice size {size} in dimension {d}, expected 0..{whole}")
    whole_dynamic = (
        flag and 1 < size == whole for flag, size, whole in zip(dynamic_flags(operand), sizes, operand.dimensions, strict=True)
    )
    return new_array(operand.element_type, sizes, whole_dynamic)


def _check_start_indices(site: Site, operand: ArrayShape, *, first: int) -> None:
    """One integral scalar for each dimension, all of one type; or, as older text has it, one vector of them."""
    indices = [site.array(number) for number in range(first, len(site.operands))]
    if indices and indices[0].rank == 1:
        count = indices[0].dimensions[0] if len(indices) == 1 else -1
    else:
        count = len(indices)
        for number, index in enumerate(indices, first):
            if index.rank or index.element_type is not indices[0].element_type:
                site.fail(f"operand {number} has shape {index}, expected {indices[0].element_type}[]")
    if count != operand.rank:
        site.fail(f"has {len(indices)} start indices, expected {operand.rank}, the rank of operand 0")
    if indices and not indices[0].element_type.is_integral:
        site.fail(f"operand {first} has shape {indices[0]}, expected an integral type")


@shape_rule(Opcode.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice(site: Site) -> Shape:
    operand, update = site.array(0), site.array(1)
    _check_start_indices(site, operand, first=2)
    if not same_type_up_to_precision(operand.element_type, update.element_type):
        site.fail(f"operand 1 has shape {update}, expected element type {operand.element_type} (same as operand 0)")
    fits = update.rank == operand.rank and all(a <= b for a, b in zip(update.dimensions, operand.dimensions, strict=True))
    if not fits:
        site.fail(f"operand 1 has shape {update}, expected a part of operand 0, {operand}")
    if not update.dynamic:
        return operand
    return with_dynamic(
        operand,
        (
            old or (new and update.dimensions[d] == operand.dimensions[d])
            for d, (old, new) in enumerate(zip(dynamic_flags(operand), dynamic_flags(update), strict=True))
        ),
    )


# -- dimension sizes -----------------------------------------------------------------------------------------------------


@shape_rule(Opcode.GET_DIMENSION_SIZE)
def _get_dimension_size(site: Site) -> Shape:
    _checked_size_dimension(site)
    return scalar(ElementType.S32)


@shape_rule(Opcode.SET_DIMENSION_SIZE)
def _set_dimension_size(site: Site) -> Shape:
    operand, dimension = site.array(0), _checked_size_dimension(site)
    if site.scalar(1).element_type is not ElementType.S32:
        site.fail(f"operand 1 has shape {site.operands[1]}, expected s32[]")
    return with_dynamic(operand, (flag or d == dimension for d, flag in enumerate(dynamic_flags(operand))))


def _checked_size_dimension(site: Site) -> int:
    operand = site.array(0)
    (dimension,) = _one_dimension(site, operand)
    if operand.dimensions[dimension] > _LARGEST_S32:
        site.fail(f"dimension {dimension} of {operand} has a size that s32 cannot hold")
    return dimension
