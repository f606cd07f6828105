"""Brings a schedule up to date with an edited module (``xla/hlo/ir/hlo_schedule.cc``, HloSchedule::Update).

1. Sequences of computations that are gone are dropped; computations without a sequence get one.
2. Instructions that are gone leave the sequence.
3. An instruction scheduled before one of its control predecessors, and that predecessor, are taken out and count as new.
4. New instructions come in at once behind the last of their operands and control predecessors in the old sequence; those that
   wait for nothing come first of all. Several that become ready together keep the order in which they were found ready.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from attrs import define, field

from layoutsim.ir import Computation, Instruction, Module, Schedule
from layoutsim.ir.traverse import computations_post_order, fusion_bodies


def repair_schedule(module: Module, schedule: Schedule) -> Schedule:
    """A schedule of ``module`` as it is now, as near to ``schedule`` as rules (1) to (4) keep it."""
    fused = fusion_bodies(module)
    return Schedule(
        {
            computation: _repair_sequence(computation, schedule.sequences.get(computation, ()))
            for computation in computations_post_order(module)
            if computation not in fused
        }
    )


def _repair_sequence(computation: Computation, old: Sequence[Instruction]) -> list[Instruction]:
    present = dict.fromkeys(computation.instructions)
    contradicting = _contradicting(old)
    kept = [i for i in old if i in present and i not in contradicting]  # (2)
    known = set(kept)
    new = [i for i in present if i not in known]
    return _Insertion(new).run(kept) if new else kept


def _contradicting(sequence: Iterable[Instruction]) -> set[Instruction]:  # (3)
    seen: set[Instruction] = set()
    out: set[Instruction] = set()
    for instruction in sequence:
        late = [p for p in instruction.control_predecessors if p not in seen]
        out.update(late, [instruction] if late else [])
        seen.add(instruction)
    return out


@define(eq=False)
class _Insertion:
    """State of one run of rule (4)."""

    new: list[Instruction]
    waiting: dict[Instruction, int] = field(factory=dict[Instruction, int], init=False)
    waiters: dict[Instruction, list[Instruction]] = field(factory=dict[Instruction, list[Instruction]], init=False)
    ready: deque[Instruction] = field(factory=deque[Instruction], init=False)
    out: list[Instruction] = field(factory=list[Instruction], init=False)

    def __attrs_post_init__(self) -> None:
        for instruction in self.new:
            before = dict.fromkeys((*instruction.operands, *instruction.control_predecessors))
            self.waiting[instruction] = len(before)
            for predecessor in before:
                self.waiters.setdefault(predecessor, []).append(instruction)
            if not before:
                self.ready.append(instruction)

    def run(self, kept: Iterable[Instruction]) -> list[Instruction]:
        self._place_ready()
        for instruction in kept:
            self.ready.append(instruction)
            self._place_ready()
        return self.out

    def _place_ready(self) -> None:
        while self.ready:
            instruction = self.ready.popleft()
            self.out.append(instruction)
            for waiter in self.waiters.get(instruction, ()):
                self.waiting[waiter] -= 1
                if not self.waiting[waiter]:
                    self.ready.append(waiter)
