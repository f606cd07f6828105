"""Fusions that read a value twice (``HloFusionInstruction::DeduplicateFusionOperands``).

Whenever XLA replaces a use of a value by a user, and that user is a fusion, it also merges operands that are the same now::

    fusion(x, x), calls={p0, p1: add(p0, p1)}    =>    fusion(x), calls={p0: add(p0, p0)}
"""

from __future__ import annotations

from layoutsim.ir import Instruction
from layoutsim.ir.payloads import FusionPayload, ParameterPayload


def merge_equal_operands(fusion: Instruction) -> bool:
    """Keep the first of equal operands and its parameter; custom fusions stay as they are. Whether anything changed."""
    if fusion.payload_as(FusionPayload).kind == "kCustom":
        return False
    body, first = fusion.to_apply, dict[Instruction, Instruction]()
    parameters, doubles = body.parameters, list[int]()
    for number, (operand, parameter) in enumerate(zip(fusion.operands, parameters, strict=True)):
        if operand in first:
            parameter.replace_all_uses_with(first[operand])
            doubles.append(number)
        first.setdefault(operand, parameter)
    for number in reversed(doubles):
        body.erase(parameters[number])
        fusion.remove_operand(number)
    for number, parameter in enumerate(body.parameters):
        parameter.payload = ParameterPayload(number)
    return bool(doubles)
