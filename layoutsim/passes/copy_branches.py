"""A variant of copy elision: the branches of a conditional are equal.

XLA tries to elide copies in the order in which computations stand in the module, so the first branch goes first, and what it
gets can keep all others from theirs. Here the first branch hands ``x`` on and the others compute from it: once the result lives
in ``x``'s memory, no other branch may write its result there while it still reads ``x``::

    branch 0: p = f32[64,64] parameter(0)            XLA: branch 0 returns p;    branch 1: ROOT copy(d)
              ROOT copy = f32[64,64] copy(p)              two copies remain      branch 2: ROOT copy(e)
    branch 1: ... ROOT copy = f32[64,64] copy(d)
    branch 2: ... ROOT copy = f32[64,64] copy(e)     symmetric: 1 and 2 return d and e;    branch 0: ROOT copy(p)

1. Copies are inserted as XLA does, on a copy of the module, and their bytes counted, each copy once.
2. Conditional by conditional, the same is done with the branches of this one tried from the last to the first. If that leaves
   fewer bytes, it stays so.
3. The module is then done in the order that was found.

So it never leaves more bytes of copies than XLA's order, and of a module with one conditional of two branches the bytes do not
depend on which is first. Each conditional costs one more run of the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from layoutsim.ir import Instruction, Module, Opcode, byte_size
from layoutsim.ir.clone import clone_module
from layoutsim.passes.copy_chains import copies_of


class Conditionals(StrEnum):
    """In which order the branches of conditionals are tried: as they stand, or as leaves fewer bytes of copies."""

    XLA = "xla"
    SYMMETRIC = "symmetric"


Place = tuple[str, str]
"""Computation and name of a conditional, the same in a module and its copies."""

LastFirst = frozenset[Place]
"""The conditionals whose branches are tried from the last to the first."""

AS_THEY_STAND: LastFirst = frozenset()


def cheapest_order(module: Module, insert: Callable[[Module, LastFirst], object]) -> LastFirst:
    """Rules (1) and (2).

    Args:
        module: without the copies; it stays as it is.
        insert: inserts copies and elides those it can, in this order.
    """

    def bytes_left(order: LastFirst) -> int:
        work = clone_module(module)
        insert(work, order)
        return sum(byte_size(copy.shape) for copy in copies_of(work))

    chosen = AS_THEY_STAND
    places = [_place(conditional) for conditional in _conditionals(module)]
    least = bytes_left(chosen) if places else 0
    for place in places:
        candidate = chosen | {place}
        left = bytes_left(candidate)
        if left < least:
            chosen, least = candidate, left
    return chosen


def in_order(module: Module, copies: list[Instruction], last_first: LastFirst) -> list[Instruction]:
    """``copies`` with those that stand in the branches of the ``last_first`` conditionals in reverse order of branches."""
    ordered = list(copies)
    for conditional in _conditionals(module):
        if _place(conditional) in last_first:
            number = {branch: i for i, branch in enumerate(conditional.called_computations)}
            slots = [i for i, copy in enumerate(ordered) if copy.parent in number]
            members = sorted((ordered[i] for i in slots), key=lambda copy: -number[copy.parent])  # pyright: ignore[reportArgumentType]
            for slot, copy in zip(slots, members, strict=True):
                ordered[slot] = copy
    return ordered


def _conditionals(module: Module) -> list[Instruction]:
    return [i for c in module.computations for i in c.instructions if i.opcode is Opcode.CONDITIONAL]


def _place(conditional: Instruction) -> Place:
    assert conditional.parent is not None, conditional
    return conditional.parent.name, conditional.name
