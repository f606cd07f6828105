"""A variant of copy insertion: what moves nothing is in nobody's way.

XLA looks through bitcasts when it asks whether an operation can work in place, but a ``reshape`` or ``transpose`` makes a new
array even where every element stays where it is. So a dynamic-update-slice behind one does not update what its operand came
from, but a copy of it. XLA's own pipeline turns such reshapes into bitcasts elsewhere; its layout assignment and copy insertion
alone do not. With ``p`` donated,
``copy-insertion{in-place=through-bitcasts}``::

      HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
      p = f32[8,4]{1,0} parameter(0)
    + bitcast = f32[32] bitcast(p)
      v = f32[2] parameter(1)
      i = s32[] parameter(2)
    - r = f32[32] reshape(p)
    - u = f32[32] dynamic-update-slice(r, v, i)
    - ROOT s = f32[8,4]{1,0} reshape(u)
    + u = f32[32] dynamic-update-slice(bitcast, v, i)
    + ROOT bitcast.1 = f32[8,4]{1,0} bitcast(u)

The temporary of 128 bytes that ``r`` was is gone. Memory does not always fall: what the reshape copied from now lives as long
as the bitcast is read. Reshapes and transposes inside fusions stay, and so do those of dynamic shapes.
"""

from __future__ import annotations

from enum import StrEnum

from layoutsim.ir import ArrayShape, Instruction, Module, Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.traverse import fusion_bodies, post_order
from layoutsim.passes.layout_assignment.layout_math import reshape_is_bitcast, transpose_is_bitcast
from layoutsim.passes.replace import replace_instruction


class InPlace(StrEnum):
    """What in-place analysis looks through: bitcasts, or everything that could be one."""

    XLA = "xla"
    THROUGH_BITCASTS = "through-bitcasts"


def reshapes_to_bitcasts(module: Module) -> list[Instruction]:
    """Turn every reshape and transpose that leaves all elements where they are into a bitcast; the bitcasts."""
    fused = fusion_bodies(module)
    found = [i for c in module.computations if c not in fused for i in post_order(c) if _moves_nothing(i)]
    return [_as_bitcast(instruction) for instruction in found]


def _moves_nothing(instruction: Instruction) -> bool:
    if instruction.opcode not in (Opcode.RESHAPE, Opcode.TRANSPOSE):
        return False
    source, result = instruction.operand(0).shape, instruction.shape
    if not isinstance(source, ArrayShape) or not isinstance(result, ArrayShape) or source.is_dynamic or result.is_dynamic:
        return False
    assert source.layout is not None and result.layout is not None, instruction
    if source.layout.memory_space != result.layout.memory_space:
        return False
    if instruction.opcode is Opcode.RESHAPE:
        return reshape_is_bitcast(source.dimensions, source.minor_to_major, result.dimensions, result.minor_to_major)
    permutation = instruction.payload_as(DimensionsPayload).dimensions
    return transpose_is_bitcast(source.minor_to_major, result.minor_to_major, permutation)


def _as_bitcast(instruction: Instruction) -> Instruction:
    assert instruction.parent is not None, instruction
    bitcast = instruction.parent.add(Opcode.BITCAST, instruction.shape, instruction.operands, attributes=instruction.attributes)
    replace_instruction(instruction, bitcast, relay_control=True)
    return bitcast
