"""How small a heap can be at best, without placing anything.

Two bounds, both peaks of the bytes alive at one tick:

1. :func:`event_peak`: XLA's count "without fragmentation" (``NoFragmentationStatsHeap``). Every interval counts with its size
   from its start to its end, so that two mates alive at once count twice. XLA reports fragmentation against it.
2. :func:`live_peak`: every *group* counts once, with the size of its chunk, rounded up to the alignment except for the chunk
   that can end the heap (the one that loses most to rounding). No placement is smaller.
"""

from __future__ import annotations

from itertools import accumulate, groupby

from attrs import frozen

from layoutsim.memory.heaps.base import align_up
from layoutsim.memory.problem import Group, Heap, Placement, Problem


@frozen
class LowerBound:
    """A heap algorithm that places nothing and reports :func:`event_peak` as the size."""

    @property
    def name(self) -> str:
        return "lower-bound"

    def pack(self, problem: Problem) -> Placement:
        return Placement((Heap({}, event_peak(problem)),))


def event_peak(problem: Problem) -> int:
    """Peak of the bytes of all intervals alive; bound (1)."""
    return _peak([(interval.start, interval.end, interval.size) for interval in problem.intervals])


def live_peak(problem: Problem) -> int:
    """Peak of the bytes of all groups alive; bound (2)."""
    alignment = problem.alignment
    peak = _peak([(s, e, align_up(g.size, alignment)) for g in problem.groups for s, e in _lives(g)])
    largest_padding = max((align_up(g.size, alignment) - g.size for g in problem.groups), default=0)
    return max(peak - largest_padding, max((g.size for g in problem.groups), default=0))


def _lives(group: Group) -> list[tuple[int, int]]:
    """Disjoint ranges of ticks, ends included, at which a member is live."""
    lives: list[tuple[int, int]] = []
    for start, end in sorted((member.start, member.end) for member in group.members):
        if lives and start <= lives[-1][1]:
            lives[-1] = (lives[-1][0], max(lives[-1][1], end))
        else:
            lives.append((start, end))
    return lives


def _peak(lives: list[tuple[int, int, int]]) -> int:
    """Largest sum of sizes over ``(start, end, size)`` alive at one tick, ends included."""
    changes = [(start, size) for start, _, size in lives] + [(end + 1, -size) for _, end, size in lives]
    changes.sort(key=lambda change: change[0])
    by_tick = (sum(size for _, size in group) for _, group in groupby(changes, key=lambda change: change[0]))
    return max(accumulate(by_tick), default=0)
