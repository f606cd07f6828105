"""Kernels of linear algebra, Fourier transforms and batch normalisation (text spec, section 8.5)."""

from __future__ import annotations

import math

import numpy as np

from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.rounding import finish
from layoutsim.interp.values import Array, Value
from layoutsim.ir import ArrayShape, TupleShape
from layoutsim.ir.payloads import BatchNormPayload, CholeskyPayload, FftPayload, TriangularSolvePayload

_BLOCK = 128
"""XLA takes matrices apart into blocks of this size."""

# -- transforms and matrices -----------------------------------------------------------------------------------------------


@kernel("fft")
def _fft(call: Call) -> Value:
    payload = call.instruction.payload_as(FftPayload)
    axes = tuple(range(-len(payload.fft_length), 0))
    x, sizes = call.array(0), payload.fft_length
    if 0 in call.shape.dimensions or not x.size:
        return np.zeros(call.shape.dimensions, np.complex64)
    match payload.fft_type:
        case "FFT":
            result = np.fft.fftn(x, axes=axes)
        case "IFFT":
            result = np.fft.ifftn(x, axes=axes)
        case "RFFT":
            result = np.fft.rfftn(x, s=sizes, axes=axes)
        case _:
            result = np.fft.irfftn(x, s=sizes, axes=axes)
    return finish(result, call.element_type)


@kernel("cholesky")
def _cholesky(call: Call) -> Value:
    """The factor on the side that was read; the other triangle is zero, and a matrix without a factor gives NaN."""
    lower = call.instruction.payload_as(CholeskyPayload).lower
    x = call.array(0) if lower else np.swapaxes(call.array(0), -1, -2)
    with np.errstate(all="ignore"):
        factor = _factor(x)
    return finish(factor if lower else np.swapaxes(factor, -1, -2), call.element_type)


def _factor(x: Array) -> Array:
    """Column by column, as XLA expands it (``xla/hlo/transforms/expanders/cholesky_expander.cc``).

    A matrix fails where a root on the diagonal is NaN. A root of zero does not: what is divided by it is infinite, or NaN.
    """
    size = x.shape[-1]
    lower, failed = np.zeros_like(x), np.zeros(x.shape[:-2], bool)
    for j in range(size):
        column = x[..., j:, j] - (lower[..., j:, :j] @ np.conj(lower[..., j, :j, None]))[..., 0]
        root = np.sqrt(np.real(column[..., 0]))
        failed |= np.isnan(root)
        is_block_of_one = j == size - 1 and not j % _BLOCK
        lower[..., j:, j] = root[..., None] if is_block_of_one else column / root[..., None]
    lower[failed] = np.nan
    return lower


@kernel("triangular-solve")
def _triangular_solve(call: Call) -> Value:
    """The way XLA's CPU compiler goes (``xla/service/triangular_solve_expander.cc``), as singular matrices show it.

    A zero on the diagonal gives infinities row by row, and NaN where the inverse of a block is multiplied.
    """
    payload = call.instruction.payload_as(TriangularSolvePayload)
    a, b = call.arrays
    if not b.size:
        return b
    with np.errstate(all="ignore"):
        return finish(_solved(_triangle(a, payload), b, payload), call.element_type)


def _triangle(a: Array, payload: TriangularSolvePayload) -> Array:
    """The half of the matrix that counts; selected, not multiplied, since the other half may hold anything."""
    matrix = np.tril(a, -payload.unit_diagonal) if payload.lower else np.triu(a, payload.unit_diagonal)
    return matrix + np.eye(a.shape[-1], dtype=a.dtype) if payload.unit_diagonal else matrix


def _solved(matrix: Array, b: Array, payload: TriangularSolvePayload) -> Array:
    is_transposed, size = payload.transpose_a in ("TRANSPOSE", "ADJOINT"), matrix.shape[-1]
    if payload.transpose_a == "ADJOINT":
        matrix = np.conj(matrix)
    row_by_row = math.prod(matrix.shape[:-2]) > _BLOCK // 16 and size < _BLOCK // 4
    if size == 1 or row_by_row:
        inverses = None
    else:
        inverses = [_inverse(matrix[..., s : s + _BLOCK, s : s + _BLOCK], payload.lower) for s in range(0, size, _BLOCK)]
    # x op(a) = b is op(a)ᵀ xᵀ = bᵀ.
    if is_transposed is payload.left_side:
        matrix = np.swapaxes(matrix, -1, -2)
        inverses = [np.swapaxes(inverse, -1, -2) for inverse in inverses] if inverses else None
    is_lower = payload.lower is (is_transposed is not payload.left_side)
    right = b if payload.left_side else np.swapaxes(b, -1, -2)
    solved = _substitute(matrix, right, is_lower) if inverses is None else _by_blocks(matrix, right, inverses, is_lower)
    return solved if payload.left_side else np.swapaxes(solved, -1, -2)


def _inverse(block: Array, is_lower: bool) -> Array:
    """The inverse of a triangular block, row by row, of the block whose columns are divided by their diagonal elements."""
    diagonal = np.diagonal(block, axis1=-2, axis2=-1)
    scaled = block / diagonal[..., None, :]
    size = block.shape[-1]
    rows = range(size) if is_lower else range(size - 1, -1, -1)
    inverse = np.broadcast_to(-np.eye(size, dtype=block.dtype), block.shape).copy()
    inverse[..., rows[0], rows[0]] = 1
    for row in rows[1:]:
        inverse[..., row, :] = -(scaled[..., row : row + 1, :] @ inverse)[..., 0, :]
    return inverse / diagonal[..., :, None]


def _by_blocks(matrix: Array, b: Array, inverses: list[Array], is_lower: bool) -> Array:
    """Solve ``matrix @ x = b`` block by block of rows."""
    x = np.zeros_like(b)
    numbers = range(len(inverses)) if is_lower else reversed(range(len(inverses)))
    for number in numbers:
        rows = slice(number * _BLOCK, (number + 1) * _BLOCK)
        known = slice(0, rows.start) if is_lower else slice(rows.stop, None)
        rest = b[..., rows, :] - matrix[..., rows, known] @ x[..., known, :]
        x[..., rows, :] = inverses[number] @ rest
    return x


def _substitute(matrix: Array, b: Array, is_lower: bool) -> Array:
    """Solve ``matrix @ x = b`` row by row."""
    size = matrix.shape[-1]
    x = np.zeros_like(b)
    for row in range(size) if is_lower else reversed(range(size)):
        known = slice(0, row) if is_lower else slice(row + 1, size)
        rest = (matrix[..., row : row + 1, known] @ x[..., known, :])[..., 0, :]
        x[..., row, :] = (b[..., row, :] - rest) / matrix[..., row, row, None]
    return x


# -- batch normalisation ---------------------------------------------------------------------------------------------------


def _features_last(call: Call) -> tuple[BatchNormPayload, tuple[int, ...], tuple[int, ...]]:
    """Payload, the axes to sum over, and the shape that lets a vector of features meet the operand."""
    payload = call.instruction.payload_as(BatchNormPayload)
    rank = call.array(0).ndim
    axes = tuple(d for d in range(rank) if d != payload.feature_index)
    return payload, axes, tuple(-1 if d == payload.feature_index else 1 for d in range(rank))


def _finish_parts(call: Call, parts: tuple[Array, ...]) -> Value:
    shape = call.instruction.shape
    assert isinstance(shape, TupleShape), call.instruction
    types = [element.element_type for element in shape.elements if isinstance(element, ArrayShape)]
    return tuple(finish(part, element_type) for part, element_type in zip(parts, types, strict=True))


@kernel("batch-norm-training")
def _batch_norm_training(call: Call) -> Value:
    payload, axes, along = _features_last(call)
    x, scale, offset = (_wide(a) for a in call.arrays)
    with np.errstate(all="ignore"):
        mean = x.mean(axis=axes)
        variance = (x * x).mean(axis=axes) - mean * mean  # XLA's way, with its rounding
        normal = (x - mean.reshape(along)) / np.sqrt(variance + payload.epsilon).reshape(along)
        return _finish_parts(call, (normal * scale.reshape(along) + offset.reshape(along), mean, variance))


@kernel("batch-norm-inference")
def _batch_norm_inference(call: Call) -> Value:
    payload, _, along = _features_last(call)
    x, scale, offset, mean, variance = (_wide(a) for a in call.arrays)
    with np.errstate(all="ignore"):
        normal = (x - mean.reshape(along)) / np.sqrt(variance + payload.epsilon).reshape(along)
        return finish(normal * scale.reshape(along) + offset.reshape(along), call.element_type)


@kernel("batch-norm-grad")
def _batch_norm_grad(call: Call) -> Value:
    payload, axes, along = _features_last(call)
    x, scale, mean, variance, grad = (_wide(a) for a in call.arrays)
    count = x.size // max(1, x.shape[payload.feature_index])
    with np.errstate(all="ignore"):
        inverse = 1 / np.sqrt(variance + payload.epsilon)
        normal = (x - mean.reshape(along)) * inverse.reshape(along)
        d_offset = grad.sum(axis=axes)
        d_scale = (grad * normal).sum(axis=axes)
        factor = (scale * inverse / count).reshape(along)
        dx = factor * (count * grad - d_offset.reshape(along) - normal * d_scale.reshape(along))
    return _finish_parts(call, (dx, d_scale, d_offset))


def _wide(values: Array) -> Array:
    return values.astype(np.float64 if values.dtype == np.float64 else np.float32)
