"""How a payload is read from and written to an ``HloInstructionProto`` (text spec, 7.4): two tables that the others fill.

Reading is a table by opcode, writing one by payload class. An opcode without a reader carries no payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen

from layoutsim.errors import ParseError
from layoutsim.ir import Instruction, Opcode, Shape
from layoutsim.ir.payloads import Payload
from layoutsim.proto.schema import Message
from layoutsim.proto.shapes import ShapeReader

P = TypeVar("P")


@frozen
class Source:
    """An instruction being read: its message, its operands, and the shapes known so far."""

    proto: Message
    shape: Shape
    operands: tuple[Instruction, ...]
    shapes: ShapeReader

    @property
    def one_dimension(self) -> int:
        """The only entry of ``dimensions``.

        Raises:
            ParseError: there are more, or none.
        """
        if len(self.proto.dimensions) != 1:
            raise ParseError(f"expected one dimension, got {list(self.proto.dimensions)}")
        return self.proto.dimensions[0]


Reader = Callable[[Source], Payload]

READERS: dict[Opcode, Reader] = {}
WRITERS: dict[type, Callable[[Any, Message], None]] = {}


def reads(opcodes: str) -> Callable[[Reader], Reader]:
    """Register the decorated function as the reader of these opcodes."""

    def register(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys(map(Opcode, opcodes.split()), reader))
        return reader

    return register


def writes(kind: type[P]) -> Callable[[Callable[[P, Message], None]], Callable[[P, Message], None]]:
    """Register the decorated function as the writer of a payload class."""

    def register(writer: Callable[[P, Message], None]) -> Callable[[P, Message], None]:
        WRITERS[kind] = writer
        return writer

    return register
