"""What became of donated parameters: their memory is used for a result, or it is not, and why.

A parameter is donated if the module aliases an output with it, or names it as a donor whose memory the compiler may give to any
output. For each:

1. *Reused*: the result is computed into the parameter's memory, or the parameter is returned as it is.
2. *Reused after a relayout*: the result is there, but by a transposing copy at the end, or the parameter itself is only read
   by transposing copies. The array exists twice for a while.
3. *Reused after a copy*: the result is computed elsewhere and copied into the parameter's memory at the end.
4. *Not usable*: no output has the donor's size and memory space, or every such output has the memory of another parameter.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from layoutsim.analysis.values import Value
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import InputOutputAlias
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ArrayShape, Shape, ShapeIndex, array_leaves, index_text, shape_text, subshape
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.movement import Movement, movement_of


class Outcome(Enum):
    """What became of a donated parameter; the rules above."""

    REUSED = "reused"
    RELAYOUT = "reused after a relayout"
    COPIED = "reused after a copy"
    NOT_USABLE = "not usable"


@frozen(eq=False)
class Donation:
    """One donated part of a parameter.

    Attributes:
        parameter: the entry's parameter; ``index`` is the part of it.
        output_index: the part of the result that has its memory; ``None`` if it is not usable.
        size: bytes of the part.
    """

    parameter: Instruction
    index: ShapeIndex
    output_index: ShapeIndex | None
    size: int
    outcome: Outcome
    reason: str

    @property
    def label(self) -> str:
        return self.parameter.name + (index_text(self.index) if self.index else "")

    @property
    def shape(self) -> Shape:
        return subshape(self.parameter.shape, self.index)

    def to_text(self) -> str:
        return f"parameter {self.parameter.parameter_number} ({self.label}, {self.shape}): {self.outcome.value}: {self.reason}"

    def to_json(self) -> dict[str, object]:
        """By name."""
        return {
            "parameter": self.parameter.parameter_number,
            "name": self.label,
            "shape": shape_text(self.shape),
            "bytes": self.size,
            "output_index": None if self.output_index is None else list(self.output_index),
            "outcome": self.outcome.value,
            "reason": self.reason,
        }


@frozen(eq=False)
class DonationReport:
    """All donations of a module, by parameter."""

    donations: tuple[Donation, ...]

    @property
    def all_usable(self) -> bool:
        """Whether every donated byte is used for a result."""
        return all(donation.outcome is not Outcome.NOT_USABLE for donation in self.donations)

    @property
    def all_reused(self) -> bool:
        """Whether every result is computed right into the donated memory, without relayout or copy."""
        return all(donation.outcome is Outcome.REUSED for donation in self.donations)


def donation_report(assignment: BufferAssignment) -> DonationReport:
    """The donations of the assignment's module, by parameter number and index."""
    return DonationReport(tuple(_Donations(assignment).rows()))


class _Donations:
    def __init__(self, assignment: BufferAssignment) -> None:
        self._assignment = assignment
        self._dataflow = assignment.aliases.dataflow
        self._module = assignment.aliases.module
        self._parameters = self._dataflow.parameters(self._module.entry)

    def rows(self) -> list[Donation]:
        aliases = self._module.input_output_aliases
        rows = [self._aliased(alias) for alias in aliases]
        given = {(alias.parameter_number, alias.parameter_index) for alias in aliases}
        for donor in self._module.buffer_donors:
            if (donor.parameter_number, donor.parameter_index) not in given:
                rows.append(self._unused(self._parameters[donor.parameter_number], donor.parameter_index))
        return sorted(rows, key=lambda row: (row.parameter.parameter_number, row.index, row.output_index or ()))

    def _aliased(self, alias: InputOutputAlias) -> Donation:
        parameter = self._parameters[alias.parameter_number]
        outcome, reason = self._outcome(parameter, alias)
        size = self._size(subshape(parameter.shape, alias.parameter_index))
        return Donation(parameter, alias.parameter_index, alias.output_index, size, outcome, reason)

    def _outcome(self, parameter: Instruction, alias: InputOutputAlias) -> tuple[Outcome, str]:
        values = self._dataflow.value_set(self._module.entry.root, alias.output_index)
        given = self._dataflow.value_at(parameter, alias.parameter_index)
        if given in values:
            return Outcome.REUSED, "the parameter is returned as it is"
        for value in values:
            movement = movement_of(value.instruction, value.index)
            if movement is not None and movement.transposes:
                return Outcome.RELAYOUT, f"the result is transposed into it by {_relayout_text(value.instruction, movement)}"
            if movement is not None and not movement.converts:
                return Outcome.COPIED, f"the result is computed elsewhere and copied into it by {value.instruction.name}"
        transposing = self._transposing_readers(given)
        if transposing is not None:
            return Outcome.RELAYOUT, f"the parameter is only read by {transposing}; the array is kept in another layout"
        makers = ", ".join(value.instruction.name for value in values)
        return Outcome.REUSED, f"{makers} puts the result into it"

    def _transposing_readers(self, given: Value) -> str | None:
        """The readers of a parameter if all of them transpose it."""
        texts: list[str] = []
        for use in given.uses:
            movement = self._movement_from(use.instruction, given)
            if movement is None or not movement.transposes:
                return None
            texts.append(_relayout_text(use.instruction, movement))
        return ", ".join(dict.fromkeys(texts)) or None

    def _movement_from(self, user: Instruction, given: Value) -> Movement | None:
        movement = movement_of(user)
        if movement is None or given not in self._dataflow.value_set(movement.source):
            return None
        return movement

    def _unused(self, parameter: Instruction, index: ShapeIndex) -> Donation:
        shape = subshape(parameter.shape, index)
        return Donation(parameter, index, None, self._size(shape), Outcome.NOT_USABLE, self._why_unused(shape))

    def _why_unused(self, shape: Shape) -> str:
        """Rule (4)."""
        size, space = self._size(shape), _memory_space(shape)
        outputs = [(i, leaf) for i, leaf in array_leaves(self._module.entry.root.shape) if self._size(leaf) == size]
        if not outputs:
            return f"no output takes {size:,} bytes"
        outputs = [(i, leaf) for i, leaf in outputs if _memory_space(leaf) == space]
        if not outputs:
            return f"the outputs that take {size:,} bytes are in another memory space"
        taken = {a.output_index for a in self._module.input_output_aliases}
        free = [index_text(i) for i, _ in outputs if i not in taken]
        if free:
            return f"output {free[0]} would fit, but the compiler gave it memory of its own"
        count = "the only output that takes" if len(outputs) == 1 else f"all {len(outputs)} outputs that take"
        return f"{count} {size:,} bytes {'has' if len(outputs) == 1 else 'have'} the memory of other parameters"

    def _size(self, shape: Shape) -> int:
        return self._assignment.profile.size(shape)


def _memory_space(shape: Shape) -> int:
    return shape.layout.memory_space if isinstance(shape, ArrayShape) and shape.layout is not None else 0


def _relayout_text(instruction: Instruction, movement: Movement) -> str:
    """``copy.3 ({2,1,0} to {2,0,1})`` where dimensions keep their places, else only the name."""
    source, target = movement.source.shape, instruction.shape
    is_copy = all(step.opcode is not Opcode.TRANSPOSE for step in movement.steps)
    if is_copy and isinstance(source, ArrayShape) and isinstance(target, ArrayShape) and source.dimensions == target.dimensions:
        return f"{instruction.name} ({source.layout} to {target.layout})"
    return instruction.name
