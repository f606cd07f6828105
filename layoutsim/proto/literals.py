"""Constants as protos (text spec, section 7.5): one field for each element type, elements in the *storage order* of the
literal's own layout (``s32[2,3]{0,1} {{1,2,3},{4,5,6}}`` is stored as 1, 4, 2, 5, 3, 6), a byte each below eight bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutsim.errors import LayoutError, ParseError
from layoutsim.ir import ArrayShape, ElementType, Literal, Shape, TupleShape, compatible, default_layout
from layoutsim.ir.float_bits import code_dtype, from_bits, to_bits
from layoutsim.ir.float_format import numpy_dtype
from layoutsim.ir.literal import holds_array
from layoutsim.proto.schema import Message
from layoutsim.proto.shapes import ShapeReader, write_shape

Array = np.ndarray[Any, np.dtype[Any]]

_NUMBER_FIELDS = {
    ElementType.PRED: "preds",
    ElementType.S32: "s32s",
    ElementType.S64: "s64s",
    ElementType.U32: "u32s",
    ElementType.U64: "u64s",
    ElementType.F32: "f32s",
    ElementType.F64: "f64s",
    ElementType.C64: "c64s",
    ElementType.C128: "c128s",
}
"""Fields that hold numbers; every other element type has a bytes field called after it."""


def read_literal(proto: Message, expected: Shape | None, shapes: ShapeReader) -> Literal:
    """A literal; its shape is ``expected`` (the instruction's) or, without one, its own.

    Raises:
        ParseError: the literal does not have that shape, or not as many elements as its shape.
    """
    own = shapes.read(proto.shape) if proto.HasField("shape") else None
    shape = _static(expected if expected is not None else own)
    if not isinstance(shape, (ArrayShape, TupleShape)):
        raise ParseError(f"expected a constant of an array or tuple shape, got {shape}")
    if own is None:
        return Literal(shape, "{...}", is_elided=True)
    if not compatible(own, shape):
        raise ParseError(f"constant of shape {shape} holds a literal of shape {own}")
    if isinstance(shape, TupleShape):
        return _read_tuple(proto, shape, shapes)
    assert isinstance(own, ArrayShape), f"{own} is compatible with {shape}"
    if not holds_array(shape):
        raise ParseError(f"expected a constant whose dimensions other than 0 fit into 2**63 bytes, got {shape}")
    flat = _elements(proto, shape.element_type)
    if len(flat) != shape.element_count:
        raise ParseError(f"constant of shape {shape} holds {len(flat)} elements, expected {shape.element_count}")
    return Literal.of(_to_logical(flat, own), shape)


def _static(shape: Shape | None) -> Shape:
    if shape is None:
        raise ParseError("a literal without a shape")
    return shape.with_static_dimensions() if isinstance(shape, ArrayShape) and shape.dynamic else shape


def _read_tuple(proto: Message, shape: TupleShape, shapes: ShapeReader) -> Literal:
    if len(proto.tuple_literals) != len(shape.elements):
        raise ParseError(f"constant of shape {shape} holds {len(proto.tuple_literals)} tuple elements")
    pairs = zip(proto.tuple_literals, shape.elements, strict=True)
    elements = tuple(read_literal(part, element, shapes) for part, element in pairs)
    return Literal(shape, None, any(e.is_elided for e in elements), elements)


def _elements(proto: Message, element_type: ElementType) -> Array:
    """The elements in storage order."""
    dtype = numpy_dtype(element_type)
    if element_type in _NUMBER_FIELDS:
        values = getattr(proto, _NUMBER_FIELDS[element_type])
        if element_type.is_complex:
            parts = np.array(values, dtype=np.float32 if element_type is ElementType.C64 else np.float64)
            return parts[: len(parts) // 2 * 2].view(dtype)
        return np.array(values, dtype=dtype)
    data: bytes = getattr(proto, f"{element_type}s")
    width = element_type.storage_bytes
    data = data[: len(data) // width * width]
    if element_type.is_floating:
        return from_bits(np.frombuffer(data, dtype=code_dtype(element_type).newbyteorder("<")), element_type)
    return _sign_extended(np.frombuffer(data, dtype=dtype.newbyteorder("<")), element_type).astype(dtype)


def _sign_extended(codes: Array, element_type: ElementType) -> Array:
    unused = 8 * element_type.storage_bytes - element_type.bits
    return (codes << unused) >> unused if unused else codes


def _to_logical(flat: Array, shape: ArrayShape) -> Array:
    order = _major_to_minor(shape)
    return flat.reshape([shape.dimensions[d] for d in order]).transpose(np.argsort(order))


def _major_to_minor(shape: ArrayShape) -> tuple[int, ...]:
    return (shape.layout or default_layout(shape.rank)).major_to_minor


def write_literal(literal: Literal, proto: Message) -> None:
    """Fill a ``LiteralProto``.

    Raises:
        ElidedLiteralError: the elements are unknown.
    """
    shape = literal.shape
    proto.shape.CopyFrom(write_shape(shape))
    if isinstance(shape, TupleShape):
        for element in literal.elements:
            write_literal(element, proto.tuple_literals.add())
        return
    if not isinstance(shape, ArrayShape):
        raise LayoutError(f"a literal of shape {shape} has no elements")
    order = _major_to_minor(shape)
    _write_elements(np.ascontiguousarray(literal.array().transpose(order)).reshape(-1), shape.element_type, proto)


def _write_elements(flat: Array, element_type: ElementType, proto: Message) -> None:
    if element_type in _NUMBER_FIELDS:
        values = flat.view(np.float32 if element_type is ElementType.C64 else np.float64) if element_type.is_complex else flat
        getattr(proto, _NUMBER_FIELDS[element_type]).extend(values.tolist())
        return
    codes = to_bits(flat, element_type) if element_type.is_floating else flat
    setattr(proto, f"{element_type}s", codes.astype(codes.dtype.newbyteorder("<")).tobytes())
