"""Which allocations are taken during a range of time: sets of small numbers as bits of integers, in a segment tree.

Time is cut into unit steps ``0 .. count - 1``. A node holds two sets:

1. ``cover``: taken during the whole time of the node (and not during the whole time of its parent);
2. ``below``: taken at some time of the node.

A query joins ``below`` of the O(log n) nodes that make up the range with ``cover`` of their ancestors.
"""

from __future__ import annotations

from collections.abc import Iterator


class Occupancy:
    """Sets of numbers over time; ranges are half-open."""

    def __init__(self, step_count: int) -> None:
        self._leaves = 1 << max(step_count - 1, 0).bit_length()
        self._cover = [0] * (2 * self._leaves)
        self._below = [0] * (2 * self._leaves)

    def add(self, number: int, first: int, end: int) -> None:
        """``number`` is taken from step ``first`` to before step ``end``."""
        bit = 1 << number
        for node in self._nodes(first, end):
            self._cover[node] |= bit
            while node and not self._below[node] & bit:
                self._below[node] |= bit
                node >>= 1

    def taken(self, first: int, end: int) -> int:
        """The numbers taken at some step from ``first`` to before ``end``, as bits."""
        if first >= end:
            return 0
        found = 0
        for node in self._nodes(first, end):
            found |= self._below[node]
        left, right = (first + self._leaves) >> 1, (end - 1 + self._leaves) >> 1
        while left:
            found |= self._cover[left] | self._cover[right]
            left >>= 1
            right >>= 1
        return found

    def _nodes(self, first: int, end: int) -> Iterator[int]:
        """The fewest nodes whose times together are ``first .. end - 1``."""
        low, high = first + self._leaves, end + self._leaves
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low >>= 1
            high >>= 1


def bits_descending(bits: int) -> Iterator[int]:
    """Numbers of the set bits, the highest first."""
    while bits:
        number = bits.bit_length() - 1
        yield number
        bits ^= 1 << number
