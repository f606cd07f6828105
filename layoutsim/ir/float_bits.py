"""Bit patterns of floats: what an array of a floating element type looks like in memory.

Narrow floats are ``float32`` arrays here (see :mod:`layoutsim.ir.float_format`); :func:`to_bits` gives the codes that XLA
stores for them and :func:`from_bits` the values of codes. Formats of 8 bits and less go through a table of all their values.

How a NaN looks: IEEE-like formats have all exponent bits set and a fraction that is not zero; ``fn`` formats have all bits set;
``fnuz`` formats use the code that would be negative zero; ``f8e8m0fnu`` has all bits set; 6 and 4 bit formats have none.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from layoutsim.ir.element_type import ElementType
from layoutsim.ir.float_format import FORMATS, numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]

_BF16_QUIET_NAN = 0x7FC0


def code_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The unsigned integer dtype that holds the codes of a floating type."""
    return np.dtype(f"u{element_type.storage_bytes}")


def from_bits(codes: Array, element_type: ElementType) -> Array:
    """The values of ``codes`` in the dtype that arrays of this type have."""
    if element_type is ElementType.BF16:
        return _from_bf16(codes)
    if element_type.bits > 8:
        return codes.view(numpy_dtype(element_type))
    mask = (1 << element_type.bits) - 1
    return _values(element_type)[codes & mask]


def to_bits(values: Array, element_type: ElementType) -> Array:
    """The codes of representable ``values``."""
    if element_type is ElementType.BF16:
        return _to_bf16(values)
    if element_type.bits > 8:
        return np.ascontiguousarray(values).view(code_dtype(element_type))
    table = _values(element_type)
    order = _finite_order(element_type)
    ranks = np.searchsorted(table[order], values)
    codes = order[np.minimum(ranks, len(order) - 1)].astype(np.uint8)
    if table[0] == 0:
        signed_zero = np.signbit(values) & (values == 0)
        codes = np.where(values == 0, np.where(signed_zero, _negative_zero(element_type), 0), codes).astype(np.uint8)
    return np.where(np.isnan(values), _nan_code(element_type), codes).astype(np.uint8)


def _from_bf16(codes: Array) -> Array:
    bits = codes.astype(np.uint32) << 16
    # A NaN's payload moves to the low bits, where literals read from text keep it.
    payload = codes.astype(np.uint32) & 0x7F
    is_nan = ((codes & 0x7F80) == 0x7F80) & (payload != 0) & (payload != 0x40)
    return np.where(is_nan, (bits & 0xFF800000) | payload, bits).astype(np.uint32).view(np.float32)


def _to_bf16(values: Array) -> Array:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    plain = (bits >> 16).astype(np.uint16)
    if not np.isnan(values).any():
        return plain
    low = (bits & 0x7F).astype(np.uint16)
    is_nan = np.isnan(values)
    sign_and_exponent = plain & np.uint16(0xFF80)
    nan = sign_and_exponent | np.where(low != 0, low, np.uint16(_BF16_QUIET_NAN & 0x7F))
    return np.where(is_nan, nan, plain).astype(np.uint16)


@cache
def _values(element_type: ElementType) -> Array:
    """The value of every code of a format of at most 8 bits, as float32."""
    codes = range(1 << element_type.bits)
    return np.array([_value(code, element_type) for code in codes], dtype=np.float64).astype(np.float32)


def _value(code: int, element_type: ElementType) -> float:
    of = FORMATS[element_type]
    if code == _nan_code(element_type) and of.has_nan:
        return float("nan")
    if element_type is ElementType.F8E8M0FNU:
        return 2.0 ** (code - of.bias)
    exponent = (code >> of.fraction_bits) & ((1 << of.exponent_bits) - 1)
    fraction = code & ((1 << of.fraction_bits) - 1)
    sign = -1.0 if code >> (of.exponent_bits + of.fraction_bits) else 1.0
    if of.has_infinity and exponent == (1 << of.exponent_bits) - 1:
        return float("nan") if fraction else sign * float("inf")
    if not of.has_infinity and _is_all_ones_nan(element_type) and code | 0x80 == 0xFF:
        return float("nan")
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - of.bias - of.fraction_bits)
    return sign * ((1 << of.fraction_bits) + fraction) * 2.0 ** (exponent - of.bias - of.fraction_bits)


def _is_all_ones_nan(element_type: ElementType) -> bool:
    return element_type is ElementType.F8E4M3FN


def _nan_code(element_type: ElementType) -> int:
    """The quiet NaN that conversions produce (unused where the format has none)."""
    of = FORMATS[element_type]
    if element_type.value.endswith("fnuz"):
        return 0x80
    if of.has_infinity:
        return ((1 << (of.exponent_bits + 1)) - 1) << (of.fraction_bits - 1)
    return 0xFF if element_type is ElementType.F8E8M0FNU else 0x7F


def _negative_zero(element_type: ElementType) -> int:
    return 0 if element_type.value.endswith("fnuz") else 1 << (element_type.bits - 1)


@cache
def _finite_order(element_type: ElementType) -> Array:
    """Codes of all values that are not NaN, by value."""
    table = _values(element_type)
    codes = np.flatnonzero(~np.isnan(table))
    return codes[np.argsort(table[codes], kind="stable")]
