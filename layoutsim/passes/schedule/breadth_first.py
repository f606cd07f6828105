"""Breadth-first order, XLA's default on CPU (``xla/hlo/transforms/simplifiers/hlo_memory_scheduler.h``, BFScheduler).

1. A queue, first in first out, of the instructions whose distinct operands and control predecessors have all run.
2. It starts with the instructions that wait for nothing, in instruction order.
3. An instruction releases its users in order, then its control successors in order.
"""

from __future__ import annotations

from collections import deque

from layoutsim.ir import Computation, Instruction


def breadth_first_order(computation: Computation) -> list[Instruction]:
    """The instructions of ``computation``, level by level."""
    waiting = {i: len(set(i.operands)) + len(i.control_predecessors) for i in computation.instructions}
    ready = deque(i for i, count in waiting.items() if not count)  # (2)
    order: list[Instruction] = []
    while ready:  # (1)
        current = ready.popleft()
        order.append(current)
        for after in (*current.users, *current.control_successors):  # (3)
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    assert len(order) == computation.instruction_count, f"cycle in {computation.name}"
    return order
