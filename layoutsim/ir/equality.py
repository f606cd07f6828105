"""Structural equality of modules: what the text shows, down to the bits of constants and the order of everything.

:func:`module_differences` says what differs instead of only whether. Names count; the order of users does not (it follows
from the order of instructions).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest

import numpy as np

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.literal import Array, Literal
from layoutsim.ir.module import Module
from layoutsim.ir.payloads import ConstantPayload, CustomCallPayload, Payload

_MODULE_FIELDS = ("name", "config", "entry_layout", "input_output_aliases", "buffer_donors")


def module_differences(a: Module, b: Module, *, limit: int = 20) -> list[str]:
    """What differs between two modules, one line each and at most ``limit`` of them; empty if they are equal."""
    return list(islice(_module(a, b), limit))


def _module(a: Module, b: Module) -> Iterator[str]:
    for name in _MODULE_FIELDS:
        if getattr(a, name) != getattr(b, name):
            yield f"{name}: {getattr(a, name)} and {getattr(b, name)}"
    if a.entry.name != b.entry.name:
        yield f"entry: {a.entry.name} and {b.entry.name}"
    for x, y in zip_longest(a.computations, b.computations):
        if x is None or y is None:
            yield f"computation {(x or y)!r} is only in one of them"
        else:
            yield from _computation(x, y)
    yield from _schedule(a, b)


def _schedule(a: Module, b: Module) -> Iterator[str]:
    orders = [
        None
        if module.schedule is None
        else [(c.name, [i.name for i in module.schedule.sequence(c)]) for c in module.computations if c in module.schedule]
        for module in (a, b)
    ]
    if orders[0] != orders[1]:
        yield "schedules differ"


def _computation(a: Computation, b: Computation) -> Iterator[str]:
    for what, x, y in (
        ("name", a.name, b.name),
        ("execution thread", a.execution_thread, b.execution_thread),
        ("root", a.root.name, b.root.name),
    ):
        if x != y:
            yield f"computation {a.name}: {what} {x} and {y}"
    for x, y in zip_longest(a.instructions, b.instructions):
        if x is None or y is None:
            yield f"{a.name}: {(x or y)!r} is only in one of them"
        else:
            yield from _instruction(a.name, x, y)


def _instruction(where: str, a: Instruction, b: Instruction) -> Iterator[str]:
    for what, x, y in (
        ("name", a.name, b.name),
        ("opcode", a.opcode, b.opcode),
        ("shape", a.shape, b.shape),
        ("operands", [o.name for o in a.operands], [o.name for o in b.operands]),
        ("calls", [c.name for c in a.called_computations], [c.name for c in b.called_computations]),
        ("control predecessors", [p.name for p in a.control_predecessors], [p.name for p in b.control_predecessors]),
        ("attributes", a.attributes, b.attributes),
    ):
        if x != y:
            yield f"{where}/{a.name}: {what} {x} and {y}"
    if not payloads_equal(a.payload, b.payload):
        yield f"{where}/{a.name}: payload {a.payload} and {b.payload}"


def payloads_equal(a: Payload | None, b: Payload | None) -> bool:
    """Equality that looks into constants."""
    if isinstance(a, ConstantPayload) and isinstance(b, ConstantPayload):
        return literals_equal(a.literal, b.literal)
    if isinstance(a, CustomCallPayload) and isinstance(b, CustomCallPayload) and a.literal is not None:
        from attrs import evolve

        same = b.literal is not None and literals_equal(a.literal, b.literal)
        return same and evolve(a, literal=None) == evolve(b, literal=None)
    return a == b


def literals_equal(a: Literal, b: Literal) -> bool:
    """Same shape, and the same elements bit for bit (NaNs and signs of zeros included) or both unknown."""
    if a is b:
        return True
    if a.shape != b.shape or a.is_elided != b.is_elided or len(a.elements) != len(b.elements):
        return False
    if a.elements:
        return all(map(literals_equal, a.elements, b.elements))
    if a.is_elided or (a.text is not None and a.text == b.text) or not hasattr(a.shape, "dimensions"):
        return True
    return np.array_equal(_bits(a.array()), _bits(b.array()))


def _bits(array: Array) -> Array:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)
