"""Loops that run never or once, and comparisons without surprise: parts (5) and (7) of :mod:`.while_loop_simplifier`."""

from __future__ import annotations

import numpy as np

from layoutsim.analysis.side_effects import has_side_effect
from layoutsim.analysis.trip_count import counter_of, trip_count
from layoutsim.ir import ArrayShape, Instruction, Literal, Opcode
from layoutsim.ir.payloads import ComparePayload, ConstantPayload
from layoutsim.ir.traverse import post_order
from layoutsim.passes.replace import has_control_edges, replace_instruction

_KEEP = 'skip-simplify-while-loops_trip-count-one="true"'


# -- (7) ---------------------------------------------------------------------------------------------------------------------


def remove_loop(loop: Instruction) -> str:
    """Replace a loop by what it starts with, or by its body."""
    if has_control_edges(loop) or any(map(has_side_effect, loop.condition.instructions)):
        return ""
    match trip_count(loop):
        case 0:
            replace_instruction(loop, loop.operand(0))
            return "never runs"
        case 1 if _KEEP not in loop.attributes.frontend_attributes and not any(map(has_side_effect, loop.body.instructions)):
            replace_instruction(loop, _inlined(loop))
            return "runs once: it is its body"
        case _:
            return ""


def _inlined(loop: Instruction) -> Instruction:
    """The body's root, computed where the loop is from what it starts with."""
    parent, (parameter,) = loop.parent, loop.body.parameters
    assert parent is not None, loop
    made = {parameter: loop.operand(0)}
    for instruction in post_order(loop.body):
        if instruction is not parameter:
            made[instruction] = parent.add_like(instruction, [made[operand] for operand in instruction.operands])
    for old, new in made.items():
        if old is not parameter:
            for before in old.control_predecessors:
                if before is not parameter:
                    new.add_control_predecessor(made[before])
    return made[loop.body.root]


# -- (5) ---------------------------------------------------------------------------------------------------------------------


def remove_comparison(loop: Instruction) -> str:
    """Replace one comparison of the counter with a constant outside the values that it takes."""
    counter = counter_of(loop)
    if counter is None or counter.step != 1:
        return ""
    for instruction in loop.body.instructions:
        outcome = _outcome(instruction, counter.index, counter.first, counter.first + counter.trips)
        if outcome is not None and not has_control_edges(instruction):
            name = instruction.name
            replace_instruction(instruction, _truth(instruction, outcome=outcome))
            return f"{name} is always {str(outcome).lower()}"
    return ""


def _outcome(instruction: Instruction, index: int, low: int, high: int) -> bool | None:
    """What a comparison yields whenever element ``index`` is in ``low <= x < high``, as far as the order of the two tells."""
    if instruction.opcode is not Opcode.COMPARE:
        return None
    element, bound = instruction.operands
    if element.opcode is not Opcode.GET_TUPLE_ELEMENT or element.operand(0).opcode is not Opcode.PARAMETER:
        return None
    if element.tuple_index != index or (value := _scalar(bound)) is None:
        return None
    direction = instruction.payload_as(ComparePayload).direction
    if value >= high and direction in ("LT", "GT"):
        return direction == "LT"
    # XLA takes value <= low as enough, which for "greater" is wrong in the first iteration when the two are equal.
    if (value < low and direction == "GT") or (value <= low and direction == "LT"):
        return direction == "GT"
    return None


def _scalar(instruction: Instruction) -> int | None:
    if instruction.opcode is not Opcode.CONSTANT or instruction.constant.literal.is_elided:
        return None
    values = instruction.constant.literal.array()
    return int(values) if values.shape == () and values.dtype.kind in "iu" else None


def _truth(instruction: Instruction, *, outcome: bool) -> Instruction:
    """A new constant of the shape of a comparison of scalars."""
    computation = instruction.parent
    assert computation is not None and isinstance(instruction.shape, ArrayShape), instruction
    literal = Literal.of(np.asarray(outcome), instruction.shape)
    return computation.add(Opcode.CONSTANT, instruction.shape, payload=ConstantPayload(literal))
