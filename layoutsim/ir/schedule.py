"""A module schedule: one sequence of instructions for each scheduled computation (``xla/hlo/ir/hlo_schedule.h``)."""

from __future__ import annotations

from attrs import define, field

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction


@define(eq=False)
class Schedule:
    """Sequences by computation. Fusion bodies and other embedded computations need none."""

    sequences: dict[Computation, list[Instruction]] = field(factory=dict[Computation, list[Instruction]])

    def sequence(self, computation: Computation) -> tuple[Instruction, ...]:
        """The instructions of ``computation`` in the order they run.

        Raises:
            KeyError: the computation is not scheduled.
        """
        return tuple(self.sequences[computation])

    def __contains__(self, computation: object) -> bool:
        return computation in self.sequences
