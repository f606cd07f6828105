"""Exact search for a placement within a capacity, in canonical order (Moffitt, "MiniMalloc", ASPLOS 2023).

A *section* is a stretch of time in which the set of live groups does not change; only those are kept whose set is not part of
the next one's. The search places one group after another, each at the lowest offset that what is placed leaves it:

1. *Canonical.* Offsets never decrease along a branch; groups of equal offset come in a fixed order. Every solution can be
   brought into such an order by letting everything sink, so none is lost.
2. *Floors.* Nothing placed later in a section can lie below the section's floor: the top of what is placed there, the
   lowest offset left to any group that is still to come, and the offset placed last.
3. *Sections.* Where floor and bytes still to come exceed the capacity, the branch is dead.
4. *Dominance.* No group is placed so high that another one would fit entirely below it.
5. *Hats.* A group that raises nobody's lowest offset is placed without trying alternatives.
6. *Decomposition.* Where no group to come lives across the border of two sections, the sides are searched one after the other;
   if one has no solution, what was decided for the other does not matter.

Orders are tried in turn with growing limits of nodes, since one that starts badly rarely recovers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator
from enum import Enum
from itertools import pairwise

import numpy as np
from attrs import define

from layoutsim.memory.heaps.budget import Budget
from layoutsim.memory.heaps.conflicts import ConflictGraph, Floats, Ints

_FAR = 1 << 60
_LIMIT_GROWTH = 8

_Search = Generator["_Search", bool, bool]


class Outcome(Enum):
    """How a search ended."""

    SOLVED = "solved"
    IMPOSSIBLE = "no placement fits"
    GAVE_UP = "budget spent"


class SectionOrder(Enum):
    """Which group comes first at equal offsets; T is the most bytes live in a section of it, W its width, A its area."""

    TWA = "TWA"
    TAW = "TAW"
    WAT = "WAT"


class CanonicalSearch:
    """Looks for offsets within a capacity, or shows that there are none."""

    def __init__(self, graph: ConflictGraph) -> None:
        self._sections = _Sections(graph)
        self._graph = graph

    def solve(self, capacity: int, budget: Budget) -> tuple[Outcome, Ints | None]:
        """Offsets such that every group ends at or below ``capacity``, trying orders in turn; one step a node."""
        limit = 2 * len(self._graph)
        while not budget.is_spent:
            for order in SectionOrder:
                part = budget.part(limit)
                attempt = _Attempt(self._graph, self._sections, capacity, order, part)
                found = attempt.run()
                gave_up = part.is_spent and not found
                budget.give_back(part)
                if not gave_up:
                    return (Outcome.SOLVED, attempt.solution) if found else (Outcome.IMPOSSIBLE, None)
            limit *= _LIMIT_GROWTH
        return Outcome.GAVE_UP, None


class _Sections:
    """Sections of time, with the groups live in each.

    Attributes:
        count: number of sections.
        spans: half-open ranges of sections of each group.
        first: first section of each group; ``last`` is one past its last.
        members: groups of all sections, one section after the other; section i has ``members[starts[i] : starts[i + 1]]``.
        crossings: how many groups live across the border of section i and i + 1.
    """

    def __init__(self, graph: ConflictGraph) -> None:
        # A rank is a section of its own if a group ends there, before the next one starts.
        ends = sorted({last for ranges in graph.ranges for _, last in ranges})
        self.count = len(ends)
        self.spans = [_joined([(bisect_left(ends, a), bisect_right(ends, b)) for a, b in ranges]) for ranges in graph.ranges]
        self.first: Ints = np.array([spans[0][0] for spans in self.spans], dtype=np.int64)
        self.last: Ints = np.array([spans[-1][1] for spans in self.spans], dtype=np.int64)
        by_section: list[list[int]] = [[] for _ in range(self.count)]
        for group, spans in enumerate(self.spans):
            for low, high in spans:
                for section in range(low, high):
                    by_section[section].append(group)
        self.members: Ints = np.array([group for groups in by_section for group in groups], dtype=np.int64)
        self.starts: Ints = np.cumsum([0, *(len(groups) for groups in by_section)], dtype=np.int64)
        changes = np.zeros(self.count + 1, dtype=np.int64)
        np.add.at(changes, self.first, 1)
        np.subtract.at(changes, self.last - 1, 1)
        self.crossings: Ints = np.cumsum(changes)[: max(self.count - 1, 0)]

    def members_between(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Groups of sections ``low .. high`` (half-open), and where each section begins among them."""
        begin = self.starts[low]
        return self.members[begin : self.starts[high]], self.starts[low:high] - begin


@define
class _Part:
    """Groups to be placed in a range of sections, and their order at equal offsets."""

    groups: Ints
    low: int
    high: int
    rank: Ints


@define
class _Undo:
    """What placing a group changed."""

    group: int
    offset: int
    raised: Ints
    lowest_before: Ints
    low: int
    high: int
    floors_before: Ints


class _Attempt:
    """One search with one order; gives up when the budget is spent."""

    def __init__(self, graph: ConflictGraph, sections: _Sections, capacity: int, order: SectionOrder, budget: Budget) -> None:
        self.solution: Ints = np.full(len(graph), -1, dtype=np.int64)
        self._graph, self._sections, self._capacity = graph, sections, capacity
        self._order, self._budget = order, budget
        self._sizes = graph.sizes
        self._lowest: Ints = np.zeros(len(graph), dtype=np.int64)  # offset left to each group; _FAR once it is placed
        self._floors: Ints = np.zeros(sections.count, dtype=np.int64)
        self._coming: Ints = np.zeros(sections.count, dtype=np.int64)  # bytes still to come
        for group, spans in enumerate(sections.spans):
            for low, high in spans:
                self._coming[low:high] += self._sizes[group]
        self._crossings = sections.crossings.copy()

    def run(self) -> bool:
        """Whether a solution was found; false also if the budget is spent."""
        if np.any(self._coming > self._capacity):
            return False
        everything = np.arange(len(self._graph))
        borders = [0, *(np.flatnonzero(self._crossings == 0) + 1).tolist(), self._sections.count]
        # Searches yield the searches they depend on: the depth is that of the problem, too deep for Python's own stack.
        stack: list[_Search] = [self._search_parts(everything, borders)]
        answer = False
        started = False
        while stack:
            try:
                inner = stack[-1].send(answer) if started else next(stack[-1])
                stack.append(inner)
                started = False
            except StopIteration as end:
                stack.pop()
                answer, started = bool(end.value), True
            if self._budget.is_spent and not answer:
                return False
        return answer

    def _search_parts(self, groups: Ints, borders: list[int]) -> _Search:
        """Searches each range between borders; false at the first that has no solution; rule (6)."""
        first, last = self._sections.first[groups], self._sections.last[groups]
        for low, high in pairwise(borders):
            inside = groups[(first >= low) & (last <= high)]
            if len(inside) and not (yield self._search(self._part(inside, low, high), 0, 0)):
                return False
        return True

    def _part(self, groups: Ints, low: int, high: int) -> _Part:
        keys: dict[str, Floats] = {
            "T": self._most_coming(groups),
            "W": self._graph.durations[groups],
            "A": self._graph.durations[groups] * self._sizes[groups],
        }
        order = np.lexsort([groups, *(-keys[letter] for letter in reversed(self._order.value))])
        rank = np.zeros(len(self._graph), dtype=np.int64)
        rank[groups[order]] = np.arange(len(groups))
        return _Part(groups, low, high, rank)

    def _most_coming(self, groups: Ints) -> Floats:
        """Most bytes to come in any section between each group's first and last."""
        borders = np.stack((self._sections.first[groups], self._sections.last[groups]), axis=1).ravel()
        # One more section, so that an end is a valid index; every second result is a range between two groups.
        return np.maximum.reduceat(np.append(self._coming, 0), borders)[::2].astype(np.float64)

    def _search(self, part: _Part, last_offset: int, last_rank: int) -> _Search:
        """Places the groups of the part that are still to come."""
        if not self._budget.spend():
            return False
        groups = part.groups[self._lowest[part.groups] < _FAR]
        if not len(groups):
            return True
        for group in self._candidates(part, groups, last_offset, last_rank):
            undo = self._place(group)
            found = False
            if self._fits(part, undo.offset):
                self.solution[group] = undo.offset
                found = yield from self._continue(part, groups, undo)
            self._take_back(undo)
            if found or self._budget.is_spent:
                return found
            if not len(undo.raised):
                break  # (5)
        return False

    def _continue(self, part: _Part, groups: Ints, undo: _Undo) -> _Search:
        """Goes on after a group was placed; in parts, if nothing crosses some border any more."""
        low, high = int(self._sections.first[undo.group]), int(self._sections.last[undo.group])
        crossings = self._crossings[low : high - 1]
        crossings -= 1
        borders = (np.flatnonzero(crossings == 0) + low + 1).tolist()
        if borders:
            rest = groups[groups != undo.group]
            found = yield self._search_parts(rest, [part.low, *borders, part.high])
        else:
            found = yield self._search(part, undo.offset, int(part.rank[undo.group]))
        self._crossings[low : high - 1] += 1
        return found

    def _candidates(self, part: _Part, groups: Ints, last_offset: int, last_rank: int) -> list[int]:
        """Groups that may come next, by lowest offset and rank; rules (1) and (4)."""
        lowest, rank = self._lowest[groups], part.rank[groups]
        allowed = lowest < (lowest + self._sizes[groups]).min()
        # (3) before anything is tried: whichever group comes next, no section's floor stays below its offset.
        allowed &= lowest <= self._capacity - self._coming[part.low : part.high].max()
        allowed &= (lowest > last_offset) | ((lowest == last_offset) & (rank >= last_rank))
        order = np.lexsort((rank[allowed], lowest[allowed]))
        return groups[allowed][order].tolist()

    def _place(self, group: int) -> _Undo:
        """Puts the group at its lowest offset, and raises the lowest offsets and floors around it; rule (2)."""
        offset = int(self._lowest[group])
        top = offset + int(self._sizes[group])
        neighbours = self._graph.neighbours(group)
        raised = neighbours[self._lowest[neighbours] < top]
        low, high = int(self._sections.first[group]), int(self._sections.last[group])
        if len(raised):
            low = min(low, int(self._sections.first[raised].min()))
            high = max(high, int(self._sections.last[raised].max()))
        undo = _Undo(group, offset, raised, self._lowest[raised], low, high, self._floors[low:high].copy())
        self._lowest[raised] = top
        self._lowest[group] = _FAR
        for first, last in self._sections.spans[group]:
            self._floors[first:last] = top
            self._coming[first:last] -= self._sizes[group]
        members, starts = self._sections.members_between(low, high)
        lowest = np.minimum.reduceat(self._lowest[members], starts)
        floors = self._floors[low:high]
        np.maximum(floors, lowest, out=floors, where=lowest < _FAR)
        return undo

    def _take_back(self, undo: _Undo) -> None:
        self._floors[undo.low : undo.high] = undo.floors_before
        for first, last in self._sections.spans[undo.group]:
            self._coming[first:last] += self._sizes[undo.group]
        self._lowest[undo.raised] = undo.lowest_before
        self._lowest[undo.group] = undo.offset

    def _fits(self, part: _Part, offset: int) -> bool:
        """Whether what is to come can still fit into every section of the part; rule (3)."""
        here = slice(part.low, part.high)
        return bool((np.maximum(self._floors[here], offset) + self._coming[here]).max() <= self._capacity)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Half-open spans without empty ones and with touching ones made one."""
    joined: list[tuple[int, int]] = []
    for low, high in spans:
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        elif low < high:
            joined.append((low, high))
    return joined
