"""What XLA's GPU scheduler does to every candidate order before measuring it (``xla/service/gpu/gpu_hlo_schedule.cc``).

1. A synchronous collective's start moves right in front of its done.
2. Forwards: behind each instruction come at once those of its users and control successors that want to run early and wait for
   nothing else. Early: asynchronous starts that are not synchronous, custom calls with ``SCHEDULE_EARLIEST``.
3. Backwards: in front of each instruction come at once those of its operands and control predecessors that want to run late
   and whose users have all been placed. Late: dones of the starts in (2), also behind ``async-update``s; custom calls with
   ``SCHEDULE_LATEST``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from layoutsim.analysis.call_graph import async_start_of
from layoutsim.ir import Instruction, Opcode
from layoutsim.ir.payloads import CustomCallPayload
from layoutsim.passes.async_collectives import is_collective_done, is_collective_start, is_synchronous

_STARTS = frozenset({Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE_START, Opcode.COLLECTIVE_PERMUTE_START, Opcode.ASYNC_START})
_DONES = frozenset({Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.ASYNC_DONE})
_MOVABLE = _STARTS | _DONES | {Opcode.CUSTOM_CALL, Opcode.SEND, Opcode.RECV, Opcode.SEND_DONE, Opcode.RECV_DONE}


def gpu_postprocess(order: Sequence[Instruction], *, overlap_all_gathers: bool = True) -> list[Instruction]:
    """``order`` with synchronous collectives closed up and asynchronous pairs moved apart.

    Args:
        overlap_all_gathers: whether all-gathers are moved apart too; jax 0.6.1 and 0.6.2 did not do it.
    """
    if not any(instruction.opcode in _MOVABLE for instruction in order):
        return list(order)
    starts = _STARTS if overlap_all_gathers else _STARTS - {Opcode.ALL_GATHER_START}
    return _late(_early(_synchronous(order), starts), starts)


def _synchronous(order: Sequence[Instruction]) -> list[Instruction]:  # (1)
    out: list[Instruction] = []
    for instruction in order:
        if _is_synchronous_start(instruction):
            continue
        if is_collective_done(instruction):
            start = instruction.operand(0)
            if _is_synchronous_start(start):
                out.append(start)
        out.append(instruction)
    return out


def _is_synchronous_start(instruction: Instruction) -> bool:
    return is_collective_start(instruction) and is_synchronous(instruction)


def _wants_early(instruction: Instruction, starts: frozenset[Opcode]) -> bool:
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return instruction.payload_as(CustomCallPayload).schedule == "SCHEDULE_EARLIEST"
    return instruction.opcode in starts and not is_synchronous(instruction)


def _wants_late(instruction: Instruction, starts: frozenset[Opcode]) -> bool:
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return instruction.payload_as(CustomCallPayload).schedule == "SCHEDULE_LATEST"
    return instruction.opcode in _DONES and _wants_early(_start_of(instruction), starts)


def _start_of(done: Instruction) -> Instruction:
    return async_start_of(done) if done.opcode is Opcode.ASYNC_DONE else done.operand(0)


def _early(order: Sequence[Instruction], starts: frozenset[Opcode]) -> list[Instruction]:  # (2)
    return _pull(order, lambda i: (*i.users, *i.control_successors), lambda i: _wants_early(i, starts), _predecessors)


def _late(order: Sequence[Instruction], starts: frozenset[Opcode]) -> list[Instruction]:  # (3)
    back = order[::-1]
    return _pull(back, lambda i: (*i.operands, *i.control_predecessors), lambda i: _wants_late(i, starts), _successors)[::-1]


def _predecessors(instruction: Instruction) -> tuple[Instruction, ...]:
    return (*instruction.operands, *instruction.control_predecessors)


def _successors(instruction: Instruction) -> tuple[Instruction, ...]:
    return (*instruction.users, *instruction.control_successors)


def _pull(
    order: Iterable[Instruction],
    neighbours: Callable[[Instruction], tuple[Instruction, ...]],
    wanted: Callable[[Instruction], bool],
    needed: Callable[[Instruction], tuple[Instruction, ...]],
) -> list[Instruction]:
    """``order`` with each wanted neighbour right behind the instruction that was the last it waited for."""
    placed: dict[Instruction, None] = {}
    for instruction in order:
        if instruction in placed:
            continue
        placed[instruction] = None
        for near in neighbours(instruction):
            if near not in placed and wanted(near) and all(other in placed for other in needed(near)):
                placed[near] = None
    return list(placed)
