"""Conversions between element types as XLA defines them, and rounding of results (text spec, sections 8.1 and 8.2).

1. Results of ``f16``, ``bf16`` and narrower floats are computed in ``float32`` and rounded to nearest even after every
   instruction (:func:`finish`); other types compute in their own.
2. Integers wrap around; those below eight bits are cut to their width and sign-extended.
3. ``convert``: floats to integers truncate, saturate at the ends of the range, and give 0 for NaN; integers to narrower ones
   wrap; anything to ``pred`` is "not zero"; complex to real takes the real part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutsim.ir import ElementType
from layoutsim.ir.float_format import FORMATS, numpy_dtype

Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]

_NUMPYS_OWN = (ElementType.F16, ElementType.F32, ElementType.F64)


def round_floats(values: Array, element_type: ElementType) -> Array:
    """Real ``values`` rounded to a floating type, in the dtype that carries it."""
    if element_type in _NUMPYS_OWN:
        with np.errstate(all="ignore"):
            return values.astype(numpy_dtype(element_type))
    if element_type is ElementType.BF16 and values.dtype == np.float32:
        return _round_to_bf16(values)
    with np.errstate(all="ignore"):
        rounded = FORMATS[element_type].round(values.astype(np.float64)).astype(np.float32)
    return rounded + np.float32(0) if element_type.value.endswith("fnuz") else rounded  # these have no negative zero


def _round_to_bf16(values: Array) -> Array:
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    result = rounded.view(np.float32).reshape(values.shape)
    return np.where(np.isnan(values), values, result)


def wrap_integers(values: Array, element_type: ElementType) -> Array:
    """Integers cut to the width of ``element_type`` (2)."""
    dtype = numpy_dtype(element_type)
    cut = values.astype(dtype)
    unused = 8 * dtype.itemsize - element_type.bits
    return ((cut << unused) >> unused).astype(dtype) if unused else cut


def finish(values: Array, element_type: ElementType) -> Array:
    """The result of a computation as a value of ``element_type`` (1, 2)."""
    if element_type.is_floating:
        return round_floats(values, element_type)
    if element_type.is_integral:
        return wrap_integers(values, element_type)
    return values.astype(numpy_dtype(element_type))


def widen(values: Array) -> Array:
    """Operands of a floating computation: half precision computes in ``float32`` (1)."""
    return values.astype(np.float32) if values.dtype == np.float16 else values


def convert(values: Array, element_type: ElementType) -> Array:
    """``values`` converted to ``element_type`` (3)."""
    if element_type.is_pred:
        return values != 0
    if element_type.is_complex:
        return values.astype(numpy_dtype(element_type))
    if values.dtype.kind == "c":
        values = np.real(values)
    if element_type.is_floating:
        return round_floats(_real(values, element_type), element_type)
    if values.dtype.kind == "f":
        return _saturated(values, element_type)
    return wrap_integers(values, element_type)


def _real(values: Array, element_type: ElementType) -> Array:
    if values.dtype.kind == "f":
        return values
    narrow = element_type.bits <= 32
    return values.astype(np.float32 if narrow else np.float64)


def integer_range(element_type: ElementType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = element_type.bits
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if element_type.is_signed else (0, (1 << bits) - 1)


def _saturated(values: Array, element_type: ElementType) -> Array:
    low, high = integer_range(element_type)
    dtype = numpy_dtype(element_type)
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        truncated = np.trunc(np.where(np.isnan(wide), 0.0, wide))
        # float(high) rounds up to a power of two for 64-bit types, so everything from it on is the top of the range.
        inside = np.where((truncated >= float(high)) | (truncated <= float(low)), 0.0, truncated).astype(dtype)
    capped = np.where(truncated >= float(high), np.array(high, dtype), inside)
    return np.where(truncated <= float(low), np.array(low, dtype), capped).astype(dtype)
