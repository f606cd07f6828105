"""Which bytes of a heap are taken during a range of time: the index that makes placing near-linear.

A segment tree over ranks of time. Each node holds two unions of byte ranges:

1. ``cover``: the chunks taken during the whole time of the node (and not during the whole time of its parent);
2. ``below``: all chunks taken at some time of the node, by itself or by a node under it.

A query joins ``below`` of the O(log n) nodes that make up the range with ``cover`` of their ancestors. Unions, not lists
of chunks: in a well packed heap thousands of chunks are a handful of byte ranges, so the cost of a query depends on the
number of holes, not on the number of buffers alive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence


class IntervalIndex:
    """Chunks with their time, time counted in ranks ``0 .. rank_count - 1``, ends included."""

    def __init__(self, rank_count: int) -> None:
        self._leaves = 1 << max(rank_count - 1, 0).bit_length()
        # A union is a flat ascending list of borders: [from, to, from, to, ...]. None where nothing was stored yet.
        self._cover: list[list[int] | None] = [None] * (2 * self._leaves)
        self._below: list[list[int] | None] = [None] * (2 * self._leaves)

    def add(self, first: int, last: int, low: int, high: int) -> None:
        """Bytes ``low`` to ``high`` are taken from rank ``first`` to rank ``last``."""
        for node in self._nodes_of(first, last):
            _insert(self._cover, node, low, high)
            _insert_upwards(self._below, node, low, high)

    def borders(self, ranges: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
        """First bytes and ends of byte ranges taken during any of the ranges of ranks, each list in ascending order.

        The byte ranges may overlap, and the two lists do not belong together pair by pair. They need not: before the
        range with the i-th first byte lies a free byte exactly if i ranges have ended, so the free bytes are those
        between the end at ``i - 1`` and the first byte at ``i``, wherever that is larger.
        """
        unions: list[list[int]] = []
        for first, last in ranges:
            self._collect(first, last, unions)
        lows: list[int] = []
        highs: list[int] = []
        for union in unions:
            lows += union[::2]
            highs += union[1::2]
        lows.sort()
        highs.sort()
        return lows, highs

    def _collect(self, first: int, last: int, unions: list[list[int]]) -> None:
        cover, below = self._cover, self._below
        low, high = first + self._leaves, last + self._leaves + 1
        left, right = low >> 1, (high - 1) >> 1
        while low < high:
            if low & 1:
                if union := below[low]:
                    unions.append(union)
                low += 1
            if high & 1:
                high -= 1
                if union := below[high]:
                    unions.append(union)
            low >>= 1
            high >>= 1
        while left:
            if union := cover[left]:
                unions.append(union)
            if left != right and (union := cover[right]):
                unions.append(union)
            left >>= 1
            right >>= 1

    def _nodes_of(self, first: int, last: int) -> list[int]:
        """The fewest nodes whose times together are ``first .. last``."""
        nodes: list[int] = []
        low, high = first + self._leaves, last + self._leaves + 1
        while low < high:
            if low & 1:
                nodes.append(low)
                low += 1
            if high & 1:
                high -= 1
                nodes.append(high)
            low >>= 1
            high >>= 1
        return nodes


def _insert(unions: list[list[int] | None], node: int, low: int, high: int) -> bool:
    """Adds the bytes to the union of ``node``; false if it had them all."""
    union = unions[node]
    if union is None:
        unions[node] = [low, high]
        return True
    left = bisect_left(union, low)
    right = bisect_right(union, high)
    if left == right:
        if left & 1:
            return False
        union[left:left] = (low, high)
    else:
        # An odd position lies inside a range (or at its end): that range grows instead of a new border being set.
        union[left:right] = (() if left & 1 else (low,)) + (() if right & 1 else (high,))
    return True


def _insert_upwards(unions: list[list[int] | None], node: int, low: int, high: int) -> None:
    """Adds the bytes to ``node`` and all nodes above it.

    A union contains the unions below it, so the first one that has the bytes already ends the climb.
    """
    while node and _insert(unions, node, low, high):
        node >>= 1


def ranks_of(starts: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """First and last rank of the ticks ``start .. end``, where ranks number the distinct ``starts``.

    Numbering only the ticks at which something starts loses nothing: two intervals that overlap do so at the later start.
    """
    return bisect_left(starts, start), bisect_right(starts, end) - 1
