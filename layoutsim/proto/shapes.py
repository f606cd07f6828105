"""Shapes and layouts as protos (text spec, section 7.5).

An array without a layout message has no layout here either; the reader of modules decides what that means.
"""

from __future__ import annotations

from layoutsim.errors import LayoutError, ParseError
from layoutsim.ir import (
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Layout,
    OpaqueShape,
    Shape,
    TokenShape,
    TupleShape,
    layout,
    tuple_shape,
)
from layoutsim.ir.layout import SplitConfig
from layoutsim.proto.schema import Message, new

_NUMBERS = """
pred 1, s8 2, s16 3, s32 4, s64 5, u8 6, u16 7, u32 8, u64 9, f16 10, f32 11, f64 12, c64 15, bf16 16, c128 18, f8e5m2 19,
f8e4m3fn 20, s4 21, u4 22, f8e4m3b11fnuz 23, f8e5m2fnuz 24, f8e4m3fnuz 25, s2 26, u2 27, f8e4m3 28, f8e3m4 29, s1 30, u1 31,
f4e2m1fn 32, f8e8m0fnu 33, f6e3m2fn 35, f6e2m3fn 36
"""

ELEMENT_TYPE_NUMBER = {ElementType(name): int(number) for name, number in (pair.split() for pair in _NUMBERS.split(","))}
ELEMENT_TYPE = {number: element_type for element_type, number in ELEMENT_TYPE_NUMBER.items()}
_TUPLE, _OPAQUE, _TOKEN, _BUFFER = 13, 14, 17, 34

_COMBINE = -(2**63)
"""Tile size that stands for ``*``."""

_MAX_DEPTH = 200


class ShapeReader:
    """Reads shapes; equal bytes give the same object without being taken apart again."""

    def __init__(self) -> None:
        self._known: dict[bytes, Shape] = {}

    def read(self, proto: Message, depth: int = 0) -> Shape:
        """The shape of a ``ShapeProto``.

        Raises:
            ParseError: it is not a valid shape.
        """
        key: bytes = proto.SerializeToString(deterministic=True)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._build(proto, depth)
        return known

    def _build(self, proto: Message, depth: int) -> Shape:
        if depth > _MAX_DEPTH:
            raise ParseError(f"tuple shapes are nested more than {_MAX_DEPTH} deep")
        number: int = proto.element_type
        if number == _TUPLE:
            return tuple_shape(tuple(self.read(element, depth + 1) for element in proto.tuple_shapes))
        if number == _TOKEN:
            return TOKEN
        if number == _OPAQUE:
            return OPAQUE
        if number == _BUFFER:
            return self._buffer(proto, depth)
        return _array(proto)

    def _buffer(self, proto: Message, depth: int) -> BufferShape:
        inner = self.read(proto.tuple_shapes[0], depth + 1) if len(proto.tuple_shapes) == 1 else None
        if not isinstance(inner, ArrayShape):
            raise ParseError("a buffer shape must hold one array shape")
        return BufferShape(inner)


def _array(proto: Message) -> ArrayShape:
    element_type = ELEMENT_TYPE.get(proto.element_type)
    if element_type is None:
        raise ParseError(f"unknown element type number {proto.element_type}")
    dimensions = tuple(proto.dimensions)
    dynamic = tuple(proto.is_dynamic_dimension)
    for size, flag in zip(dimensions, dynamic or (False,) * len(dimensions), strict=False):
        if size < 0 and not (size == UNBOUNDED and flag):
            raise ParseError(f"{element_type} shape has a negative dimension size {size}")
    if dynamic and len(dynamic) != len(dimensions):
        raise ParseError(f"{element_type}{list(dimensions)} has {len(dynamic)} dynamic flags, expected {len(dimensions)}")
    try:
        of = read_layout(proto.layout) if proto.HasField("layout") else None
        return ArrayShape(element_type, dimensions, of, dynamic if any(dynamic) else ())
    except LayoutError as error:
        raise ParseError(str(error)) from error


def read_layout(proto: Message) -> Layout:
    """The layout of a ``LayoutProto``.

    Raises:
        LayoutError: ``minor_to_major`` is not a permutation.
        ParseError: an unknown number of an element type, or a physical shape.
    """
    minor_to_major = tuple(proto.minor_to_major)
    if proto.HasField("physical_shape"):
        raise ParseError("layouts with a physical shape are not read: they are no longer part of HLO")
    tiles = tuple(tuple(None if d == _COMBINE else d for d in tile.dimensions) for tile in proto.tiles)
    splits = tuple(SplitConfig(split.dimension, tuple(split.split_indices)) for split in proto.split_configs)
    found = Layout(
        minor_to_major,
        tiles,
        proto.tail_padding_alignment_in_elements or 1,
        _index_type(proto.index_primitive_type),
        _index_type(proto.pointer_primitive_type),
        proto.element_size_in_bits,
        proto.memory_space,
        splits,
        proto.dynamic_shape_metadata_prefix_bytes,
    )
    return layout(minor_to_major) if found.is_plain else found


def _index_type(number: int) -> ElementType | None:
    if number == 0:
        return None
    if number not in ELEMENT_TYPE:
        raise ParseError(f"unknown element type number {number}")
    return ELEMENT_TYPE[number]


def write_shape(shape: Shape) -> Message:
    """The ``ShapeProto`` of a shape."""
    proto = new("ShapeProto")
    match shape:
        case ArrayShape():
            _write_array(shape, proto)
        case TupleShape():
            proto.element_type = _TUPLE
            proto.tuple_shapes.extend(map(write_shape, shape.elements))
        case BufferShape():
            proto.element_type = _BUFFER
            proto.tuple_shapes.append(write_shape(shape.array))
        case TokenShape():
            proto.element_type = _TOKEN
        case OpaqueShape():
            proto.element_type = _OPAQUE
    return proto


def _write_array(shape: ArrayShape, proto: Message) -> None:
    proto.element_type = ELEMENT_TYPE_NUMBER[shape.element_type]
    proto.dimensions.extend(shape.dimensions)
    proto.is_dynamic_dimension.extend(shape.dynamic or (False,) * shape.rank)
    if shape.layout is not None:
        proto.layout.CopyFrom(write_layout(shape.layout))


def write_layout(of: Layout) -> Message:
    """The ``LayoutProto`` of a layout."""
    proto = new("LayoutProto")
    proto.minor_to_major.extend(of.minor_to_major)
    for tile in of.tiles:
        proto.tiles.add(dimensions=[_COMBINE if d is None else d for d in tile])
    proto.tail_padding_alignment_in_elements = of.tail_padding_alignment
    if of.index_type is not None:
        proto.index_primitive_type = ELEMENT_TYPE_NUMBER[of.index_type]
    if of.pointer_type is not None:
        proto.pointer_primitive_type = ELEMENT_TYPE_NUMBER[of.pointer_type]
    proto.element_size_in_bits = of.element_size_bits
    proto.memory_space = of.memory_space
    for split in of.split_configs:
        proto.split_configs.add(dimension=split.dimension, split_indices=split.split_indices)
    proto.dynamic_shape_metadata_prefix_bytes = of.metadata_prefix_bytes
    return proto
