"""Just enough of the protobuf wire format to take a layout out of a serialized shape.

jaxlib's ``Shape`` always has a layout, but a shape *without* one is how a caller leaves an entry layout to the compiler.
Field numbers are those of ``xla/xla_data.proto``, ``xla/service/hlo.proto`` and ``xla/pjrt/proto/compile_options.proto``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

SHAPE_TUPLE_SHAPES, SHAPE_LAYOUT = 4, 5
PROGRAM_SHAPE_PARAMETERS, PROGRAM_SHAPE_RESULT = 1, 2
MODULE_HOST_PROGRAM_SHAPE = 4
OPTIONS_ARGUMENT_LAYOUTS, OPTIONS_BUILD_OPTIONS, BUILD_OPTIONS_RESULT_LAYOUT = 1, 3, 2

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

Edit = Callable[[bytes], bytes]
Keep = Iterator[bool]
"""For each array leaf in order: does it keep its layout?"""


def edit_fields(message: bytes, edits: dict[int, Edit]) -> bytes:
    """``message`` with the submessages at these field numbers edited; the order of fields stays."""
    out = bytearray()
    for number, wire_type, start, end, content in _fields(message):
        if number in edits and wire_type == _LENGTH:
            edited = edits[number](content)
            out += _varint(number << 3 | _LENGTH) + _varint(len(edited)) + edited
        else:
            out += message[start:end]
    return bytes(out)


def without_layouts(shape: bytes, keep: Keep) -> bytes:
    """A serialized ``ShapeProto`` whose array leaves have layouts only where ``keep`` says so."""
    numbers = [number for number, *_ in _fields(shape)]
    if SHAPE_TUPLE_SHAPES in numbers:
        return edit_fields(shape, {SHAPE_TUPLE_SHAPES: lambda part: without_layouts(part, keep)})
    if SHAPE_LAYOUT not in numbers or next(keep):
        return shape
    return b"".join(shape[start:end] for number, _, start, end, _ in _fields(shape) if number != SHAPE_LAYOUT)


def _fields(message: bytes) -> Iterator[tuple[int, int, int, int, bytes]]:
    """Number, wire type, first and last byte, and content of every field."""
    position = 0
    while position < len(message):
        start = position
        key, position = _read_varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == _LENGTH:
            length, position = _read_varint(message, position)
            content, position = message[position : position + length], position + length
        elif wire_type == _VARINT:
            content = b""
            _, position = _read_varint(message, position)
        else:
            assert wire_type in (_FIXED32, _FIXED64), f"wire type {wire_type} at byte {start}"
            content, position = b"", position + (4 if wire_type == _FIXED32 else 8)
        yield number, wire_type, start, position, content


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
