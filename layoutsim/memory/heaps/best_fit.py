"""XLA's heap: buffers in a fixed order, each into the smallest hole that fits (``GlobalDecreasingSizeBestFitHeap``).

1. Orders (the smallest key first; ``start``, ``end`` and ``size`` are the root's own, ``group`` means with all mates):
   *spatial* ``(-size, start - end, id)``; *temporal* ``(group.start - group.end, -size, id)``.
2. A group's used bytes are the chunks of all groups placed before it that are live while any of its members is.
3. Holes lie between used bytes; a hole begins at the used end before it, aligned up. The smallest hole that takes the group
   wins; among equals the one with the lowest offset. Beyond the last used byte there is always room.

Source: ``xla/service/heap_simulator/heap_simulator.cc`` and section 8 of the memory spec.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from itertools import islice

from attrs import frozen

from layoutsim.memory.heaps.base import Timeline, align_up, heap_of, with_empty
from layoutsim.memory.problem import Group, Placement, Problem


class Order(Enum):
    """In which order groups are placed; rule (1)."""

    SPATIAL = "spatial"
    TEMPORAL = "temporal"

    def sort(self, groups: Iterable[Group]) -> list[Group]:
        """The groups in this order."""
        return sorted(groups, key=_spatial_key if self is Order.SPATIAL else _temporal_key)


@frozen
class BestFit:
    """Places each group in ``order`` into the smallest hole that fits; one heap without limit."""

    order: Order = Order.SPATIAL

    @property
    def name(self) -> str:
        return f"best-fit-{self.order.value}"

    def pack(self, problem: Problem) -> Placement:
        heap = OpenHeap(Timeline(problem), problem.alignment)
        for group in self.order.sort(problem.groups):
            heap.commit(group, heap.find(group))
        return Placement((with_empty(heap_of(heap.offsets), problem),))


class OpenHeap:
    """A heap being filled: finds the best hole for a group (rules 2 and 3), and takes it."""

    def __init__(self, timeline: Timeline, alignment: int) -> None:
        self.offsets: list[tuple[Group, int]] = []
        self._timeline = timeline
        self._alignment = alignment
        self._index = timeline.new_index()

    def find(self, group: Group) -> int:
        """Offset of the smallest hole that takes the group."""
        lows, highs = self._index.borders(self._timeline.ranges(group))
        return best_hole(lows, highs, group.size, self._alignment)

    def commit(self, group: Group, offset: int) -> None:
        """Gives the group the bytes at ``offset``, during the life of every member."""
        self.offsets.append((group, offset))
        for first, last in self._timeline.ranges(group):
            self._index.add(first, last, offset, offset + group.size)


def best_hole(lows: list[int], highs: list[int], size: int, alignment: int) -> int:
    """Offset of the smallest hole of at least ``size`` bytes between the borders of an index."""
    if not lows:
        return 0
    holes = [
        (low - start, start)
        for high, low in zip(highs, islice(lows, 1, None), strict=False)
        if low - high >= size and low - (start := -(-high // alignment) * alignment) >= size
    ]
    if lows[0] >= size:
        holes.append((lows[0], 0))
    return min(holes)[1] if holes else align_up(highs[-1], alignment)


def _spatial_key(group: Group) -> tuple[int, int, int]:
    root = group.root
    return (-root.size, -root.duration, root.id)


def _temporal_key(group: Group) -> tuple[int, int, int]:
    return (group.start - group.end, -group.root.size, group.root.id)
