"""Kernels of linear algebra, Fourier transforms and batch normalisation (text spec, section 8.5)."""

from __future__ import annotations

import math

import numpy as np

from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.rounding import finish
from layoutsim.interp.values import Array, Value
from layoutsim.ir import ArrayShape, TupleShape
from layoutsim.ir.payloads import BatchNormPayload, CholeskyPayload, FftPayload, TriangularSolvePayload

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
    x = call.array(0)
    half = np.tril(x) if lower else np.conj(np.swapaxes(np.triu(x), -1, -2))
    strict = np.tril(half, -1)
    symmetric = half + np.conj(np.swapaxes(strict, -1, -2))
    flat = symmetric.reshape((math.prod(x.shape[:-2]), *x.shape[-2:]))
    factors = np.array([_factor(matrix) for matrix in flat]).reshape(x.shape) if flat.size else x
    return finish(factors if lower else np.conj(np.swapaxes(factors, -1, -2)), call.element_type)


def _factor(matrix: Array) -> Array:
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan, matrix.dtype)


@kernel("triangular-solve")
def _triangular_solve(call: Call) -> Value:
    payload = call.instruction.payload_as(TriangularSolvePayload)
    a, b = call.arrays
    matrix = np.tril(a) if payload.lower else np.triu(a)
    if payload.unit_diagonal:
        eye = np.eye(a.shape[-1], dtype=a.dtype)
        matrix = matrix * (1 - eye) + eye
    lower = payload.lower
    if payload.transpose_a in ("TRANSPOSE", "ADJOINT"):
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        matrix = np.conj(matrix) if payload.transpose_a == "ADJOINT" else matrix
    if payload.left_side:
        return finish(_substitute(matrix, b, lower), call.element_type)
    # x op(a) = b is op(a)ᵀ xᵀ = bᵀ.
    solved = _substitute(np.swapaxes(matrix, -1, -2), np.swapaxes(b, -1, -2), not lower)
    return finish(np.swapaxes(solved, -1, -2), call.element_type)


def _substitute(matrix: Array, b: Array, lower: bool) -> Array:
    """Solve ``matrix @ x = b`` row by row."""
    size = matrix.shape[-1]
    x = np.zeros_like(b)
    with np.errstate(all="ignore"):
        for row in range(size) if lower else reversed(range(size)):
            known = (matrix[..., row : row + 1, :] @ x)[..., 0, :]
            x[..., row, :] = (b[..., row, :] - known) / matrix[..., row, row, None]
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
    mean, variance = x.mean(axis=axes), x.var(axis=axes)
    with np.errstate(all="ignore"):
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
