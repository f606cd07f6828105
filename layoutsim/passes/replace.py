"""Replacing instructions as XLA's passes do (``HloComputation::ReplaceInstruction``): what the new one inherits.

1. Metadata if it has no ``op_name`` of its own; sharding and frontend attributes if it has none.
2. The name, if both have the same opcode (and target, for custom calls).
3. Control edges, if asked for; an instruction that has some is left alone otherwise.

Then the old instruction is removed, and so are its operands that nobody uses any more; with (3) asked for, those with control
edges too, and what ran before such an operand then runs before what ran after it.
"""

from __future__ import annotations

from collections import deque

from attrs import evolve

from layoutsim.analysis.side_effects import has_side_effect
from layoutsim.ir import Attributes, Instruction, Opcode


def replace_instruction(old: Instruction, new: Instruction, *, relay_control: bool = False) -> bool:
    """Make all users of ``old`` read ``new``, and remove ``old``; ``False`` if rule (3) forbids it."""
    if has_control_edges(old):
        if not relay_control:
            return False
        _relay_control(old, new)
    new.attributes = _inherited(new.attributes, old.attributes)
    old.replace_all_uses_with(new)
    if old.opcode is new.opcode and old.custom_call_target == new.custom_call_target:
        new.name = old.name
    remove_with_unused_operands(old, relay_control=relay_control)
    return True


def _relay_control(old: Instruction, new: Instruction) -> None:
    predecessors, successors = old.control_predecessors, old.control_successors
    old.drop_control_edges()
    for before in predecessors:
        if before is not new:
            new.add_control_predecessor(before)
    for after in successors:
        if after is not new:
            after.add_control_predecessor(new)


def _inherited(new: Attributes, old: Attributes) -> Attributes:
    takes_metadata = not new.metadata.op_name and bool(old.metadata.op_name)
    return evolve(
        new,
        metadata_text=old.metadata_text if takes_metadata else new.metadata_text,
        sharding=new.sharding or old.sharding,
        frontend_attributes=new.frontend_attributes or old.frontend_attributes,
        origin=new.origin or old.origin,
    )


def remove_with_unused_operands(instruction: Instruction, *, relay_control: bool = False) -> int:
    """Remove an instruction that nobody uses and, from there up, everything that only it used; how many were removed.

    Parameters, side effects and instructions with control edges stay. First come, first removed: the order in which users go
    is the order of those that stay.

    Args:
        relay_control: operands with control edges go too, and their predecessors get their successors.
    """
    removed = 0
    pending = deque([instruction])
    while pending:
        current = pending.popleft()
        computation = current.parent
        if computation is None or current.user_count or current.is_root:
            continue
        if current is not instruction and not can_remove(current, with_control=relay_control):
            continue
        if relay_control:
            _bridge_control(current)
        operands = dict.fromkeys(current.operands)
        computation.erase(current)
        removed += 1
        pending += operands
    return removed


def _bridge_control(instruction: Instruction) -> None:
    predecessors, successors = instruction.control_predecessors, instruction.control_successors
    for after in successors:
        for before in predecessors:
            after.add_control_predecessor(before)
    instruction.drop_control_edges()


def can_remove(instruction: Instruction, *, with_control: bool = False) -> bool:
    """Whether a value that nobody uses may go; one with control edges only if ``with_control``."""
    if instruction.opcode is Opcode.PARAMETER or has_side_effect(instruction):
        return False
    return with_control or not has_control_edges(instruction)


def has_control_edges(instruction: Instruction) -> bool:
    """Whether control edges say when it runs."""
    return bool(instruction.control_predecessors or instruction.control_successors)
