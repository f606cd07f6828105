"""Local search for modules that are too large for a proof: moves of whole regions, never worse than the start.

A move gives one variable another mode and carries that along the edges that would break: a neighbour follows if its edge costs
at least the move's threshold and it has the mode that the edge asks for. All that changed is kept if the total falls. Moves
start at the sides of edges that cost something now, the most expensive first, until no move helps or time is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from attrs import define, field

from layoutsim.experiments.joint.problem import Assignment, Edge, Problem, Variable

_REGION = 20_000
"""A move that has changed so many variables goes no further."""


def search(problem: Problem, start: Sequence[int], time_limit: float) -> tuple[int, ...]:
    """An assignment that costs at most what ``start`` costs.

    Args:
        problem: its modes must be complete.
        start: where to begin.
        time_limit: seconds.
    """
    searching = _Search(problem, list(start))
    end = time.monotonic() + time_limit
    improved = True
    while improved and time.monotonic() < end:
        improved = searching.improve(end)
    return tuple(searching.chosen)


@define(eq=False)
class _Search:
    problem: Problem
    chosen: Assignment
    _around: list[list[Edge]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._around = [[] for _ in self.problem.variables]
        for edge in self.problem.edges:
            if edge.cost:
                self._around[edge.producer.number].append(edge)
                if edge.consumer is not None and edge.consumer is not edge.producer:
                    self._around[edge.consumer.number].append(edge)

    def improve(self, end: float) -> bool:
        """One round over all edges that cost something; whether one of the moves helped."""
        paid = [e for e in self.problem.edges if e.cost and not self.problem.is_satisfied(e, self.chosen)]
        paid.sort(key=lambda edge: -edge.cost)
        helped = False
        for edge in paid:
            for variable in (edge.producer, edge.consumer):
                if variable is None or time.monotonic() > end:
                    continue
                helped = self._move(edge, variable) or helped
        return helped

    def _move(self, edge: Edge, variable: Variable) -> bool:
        for mode in range(len(variable.modes)):
            if mode == self.chosen[variable.number]:
                continue
            for threshold in (1, edge.cost // 8, edge.cost):
                changed = self._region(variable, mode, threshold)
                if self._gain(changed) > 0:
                    for number, chosen in changed.items():
                        self.chosen[number] = chosen
                    return True
        return False

    def _region(self, variable: Variable, mode: int, threshold: int) -> dict[int, int]:
        """The modes that change if ``variable`` takes ``mode`` and others follow."""
        changed, waiting = {variable.number: mode}, [variable]
        while waiting and len(changed) < _REGION:
            here = waiting.pop()
            for edge in self._around[here.number]:
                if edge.cost < threshold:
                    continue
                for there, follows in self._followers(edge, here, changed):
                    changed[there.number] = follows
                    waiting.append(there)
        return changed

    def _followers(self, edge: Edge, here: Variable, changed: dict[int, int]) -> Iterator[tuple[Variable, int]]:
        there = edge.consumer if here is edge.producer else edge.producer
        if there is None or there.number in changed:
            return
        order = here.modes[changed[here.number]]
        reached = edge.offered(order) if here is edge.producer else edge.wanted(order)
        mode = None if reached is None else there.offer(reached, limit=0)
        if mode is not None and mode != self.chosen[there.number]:
            yield there, mode

    def _gain(self, changed: dict[int, int]) -> int:
        touched = dict.fromkeys(edge for number in changed for edge in self._around[number])
        before = sum(e.cost for e in touched if not self.problem.is_satisfied(e, self.chosen))
        kept = {number: self.chosen[number] for number in changed}
        for number, mode in changed.items():
            self.chosen[number] = mode
        after = sum(e.cost for e in touched if not self.problem.is_satisfied(e, self.chosen))
        for number, mode in kept.items():
            self.chosen[number] = mode
        return before - after
