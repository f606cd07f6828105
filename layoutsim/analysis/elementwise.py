"""Which operations compute each element of their result from the same element of an operand (memory spec, section 3.3).

1. The elementwise opcodes, constants, ``rng``; ``map`` over all dimensions in order.
2. ``bitcast-convert`` only between types of equal width.
3. ``dynamic-update-slice`` is elementwise on operand 0 only, and not elementwise as a whole.
4. A fusion is elementwise on an operand if every instruction reached from the fused parameter is elementwise on the value
   that reaches it (or as a whole), and as a whole if every fused instruction is.

Source: ``HloInstruction::IsElementwiseOnOperand`` in ``xla/hlo/ir/hlo_instruction.cc``.
"""

from __future__ import annotations

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import ELEMENTWISE, Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.shape import ArrayShape

_ALWAYS = ELEMENTWISE | {Opcode.CONSTANT, Opcode.RNG}


def is_elementwise(instruction: Instruction) -> bool:
    """Whether it is elementwise on all its operands."""
    match instruction.opcode:
        case Opcode.BITCAST_CONVERT:
            return _bits(instruction) == _bits(instruction.operand(0))
        case Opcode.MAP:
            return _maps_every_dimension(instruction)
        case Opcode.FUSION:
            fused = instruction.to_apply.instructions
            return all(i.opcode is Opcode.PARAMETER or is_elementwise(i) for i in fused)
        case opcode:
            return opcode in _ALWAYS


def is_elementwise_on_operand(instruction: Instruction, number: int) -> bool:
    """Whether it is elementwise on operand ``number``."""
    if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return number == 0
    if instruction.opcode is not Opcode.FUSION:
        return is_elementwise(instruction)
    return _fusion_is_elementwise_on(instruction.to_apply.parameters[number])


def is_elementwise_on(instruction: Instruction, operand: Instruction) -> bool:
    """Whether it is elementwise on every slot in which ``operand`` stands."""
    return all(is_elementwise_on_operand(instruction, n) for n, o in enumerate(instruction.operands) if o is operand)


def _fusion_is_elementwise_on(parameter: Instruction) -> bool:
    seen = {parameter}
    pending = [parameter]
    while pending:
        value = pending.pop()
        for user in value.users:
            if user in seen:
                continue
            if not is_elementwise(user) and not is_elementwise_on(user, value):
                return False
            seen.add(user)
            pending.append(user)
    return True


def _bits(instruction: Instruction) -> int:
    assert isinstance(instruction.shape, ArrayShape), instruction
    return instruction.shape.element_type.bits


def _maps_every_dimension(instruction: Instruction) -> bool:
    assert isinstance(instruction.shape, ArrayShape), instruction
    dimensions = instruction.payload.dimensions if isinstance(instruction.payload, DimensionsPayload) else ()
    return not dimensions or dimensions == tuple(range(instruction.shape.rank))
