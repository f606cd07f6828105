"""XLA's heaps for programs with too many buffers for best fit (options of the compiler, off by default; memory spec, 8.6).

1. *Fast merge*: groups in order ``(group.start, -size, id)``. Before each, the chunks of groups that have ended are given back.
   The group gets the smallest free stretch that takes it after aligning its start (of equals the lowest); what aligning
   skips is taken along. The time in which a group has no live member is not used by others.
2. *Fast split*: the first 500 groups without mates in spatial order, and all groups with mates, are placed by best fit; the
   others by fast merge above them.
3. With a limit, what would end beyond it goes into the next heap; the first group of a heap always stays.

Source: ``xla/service/heap_simulator/heap_simulator.cc`` and ``free_chunks_manager.cc``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush

from attrs import frozen

from layoutsim.memory.heaps.base import Timeline, align_up, heap_of, with_empty
from layoutsim.memory.heaps.best_fit import OpenHeap, Order
from layoutsim.memory.problem import Group, Heap, Placement, Problem

_ENDLESS = (1 << 63) - 1
_Offsets = list[tuple[Group, int]]


@frozen
class FastMerge:
    """Rule (1)."""

    limit_bytes: int | None = None

    @property
    def name(self) -> str:
        return "fast-merge"

    def pack(self, problem: Problem) -> Placement:
        waiting = sorted(problem.groups, key=_by_start)
        heaps: list[Heap] = []
        while waiting or not heaps:
            placed, waiting = _merge(waiting, _FreeStretches(problem.alignment), self.limit_bytes, is_empty=True)
            heaps.append(heap_of(placed))
        return Placement((with_empty(heaps[0], problem), *heaps[1:]))


@frozen
class FastSplit:
    """Rule (2); ``searched`` groups without mates are placed by best fit."""

    limit_bytes: int | None = None
    searched: int = 500

    @property
    def name(self) -> str:
        return "fast-split"

    def pack(self, problem: Problem) -> Placement:
        timeline = Timeline(problem)
        best_fit, merge = self._split(problem)
        heaps: list[Heap] = []
        while best_fit or merge or not heaps:
            heap = OpenHeap(timeline, problem.alignment)
            best_fit = self._best_fit(heap, best_fit)
            stretches = _FreeStretches(problem.alignment)
            stretches.take(0, heap_of(heap.offsets).size)
            placed, merge = _merge(merge, stretches, self.limit_bytes, is_empty=not heap.offsets)
            heaps.append(heap_of(heap.offsets + placed))
        return Placement((with_empty(heaps[0], problem), *heaps[1:]))

    def _split(self, problem: Problem) -> tuple[list[Group], list[Group]]:
        ordered = Order.SPATIAL.sort(problem.groups)
        alone = [group for group in ordered if len(group.members) == 1]
        merge = alone[self.searched :]
        merged = {group.root.id for group in merge}
        return [group for group in ordered if group.root.id not in merged], sorted(merge, key=_by_start)

    def _best_fit(self, heap: OpenHeap, waiting: list[Group]) -> list[Group]:
        """Places what fits, and returns the rest."""
        rest: list[Group] = []
        for group in waiting:
            offset = heap.find(group)
            if self.limit_bytes is None or offset + group.root.size <= self.limit_bytes or not heap.offsets:
                heap.commit(group, offset)
            else:
                rest.append(group)
        return rest


def _merge(
    waiting: list[Group], stretches: _FreeStretches, limit_bytes: int | None, *, is_empty: bool
) -> tuple[_Offsets, list[Group]]:
    """Rule (1) for one heap: what was placed, and what has to wait for the next heap."""
    placed: _Offsets = []
    rest: list[Group] = []
    ending: list[tuple[int, int, int]] = []  # (last tick, first byte, end)
    for group in waiting:
        while ending and ending[0][0] <= group.start:
            _, low, high = heappop(ending)
            stretches.give_back(low, high)
        low = stretches.smallest(group.size)
        offset = align_up(low, stretches.alignment)
        end = offset + group.size
        if limit_bytes is not None and end > limit_bytes and not (is_empty and not placed):
            rest.append(group)
            continue
        stretches.take(low, end)
        heappush(ending, (group.end, low, end))
        placed.append((group, offset))
    return placed, rest


class _FreeStretches:
    """Free stretches of a heap without end, by first byte and by size after aligning."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self._by_offset: list[tuple[int, int]] = []
        self._by_size: list[tuple[int, int, int]] = []
        self._add(0, _ENDLESS)

    def smallest(self, size: int) -> int:
        """First byte of the smallest stretch that takes ``size`` bytes; it need not be aligned."""
        return self._by_size[bisect_left(self._by_size, (size,))][1]

    def take(self, low: int, high: int) -> None:
        """Bytes ``low`` to ``high``, which lie in one free stretch, are taken."""
        first, end = self._by_offset[bisect_left(self._by_offset, (low + 1,)) - 1]
        assert first <= low and high <= end, f"{low}..{high} is not free"
        self._remove(first, end)
        if end > high:
            self._add(high, end)
        if first < low:
            self._add(first, low)

    def give_back(self, low: int, high: int) -> None:
        """Bytes ``low`` to ``high`` are free again, and join what is free next to them."""
        position = bisect_left(self._by_offset, (low,))
        before = self._by_offset[position - 1] if position else (-1, -1)
        after = self._by_offset[position] if position < len(self._by_offset) else (-1, -1)
        if before[1] == low:
            self._remove(*before)
            low = before[0]
        if after[0] == high:
            self._remove(*after)
            high = after[1]
        self._add(low, high)

    def _add(self, low: int, high: int) -> None:
        insort(self._by_offset, (low, high))
        insort(self._by_size, (high - align_up(low, self.alignment), low, high))

    def _remove(self, low: int, high: int) -> None:
        del self._by_offset[bisect_left(self._by_offset, (low, high))]
        del self._by_size[bisect_left(self._by_size, (high - align_up(low, self.alignment), low, high))]


def _by_start(group: Group) -> tuple[int, int, int]:
    return (group.start, -group.root.size, group.root.id)
