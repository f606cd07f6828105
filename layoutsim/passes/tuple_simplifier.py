"""Tuples that are taken apart and put together again (``xla/hlo/transforms/simplifiers/tuple_simplifier.h``).

1. ``get-tuple-element`` of a ``tuple`` (through any number of both) is the tuple's operand.
2. A ``tuple`` of all elements of one value, in order, is that value.

``tuple-simplifier``::

      a = f32[4] parameter(0)
      b = f32[4] parameter(1)
    - t = (f32[4], f32[4]) tuple(a, b)
    - g = f32[4] get-tuple-element(t), index=1
    - ROOT n = f32[4] negate(g)
    + ROOT n = f32[4] negate(b)
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.ir import Instruction, Module, Opcode, compatible
from layoutsim.ir.traverse import post_order
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.replace import replace_instruction


@frozen
class TupleSimplifier(Pass):
    """Forward tuple elements to where they come from."""

    name: ClassVar[str] = "tuple-simplifier"

    def run(self, module: Module) -> PassResult:
        remarks: list[Remark] = []
        for computation in module.computations:
            for instruction in post_order(computation):
                if instruction.parent is None:  # it went together with what it was used for
                    continue
                name = instruction.name
                source = _element_source(instruction) or _whole_tuple(instruction)
                if source is not None and replace_instruction(
                    instruction, source, relay_control=instruction.opcode is Opcode.GET_TUPLE_ELEMENT
                ):
                    remarks.append(Remark(name, f"is {source.name}"))
        return PassResult(bool(remarks), tuple(remarks))


def _element_source(instruction: Instruction) -> Instruction | None:
    """Rule (1)."""
    indices: list[int] = []
    source = instruction
    while source.opcode is Opcode.GET_TUPLE_ELEMENT:
        indices.append(source.tuple_index)
        source = source.operand(0)
    if not indices:
        return None
    for index in reversed(indices):
        if source.opcode is not Opcode.TUPLE:
            return None
        source = source.operand(index)
    return source


def _whole_tuple(instruction: Instruction) -> Instruction | None:
    """Rule (2)."""
    if instruction.opcode is not Opcode.TUPLE or not instruction.operand_count:
        return None
    whole = instruction.operand(0).operand(0) if instruction.operand(0).opcode is Opcode.GET_TUPLE_ELEMENT else None
    for number, operand in enumerate(instruction.operands):
        if operand.opcode is not Opcode.GET_TUPLE_ELEMENT or operand.tuple_index != number or operand.operand(0) is not whole:
            return None
    return whole if whole is not None and compatible(whole.shape, instruction.shape) else None
