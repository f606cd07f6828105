"""Copies around buffers that ``Pin`` and ``CreateBuffer`` calls make (``xla/service/copy_insertion.cc``,
AddCopiesForExplicitNonCopyableTransitions).

A buffer goes down a *chain* of instructions: each has one user of it, which works in place on it (what an operand is aliased
with goes on). Nothing in a chain is copied; copies stand where a value becomes a buffer, and where a chain ends that the next
iteration begins again:

1. Operand 0 of the call that makes the buffer is copied for it.
2. In a loop body, a chain that leaves through root element *k* goes on in the next iteration at parameter element *k*, and ends
   where that chain ends. Then the copied operand and the call run behind that end, and what the end is used for reads a copy
   of it, behind which the call runs too::

       body: end <- ... <- gte(parameter), index=k;   root <- tuple(.., call(operand), ..)
"""

from __future__ import annotations

from functools import cache

from layoutsim.ir import BufferShape, Instruction, Opcode, Shape, TupleShape, subshapes
from layoutsim.ir.payloads import CustomCallPayload
from layoutsim.passes.deep_copy import replace_use, replace_uses_by

_PINNING = frozenset({"Pin", "CreateBuffer"})

Reasons = dict[Instruction, str]


def holds_buffer(instruction: Instruction) -> bool:
    """Whether the result or an operand has a part of type ``b(...)``."""
    return _has_buffer(instruction.shape) or any(_has_buffer(operand.shape) for operand in instruction.operands)


def is_pinning(instruction: Instruction) -> bool:
    """Whether the instruction makes a buffer."""
    payload = instruction.payload
    return isinstance(payload, CustomCallPayload) and payload.custom_call_target in _PINNING


def pin(call: Instruction, *, in_loop: bool) -> Reasons:
    """The copies for a call that makes a buffer, with their reasons."""
    end = _end_in_next_iteration(call) if in_loop else None
    reasons: Reasons = {}
    if call.operand_count:  # (1)
        copied = copy_operand(call)
        reasons[copied] = f"{call.name} makes it a buffer"
        if end is not None:
            copied.add_control_predecessor(end[0])
    return reasons if end is None else reasons | _separate_iterations(call, *end)


def copy_operand(start: Instruction) -> Instruction:
    """Give ``start`` a copy of its operand 0."""
    operand = start.operand(0)
    assert start.parent is not None, start
    copied = start.parent.add(Opcode.COPY, operand.shape, [operand])
    replace_use(operand, start, copied)
    return copied


def _separate_iterations(call: Instruction, end: Instruction, output: int) -> Reasons:  # (2)
    call.add_control_predecessor(end)
    is_tuple = isinstance(end.shape, TupleShape)
    results = [user for user in end.users if user.tuple_index == output] if is_tuple else [end] if end.users else []
    reasons: Reasons = {}
    for result in results:
        users = list(result.users)
        assert result.parent is not None, result
        copied = result.parent.add(Opcode.COPY, result.shape, [result])
        replace_uses_by(result, users, copied)
        call.add_control_predecessor(copied)
        reasons[copied] = f"{call.name} fills the buffer of {end.name} again"
    return reasons


# -- chains ------------------------------------------------------------------------------------------------------------------


def _end_in_next_iteration(call: Instruction) -> tuple[Instruction, int] | None:
    """Where the chain of ``call`` ends once it went through the loop's state, and which output it is there."""
    assert call.parent is not None, call
    last, index = _walk_down(call, 0)
    if not last.is_root:
        return None
    elements = [user for user in call.parent.parameters[0].users if user.opcode is Opcode.GET_TUPLE_ELEMENT]
    again = next((element for element in elements if element.tuple_index == index), None)
    return None if again is None else _walk_down(again, 0)


def _walk_down(start: Instruction, output: int) -> tuple[Instruction, int]:
    """The last instruction of a chain with the output of it that belongs to it; at the root, the number of its element."""
    last = start
    while (use := _only_use(last, output)) is not None:
        user, operand = use
        if not holds_buffer(user):
            break
        if user.opcode is Opcode.TUPLE and user.is_root:
            return user, operand
        following = _aliased_output(user, operand)
        if following is None:
            break
        last, output = user, following
    return last, output


def _only_use(instruction: Instruction, output: int) -> tuple[Instruction, int] | None:
    """The one place where an output is used."""
    if isinstance(instruction.shape, TupleShape):
        elements = [user for user in instruction.users if user.tuple_index == output]
        return _only_use(elements[0], 0) if len(elements) == 1 else None
    if instruction.user_count != 1:
        return None
    (user,) = instruction.users
    numbers = [number for number, operand in enumerate(user.operands) if operand is instruction]
    return (user, numbers[0]) if len(numbers) == 1 else None


def _aliased_output(call: Instruction, operand: int) -> int | None:
    payload = call.payload
    if not isinstance(payload, CustomCallPayload):
        return None
    found = (a.output_index for a in payload.output_to_operand_aliasing if a.operand_number == operand)
    index = next(found, None)
    return None if index is None else index[0] if index else 0


@cache
def _has_buffer(shape: Shape) -> bool:
    return any(isinstance(part, BufferShape) for _, part in subshapes(shape))
