"""What a run of layout assignment tells: every copy it inserted, and why.

How to read it: ``result.copies`` lists the inserted copies. For each, ``copy.demanded`` is the reason why its reader wants the
target layout, ``copy.source`` the reason why what is copied has another one. Both are :class:`Reason` objects: ``.chain()``
walks from the constraint back to the demand that started it; the last link's ``rule`` and ``by`` are the rule and the
instruction to blame. ``result.reason(instruction, index)`` is the reason of any layout in the module.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from layoutsim.ir import Instruction, Layout, ShapeIndex, index_text
from layoutsim.passes.base import PassResult
from layoutsim.passes.layout_assignment.reasons import Reason
from layoutsim.passes.layout_assignment.rules import array_of


class CopyKind(StrEnum):
    """Where a copy was inserted."""

    OPERAND = "operand"
    """Between an instruction and one operand slot."""
    ROOT = "root"
    """Behind what a computation returns."""
    BRANCH_PARAMETER = "branch-parameter"
    """Inside a conditional's branch, behind its parameter."""
    PROTECTIVE = "protective"
    """In front of a send or an in-place custom call, before layouts were assigned; its layouts may well be equal."""


@frozen(eq=False)
class InsertedCopy:
    """One inserted ``copy``.

    Attributes:
        copy: the instruction; its operand is what is copied (for tuples a get-tuple-element that was inserted with it).
        value: the instruction whose value, or part of it at ``index``, is copied.
        reader: the user that needed it; the old root for :attr:`CopyKind.ROOT`; the conditional for a branch parameter.
        slot: operand slot of ``reader``; ``None`` for a root.
        demanded: why the target layout is wanted.
        source: why the copied value has another layout; ``None`` where it follows from no constraint.
    """

    copy: Instruction
    kind: CopyKind
    value: Instruction
    index: ShapeIndex
    reader: Instruction
    slot: int | None
    demanded: Reason
    source: Reason | None

    @property
    def from_layout(self) -> Layout:
        """Layout of what is copied."""
        found = array_of(self.copy.operand(0).shape).layout
        assert found is not None, self.copy
        return found

    @property
    def to_layout(self) -> Layout:
        """Layout of the copy."""
        found = array_of(self.copy.shape).layout
        assert found is not None, self.copy
        return found

    @property
    def place(self) -> str:
        """What the copy serves: ``operand 1 of %dot.3``, ``root of main``."""
        part = f" {index_text(self.index)}" if self.index else ""
        match self.kind:
            case CopyKind.ROOT:
                computation = self.copy.parent
                return f"root{part} of {computation.name if computation is not None else '?'}"
            case CopyKind.BRANCH_PARAMETER:
                assert self.slot is not None
                return f"parameter{part} of branch {self.slot - 1} of %{self.reader.name}"
            case _:
                return f"operand {self.slot}{part} of %{self.reader.name}"

    def __str__(self) -> str:
        origin = self.demanded.origin
        return f"{self.place}: {self.from_layout} to {self.to_layout}, since {origin.rule.text} (%{origin.by.name})"


@frozen(eq=False)
class LayoutAssignmentResult(PassResult):
    """Result of the pass.

    Attributes:
        copies: in the order they were inserted.
        reasons: why each array that an instruction makes has its layout, by instruction and shape index.
    """

    copies: tuple[InsertedCopy, ...] = ()
    reasons: Mapping[tuple[Instruction, ShapeIndex], Reason] = field(
        factory=dict[tuple[Instruction, ShapeIndex], Reason], repr=False
    )

    def reason(self, instruction: Instruction, index: ShapeIndex = ()) -> Reason | None:
        """Why ``instruction``'s array at ``index`` has its layout; forwarded arrays have the reason of their buffer."""
        return self.reasons.get((instruction, index))

    def explain(self, copy: Instruction | str) -> InsertedCopy:
        """The record of an inserted copy, by instruction or name.

        Raises:
            KeyError: layout assignment did not insert it.
        """
        for record in self.copies:
            if copy in (record.copy, record.copy.name):
                return record
        raise KeyError(f"layout assignment inserted no copy {copy}")
