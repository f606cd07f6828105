"""Metadata, sharding and frontend attributes of what the pass inserts (layout spec, 10.5; ``SetupCopiedInstruction``)."""

from __future__ import annotations

import re

from layoutsim.ir import Attributes, Instruction, ShapeIndex, TupleShape, leaves, subshape

_DEVICE = re.compile(r"\{maximal device=(-?\d+)[^{}]*\}")


def copied_attributes(source: Instruction, index: ShapeIndex) -> Attributes:
    """What a copy of ``source``'s part at ``index`` takes over.

    A sharding that only names one device is dropped (unless the device is a reserved, negative one): where the copy runs is
    left to the compiler.
    """
    attributes = source.attributes
    sharding = _part(attributes.sharding, source, index) if attributes.sharding else ""
    device = _only_device(sharding)
    if device is not None and device >= 0:
        sharding = ""
    return Attributes(
        metadata_text=attributes.metadata_text,
        sharding=sharding,
        frontend_attributes=attributes.frontend_attributes,
    )


def _part(sharding: str, source: Instruction, index: ShapeIndex) -> str:
    """The part of a tuple sharding that belongs to ``index``; other shardings hold for every part."""
    parts = _elements(sharding)
    if parts is None or not index:
        return sharding
    chosen = [part for (leaf, _), part in zip(leaves(source.shape), parts, strict=False) if leaf[: len(index)] == index]
    is_tuple = isinstance(subshape(source.shape, index), TupleShape)
    return f"{{{', '.join(chosen)}}}" if is_tuple else (chosen or [""])[0]


def _elements(sharding: str) -> list[str] | None:
    """The shardings of a tuple sharding's leaves, ``None`` if it is not one."""
    inner = sharding[1:-1].strip()
    if not inner.startswith("{"):
        return None
    parts: list[str] = []
    depth = start = 0
    for at, character in enumerate(inner):
        depth += (character == "{") - (character == "}")
        if depth == 0 and character == "}":
            parts.append(inner[start : at + 1].strip(" ,"))
            start = at + 1
    return [re.sub(r"^/\*.*?\*/", "", part) for part in parts]


def _only_device(sharding: str) -> int | None:
    """The device, if a sharding puts everything on one."""
    parts = _elements(sharding) or [sharding] if sharding else []
    devices = {match.group(1) if (match := _DEVICE.fullmatch(part)) else None for part in parts}
    only = devices.pop() if len(devices) == 1 else None
    return None if only is None else int(only)
