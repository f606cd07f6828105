"""Horizontal fusions, which jaxlib up to 0.6.2 shares memory through: concatenations that slices take apart again.

Up to that release, the question whether such a fusion may write an output over an operand is answered here, before a backend's
hint is asked:

1. A *slice fusion* has kind ``kInput``, and its outputs are slices of one dimension without strides.
2. Operand and output are arrays of one element type and equally many elements; dimensions may differ.
3. All that is reached from the fused parameter is elementwise and keeps the layout, or is a reshape that is a bitcast, or is a
   concatenation whose users are slices that give back its operands, one each, all different. There the walk goes on from the
   slice that gives back the operand it came from. Several concatenations must look alike and be entered in the same slot.
4. The output is among what is reached.

Source: ``AreTransitiveUsesEffectivelyElementwise`` in ``xla/service/hlo_dataflow_analysis.cc`` as of early 2025.
"""

from __future__ import annotations

from layoutsim.analysis.elementwise import is_elementwise_on
from layoutsim.analysis.gpu_fusion import is_bitcast
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import FusionPayload, SlicePayload
from layoutsim.ir.shape import ArrayShape, ShapeIndex, subshape


def is_slice_fusion(instruction: Instruction) -> bool:
    """Rule (1)."""
    if instruction.opcode is not Opcode.FUSION or instruction.payload_as(FusionPayload).kind != "kInput":
        return False
    root = instruction.to_apply.root
    return root.opcode is Opcode.TUPLE and all(map(_is_plain_slice, root.operands))


def slice_fusion_may_share(
    operand: Instruction, operand_index: ShapeIndex, fusion: Instruction, output_index: ShapeIndex
) -> bool:
    """Rules (2) to (4) for an operand of a slice fusion."""
    source, target = subshape(operand.shape, operand_index), subshape(fusion.shape, output_index)
    if not isinstance(source, ArrayShape) or not isinstance(target, ArrayShape):
        return False
    if source.element_type is not target.element_type or source.element_count != target.element_count:
        return False
    slot = next(number for number, o in enumerate(fusion.operands) if o is operand)
    root = fusion.to_apply.root
    reached = _reached(fusion.to_apply.parameters[slot])
    return reached is not None and root.operand(output_index[0]) in reached


def _reached(parameter: Instruction) -> set[Instruction] | None:
    """What rule (3) reaches; ``None`` where something reorders elements."""
    reached: set[Instruction] = {parameter}
    pending = [parameter]
    entered: tuple[Instruction, int] | None = None
    while pending:
        value = pending.pop()
        for user in value.users:
            following = user
            if user.opcode is Opcode.CONCATENATE:
                slot = next(number for number, o in enumerate(user.operands) if o is value)
                slices = _slices_in_order(user)
                if slices is None or (entered is not None and not _look_alike(entered, (user, slot))):
                    return None
                entered, following = (user, slot), slices[slot]
            elif user.opcode is not Opcode.TUPLE and not _keeps_order(value, user):
                return None
            if following not in reached:
                reached.add(following)
                pending.append(following)
    return reached


def _keeps_order(value: Instruction, user: Instruction) -> bool:
    a, b = value.shape, user.shape
    if not isinstance(a, ArrayShape) or not isinstance(b, ArrayShape):
        return False
    if user.opcode is Opcode.RESHAPE:
        return is_bitcast(a, b)
    return is_elementwise_on(user, value) and a.layout == b.layout


def _slices_in_order(concatenation: Instruction) -> list[Instruction] | None:
    """The users of a concatenation, if they are slices that give back its operands in order."""
    users, operands = concatenation.users, concatenation.operands
    if not all(map(_is_plain_slice, users)) or not len(users) == len(operands) == len(set(operands)):
        return None
    slices = sorted(users, key=lambda user: user.payload_as(SlicePayload).starts[0])
    limit = 0
    for slice_, operand in zip(slices, operands, strict=True):
        payload = slice_.payload_as(SlicePayload)
        if payload.starts[0] != limit or payload.limits[0] - limit != _element_count(operand):
            return None
        limit = payload.limits[0]
    return slices


def _look_alike(a: tuple[Instruction, int], b: tuple[Instruction, int]) -> bool:
    (first, slot), (second, other_slot) = a, b
    same = first.shape == second.shape and first.payload == second.payload
    return same and first.operand_count == second.operand_count and slot == other_slot


def _is_plain_slice(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.SLICE and instruction.payload_as(SlicePayload).strides == (1,)


def _element_count(instruction: Instruction) -> int:
    assert isinstance(instruction.shape, ArrayShape), instruction
    return instruction.shape.element_count
