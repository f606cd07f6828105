"""Order by dependency, for the instructions that a pass will ask about, as it was when the pass began.

1. One instruction runs before another if a path over operands and control edges leads from it to the other.
2. The graph is read once. What the pass changes afterwards does not change the order, save for edges that it adds here.
3. Only chosen instructions can be asked about, so a computation costs (number of instructions) x (number of chosen ones) bits
   while it is read, and the square of the latter afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layoutsim.ir import Computation, Instruction
from layoutsim.ir.traverse import post_order


class ChosenDependencyOrder:
    """Which of the chosen instructions of one computation run before which.

    Args:
        chosen: of any number of computations.
    """

    def __init__(self, chosen: Iterable[Instruction]) -> None:
        self._bit: dict[Instruction, int] = {}
        self._before: dict[Instruction, int] = {}
        by_computation: dict[Computation, dict[Instruction, None]] = {}
        for instruction in chosen:
            assert instruction.parent is not None, instruction
            by_computation.setdefault(instruction.parent, {})[instruction] = None
        self._groups = {computation: list(group) for computation, group in by_computation.items()}
        for computation, group in self._groups.items():
            self._read(computation, group)

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        """Whether ``a`` runs before ``b``; both are chosen and in one computation."""
        return a is not b and bool(self._before[b] & self._bit[a])

    def sequence(self, computation: Computation) -> Sequence[Instruction] | None:
        """No computation has a total order."""
        return None

    def add_edge(self, before: Instruction, after: Instruction) -> None:
        """Make ``before`` run before ``after``, and so before everything behind it."""
        assert after.parent is not None, after
        added, bit = self._before[before], self._bit[after]
        for instruction in self._groups[after.parent]:
            if self._before[instruction] & bit:
                self._before[instruction] |= added

    def _read(self, computation: Computation, group: Sequence[Instruction]) -> None:
        self._bit |= {instruction: 1 << number for number, instruction in enumerate(group)}
        bits = self._bit
        before: dict[Instruction, int] = {}
        for instruction in post_order(computation):
            mask = bits.get(instruction, 0)
            for source in (*instruction.operands, *instruction.control_predecessors):
                mask |= before[source]
            before[instruction] = mask
        self._before |= {instruction: before[instruction] for instruction in group}
