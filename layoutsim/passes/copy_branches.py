"""A variant of copy elision: the branches of a conditional are equal.

XLA takes the branches in the order in which they stand: copies of the first are tried first, and its values come first where
values share memory. So what a branch must copy depends on which stands first. Jaxlib 0.10.2 leaves the copy below, and none if
the branches change places.
``copy-insertion{conditional=symmetric}``::

      first {
        p = f32[64,64]{1,0} parameter(0)
        ROOT s = f32[64,64]{1,0} sine(p)
      }
      second {
    -   q = f32[64,64]{1,0} parameter(0)
    -   ROOT copy.1 = f32[64,64]{1,0} copy(q)
    +   ROOT q = f32[64,64]{1,0} parameter(0)
      }
      ENTRY main {
        b = pred[] parameter(0)
        x = f32[64,64]{1,0} parameter(1)
        n = f32[64,64]{1,0} negate(x)
        ROOT c = f32[64,64]{1,0} conditional(b, n, n), true_computation=first, false_computation=second
      }

And with ``p`` handed on by branch 0, and two branches that return a product of it, XLA leaves two copies, one in each of them,
where one in branch 0 would do.

1. Copies are inserted as XLA does, on a copy of the module, and their bytes counted, each copy once.
2. Conditional by conditional, the same is done with the branches of this one from the last to the first. If that leaves fewer
   bytes, it stays so.
3. The module is then done in the order that was found.

So it never leaves more bytes of copies than XLA's order, and with one conditional of two branches the bytes do not depend on
which stands first, since the other order is tried as well. Each conditional costs one more run of the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from layoutsim.ir import Instruction, Module, Opcode, byte_size
from layoutsim.ir.clone import clone_module
from layoutsim.passes.copy_chains import copies_of


class Conditionals(StrEnum):
    """In which order the branches of conditionals count: as they stand, or as leaves fewer bytes of copies."""

    XLA = "xla"
    SYMMETRIC = "symmetric"


Place = tuple[str, str]
"""Computation and name of a conditional, the same in a module and its copies."""

LastFirst = frozenset[Place]
"""The conditionals whose branches count from the last to the first."""

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


def conditionals_at(module: Module, places: LastFirst) -> frozenset[Instruction]:
    """The conditionals at ``places`` in this module."""
    return frozenset(conditional for conditional in _conditionals(module) if _place(conditional) in places)


def in_order(copies: list[Instruction], last_first: frozenset[Instruction]) -> list[Instruction]:
    """``copies`` with those in the branches of the ``last_first`` conditionals in reverse order of branches."""
    branch_of = {
        branch: (conditional, number)
        for conditional in last_first
        for number, branch in enumerate(conditional.called_computations)
    }
    members: dict[Instruction, list[Instruction]] = {}
    for copy in copies:
        if copy.parent in branch_of:
            members.setdefault(branch_of[copy.parent][0], []).append(copy)
    waiting = {c: iter(sorted(found, key=lambda copy: -_number(copy, c))) for c, found in members.items()}
    return [next(waiting[branch_of[copy.parent][0]]) if copy.parent in branch_of else copy for copy in copies]


def _number(copy: Instruction, conditional: Instruction) -> int:
    """Which branch of ``conditional`` the copy is in."""
    assert copy.parent is not None, copy
    return conditional.called_computations.index(copy.parent)


def _conditionals(module: Module) -> list[Instruction]:
    return [i for c in module.computations for i in c.instructions if i.opcode is Opcode.CONDITIONAL]


def _place(conditional: Instruction) -> Place:
    assert conditional.parent is not None, conditional
    return conditional.parent.name, conditional.name
