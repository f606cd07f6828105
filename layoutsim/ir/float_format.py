"""Narrow floating-point formats in plain numpy: range, rounding to nearest even, and what an array of them looks like.

Arrays of ``bf16`` and of the 8, 6 and 4 bit floats are ``float32`` arrays that hold representable values only (every such
value is a float32); ``f16``, ``f32`` and ``f64`` are numpy's own. Parameters are those of ``ml_dtypes``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import frozen

from layoutsim.ir.element_type import ElementType

Array = np.ndarray[Any, np.dtype[Any]]


@frozen
class FloatFormat:
    """A binary format with a sign, an exponent and a fraction.

    Attributes:
        bias: of the exponent; the smallest normal exponent is ``1 - bias``.
        maximum: the largest finite value.
        has_infinity: overflow gives infinity; without it, NaN (or the maximum, where there is no NaN either).
        nan_payload_bits: fraction bits that a NaN may set freely, 0 where there is only one NaN.
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    maximum: float
    has_infinity: bool = True
    has_nan: bool = True

    @property
    def lowest(self) -> float:
        return -self.maximum

    def rounds_into_range(self, value: float) -> bool:
        """Whether a finite value rounds to a finite one."""
        return bool(np.isfinite(self.round(np.array([value], dtype=np.float64)))[0])

    @property
    def nan_payload_bits(self) -> int:
        return self.fraction_bits if self.has_infinity else 0

    @property
    def decimal_digits(self) -> int:
        """Significant digits that tell all values apart (``max_digits10``)."""
        return math.ceil(1 + (self.fraction_bits + 1) * math.log10(2))

    def round(self, values: Array) -> Array:
        """``values`` (float64) rounded to the nearest representable ones, ties to even, as float64."""
        with np.errstate(all="ignore"):
            exponents = np.frexp(values)[1] - 1
            quanta = np.maximum(exponents, 1 - self.bias) - self.fraction_bits
            rounded = np.ldexp(np.rint(np.ldexp(values, -quanta)), quanta)
            rounded = np.where(np.isfinite(values), rounded, values)
            beyond = np.abs(rounded) > self.maximum
            return np.where(beyond, self._overflow(values), rounded)

    def _overflow(self, values: Array) -> Array:
        if self.has_infinity:
            return np.copysign(np.inf, values)
        return np.full_like(values, np.nan) if self.has_nan else np.copysign(self.maximum, values)


@frozen
class ScaleFormat(FloatFormat):
    """``f8e8m0fnu``: an unsigned power of two, no zero and no infinity."""

    @property
    def lowest(self) -> float:
        return 2.0**-self.bias

    def round(self, values: Array) -> Array:
        with np.errstate(all="ignore"):
            exponents = np.frexp(values)[1] - 1
            quanta = np.maximum(exponents, -self.bias)
            rounded = np.ldexp(np.rint(np.ldexp(values, -quanta)), quanta)
            return np.where((values <= 0) | ~np.isfinite(values) | (rounded > self.maximum), np.nan, rounded)


def _ieee(exponent_bits: int, fraction_bits: int) -> FloatFormat:
    bias = 2 ** (exponent_bits - 1) - 1
    return FloatFormat(exponent_bits, fraction_bits, bias, (2 - 2.0**-fraction_bits) * 2.0**bias)


FORMATS: dict[ElementType, FloatFormat] = {
    ElementType.F16: _ieee(5, 10),
    ElementType.BF16: _ieee(8, 7),
    ElementType.F32: _ieee(8, 23),
    ElementType.F64: _ieee(11, 52),
    ElementType.F8E5M2: _ieee(5, 2),
    ElementType.F8E4M3: _ieee(4, 3),
    ElementType.F8E3M4: _ieee(3, 4),
    ElementType.F8E4M3FN: FloatFormat(4, 3, 7, 448.0, has_infinity=False),
    ElementType.F8E4M3FNUZ: FloatFormat(4, 3, 8, 240.0, has_infinity=False),
    ElementType.F8E4M3B11FNUZ: FloatFormat(4, 3, 11, 30.0, has_infinity=False),
    ElementType.F8E5M2FNUZ: FloatFormat(5, 2, 16, 57344.0, has_infinity=False),
    ElementType.F8E8M0FNU: ScaleFormat(8, 0, 127, 2.0**127, has_infinity=False),
    ElementType.F6E2M3FN: FloatFormat(2, 3, 1, 7.5, has_infinity=False, has_nan=False),
    ElementType.F6E3M2FN: FloatFormat(3, 2, 3, 28.0, has_infinity=False, has_nan=False),
    ElementType.F4E2M1FN: FloatFormat(2, 1, 1, 6.0, has_infinity=False, has_nan=False),
}
"""Every floating element type; the components of complex types are ``F32`` and ``F64``."""

_OWN = {
    ElementType.PRED: np.dtype(np.bool_),
    ElementType.F16: np.dtype(np.float16),
    ElementType.F64: np.dtype(np.float64),
    ElementType.C64: np.dtype(np.complex64),
    ElementType.C128: np.dtype(np.complex128),
}


def numpy_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The dtype of arrays of this element type; narrow floats are float32, integers below a byte take a whole one."""
    if element_type in _OWN:
        return _OWN[element_type]
    if element_type.is_floating:
        return np.dtype(np.float32)
    return np.dtype(f"{'i' if element_type.is_signed else 'u'}{element_type.storage_bytes}")


def cast_floats(values: Array, element_type: ElementType) -> Array:
    """``values`` (float64) as an array of a floating element type."""
    dtype = numpy_dtype(element_type)
    if element_type in (ElementType.F64, ElementType.F32, ElementType.F16):
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    return FORMATS[element_type].round(values).astype(dtype)
