"""Kernels that move elements: shapes, slices, padding, tuples (text spec, sections 8.3 and 8.4)."""

from __future__ import annotations

import numpy as np

from layoutsim.errors import LayoutError, UnsupportedError
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.rounding import convert
from layoutsim.interp.strided import reinterpret
from layoutsim.interp.values import TOKEN_VALUE, Array, Value, as_tuple, fail
from layoutsim.ir.payloads import (
    DimensionsPayload,
    DynamicSlicePayload,
    IotaPayload,
    PadPayload,
    SlicePayload,
    TupleIndexPayload,
)

# -- whole values ----------------------------------------------------------------------------------------------------------


@kernel("tuple")
def _tuple(call: Call) -> Value:
    return call.operands


@kernel("get-tuple-element")
def _get_tuple_element(call: Call) -> Value:
    return as_tuple(call.operands[0])[call.instruction.payload_as(TupleIndexPayload).index]


@kernel("opt-barrier domain add-dependency")
def _first_operand(call: Call) -> Value:
    return call.operands[0]


@kernel("after-all")
def _after_all(_call: Call) -> Value:
    return TOKEN_VALUE


@kernel("copy-start")
def _copy_start(call: Call) -> Value:
    """(copy, original, context)."""
    return call.operands[0], call.operands[0], np.zeros((), np.uint32)


# -- shapes ----------------------------------------------------------------------------------------------------------------


@kernel("iota")
def _iota(call: Call) -> Value:
    dimension = call.instruction.payload_as(IotaPayload).iota_dimension
    sizes = call.shape.dimensions
    along = convert(np.arange(sizes[dimension], dtype=np.int64), call.element_type)
    return np.broadcast_to(along.reshape([-1 if d == dimension else 1 for d in range(len(sizes))]), sizes)


@kernel("broadcast")
def _broadcast(call: Call) -> Value:
    dimensions = call.instruction.payload_as(DimensionsPayload).dimensions
    x, target = call.array(0), call.shape.dimensions
    if not dimensions:
        # A scalar that stands for many elements (see interp.bodies) has dimensions of its own and keeps them.
        return np.broadcast_to(x, target) if target else x
    ascending = sorted(dimensions)
    sizes = [target[d] if d in dimensions else 1 for d in range(len(target))]
    return np.broadcast_to(x.transpose([dimensions.index(d) for d in ascending]).reshape(sizes), target)


@kernel("reshape")
def _reshape(call: Call) -> Value:
    x = call.array(0)
    return x if not call.shape.dimensions and not call.operand_shape(0).dimensions else x.reshape(call.shape.dimensions)


@kernel("bitcast")
def _bitcast(call: Call) -> Value:
    try:
        return reinterpret(call.array(0), call.operand_shape(0), call.shape)
    except LayoutError as error:
        raise fail(call.instruction, str(error)) from error


@kernel("transpose")
def _transpose(call: Call) -> Value:
    return call.array(0).transpose(call.instruction.payload_as(DimensionsPayload).dimensions)


@kernel("reverse")
def _reverse(call: Call) -> Value:
    return np.flip(call.array(0), call.instruction.payload_as(DimensionsPayload).dimensions)


@kernel("concatenate")
def _concatenate(call: Call) -> Value:
    (dimension,) = call.instruction.payload_as(DimensionsPayload).dimensions
    return np.concatenate(call.arrays, axis=dimension)


@kernel("dynamic-reshape")
def _dynamic_reshape(call: Call) -> Value:
    for number, size in enumerate(call.shape.dimensions, start=1):
        _only_the_bound(call, int(call.array(number)), size)
    return call.array(0).reshape(call.shape.dimensions)


@kernel("set-dimension-size")
def _set_dimension_size(call: Call) -> Value:
    (dimension,) = call.instruction.payload_as(DimensionsPayload).dimensions
    _only_the_bound(call, int(call.array(1)), call.shape.dimensions[dimension])
    return call.array(0)


@kernel("get-dimension-size")
def _get_dimension_size(call: Call) -> Value:
    (dimension,) = call.instruction.payload_as(DimensionsPayload).dimensions
    return np.array(call.array(0).shape[dimension], np.int32)


def _only_the_bound(call: Call, size: int, bound: int) -> None:
    """Dynamic dimensions are executed at their bound; a smaller size is not modelled."""
    if size != bound:
        raise UnsupportedError(f"{call.instruction.name}: dynamic size {size} below the bound {bound} is not modelled")


# -- slices and padding ----------------------------------------------------------------------------------------------------


@kernel("slice")
def _slice(call: Call) -> Value:
    payload = call.instruction.payload_as(SlicePayload)
    ranges = zip(payload.starts, payload.limits, payload.strides, strict=True)
    return call.array(0)[tuple(slice(start, limit, stride) for start, limit, stride in ranges)]


def clamped_starts(call: Call, first_index: int, sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """The window that index operands from ``first_index`` on select, moved inside operand 0."""
    indices = call.arrays[first_index:]
    starts = indices[0].tolist() if len(indices) == 1 and indices[0].ndim else [int(i) for i in indices]
    bounds = call.array(0).shape
    clamped = [max(0, min(int(start), bound - size)) for start, bound, size in zip(starts, bounds, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(clamped, sizes, strict=True))


@kernel("dynamic-slice")
def _dynamic_slice(call: Call) -> Value:
    return call.array(0)[clamped_starts(call, 1, call.instruction.payload_as(DynamicSlicePayload).dynamic_slice_sizes)]


@kernel("dynamic-update-slice")
def _dynamic_update_slice(call: Call) -> Value:
    update = call.array(1)
    result = call.array(0).copy()
    result[clamped_starts(call, 2, update.shape)] = update
    return result


@kernel("pad")
def _pad(call: Call) -> Value:
    payload = call.instruction.payload_as(PadPayload)
    return padded(call.array(0), call.array(1), payload.low, payload.high, payload.interior)


def padded(x: Array, value: Array, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> Array:
    """``x`` with interior padding, then low and high; negative low and high crop."""
    spread = [size + max(size - 1, 0) * inside for size, inside in zip(x.shape, interior, strict=True)]
    dilated = np.full(spread, value, x.dtype)
    dilated[tuple(slice(None, None, inside + 1) for inside in interior)] = x
    sizes = [size + lo + hi for size, lo, hi in zip(spread, low, high, strict=True)]
    result = np.full(sizes, value, x.dtype)
    source = tuple(
        slice(max(0, -lo), max(size - max(0, -hi), max(0, -lo))) for size, lo, hi in zip(spread, low, high, strict=True)
    )
    part = dilated[source]
    target = tuple(slice(max(0, lo), max(0, lo) + n) for lo, n in zip(low, part.shape, strict=True))
    result[target] = part[tuple(slice(0, max(0, s - max(0, lo))) for s, lo in zip(sizes, low, strict=True))]
    return result


# -- asynchronous results --------------------------------------------------------------------------------------------------


@kernel("async-update all-reduce-done")
def _unchanged(call: Call) -> Value:
    return call.operands[0]


@kernel("async-done all-gather-done collective-permute-done")
def _second_part(call: Call) -> Value:
    """A start's value is (operands, result, contexts...)."""
    return as_tuple(call.operands[0])[1]
