"""Which groups of a packing problem are live together, as arrays: what the searches look things up in.

Groups are numbered as in ``problem.groups``. Sizes are rounded up to the alignment, so that every sum of sizes is a valid
offset. Neighbours of a group (the groups live together with it) are found when first asked for:

1. every stretch of life is a pair of ranks of time; stretches are sorted by their first rank;
2. those that start during a range of ranks are neighbours in that order;
3. those that are live at its beginning are found from a list kept for every 64th rank.

So building takes near-linear time and memory, however many groups are live at once.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from layoutsim.memory.heaps.base import Timeline, align_up
from layoutsim.memory.problem import Problem

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BLOCK = 64
_CACHED_ENTRIES = 20_000_000


class ConflictGraph:
    """Sizes, times and neighbours of the groups of a problem.

    Attributes:
        sizes: bytes of each group, rounded up to the alignment.
        durations: ticks from a group's first to its last.
        ranges: disjoint ranges of ranks of each group, ends included.
    """

    def __init__(self, problem: Problem) -> None:
        timeline = Timeline(problem)
        self.problem = problem
        self.groups = problem.groups
        self.sizes: Ints = np.array([align_up(group.size, problem.alignment) for group in self.groups], dtype=np.int64)
        self.durations: Floats = np.array([group.end - group.start + 1 for group in self.groups], dtype=np.float64)
        self.ranges = [timeline.ranges(group) for group in self.groups]
        self.rank_count = timeline.rank_count
        lives = sorted((first, last, owner) for owner, ranges in enumerate(self.ranges) for first, last in ranges)
        self._firsts: Ints = np.array([first for first, _, _ in lives], dtype=np.int64)
        self._lasts: Ints = np.array([last for _, last, _ in lives], dtype=np.int64)
        self._owners: Ints = np.array([owner for _, _, owner in lives], dtype=np.int64)
        self._cache: dict[int, Ints] = {}
        self._cached = 0

    def __len__(self) -> int:
        return len(self.groups)

    def neighbours(self, group: int) -> Ints:
        """Groups live together with ``group``, ascending."""
        found = self._cache.get(group)
        if found is None:
            found = self._find_neighbours(group)
            self._cached += len(found)
            if self._cached > _CACHED_ENTRIES:
                self._cache.clear()
                self._cached = len(found)
            self._cache[group] = found
        return found

    @cached_property
    def degrees(self) -> Floats:
        """Number of stretches of life that each group meets, its own included."""
        ends = np.sort(self._lasts)
        met = np.searchsorted(self._firsts, self._lasts, side="right") - np.searchsorted(ends, self._firsts, side="left")
        degrees = np.zeros(len(self), dtype=np.float64)
        np.add.at(degrees, self._owners, met)
        return degrees

    @property
    def pair_count(self) -> int:
        """About how many pairs of groups are live together."""
        return int(self.degrees.sum()) // 2

    @cached_property
    def live_bytes(self) -> Ints:
        """Bytes live at each rank."""
        change = np.zeros(self.rank_count + 1, dtype=np.int64)
        np.add.at(change, self._firsts, self.sizes[self._owners])
        np.subtract.at(change, self._lasts + 1, self.sizes[self._owners])
        return np.cumsum(change)[:-1]

    @cached_property
    def peaks(self) -> Ints:
        """Most bytes live at any rank of each group's life."""
        peaks = np.zeros(len(self), dtype=np.int64)
        np.maximum.at(peaks, self._owners, _range_maxima(self.live_bytes, self._firsts, self._lasts))
        return peaks

    @cached_property
    def _alive_at_block(self) -> list[Ints]:
        """For every 64th rank: the stretches that start before it and are live at it."""
        first_block, last_block = self._firsts // _BLOCK + 1, self._lasts // _BLOCK
        counts = np.maximum(last_block - first_block + 1, 0)
        lives: Ints = np.repeat(np.arange(len(counts)), counts)
        blocks = np.repeat(first_block - (np.cumsum(counts) - counts), counts) + np.arange(len(lives))
        order = np.argsort(blocks, kind="stable")
        borders = np.searchsorted(blocks[order], np.arange(self.rank_count // _BLOCK + 2))
        return [lives[order[low:high]] for low, high in pairwise(borders.tolist())]

    def _find_neighbours(self, group: int) -> Ints:
        parts = [self._live_during(first, last) for first, last in self.ranges[group]]
        owners = np.unique(np.concatenate(parts))
        return owners[owners != group]

    def _live_during(self, first: int, last: int) -> Ints:
        block = first // _BLOCK
        low, high = np.searchsorted(self._firsts, (block * _BLOCK, last + 1))
        started: Ints = np.arange(low, high, dtype=np.int64)
        lives = np.concatenate((self._alive_at_block[block], started))
        return self._owners[lives[self._lasts[lives] >= first]]


def _range_maxima(values: Ints, firsts: Ints, lasts: Ints) -> Ints:
    """Maximum of ``values[first : last + 1]`` for each pair: two overlapping powers of two cover any range."""
    levels = np.floor(np.log2(lasts - firsts + 1)).astype(np.int64)
    maxima = np.zeros(len(firsts), dtype=np.int64)
    table = values
    for level in range(int(levels.max(initial=0)) + 1):
        here = levels == level
        maxima[here] = np.maximum(table[firsts[here]], table[lasts[here] - (1 << level) + 1])
        if len(table) > 1 << level:
            table = np.maximum(table[: -(1 << level)], table[1 << level :])
    return maxima
