"""Literals in HLO text (text spec, section 4).

Reading *checks* a literal and keeps its text; the array is built when somebody asks. Two readers do the same work:

* :func:`_check_plain` sees a literal as one string and needs a handful of C-speed passes. It takes only text whose braces
  match the shape exactly and whose elements are plain numbers, and says nothing about the rest.
* :class:`_DenseReader` goes token by token, takes everything that is legal, and reports what is not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from layoutsim.ir import ArrayShape, ElementType, Literal, Shape, TupleShape
from layoutsim.ir.float_format import FORMATS, FloatFormat, cast_floats, numpy_dtype
from layoutsim.ir.literal import holds_array
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.shape_syntax import read_shape
from layoutsim.text.source import Source

Array = np.ndarray[Any, np.dtype[Any]]
Value = int | float | complex

_INDEX_COMMENT = re.compile(r"/\*i[0-9]+=[0-9]+\*/")
_INTS = re.compile(r"[ \n]*(?:-?[0-9]{1,20}[ \n]*,[ \n]*)*+(?:-?[0-9]{1,20}[ \n]*)?")
_REAL = r"-?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,5})?"
_REALS = re.compile(rf"[ \n]*(?:{_REAL}[ \n]*,[ \n]*)*+(?:{_REAL}[ \n]*)?")
_NOT_STRUCTURE = re.compile(r"[^{},]+")
_FLATTEN = str.maketrans("{}", "  ")
_ELIDED = re.compile(r"\{[ \n]*\.\.\.[ \n]*\}")


# -- reading -----------------------------------------------------------------------------------------------------------


def read_literal(lexer: Lexer, shape: Shape) -> Literal:
    """The literal at the current token, of a shape known from elsewhere.

    Raises:
        ParseError: it does not fit the shape, or a value does not fit the element type.
    """
    if isinstance(shape, TupleShape):
        return _read_tuple(lexer, shape)
    if not isinstance(shape, ArrayShape):
        raise lexer.source.error(f"expected a constant of an array or tuple shape, got {shape}", lexer.start)
    shape = shape.with_static_dimensions() if shape.dynamic else shape
    if not holds_array(shape):
        raise lexer.source.error(
            f"expected a constant whose dimensions other than 0 fit into 2**63 bytes, got {shape}", lexer.start
        )
    start = lexer.start
    end = _check_plain(lexer, shape)
    if end is not None:
        lexer.jump(end)
        return Literal(shape, lexer.text[start:end], reader=decode)
    reader = _DenseReader(lexer, shape)
    reader.read()
    text = lexer.text[start : lexer.previous_end]
    if reader.is_elided:
        return Literal(shape, "{...}", is_elided=True)
    return Literal(shape, text, reader=decode)


def _read_tuple(lexer: Lexer, shape: TupleShape) -> Literal:
    lexer.deeper()
    try:
        if _at_elision(lexer):
            return Literal(shape, "{...}", is_elided=True)
        start = lexer.start
        lexer.expect("(", "'(' of a tuple literal")
        elements: list[Literal] = []
        for i, element in enumerate(shape.elements):
            if i:
                lexer.expect(",")
            elements.append(read_literal(lexer, element))
        lexer.expect(")", f"')' behind {len(elements)} elements")
        whole = TupleShape(tuple(e.shape for e in elements))
        return Literal(whole, lexer.text[start : lexer.previous_end], any(e.is_elided for e in elements), tuple(elements))
    finally:
        lexer.depth -= 1


def _at_elision(lexer: Lexer) -> bool:
    """Take a whole ``{...}`` that stands for a tuple (XLA prints it and cannot read it)."""
    match = _ELIDED.match(lexer.text, lexer.start)
    if match is None:
        return False
    lexer.jump(match.end())
    return True


def read_typed_literal(lexer: Lexer) -> Literal:
    """``shape value``, or a tuple of those (``literal=`` of a custom call)."""
    start = lexer.start
    if not lexer.eat("("):
        return read_literal(lexer, _with_layout(read_shape(lexer)))
    lexer.deeper()
    try:
        elements: list[Literal] = []
        while not lexer.eat(")"):
            elements.append(read_typed_literal(lexer))
            if lexer.kind != ")":
                lexer.expect(",", "',' or ')'")
        whole = TupleShape(tuple(e.shape for e in elements))
        return Literal(whole, lexer.text[start : lexer.previous_end], any(e.is_elided for e in elements), tuple(elements))
    finally:
        lexer.depth -= 1


def _with_layout(shape: Shape) -> Shape:
    from layoutsim.ir import with_default_layout

    missing = isinstance(shape, ArrayShape) and shape.layout is None
    return with_default_layout(shape) if missing or isinstance(shape, TupleShape) else shape


# -- the whole literal as one string -----------------------------------------------------------------------------------


def _check_plain(lexer: Lexer, shape: ArrayShape) -> int | None:
    """Where a plain, correct literal of this shape ends; ``None`` says nothing."""
    if not shape.dimensions or lexer.kind != "{" or shape.element_type.is_complex:
        return None
    end = lexer.text.find(")", lexer.start)
    end = len(lexer.text) if end < 0 else end
    while end > lexer.start and lexer.text[end - 1] in " \n":
        end -= 1
    if _plain_numbers(lexer.text[lexer.start : end], shape) is None:
        return None
    return end


def _plain_numbers(text: str, shape: ArrayShape) -> list[str] | None:
    """The elements as texts when the literal is plain, correct and in range."""
    if _structure_size(shape.dimensions) > len(text):
        return None
    text = _INDEX_COMMENT.sub("", text)
    if _NOT_STRUCTURE.sub("", text) != _structure(shape.dimensions):
        return None
    flat = text.translate(_FLATTEN)
    floating = shape.element_type.is_floating
    if not (_REALS if floating else _INTS).fullmatch(flat):
        return None
    numbers = [number for number in flat.split(",") if not number.isspace()]
    if len(numbers) != shape.element_count:
        return None
    in_range = _floats_fit(numbers, FORMATS[shape.element_type]) if floating else _ints_fit(numbers, shape.element_type)
    return numbers if in_range else None


def _structure_size(dimensions: tuple[int, ...]) -> int:
    size = 2 + max(dimensions[-1] - 1, 0)
    for d in reversed(dimensions[:-1]):
        size = 2 + d * size + max(d - 1, 0)
    return size


def _structure(dimensions: tuple[int, ...]) -> str:
    """Braces and commas of a literal: ``{{,},{,}}`` for 2x2."""
    if 0 in dimensions:
        dimensions = dimensions[: dimensions.index(0) + 1]  # nothing stands inside empty braces
    text = "{" + "," * max(dimensions[-1] - 1, 0) + "}"
    for d in reversed(dimensions[:-1]):
        text = "{" + ",".join([text] * d) + "}"
    return text


def _ints_fit(numbers: list[str], element_type: ElementType) -> bool:
    if not numbers:
        return True
    low, high = integer_range(element_type)
    values = list(map(int, numbers))
    return low <= min(values) and max(values) <= high


def _floats_fit(numbers: list[str], of: FloatFormat) -> bool:
    if not numbers:
        return True
    values = np.array(list(map(float, numbers)))
    return bool(np.isfinite(values).all()) and _all_fit(values, of)


def _all_fit(values: Array, of: FloatFormat) -> bool:
    """Whether no finite value is beyond the largest one that still rounds into range."""
    return _fits(float(values.max()), of) and _fits(float(values.min()), of)


def _fits(value: float, of: FloatFormat) -> bool:
    """Whether a value is in range or rounds back into it; formats without infinity and NaN take everything."""
    if not math.isfinite(value):
        return False
    if of.lowest <= value <= of.maximum or not (of.has_infinity or of.has_nan):
        return True
    return of.rounds_into_range(value)


def integer_range(element_type: ElementType) -> tuple[int, int]:
    """Smallest and largest value; pred takes every 64-bit integer and means "not zero"."""
    if element_type.is_pred:
        return -(2**63), 2**64 - 1
    bits = element_type.bits
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if element_type.is_signed else (0, 2**bits - 1)


# -- token by token ----------------------------------------------------------------------------------------------------


class _DenseReader:
    """Reads one array literal and keeps its values in ``values``; NaN payloads are kept apart."""

    def __init__(self, lexer: Lexer, shape: ArrayShape) -> None:
        self.lexer = lexer
        self.shape = shape
        self.element_type = shape.element_type
        self.values: list[Value] = []
        self.payloads: list[tuple[int, bool, int]] = []
        self.is_elided = False

    def read(self) -> None:
        if self.shape.dimensions:
            self._read_group(0)
        else:
            self._read_element()

    def _read_group(self, dimension: int) -> None:
        lexer, size = self.lexer, self.shape.dimensions[dimension]
        lexer.deeper()
        lexer.expect("{", f"'{{' of dimension {dimension} (of {self.shape.rank})")
        seen = 0
        while lexer.kind != "}":
            if lexer.eat(","):
                continue
            if lexer.kind == "..." and dimension == 0 and not seen:
                self.is_elided = True
                lexer.advance()
                break
            if seen == size:
                lexer.fail(f"'}}' behind {size} elements of dimension {dimension}")
            seen += 1
            if dimension + 1 < self.shape.rank:
                self._read_group(dimension + 1)
            else:
                self._read_element()
        if seen != size and not self.is_elided:
            lexer.fail(f"{size} elements of dimension {dimension} behind {seen} of them")
        lexer.expect("}")
        lexer.depth -= 1

    def _read_element(self) -> None:
        if self.element_type.is_complex:
            self.values.append(self._read_complex())
        elif self.element_type.is_floating:
            self.values.append(self._read_float(FORMATS[self.element_type]))
        else:
            self.values.append(self._read_integer())

    def _read_integer(self) -> int:
        lexer = self.lexer
        if self.element_type.is_pred and lexer.kind in ("true", "false"):
            return int(lexer.boolean())
        start = lexer.start
        value = int(lexer.expect(Kind.INT, f"an integer for {self.element_type}"))
        low, high = integer_range(self.element_type)
        if not low <= value <= high:
            raise lexer.source.error(f"expected {self.element_type} from {low} to {high}, got {value}", start)
        return value

    def _read_float(self, of: FloatFormat) -> float:
        lexer, start = self.lexer, self.lexer.start
        text = lexer.value
        if lexer.kind == Kind.DECIMAL and text in ("nan", "-nan"):
            return self._read_nan(of)
        if lexer.kind in ("inf", "-inf"):
            lexer.advance()
            return math.inf if text == "inf" else -math.inf
        if lexer.kind not in (Kind.INT, Kind.DECIMAL):
            lexer.fail(f"a number for {self.element_type}")
        value = float(int(text)) if lexer.kind == Kind.INT else float(text)
        if not _fits(value, of):
            reason = f"expected {self.element_type} between {of.lowest} and {of.maximum}, got {text[:40]}"
            raise lexer.source.error(reason, start)
        lexer.advance()
        return value

    def _read_nan(self, of: FloatFormat) -> float:
        lexer = self.lexer
        if not of.has_nan:
            lexer.fail(f"a number for {self.element_type}, which has no NaN")
        payload, negative = lexer.payload, lexer.value == "-nan"
        if payload and payload >= 1 << of.nan_payload_bits:
            lexer.fail(f"a NaN payload below {1 << of.nan_payload_bits:#x} for {self.element_type}")
        if payload or negative:
            self.payloads.append((len(self.values), negative, payload))
        lexer.advance()
        return math.nan

    def _read_complex(self) -> complex:
        lexer = self.lexer
        of = FORMATS[ElementType.F32 if self.element_type is ElementType.C64 else ElementType.F64]
        lexer.expect("(", "(real, imaginary)")
        real = self._read_float(of)
        lexer.expect(",")
        imaginary = self._read_float(of)
        lexer.expect(")")
        self.payloads.clear()
        return complex(real, imaginary)


# -- building the array ------------------------------------------------------------------------------------------------


def decode(text: str, shape: ArrayShape) -> Array:
    """The array that a checked literal text stands for."""
    numbers = _plain_numbers(text, shape) if shape.dimensions and not shape.element_type.is_complex else None
    if numbers is not None:
        floating = shape.element_type.is_floating
        return _array([_real(n) for n in numbers] if floating else map(int, numbers), shape)
    reader = _DenseReader(Lexer(Source(text)), shape)
    reader.read()
    array = _array(reader.values, shape)
    for index, negative, payload in reader.payloads:
        _set_nan(array, index, negative, payload)
    return array


def _real(text: str) -> float:
    """``-0`` is an integer in HLO text, so it is a positive zero."""
    value = float(text)
    return value if value or "." in text or "e" in text or "E" in text else 0.0


def _array(values: Iterable[Value], shape: ArrayShape) -> Array:
    element_type, dtype = shape.element_type, numpy_dtype(shape.element_type)
    if element_type.is_floating:
        flat = cast_floats(np.array(list(values), dtype=np.float64), element_type)
    elif element_type.is_pred:
        flat = np.array([bool(value) for value in values], dtype=dtype)
    else:
        flat = np.array(list(values), dtype=dtype)
    return flat.reshape(shape.dimensions)


_BITS = {2: (np.uint16, 10), 4: (np.uint32, 23), 8: (np.uint64, 52)}


def _set_nan(array: Array, index: int, negative: bool, payload: int) -> None:
    """Write sign and payload of a NaN; in a float32 that stands for a narrower type the payload's own bits are kept."""
    kind, fraction = _BITS[array.dtype.itemsize]
    exponent = (1 << (array.dtype.itemsize * 8 - 1)) - (1 << fraction)
    bits = exponent | (payload or 1 << (fraction - 1)) | (int(negative) << (array.dtype.itemsize * 8 - 1))
    array.reshape(-1).view(kind)[index] = bits
