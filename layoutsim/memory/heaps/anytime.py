"""Our own heap: at most XLA's size, and as close to the lower bound as a budget of steps allows.

1. Start with XLA's placement, and with best fit in two more orders: *section* ``(-peak, -duration, -size)``, where the peak is
   the most bytes live during the group's life, and *weight* ``-size * duration ** 0.25``.
2. Search below a target with :class:`~layoutsim.memory.heaps.ejection.EjectionSearch`: the lower bound first; then targets
   between what is known to be reachable and what was not reached, until they are close.
3. If that leaves a gap and the problem is small, do the same with
   :class:`~layoutsim.memory.heaps.canonical.CanonicalSearch`, which packs tightly where no byte may be lost. If the problem is
   large and the gap more than 1 %, search once more as in (2), from the best placement on.

The best placement so far is returned when the bound is reached or the budget is spent. Given steps only, the result is the same
every time; given a time, it depends on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import numpy as np
from attrs import frozen

from layoutsim.errors import InputError
from layoutsim.memory.heaps.base import Timeline, align_up, heap_of, with_empty
from layoutsim.memory.heaps.best_fit import OpenHeap
from layoutsim.memory.heaps.budget import Budget
from layoutsim.memory.heaps.canonical import CanonicalSearch
from layoutsim.memory.heaps.choose_best import xla_heap
from layoutsim.memory.heaps.conflicts import ConflictGraph, Ints
from layoutsim.memory.heaps.ejection import EjectionSearch
from layoutsim.memory.heaps.lower_bound import live_peak
from layoutsim.memory.problem import Placement, Problem

_CLOSE = 0.0005
_FAR = 0.01
_CANONICAL_PAIRS = 30_000
_EJECTION_STEPS = 40_000
_ATTEMPT_STEPS = 3_000
_CANONICAL_STEPS = 120_000


@frozen
class AnytimeHeap:
    """Local and exact search from XLA's placement on.

    Attributes:
        steps: how many search steps at most; ``None`` means 40,000 and two a group, and 120,000 more where the exact search
            applies, or as many as at first where it does not and more than 1 % is left.
        seconds: how long at most, once XLA's placement is there; ``None`` means as long as the steps last.
    """

    steps: int | None = None
    seconds: float | None = None

    def __attrs_post_init__(self) -> None:
        if (self.steps is not None and self.steps < 0) or (self.seconds is not None and self.seconds < 0):
            raise InputError(f"steps and seconds cannot be negative, got {self.steps} and {self.seconds}")

    @property
    def name(self) -> str:
        return "anytime"

    def pack(self, problem: Problem) -> Placement:
        best = xla_heap().pack(problem)
        bound = live_peak(problem)
        if best.size <= bound:
            return best
        deadline = None if self.seconds is None else monotonic() + self.seconds
        return _Run(problem, best, bound, deadline).improve(self.steps)


class _Run:
    """One run: the best placement so far, as offsets by group."""

    def __init__(self, problem: Problem, best: Placement, bound: int, deadline: float | None) -> None:
        self._problem = problem
        self._best = best
        self._deadline = deadline
        self._graph = ConflictGraph(problem)
        self._bound = align_up(bound, problem.alignment)
        self._offsets: Ints = np.array([best.chunks[group.root.id].offset for group in problem.groups], dtype=np.int64)

    def improve(self, steps: int | None) -> Placement:
        """The best placement within the budget."""
        ejection_steps = _EJECTION_STEPS + 2 * len(self._graph) if steps is None else steps
        budget = Budget(ejection_steps, self._deadline)
        self._try_orders(budget)
        self._search_locally(budget)
        if self._top > self._bound and self._graph.pair_count <= _CANONICAL_PAIRS:
            if steps is None:
                budget = Budget(_CANONICAL_STEPS, self._deadline)
            self._search_exactly(budget)
        elif steps is None and self._top - self._bound > _FAR * self._bound:
            self._search_locally(Budget(ejection_steps, self._deadline))
        return self._best

    @property
    def _is_open(self) -> bool:
        """Whether the best size is still so far from the bound that searching on is worth it."""
        return self._top - self._bound > _CLOSE * self._bound

    @property
    def _top(self) -> int:
        """The best size, rounded up to the alignment."""
        return align_up(self._best.size, self._problem.alignment)

    def _try_orders(self, budget: Budget) -> None:
        graph = self._graph
        keys: list[Callable[[int], tuple[float, ...]]] = [
            lambda g: (-int(graph.peaks[g]), -float(graph.durations[g]), -int(graph.sizes[g]), g),
            lambda g: (-float(graph.sizes[g] * graph.durations[g] ** 0.25), g),
        ]
        for key in keys:
            if self._top > self._bound and budget.spend():
                self._best_fit(sorted(range(len(graph)), key=key))

    def _best_fit(self, order: list[int]) -> None:
        heap = OpenHeap(Timeline(self._problem), self._problem.alignment)
        offsets = np.zeros_like(self._offsets)
        for number in order:
            group = self._graph.groups[number]
            offsets[number] = heap.find(group)
            if offsets[number] + group.size >= self._best.size:
                return
            heap.commit(group, int(offsets[number]))
        self._keep(offsets)

    def _search_locally(self, budget: Budget) -> None:
        """Attempts of a limited length each, since one that does not succeed soon rarely does later."""
        search = EjectionSearch(self._graph)
        length = _ATTEMPT_STEPS + len(self._graph)
        target = self._bound
        while self._is_open and not budget.is_spent:
            self._close_in(lambda t, part: search.run(self._offsets, t, part), budget, target, lambda: length)
            target = self._between(self._bound - self._problem.alignment)

    def _search_exactly(self, budget: Budget) -> None:
        """Half of what is left of the budget for each target."""
        search = CanonicalSearch(self._graph)
        self._close_in(lambda t, part: search.solve(t, part)[1], budget, self._bound, lambda: max(budget.steps // 2, 1))

    def _close_in(
        self, find: Callable[[int, Budget], Ints | None], budget: Budget, target: int, steps: Callable[[], int]
    ) -> None:
        """Lets ``find`` look for placements below ``target``, then between the best and what failed, until these are close."""
        failed = self._bound - self._problem.alignment
        while target < self._top and not budget.is_spent:
            part = budget.part(steps())
            found = find(target, part)
            budget.give_back(part)
            if found is None:
                failed = max(failed, target)
            else:
                self._keep(found)
            if self._top - failed <= _CLOSE * self._bound:
                return
            target = self._between(failed)

    def _between(self, failed: int) -> int:
        return align_up((failed + self._top) // 2, self._problem.alignment)

    def _keep(self, offsets: Ints) -> None:
        """Takes the offsets over if they are better."""
        heap = heap_of(list(zip(self._graph.groups, offsets.tolist(), strict=True)))
        if heap.size < self._best.size:
            self._best = Placement((with_empty(heap, self._problem),))
            self._offsets = offsets
