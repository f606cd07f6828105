"""What a heap algorithm is: an object that turns a :class:`~layoutsim.memory.problem.Problem` into a ``Placement``."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from layoutsim.memory.interval_index import IntervalIndex, ranks_of
from layoutsim.memory.problem import Chunk, Group, Heap, Placement, Problem


@runtime_checkable
class HeapAlgorithm(Protocol):
    """A plug-in that packs intervals."""

    @property
    def name(self) -> str:
        """Name on the command line and in reports."""
        ...

    def pack(self, problem: Problem) -> Placement:
        """Gives every interval of the problem a chunk."""
        ...


@runtime_checkable
class BoundedHeapAlgorithm(HeapAlgorithm, Protocol):
    """A heap algorithm that can stop as soon as it is clear that it will not get below a size."""

    def pack_below(self, problem: Problem, size: int) -> Placement | None:
        """What :meth:`pack` returns, if that is smaller than ``size`` bytes; otherwise ``None``."""
        ...


def align_up(value: int, alignment: int) -> int:
    """The first multiple of ``alignment`` that is not below ``value``."""
    return -(-value // alignment) * alignment


class Timeline:
    """The times of a problem's groups, in the ranks that an :class:`IntervalIndex` counts in."""

    def __init__(self, problem: Problem) -> None:
        self._starts = sorted({interval.start for interval in problem.intervals})

    @property
    def rank_count(self) -> int:
        return len(self._starts)

    def new_index(self) -> IntervalIndex:
        """An index over this time in which no byte is taken."""
        return IntervalIndex(len(self._starts))

    def ranges(self, group: Group) -> list[tuple[int, int]]:
        """Disjoint ascending ranges of ranks at which a member is live."""
        if len(group.members) == 1:
            return [ranks_of(self._starts, group.start, group.end)]
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranks_of(self._starts, member.start, member.end) for member in group.members):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return merged


def heap_of(offsets: list[tuple[Group, int]]) -> Heap:
    """The heap in which each group has its offset."""
    chunks: dict[int, Chunk] = {}
    for group, offset in offsets:
        chunk = Chunk(offset, group.size)
        for member in group.members:
            chunks[member.id] = chunk
    return Heap(chunks, max((offset + group.size for group, offset in offsets), default=0))


def with_empty(heap: Heap, problem: Problem) -> Heap:
    """The heap, in which also the intervals of size 0 have a chunk: ``(0, 0)``."""
    return Heap({**heap.chunks, **{empty: Chunk(0, 0) for empty in problem.empty}}, heap.size) if problem.empty else heap
