"""Kernels of contractions: dot, ragged dot, scaled dot, convolution (text spec, sections 3.6 and 8.5).

Sums of floats up to 32 bits accumulate in ``float32``, ``f64`` in itself, integers in the result's type (wrapping); the result
is rounded once. ``operand_precision`` and ``algorithm`` are hints and do not change values here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from layoutsim.errors import UnsupportedError
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.rounding import finish
from layoutsim.interp.values import Array, Value
from layoutsim.interp.windows import grid, output_size, positions, under
from layoutsim.ir import ElementType
from layoutsim.ir.float_format import numpy_dtype
from layoutsim.ir.payloads import ConvolutionPayload, DotPayload, RaggedDotPayload, Window

Ints = tuple[int, ...]


def accumulator(values: Array, element_type: ElementType) -> Array:
    """An operand in the type that a sum with this result type accumulates in."""
    if element_type.is_floating:
        return values.astype(np.float64 if element_type is ElementType.F64 else np.float32)
    if element_type.is_pred:
        return values.astype(np.bool_)
    return values.astype(numpy_dtype(element_type))


def dot_general(left: Array, right: Array, payload: DotPayload) -> Array:
    """``[batch..., lhs free..., rhs free...]``, in the operands' type."""
    left_free = _free(left.ndim, payload.lhs_batch_dims, payload.lhs_contracting_dims)
    right_free = _free(right.ndim, payload.rhs_batch_dims, payload.rhs_contracting_dims)
    a = left.transpose([*payload.lhs_batch_dims, *left_free, *payload.lhs_contracting_dims])
    b = right.transpose([*payload.rhs_batch_dims, *payload.rhs_contracting_dims, *right_free])
    batch = [left.shape[d] for d in payload.lhs_batch_dims]
    rows, columns = [left.shape[d] for d in left_free], [right.shape[d] for d in right_free]
    inner = math.prod(left.shape[d] for d in payload.lhs_contracting_dims)
    # Contiguous, because OpenBLAS gives small transposed products to all cores and then waits for them.
    a = np.ascontiguousarray(a).reshape(*batch, math.prod(rows), inner)
    b = np.ascontiguousarray(b).reshape(*batch, inner, math.prod(columns))
    with np.errstate(all="ignore"):
        return np.matmul(a, b).reshape((*batch, *rows, *columns))


def _free(rank: int, batch: Ints, contracting: Ints) -> list[int]:
    return [d for d in range(rank) if d not in batch and d not in contracting]


@kernel("dot")
def _dot(call: Call) -> Value:
    left, right = (accumulator(x, call.element_type) for x in call.arrays)
    return finish(dot_general(left, right, call.instruction.payload_as(DotPayload)), call.element_type)


@kernel("scaled-dot")
def _scaled_dot(call: Call) -> Value:
    """Each operand times its scale, block by block, in ``float32``; then dot."""
    left, right, left_scale, right_scale = call.arrays
    a, b = _scaled(left, left_scale), _scaled(right, right_scale)
    product = dot_general(a, b, call.instruction.payload_as(DotPayload))
    return finish(product, call.element_type)


def _scaled(x: Array, scale: Array) -> Array:
    wide = x.astype(np.float32)
    if scale.size == 1 and x.size != 1:
        return wide  # one scale element for a whole operand says "no scale"
    for axis, (size, blocks) in enumerate(zip(x.shape, scale.shape, strict=True)):
        scale = np.repeat(scale, size // blocks, axis=axis)
    with np.errstate(all="ignore"):
        return wide * scale.astype(np.float32)


@kernel("ragged-dot")
def _ragged_dot(call: Call) -> Value:
    payload = call.instruction.payload_as(RaggedDotPayload)
    left, right = (accumulator(x, call.element_type) for x in call.arrays[:2])
    groups = call.array(2)
    (ragged,) = payload.lhs_ragged_dims
    if ragged in payload.dot.lhs_batch_dims:
        return finish(dot_general(left, right, payload.dot), call.element_type)
    if groups.ndim != 1:
        raise UnsupportedError(f"{call.instruction.name}: ragged-dot with group sizes for each batch is not modelled")
    if ragged in payload.dot.lhs_contracting_dims:
        return finish(_ragged_contracting(left, right, groups, payload.dot, ragged), call.element_type)
    return finish(_ragged_rows(left, right, groups, payload, ragged, call.shape.dimensions), call.element_type)


def _bounds(groups: Array, size: int) -> list[tuple[int, int]]:
    """Half-open ranges of rows of each group, cut at the number of rows."""
    ends = np.minimum(np.cumsum(groups.astype(np.int64)), size).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _rows(x: Array, axis: int, start: int, stop: int) -> Array:
    return x[tuple(slice(start, stop) if d == axis else slice(None) for d in range(x.ndim))]


def _ragged_contracting(left: Array, right: Array, groups: Array, dot: DotPayload, ragged: int) -> Array:
    """``[group, ...]``: each group contracts its own rows."""
    right_axis = dot.rhs_contracting_dims[dot.lhs_contracting_dims.index(ragged)]
    ranges = _bounds(groups, left.shape[ragged])
    parts = [dot_general(_rows(left, ragged, *r), _rows(right, right_axis, *r), dot) for r in ranges]
    return np.stack(parts)


def _ragged_rows(
    left: Array, right: Array, groups: Array, payload: RaggedDotPayload, ragged: int, sizes: Sequence[int]
) -> Array:
    """Rows of a group meet the group's part of the right operand; rows behind the last group give zero."""
    (group_dim,) = payload.rhs_group_dims
    dot = _without_dimension(payload.dot, group_dim)
    result = np.zeros(sizes, left.dtype)
    free = _free(left.ndim, payload.dot.lhs_batch_dims, payload.dot.lhs_contracting_dims)
    axis = len(payload.dot.lhs_batch_dims) + free.index(ragged)
    for group, (start, stop) in enumerate(_bounds(groups, left.shape[ragged])):
        part = dot_general(_rows(left, ragged, start, stop), right.take(group, axis=group_dim), dot)
        result[tuple(slice(start, stop) if d == axis else slice(None) for d in range(result.ndim))] = part
    return result


def _without_dimension(dot: DotPayload, removed: int) -> DotPayload:
    def moved(dims: Ints) -> Ints:
        return tuple(d - (d > removed) for d in dims)

    return DotPayload(dot.lhs_contracting_dims, moved(dot.rhs_contracting_dims), dot.lhs_batch_dims, moved(dot.rhs_batch_dims))


# -- convolution -----------------------------------------------------------------------------------------------------------


@kernel("convolution")
def _convolution(call: Call) -> Value:
    """One matrix product for each position of the window, summed."""
    payload = call.instruction.payload_as(ConvolutionPayload)
    numbers = payload.dimension_numbers
    inputs, kernel_values = (accumulator(x, call.element_type) for x in call.arrays)
    inputs = inputs.transpose([numbers.input_batch, *numbers.input_spatial, numbers.input_feature])
    weights = kernel_values.transpose([*numbers.kernel_spatial, numbers.kernel_input_feature, numbers.kernel_output_feature])
    if payload.batch_group_count > 1:
        result = _batch_groups(inputs, weights, payload)
    else:
        result = _feature_groups(inputs, weights, payload)
    order = [0] * result.ndim
    for source, target in enumerate([numbers.output_batch, *numbers.output_spatial, numbers.output_feature]):
        order[target] = source
    return finish(result.transpose(order), call.element_type)


def _feature_groups(inputs: Array, weights: Array, payload: ConvolutionPayload) -> Array:
    """Output features of group g read the input features of group g."""
    count = payload.feature_group_count
    parts = zip(np.split(inputs, count, axis=-1), np.split(weights, count, axis=-1), strict=True)
    return np.concatenate([convolve(x, w, payload.window) for x, w in parts], axis=-1)


def _batch_groups(inputs: Array, weights: Array, payload: ConvolutionPayload) -> Array:
    """Output features of group g read the batches of block g."""
    count = payload.batch_group_count
    parts = zip(np.split(inputs, count, axis=0), np.split(weights, count, axis=-1), strict=True)
    return np.concatenate([convolve(x, w, payload.window) for x, w in parts], axis=-1)


def convolve(inputs: Array, weights: Array, window: Window) -> Array:
    """``[batch, spatial..., in]`` with ``[spatial..., in, out]`` to ``[batch, spatial..., out]``, without groups."""
    sizes = inputs.shape[1:-1]
    places = [output_size(size, of) for size, of in zip(sizes, window.dimensions, strict=True)]
    result = np.zeros((inputs.shape[0], *places, weights.shape[-1]), inputs.dtype)
    for position in positions(window):
        at = tuple(of.size - 1 - p if of.reversal else p for p, of in zip(position, window.dimensions, strict=True))
        indices, present = under(position, sizes, window)
        found = inputs[(slice(None), *np.ix_(*indices), slice(None))] if indices else inputs
        found = np.where(grid(present)[None, ..., None], found, np.zeros((), inputs.dtype))
        with np.errstate(all="ignore"):
            result += np.matmul(found, weights[at])
    return result
