"""Damage to binary protos that leaves the wire format whole, so that it reaches the reader behind protobuf.

A random field of a random message is cleared, set to an odd value, repeated, shuffled, or taken over from elsewhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from layoutsim.proto.schema import new

Message = Any  # fields are declared at run time, as in layoutsim.proto.schema

_NUMBERS = (0, 1, -1, 2, 3, 7, 100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_WORDS = (
    "",
    "x",
    "main",
    "add",
    "parameter",
    "while",
    "fusion",
    "tuple",
    "constant",
    "0",
    "%x y",
    "\0",
    "a" * 3000,
    "é",
    "{",
    "all-gather",
)


def mutated_proto(source: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A module's proto with a few fields changed."""
    proto = new("HloModuleProto")
    proto.ParseFromString(source.choice(seeds))
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        _change(source, source.choice(_messages(proto)))
    return proto.SerializeToString()


def _messages(root: Message) -> list[Message]:
    """The message and everything inside it."""
    out, pending = [], [root]
    while pending:
        message = pending.pop()
        out.append(message)
        for descriptor, value in message.ListFields():
            if descriptor.message_type is not None:
                pending += list(value) if _is_repeated(descriptor) else [value]
    return out


def _is_repeated(descriptor: Message) -> bool:
    return descriptor.is_repeated if hasattr(descriptor, "is_repeated") else descriptor.label == descriptor.LABEL_REPEATED


def _change(source: random.Random, message: Message) -> None:
    is_present = source.random() < 0.8
    fields = [d for d, _ in message.ListFields()] if is_present else list(message.DESCRIPTOR.fields)
    if not fields:
        return
    descriptor = source.choice(fields)
    if source.random() < 0.15:
        message.ClearField(descriptor.name)
    elif _is_repeated(descriptor):
        _change_list(source, descriptor, getattr(message, descriptor.name))
    elif descriptor.message_type is not None:
        getattr(message, descriptor.name).SetInParent()
    else:
        setattr(message, descriptor.name, _scalar(source, descriptor))


def _change_list(source: random.Random, descriptor: Message, items: Message) -> None:
    at = source.randrange(len(items)) if items else 0
    match source.randrange(4):
        case 0 if items:
            del items[at]
        case 1 if items:
            items.append(items[at])
        case 2 if len(items) > 1:
            shuffled = list(items)
            source.shuffle(shuffled)
            copies = [type(m).FromString(m.SerializeToString()) for m in shuffled] if descriptor.message_type else shuffled
            del items[:]
            items.extend(copies)
        case _ if descriptor.message_type is not None:
            items.add()
        case _ if items and _are_sizes(descriptor) and source.random() < 0.1:
            items[at:] = [0, 2**63 - 1][: len(items) - at]  # no elements, and more than memory holds
        case _ if items and source.random() < 0.7:
            items[at] = _scalar(source, descriptor)
        case _:
            items.extend(_scalar(source, descriptor) for _ in range(source.choice((1, 1, 2, 5000))))


def _are_sizes(descriptor: Message) -> bool:
    return descriptor.name == "dimensions" and descriptor.cpp_type == descriptor.CPPTYPE_INT64


def _scalar(source: random.Random, descriptor: Message) -> object:
    kinds = descriptor
    if descriptor.cpp_type == kinds.CPPTYPE_STRING:
        word = source.choice(_WORDS)
        return word if descriptor.type == kinds.TYPE_STRING else word.encode()
    if descriptor.cpp_type == kinds.CPPTYPE_BOOL:
        return source.random() < 0.5
    if descriptor.cpp_type in (kinds.CPPTYPE_DOUBLE, kinds.CPPTYPE_FLOAT):
        return source.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    low, high = {
        kinds.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
        kinds.CPPTYPE_UINT32: (0, 2**32 - 1),
        kinds.CPPTYPE_UINT64: (0, 2**64 - 1),
    }.get(descriptor.cpp_type, (-(2**63), 2**63 - 1))
    return source.choice([n for n in _NUMBERS if low <= n <= high] + [source.randrange(40)])
