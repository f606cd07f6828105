"""Literals as text (text spec, section 4, "writing rules").

One line; ``{1, 2}`` for rank 1, ``{ { 1, 2 }, { 3, 4 } }`` above, innermost groups of at most one element tight (``{1}``),
index comments from rank 4 on. Numbers have the fewest digits XLA would use: 6, then 9 for f32; 15, then 17 for f64; enough
to tell all values apart for the narrow formats. A negative zero prints as ``-0.0``: XLA prints ``-0``, which reads as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from layoutsim.ir import ArrayShape, ElementType, Literal, TupleShape, shape_text
from layoutsim.ir.float_format import FORMATS

Array = np.ndarray[Any, np.dtype[Any]]

LARGE = 10
"""Arrays of more elements are large constants."""


def literal_text(literal: Literal, *, large: bool) -> str:
    """The text between the parentheses of a constant.

    Args:
        large: print the elements of large arrays and of tuples; otherwise ``{...}``.
    """
    shape = literal.shape
    if isinstance(shape, TupleShape):
        if not large or (literal.is_elided and not literal.elements):
            return "{...}"
        return "( " + ", ".join(literal_text(element, large=large) for element in literal.elements) + " )"
    assert isinstance(shape, ArrayShape)
    if literal.is_elided or (shape.element_count > LARGE and not large):
        return "{...}"
    return _formatted(literal)


def typed_literal_text(literal: Literal) -> str:
    """``shape value``, as custom calls carry it."""
    if isinstance(literal.shape, TupleShape):
        return "( " + ", ".join(map(typed_literal_text, literal.elements)) + " )"
    return f"{shape_text(literal.shape)} {literal_text(literal, large=True)}"


def _formatted(literal: Literal) -> str:
    if literal.formatted is None:
        assert isinstance(literal.shape, ArrayShape)
        literal.formatted = format_array(literal.array(), literal.shape.element_type)
    return literal.formatted


def format_array(array: Array, element_type: ElementType) -> str:
    """All elements in logical order."""
    if not array.ndim:
        return _scalar_text(array, element_type)
    texts = _element_texts(array.reshape(-1), element_type)
    return _group(texts, 0, array.shape, ())[0]


def _scalar_text(array: Array, element_type: ElementType) -> str:
    if element_type.is_pred:
        return "true" if array.item() else "false"
    return _element_texts(array.reshape(-1), element_type)[0]


def _group(texts: list[str], position: int, dimensions: tuple[int, ...], indices: tuple[int, ...]) -> tuple[str, int]:
    """The text of one brace group, and the position behind its elements."""
    size = dimensions[0]
    rank = len(dimensions) + len(indices)
    if len(dimensions) == 1:
        inside = ", ".join(texts[position : position + size])
        tight = rank == 1 or size <= 1
        return (f"{{{inside}}}" if tight else f"{{ {inside} }}"), position + size
    parts: list[str] = []
    for i in range(size):
        part, position = _group(texts, position, dimensions[1:], (*indices, i))
        parts.append(part)
    comment = f" /*i{len(indices) - 1}={indices[-1]}*/" if rank > 3 and indices else ""
    opening = f"{{{comment} " if size or not comment else f"{{{comment}"
    return f"{opening}{', '.join(parts)} }}", position


def _element_texts(flat: Array, element_type: ElementType) -> list[str]:
    values: list[Any] = flat.tolist()
    if element_type.is_pred:
        return ["1" if value else "0" for value in values]
    if element_type.is_integral:
        return list(map(str, values))
    if element_type.is_complex:
        component = ElementType.F32 if element_type is ElementType.C64 else ElementType.F64
        real, imaginary = (_float_texts(np.ascontiguousarray(part(flat)), component) for part in (np.real, np.imag))
        return [f"({r}, {i})" for r, i in zip(real, imaginary, strict=True)]
    return _float_texts(flat, element_type)


def _float_texts(flat: Array, element_type: ElementType) -> list[str]:
    values: list[float] = flat.tolist()
    write = _writer(element_type)
    texts = [write(value) for value in values]
    for i in np.flatnonzero(np.isnan(flat)).tolist():
        texts[i] = _nan_text(flat[i : i + 1], element_type)
    return texts


def _writer(element_type: ElementType) -> Callable[[float], str]:
    if element_type is ElementType.F64:
        return lambda value: _shortest(value, ".15g", ".17g", float)
    if element_type is ElementType.F32:
        return lambda value: _shortest(value, ".6g", ".9g", _through_float32)
    form = f".{FORMATS[element_type].decimal_digits}g"
    return lambda value: _signed_zero(value) or format(value, form)


def _through_float32(text: str) -> float:
    return float(np.float32(text))


def _shortest(value: float, short: str, long: str, read: Callable[[str], float]) -> str:
    text = format(value, short)
    if value == 0 or math.isinf(value):
        return _signed_zero(value) or text
    return text if read(text) == value else format(value, long)


def _signed_zero(value: float) -> str:
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else ""


_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def _nan_text(one: Array, element_type: ElementType) -> str:
    """``nan`` with its sign, and its payload where it is not the quiet default."""
    bits = int(one.view(_BITS[one.dtype.itemsize])[0])
    sign = "-" if bits >> (one.dtype.itemsize * 8 - 1) else ""
    stored = {2: 10, 4: 23, 8: 52}[one.dtype.itemsize]
    payload = bits & ((1 << stored) - 1)
    default = 1 << (stored - 1)
    narrow = FORMATS[element_type].nan_payload_bits
    if payload == default or not narrow or payload >= 1 << narrow:
        return f"{sign}nan"
    return f"{sign}nan(0x{payload:x})"
