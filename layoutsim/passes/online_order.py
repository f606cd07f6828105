"""A topological order that takes new edges and refuses those that would close a cycle (Pearce and Kelly, 2006).

An edge that agrees with the order costs nothing. One that contradicts it costs a search among the nodes between its ends:
those that the target reaches and those that reach the source swap their places, each group in its own order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from layoutsim.ir import Computation, Instruction
from layoutsim.ir.traverse import post_order

_Neighbours = Callable[[Instruction], Iterable[Instruction]]


class OnlineOrder:
    """Order of the instructions of one computation along operands, control edges and edges added here."""

    def __init__(self, computation: Computation) -> None:
        self._place = {instruction: place for place, instruction in enumerate(post_order(computation))}
        self._after: dict[Instruction, list[Instruction]] = {}
        self._before: dict[Instruction, list[Instruction]] = {}

    def insert(self, before: Instruction, after: Instruction) -> bool:
        """Demand that ``before`` stands before ``after``; ``False``, and nothing done, if that closes a cycle."""
        if self._place[before] > self._place[after] and not self._make_room(before, after):
            return False
        self._after.setdefault(before, []).append(after)
        self._before.setdefault(after, []).append(before)
        return before is not after

    def _make_room(self, before: Instruction, after: Instruction) -> bool:
        low, high = self._place[after], self._place[before]
        reached = self._search(after, self._successors, lambda place: place <= high)
        if before in reached:
            return False
        reaching = self._search(before, self._predecessors, lambda place: place >= low)
        moved = [*sorted(reaching, key=self._place.__getitem__), *sorted(reached, key=self._place.__getitem__)]
        places = sorted(self._place[instruction] for instruction in moved)
        self._place.update(zip(moved, places, strict=True))
        return True

    def _search(
        self, start: Instruction, neighbours: _Neighbours, is_between: Callable[[int], bool]
    ) -> dict[Instruction, None]:
        found = {start: None}
        pending = [start]
        while pending:
            for near in neighbours(pending.pop()):
                if near not in found and is_between(self._place[near]):
                    found[near] = None
                    pending.append(near)
        return found

    def _successors(self, instruction: Instruction) -> Iterable[Instruction]:
        return (*instruction.users, *instruction.control_successors, *self._after.get(instruction, ()))

    def _predecessors(self, instruction: Instruction) -> Iterable[Instruction]:
        return (*instruction.operands, *instruction.control_predecessors, *self._before.get(instruction, ()))
