"""Deep copies: a ``copy`` for each chosen array inside a value (``xla/hlo/ir/hlo_computation.h``, DeepCopyInstruction).

1. A tuple becomes, element by element in order, a ``get-tuple-element`` and that element's deep copy; then a new ``tuple``.
2. An array at a chosen index becomes a ``copy``; other arrays, tokens, opaque values and buffers pass through.

New instructions take their names from the module in exactly XLA's order, so that even the names agree::

    %t = (f32[2], s32[]) ...      =>   %gte = f32[2] get-tuple-element(%t), index=0
                                       %copy = f32[2] copy(%gte)
                                       %gte.1 = s32[] get-tuple-element(%t), index=1
                                       %tuple = (f32[2], s32[]) tuple(%copy, %gte.1)
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import define, field, frozen

from layoutsim.ir import ArrayShape, Computation, Instruction, Opcode, ShapeIndex, TupleShape
from layoutsim.ir.payloads import TupleIndexPayload


@frozen(eq=False)
class DeepCopy:
    """The instruction that stands for the copied value, and the ``copy`` made at each index."""

    result: Instruction
    copies: dict[ShapeIndex, Instruction]


def deep_copy(instruction: Instruction, indices: Collection[ShapeIndex] | None = None) -> DeepCopy:
    """Build a deep copy of ``instruction`` behind all other instructions of its computation; nobody uses it yet.

    Args:
        instruction: in a computation.
        indices: where to copy; everywhere if ``None``.
    """
    assert instruction.parent is not None, instruction
    builder = _Builder(instruction.parent, indices)
    return DeepCopy(builder.copy(instruction, ()), builder.copies)


def replace_uses_by(old: Instruction, users: Collection[Instruction], new: Instruction) -> None:
    """Make exactly ``users`` read ``new`` where they read ``old``; the computation's root stays."""
    for user in users:
        replace_use(old, user, new)


def replace_use(old: Instruction, user: Instruction, new: Instruction) -> None:
    """Make every slot of ``user`` that reads ``old`` read ``new``."""
    for number, operand in enumerate(user.operands):
        if operand is old:
            user.replace_operand(number, new)


@define(eq=False)
class _Builder:
    computation: Computation
    indices: Collection[ShapeIndex] | None
    copies: dict[ShapeIndex, Instruction] = field(factory=dict[ShapeIndex, Instruction], init=False)

    def copy(self, instruction: Instruction, index: ShapeIndex) -> Instruction:
        shape = instruction.shape
        if isinstance(shape, TupleShape):
            elements: list[Instruction] = []
            for i, element in enumerate(shape.elements):  # (1)
                part = self.computation.add(Opcode.GET_TUPLE_ELEMENT, element, [instruction], payload=TupleIndexPayload(i))
                elements.append(self.copy(part, (*index, i)))
            return self.computation.add(Opcode.TUPLE, shape, elements)
        if isinstance(shape, ArrayShape) and (self.indices is None or index in self.indices):  # (2)
            made = self.computation.add(Opcode.COPY, shape, [instruction])
            self.copies[index] = made
            return made
        return instruction
