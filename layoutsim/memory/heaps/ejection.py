"""Local search for a placement below a target: what does not fit pushes out what fits more easily elsewhere.

1. Every group that ends above the target is taken out of the placement.
2. The group taken out last is put into the smallest hole below the target that takes it.
3. If there is none, it goes where the groups in its way are worth least together, and those are taken out.
4. A group is worth ``sqrt(size * number of groups live together with it)``, and the same again for every time it did not
   fit: what keeps failing soon stays where it is, and others have to move.
5. The search has succeeded when nothing is out.

A step looks at one group and its neighbours only, so its cost does not depend on the size of the problem. Rules (3) and (4)
are those of guided ejection search, known from vehicle routing (Nagata and Bräysy, 2009).
"""

from __future__ import annotations

import random

import numpy as np

from layoutsim.memory.heaps.budget import Budget
from layoutsim.memory.heaps.conflicts import ConflictGraph, Floats, Ints

_OUT = -1


class EjectionSearch:
    """Looks for offsets below a target, starting from a placement that is higher."""

    def __init__(self, graph: ConflictGraph, seed: int = 0) -> None:
        self._graph = graph
        self._random = random.Random(seed)
        self._worth: Floats = np.sqrt(graph.sizes * graph.degrees)
        self._worth /= self._worth.max(initial=1.0)

    def run(self, offsets: Ints, target: int, budget: Budget) -> Ints | None:
        """Offsets such that every group ends at or below ``target``; ``None`` if the budget is spent first."""
        sizes = self._graph.sizes
        offsets = offsets.copy()
        penalties = self._worth.copy()
        out = self._ascending(np.flatnonzero(offsets + sizes > target))
        offsets[out] = _OUT
        while out:
            if not budget.spend():
                return None
            group = out.pop()
            neighbours = self._graph.neighbours(group)
            neighbours = neighbours[offsets[neighbours] >= 0]
            lows = offsets[neighbours]
            highs = lows + sizes[neighbours]
            hole = _smallest_hole(lows, highs, int(sizes[group]), target)
            if hole is not None:
                offsets[group] = hole
                continue
            penalties[group] += self._worth[group]
            offset = self._cheapest(lows, highs, penalties[neighbours], int(sizes[group]), target)
            pushed_out = neighbours[(lows < offset + sizes[group]) & (highs > offset)]
            offsets[group] = offset
            offsets[pushed_out] = _OUT
            out += self._ascending(pushed_out)
        return offsets

    def _ascending(self, groups: Ints) -> list[int]:
        """Least worth first, so that the group worth most is put back first."""
        return groups[np.argsort(self._worth[groups], kind="stable")].tolist()

    def _cheapest(self, lows: Ints, highs: Ints, penalties: Floats, size: int, target: int) -> int:
        """The offset whose present occupants have the smallest sum of penalties; a random one of several.

        Only offsets at which the group touches another, or an end, need to be looked at. What is in the way at an offset is
        everything that begins below its top, except what ends at or below it: two prefix sums.
        """
        by_low, by_high = np.argsort(lows, kind="stable"), np.argsort(highs, kind="stable")
        begun = np.concatenate(([0.0], np.cumsum(penalties[by_low])))
        ended = np.concatenate(([0.0], np.cumsum(penalties[by_high])))
        offsets = np.concatenate(([0, target - size], highs, lows - size))
        # Looked up in ascending order, the prefix sums are found several times faster.
        ascending = np.concatenate(([0, 1], by_high + 2, by_low + (2 + len(lows))))
        looked_up = offsets[ascending]
        costs = np.empty(len(offsets), dtype=np.float64)
        costs[ascending] = begun[np.searchsorted(lows[by_low], looked_up + size)]
        costs[ascending] -= ended[np.searchsorted(highs[by_high], looked_up, "right")]
        costs[(offsets < 0) | (offsets > target - size)] = np.inf
        cheapest = np.flatnonzero(costs <= costs.min() * (1 + 1e-9) + 1e-12)
        return int(offsets[cheapest[self._random.randrange(len(cheapest))]])


def _smallest_hole(lows: Ints, highs: Ints, size: int, target: int) -> int | None:
    """Offset of the smallest hole below ``target`` that takes ``size`` bytes."""
    starts = np.concatenate(([0], np.sort(highs)))
    holes = np.concatenate((np.sort(lows), [target])) - starts
    fitting = np.flatnonzero(holes >= size)
    return int(starts[fitting[np.argmin(holes[fitting])]]) if len(fitting) else None
