"""The payloads of all opcodes as protos; importing this fills the tables of :mod:`layoutsim.proto.payload_registry`."""

from __future__ import annotations

from layoutsim.ir import Opcode
from layoutsim.ir.payloads import Payload
from layoutsim.proto import payload_calls, payload_contraction, payload_movement
from layoutsim.proto.payload_registry import READERS, WRITERS, Source
from layoutsim.proto.schema import Message

_FILLED = (payload_calls, payload_contraction, payload_movement)


def read_payload(opcode: Opcode, source: Source) -> Payload | None:
    """The payload of an instruction.

    Raises:
        ParseError: a field it needs is missing or out of range.
    """
    reader = READERS.get(opcode)
    return None if reader is None else reader(source)


def write_payload(payload: Payload | None, proto: Message) -> None:
    """Put ``payload`` into an ``HloInstructionProto``."""
    if payload is not None:
        WRITERS[type(payload)](payload, proto)
