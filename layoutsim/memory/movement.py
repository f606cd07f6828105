"""What an instruction, or a fusion, that only moves or converts data does: where from, and whether it transposes or widens.

1. A *movement* is a chain of ``copy``, ``transpose``, ``convert``, ``reshape`` and ``bitcast`` from one source. In a fusion the
   chain runs from the output's root to a parameter, and its source is the fusion's operand.
2. It *transposes* if a ``copy`` or ``transpose`` in it orders dimensions of size greater than 1 differently in memory.
3. It *widens* if a ``convert`` in it makes elements larger.
"""

from __future__ import annotations

from attrs import frozen

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.shape import ArrayShape, ShapeIndex

_MOVES = frozenset({Opcode.COPY, Opcode.TRANSPOSE, Opcode.CONVERT, Opcode.RESHAPE, Opcode.BITCAST})


@frozen(eq=False)
class Movement:
    """A chain from ``source`` to the result; ``steps`` begins at the result."""

    source: Instruction
    steps: tuple[Instruction, ...]

    @property
    def transposes(self) -> bool:
        """Rule (2)."""
        return any(transposes(step) for step in self.steps)

    @property
    def widens(self) -> bool:
        """Rule (3)."""
        return any(_widens(step) for step in self.steps)

    @property
    def converts(self) -> bool:
        """Whether the element type changes on the way."""
        return any(step.opcode is Opcode.CONVERT for step in self.steps)


def movement_of(instruction: Instruction, index: ShapeIndex = ()) -> Movement | None:
    """The movement that makes the value at ``index``; ``None`` if it is computed; rule (1)."""
    if instruction.opcode is not Opcode.FUSION:
        return Movement(instruction.operand(0), (instruction,)) if instruction.opcode in _MOVES else None
    body = instruction.to_apply
    end, steps = body.root, list[Instruction]()
    for number in index:
        if end.opcode is not Opcode.TUPLE:
            return None
        end = end.operand(number)
    while end.opcode in _MOVES:
        steps.append(end)
        end = end.operand(0)
    if end.opcode is not Opcode.PARAMETER or not steps:
        return None
    return Movement(instruction.operand(end.parameter_number), tuple(steps))


def transposes(instruction: Instruction) -> bool:
    """Whether a ``copy`` or ``transpose`` changes the order in memory of dimensions of size greater than 1."""
    if instruction.opcode not in (Opcode.COPY, Opcode.TRANSPOSE):
        return False
    source, target = instruction.operand(0).shape, instruction.shape
    if not isinstance(source, ArrayShape) or not isinstance(target, ArrayShape) or not target.element_count:
        return False
    if source.layout is None or target.layout is None:
        return False
    names = tuple(range(target.rank))
    if instruction.opcode is Opcode.TRANSPOSE:
        names = instruction.payload_as(DimensionsPayload).dimensions
    order = tuple(names[d] for d in target.minor_to_major if target.dimensions[d] != 1)
    return order != tuple(d for d in source.minor_to_major if source.dimensions[d] != 1)


def _widens(instruction: Instruction) -> bool:
    if instruction.opcode is not Opcode.CONVERT:
        return False
    source, target = instruction.operand(0).shape, instruction.shape
    assert isinstance(source, ArrayShape) and isinstance(target, ArrayShape), instruction
    return target.element_type.bits > source.element_type.bits
