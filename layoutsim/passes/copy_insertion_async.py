"""Copies around values that must not be copied: what ``send``, ``recv`` and ``copy-start`` have in flight, and buffers.

A value in flight lives from its start to its done and has one user. (``xla/service/copy_insertion.cc``,
AddCopiesForNonCopyableTransitions; memory spec, 12.1.)

1. Start used by its done: nothing to do.
2. Start that enters a loop (its user is a tuple that only a ``while`` uses): its operand 0 is copied for it.
3. In a loop body, start that leaves through root element *k* while parameter element *k* goes to the done ("rotated")::

       body: done <- gte(parameter), index=k;   ... ;   root <- tuple(.., start, ..)

   The start's operand 0 is copied for it, behind the done; the start itself runs behind the done; if the done has users, they
   get a copy of it, and the start runs behind that copy too.
4. Otherwise live ranges do not meet, and nothing is copied.
5. ``Pin`` and ``CreateBuffer`` calls make explicit buffers: see :mod:`layoutsim.passes.copy_insertion_pins`.
"""

from __future__ import annotations

from layoutsim.errors import PassError
from layoutsim.ir import Computation, Instruction, Opcode
from layoutsim.ir.opcode import ASYNC_DONES
from layoutsim.passes.copy_insertion_pins import Reasons, copy_operand, is_pinning, pin
from layoutsim.passes.deep_copy import deep_copy, replace_uses_by

_DONES = ASYNC_DONES | {Opcode.SEND_DONE, Opcode.RECV_DONE}


def is_implicitly_pinned(instruction: Instruction) -> bool:
    """Whether the result is in flight and must not be copied."""
    return instruction.opcode in (Opcode.SEND, Opcode.RECV, Opcode.COPY_START)


def add_copies_around_buffers(start: Instruction, loop_bodies: frozenset[Computation]) -> Reasons:
    """Apply rules (1) to (5) to ``start``; the copies made, with their reasons.

    Raises:
        PassError: a value in flight has several users, which XLA refuses too.
    """
    if not is_implicitly_pinned(start):
        return pin(start, in_loop=start.parent in loop_bodies) if is_pinning(start) else {}
    if not start.user_count:
        return {}
    if start.user_count != 1:
        raise PassError(f"{start.name}: a {start.opcode} must have one user, got {start.user_count}")
    (user,) = start.users
    if user.opcode in _DONES:  # (1)
        return {}
    if start.operand_count and _enters_loop(user):  # (2)
        return {copy_operand(start): f"{start.name} is in flight when a loop begins"}
    done = _rotated_done(start, user) if start.parent in loop_bodies else None
    return {} if done is None else _separate_iterations(start, done)  # (3), (4)


def _enters_loop(user: Instruction) -> bool:
    return user.opcode is Opcode.TUPLE and [u.opcode for u in user.users] == [Opcode.WHILE]


def _rotated_done(start: Instruction, user: Instruction) -> Instruction | None:
    """The done of the previous iteration's start, where the loop carries ``start`` to it."""
    if user.opcode is not Opcode.TUPLE or not user.is_root:
        return None
    assert start.parent is not None, start
    index = user.operands.index(start)
    for element in start.parent.parameters[0].users:
        if element.tuple_index == index:
            if element.user_count != 1:
                raise PassError(f"{element.name}: a value in flight must have one user, got {element.user_count}")
            return next((u for u in element.users if u.opcode in _DONES), None)
    return None


def _separate_iterations(start: Instruction, done: Instruction) -> Reasons:  # (3)
    reasons: Reasons = {}
    if start.operand_count:
        copied = copy_operand(start)
        copied.add_control_predecessor(done)
        reasons[copied] = f"{start.name} is in flight until {done.name} of the next iteration"
    start.add_control_predecessor(done)
    users = done.users
    if users:
        result = deep_copy(done)
        for copied in result.copies.values():
            start.add_control_predecessor(copied)
            reasons[copied] = f"{start.name} fills the buffer of {done.name} again"
        replace_uses_by(done, users, result.result)
    return reasons
