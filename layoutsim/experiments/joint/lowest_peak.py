"""The assignment with the lowest peak, by the sum of :mod:`layoutsim.experiments.joint.peak`, and a proof.

1. A column ``T`` is at least what is live at each time; it is minimised. Times enter the programme as they are needed: those at
   which the best assignment so far has its peak, until the peak of a solution is what the programme says it is. A programme
   of fewer times has no higher a minimum, so its bound holds for all.
2. Among the assignments of that peak, one that moves the fewest bytes: ``T`` is bounded, and bytes are minimised, with more
   times where a solution has its peak elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from attrs import define, field

from layoutsim.experiments.joint.exact import Exact
from layoutsim.experiments.joint.peak import Overlap, PeakModel
from layoutsim.experiments.joint.problem import Assignment, Problem, Variable, is_open
from layoutsim.experiments.joint.programme import UNIT, Found, Programme

_MOST_ROUNDS = 200


def solve_for_peak(problem: Problem, peak: PeakModel, start: Sequence[int], time_limit: float) -> Exact:
    """Minimise the peak, then the bytes moved.

    Args:
        problem: its modes must be complete.
        peak: the sum.
        start: an assignment; kept if nothing better is found in time.
        time_limit: seconds.

    Raises:
        InputError: scipy is not installed.
    """
    search = _LowestPeak(problem, peak, list(start), time.monotonic() + time_limit)
    search.lower_peak()
    search.move_less()
    return Exact(tuple(search.best), search.bound, search.is_optimal)


@define(eq=False)
class _LowestPeak:
    problem: Problem
    peak: PeakModel
    best: Assignment
    end: float
    times: dict[int, None] = field(factory=dict[int, None], init=False)
    bound: int = field(default=0, init=False)
    is_optimal: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._note_peak(self.peak.base)
        self._note_peak(self.peak.live_bytes(self.problem, self.best))

    def lower_peak(self) -> None:
        """Rule (1)."""
        for _ in range(_MOST_ROUNDS):
            found = self._solve(None)
            self.bound = max(self.bound, found.bound)
            reached = self._take(found)
            lowest = self._peak_of(self.best)
            if lowest <= self.bound + UNIT:
                self.bound, self.is_optimal = lowest, True
                return
            if not reached or time.monotonic() > self.end:
                return

    def move_less(self) -> None:
        """Rule (2)."""
        limit = self._peak_of(self.best)
        for _ in range(_MOST_ROUNDS):
            if time.monotonic() > self.end:
                return
            found = self._solve(limit)
            if not self._take(found):
                return

    def _take(self, found: Found) -> bool:
        """Keep what was found if it is better; whether there are new times to try with."""
        chosen = self._assignment(found)
        if chosen is None:
            return False
        live = self.peak.live_bytes(self.problem, chosen)
        if self._rank(chosen) < self._rank(self.best):
            self.best = chosen
        return self._note_peak(live)

    def _rank(self, chosen: Assignment) -> tuple[int, tuple[int, int]]:
        return self._peak_of(chosen), self.problem.costs(chosen)

    def _peak_of(self, chosen: Assignment) -> int:
        return self.peak.peak(self.problem, chosen)

    def _note_peak(self, live: np.ndarray) -> bool:
        moment = int(live.argmax())
        if moment in self.times:
            return False
        self.times[moment] = None
        return True

    def _assignment(self, found: Found) -> Assignment | None:
        if found.modes is None:
            return None
        chosen = [0] * len(self.problem.variables)
        for variable, mode in zip(self._open_variables, found.modes, strict=True):
            chosen[variable.number] = mode
        return chosen

    # -- the programme ---------------------------------------------------------------------------------------------

    @property
    def _open_variables(self) -> list[Variable]:
        return [variable for variable in self.problem.variables if is_open(variable)]

    def _solve(self, limit: int | None) -> Found:
        """Minimise the peak or, below a limit for it, the bytes moved."""
        programme = Programme(self._open_variables)
        edges = enumerate(self.problem.edges)
        paid = {number: programme.paid(edge) for number, edge in edges if is_open(edge.producer) or is_open(edge.consumer)}
        added = [self._columns_of(programme, overlap, paid) for overlap in self.peak.overlaps]
        if limit is None:
            top = programme.column(np.inf)
            programme.charge(top, UNIT)
        else:
            top = programme.column(limit / UNIT)
            for number, columns in paid.items():
                for column in columns:
                    programme.charge(column, self.problem.edges[number].cost)
        for moment in self.times:
            self._bound_time(programme, moment, added, top)
        return programme.solve(max(0.1, self.end - time.monotonic()))

    def _columns_of(self, programme: Programme, overlap: Overlap, paid: Mapping[int, list[int]]) -> list[int] | None:
        """Columns whose sum is 1 where the overlap counts; ``None`` if it always does."""
        fixed = (self.problem.edges[number] for number in overlap.edges if number not in paid)
        if any(not self.problem.is_satisfied(edge, self.best) for edge in fixed):
            return None
        ours = [paid[number] for number in overlap.edges if paid.get(number)]
        if len(ours) <= 1:
            return ours[0] if ours else []
        any_of = programme.column()
        for columns in ours:
            programme.row([*((column, 1.0) for column in columns), (any_of, -1.0)], -np.inf, 0.0)
        return [any_of]

    def _bound_time(self, programme: Programme, moment: int, added: Sequence[list[int] | None], top: int) -> None:
        """What is live at a time is at most ``top``."""
        always = int(self.peak.base[moment])
        entries = [(top, -1.0)]
        for overlap, columns in zip(self.peak.overlaps, added, strict=True):
            if not overlap.covers(moment):
                continue
            if columns is None:
                always += overlap.size_bytes
            else:
                entries += [(column, overlap.size_bytes / UNIT) for column in columns]
        programme.row(entries, -np.inf, -always / UNIT)
