"""What the interpreter computes with: arrays, tuples, tokens (text spec, section 8.1).

An array value is a numpy array in *logical* dimensions; its layout plays no part (:mod:`layoutsim.interp.strided` puts values
into memory). Its dtype is the one that literals have (:mod:`layoutsim.ir.float_format`): ``bf16`` and 8, 6 and 4 bit floats
are ``float32`` arrays that hold representable values only, integers below eight bits take a whole byte. A tuple is a tuple.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np

from layoutsim.errors import InputError, LayoutsimError, UnsupportedError
from layoutsim.interp.rounding import convert
from layoutsim.ir import (
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Instruction,
    OpaqueShape,
    Shape,
    TokenShape,
    TupleShape,
)
from layoutsim.ir.float_format import numpy_dtype

Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]


class EvaluationError(LayoutsimError):
    """A module cannot be executed on these inputs; the message names the instruction and what went wrong."""


class DivergenceError(EvaluationError):
    """Only some members of a group reach a collective; on real devices the others would wait for ever, or get anything."""


class Token:
    """The value of every ``token[]``."""

    def __repr__(self) -> str:
        return "token"


TOKEN_VALUE: Final = Token()


class Opaque:
    """The value of an ``opaque[]`` that nobody computed."""

    def __repr__(self) -> str:
        return "opaque"


OPAQUE_VALUE: Final = Opaque()

Value = Array | tuple["Value", ...] | Token | Opaque


def fail(instruction: Instruction, message: str) -> EvaluationError:
    """An error that names the instruction."""
    computation = f"{instruction.parent.name}/" if instruction.parent is not None else ""
    return EvaluationError(f"{computation}{instruction.name}: {message}")


def as_array(value: Value) -> Array:
    """``value``, known to be an array."""
    assert isinstance(value, np.ndarray), f"expected an array, got {value!r}"
    return value


def as_tuple(value: Value) -> tuple[Value, ...]:
    """``value``, known to be a tuple."""
    assert isinstance(value, tuple), f"expected a tuple, got {value!r}"
    return value


def element_type_of(shape: Shape) -> ElementType:
    """Element type of a shape known to be an array."""
    assert isinstance(shape, ArrayShape), shape
    return shape.element_type


def value_from(data: object, shape: Shape, what: str = "value") -> Value:
    """What a user passes in as a value of ``shape``: arrays (``ml_dtypes`` ones too), scalars, nested tuples or lists.

    Raises:
        InputError: it has other dimensions or another structure.
        UnsupportedError: the shape has an unbounded dimension.
    """
    match shape:
        case TupleShape():
            parts = _parts_of(data)
            if parts is None or len(parts) != len(shape.elements):
                raise InputError(f"{what}: expected a tuple of {len(shape.elements)} for {shape}, got {type(data).__name__}")
            pairs = enumerate(zip(parts, shape.elements, strict=True))
            return tuple(value_from(part, element, f"{what}[{i}]") for i, (part, element) in pairs)
        case ArrayShape():
            return _array_from(data, shape, what)
        case BufferShape():
            return _array_from(data, shape.array, what)
        case TokenShape():
            return TOKEN_VALUE
        case OpaqueShape():
            return OPAQUE_VALUE


def _parts_of(data: object) -> tuple[object, ...] | None:
    return tuple(cast("tuple[object, ...] | list[object]", data)) if isinstance(data, (tuple, list)) else None


def _array_from(data: object, shape: ArrayShape, what: str) -> Array:
    if UNBOUNDED in shape.dimensions:
        raise UnsupportedError(f"{what}: {shape} has an unbounded dimension, which cannot be executed")
    array = np.asarray(data)
    if array.shape != shape.dimensions:
        raise InputError(f"{what}: expected dimensions {list(shape.dimensions)} of {shape}, got {list(array.shape)}")
    dtype = numpy_dtype(shape.element_type)
    if array.dtype == dtype and (shape.element_type.bits == dtype.itemsize * 8 or shape.element_type.is_pred):
        return array
    if array.dtype.kind not in "biufc":  # ml_dtypes' own kinds
        array = array.astype(np.float32 if shape.element_type.is_floating else np.int64)
    return np.asarray(convert(array, shape.element_type))  # numpy turns arithmetic on 0-dimensional arrays into scalars


def zeros(shape: Shape) -> Value:
    """The value of ``shape`` in which every element is zero."""
    match shape:
        case TupleShape():
            return tuple(map(zeros, shape.elements))
        case ArrayShape():
            return np.zeros(shape.dimensions, numpy_dtype(shape.element_type))
        case BufferShape():
            return zeros(shape.array)
        case TokenShape():
            return TOKEN_VALUE
        case OpaqueShape():
            return OPAQUE_VALUE


def fits(value: Value, shape: Shape) -> bool:
    """Whether ``value`` has the structure, dimensions and dtypes of ``shape``."""
    match shape:
        case TupleShape():
            parts = value if isinstance(value, tuple) else None
            return parts is not None and len(parts) == len(shape.elements) and all(map(fits, parts, shape.elements))
        case ArrayShape():
            is_array = isinstance(value, np.ndarray)
            return is_array and value.shape == shape.dimensions and value.dtype == numpy_dtype(shape.element_type)
        case BufferShape():
            return fits(value, shape.array)
        case TokenShape():
            return isinstance(value, Token)
        case OpaqueShape():
            return True


def arrays_of(value: Value) -> Iterator[Array]:
    """The arrays in a value, in order; tokens and the like are none."""
    if isinstance(value, tuple):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, np.ndarray):
        yield value


def byte_count(value: Value) -> int:
    """Bytes that the arrays of a value take here."""
    return sum(array.nbytes for array in arrays_of(value))
