"""List scheduling for little memory (``xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc``, ListScheduler).

1. Of the instructions whose operands and control predecessors have run, the one of highest priority runs next; among equals
   the one that became ready (or changed its priority) last.
2. Priority: bytes freed less bytes defined, then the number of users. A buffer is freed by the last instruction that uses
   it; buffers of the root are never freed; buffers of parameters and constants weigh nothing.
3. One-element arrays come before everything; outfeeds with a config early, infeeds with one late.
4. Instructions get ready in instruction order at first, then in the order of users, then of control successors.
5. When a buffer has one use left, the ready users of the operands of the instruction that just ran get their priority anew.
   Other ready instructions keep theirs, even if it is out of date.
6. What called computations need does not count.

Buffers are the logical buffers of the points-to analysis: a ``get-tuple-element`` uses every buffer of the tuple.
"""

from __future__ import annotations

import heapq

from attrs import define, field

from layoutsim.analysis.points_to import LogicalBuffer, PointsTo
from layoutsim.ir import ArrayShape, Computation, Instruction, Opcode, true_rank
from layoutsim.ir.payloads import InfeedPayload, OutfeedPayload
from layoutsim.passes.schedule.sizes import SizeFunction

_WEIGHTLESS = frozenset({Opcode.PARAMETER, Opcode.CONSTANT})
_FIRST = 2**63 - 1
_EARLY, _LATE = 2**31 - 1, -(2**31)

_Priority = tuple[int, int]


def list_order(computation: Computation, points_to: PointsTo, size_of: SizeFunction) -> list[Instruction]:
    """The instructions of ``computation``, greedily freeing memory.

    Args:
        points_to: of the module as it stands.
        size_of: bytes of a buffer by its shape.
    """
    return _ListScheduler(computation, _Uses(computation, points_to, size_of)).run()


class _Uses:
    """Which buffers (by id) each instruction uses, how often each is still to be used, and what it weighs."""

    def __init__(self, computation: Computation, points_to: PointsTo, size_of: SizeFunction) -> None:
        self._points_to = points_to
        self._size_of = size_of
        self._of_operand: dict[Instruction, tuple[int, ...]] = {}
        self.of: dict[Instruction, tuple[int, ...]] = {}
        self.left: dict[int, int] = {}
        self.weight: dict[int, int] = {}
        self.defined_bytes: dict[Instruction, int] = {}
        for instruction in computation.instructions:
            self.defined_bytes[instruction] = sum(map(self._register, points_to.defined_by(instruction)))
        for instruction in computation.instructions:
            self.of[instruction] = self._used_by(instruction)
            for buffer in self.of[instruction]:
                self.left[buffer] += 1
        for buffer in self._buffers(computation.root):
            self.left[buffer] += 1

    def _register(self, buffer: LogicalBuffer) -> int:
        """Start counting the uses of ``buffer``; its weight."""
        if buffer.id not in self.left:
            self.left[buffer.id] = 0
            self.weight[buffer.id] = 0 if buffer.instruction.opcode in _WEIGHTLESS else self._size_of(buffer.shape)
        return self.weight[buffer.id]

    def _used_by(self, instruction: Instruction) -> tuple[int, ...]:
        if instruction.operand_count == 1:
            return self._buffers(instruction.operand(0))
        return tuple(dict.fromkeys(buffer for operand in instruction.operands for buffer in self._buffers(operand)))

    def _buffers(self, operand: Instruction) -> tuple[int, ...]:
        found = self._of_operand.get(operand)
        if found is None:
            buffers = dict.fromkeys(b for at_index in self._points_to.points_to(operand) for b in at_index)
            for buffer in buffers:
                self._register(buffer)
            found = self._of_operand[operand] = tuple(buffer.id for buffer in buffers)
        return found


@define(eq=False)
class _ListScheduler:
    computation: Computation
    uses: _Uses
    waiting: dict[Instruction, int] = field(factory=dict[Instruction, int], init=False)
    queue: list[tuple[int, int, int, Instruction]] = field(factory=list[tuple[int, int, int, Instruction]], init=False)
    ready: dict[Instruction, tuple[_Priority, int]] = field(factory=dict[Instruction, tuple[_Priority, int]], init=False)
    entered: int = field(default=0, init=False)

    def run(self) -> list[Instruction]:
        for instruction in self.computation.instructions:
            before = len(set(instruction.operands)) + len(instruction.control_predecessors)
            self.waiting[instruction] = before
            if not before:
                self._enter(instruction, self._priority(instruction))  # (4)
        order: list[Instruction] = []
        while (best := self._pop()) is not None:
            order.append(best)
            has_last_use = self._consume(best)
            for after in (*best.users, *best.control_successors):  # (4)
                self.waiting[after] -= 1
                if not self.waiting[after]:
                    self._enter(after, self._priority(after))
            if has_last_use:
                self._refresh_around(best)
        assert len(order) == self.computation.instruction_count, f"cycle in {self.computation.name}"
        return order

    def _enter(self, instruction: Instruction, priority: _Priority) -> None:
        self.entered += 1
        self.ready[instruction] = priority, self.entered
        heapq.heappush(self.queue, (-priority[0], -priority[1], -self.entered, instruction))

    def _pop(self) -> Instruction | None:  # (1)
        while self.queue:
            _, _, entered, instruction = heapq.heappop(self.queue)
            current = self.ready.get(instruction)
            if current is not None and current[1] == -entered:
                del self.ready[instruction]
                return instruction
        return None

    def _priority(self, instruction: Instruction) -> _Priority:  # (2), (3)
        shape = instruction.shape
        if isinstance(shape, ArrayShape) and true_rank(shape) == 0:
            return _FIRST, _FIRST
        return self._freed(instruction), instruction.user_count

    def _freed(self, instruction: Instruction) -> int:
        payload = instruction.payload
        if isinstance(payload, OutfeedPayload) and payload.outfeed_config:
            return _EARLY
        if isinstance(payload, InfeedPayload) and payload.infeed_config:
            return _LATE
        left, weight = self.uses.left, self.uses.weight
        freed = sum(weight[buffer] for buffer in self.uses.of[instruction] if left[buffer] == 1)
        return freed - self.uses.defined_bytes[instruction]

    def _consume(self, instruction: Instruction) -> bool:
        """Count the uses of ``instruction`` as done; whether some buffer has one use left now."""
        left = self.uses.left
        has_last_use = False
        for buffer in self.uses.of[instruction]:
            left[buffer] -= 1
            has_last_use |= left[buffer] == 1
        return has_last_use

    def _refresh_around(self, instruction: Instruction) -> None:  # (5)
        for operand in instruction.operands:
            for user in operand.users:
                current = self.ready.get(user)
                if current is not None:
                    priority = self._priority(user)
                    if priority != current[0]:
                        self._enter(user, priority)
