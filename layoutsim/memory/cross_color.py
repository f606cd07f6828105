"""Buffers put into free space of temporaries of another colour (``ReuseCompatibleTempHeaps``; memory spec, section 9.6).

1. Colours are packed in ascending order, but if buffers of one may use allocations of another and not vice versa, the other one
   goes first.
2. Whole buffers, the largest first, go into the first allocation that has a gap: space that no value takes which is live
   together with the buffer. Of its gaps the tightest wins. The allocation never grows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cmp_to_key

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.memory.buffers import Allocation
from layoutsim.memory.heaps import align_up
from layoutsim.memory.reuse import Interference


def sorted_colors(colors: Collection[int], may_use: Callable[[int, int], bool]) -> list[int]:
    """Rule (1)."""

    def compare(a: int, b: int) -> int:
        a_uses_b, b_uses_a = may_use(a, b), may_use(b, a)
        if a_uses_b != b_uses_a:
            return 1 if a_uses_b else -1
        return a - b

    return sorted(colors, key=cmp_to_key(compare))


def place_in_other_colors(
    buffers: Collection[AliasedValues],
    sizes: Mapping[AliasedValues, int],
    targets: Collection[Allocation],
    aliases: Aliases,
    ranges: LiveRanges,
    alignment: int,
) -> dict[AliasedValues, tuple[Allocation, int]]:
    """Rule (2): allocation and offset of the buffers that fit somewhere."""
    interference = Interference(aliases, ranges)
    placed: dict[AliasedValues, tuple[Allocation, int]] = {}
    for buffer in sorted(buffers, key=lambda b: (-sizes[b], b.id)):
        for allocation in targets:
            taken = _taken(allocation, sizes, placed, buffer, interference)
            offset = _tightest_gap(allocation.size, taken, sizes[buffer], alignment)
            if offset is not None:
                placed[buffer] = (allocation, offset)
                break
    return placed


def _taken(
    allocation: Allocation,
    sizes: Mapping[AliasedValues, int],
    placed: Mapping[AliasedValues, tuple[Allocation, int]],
    buffer: AliasedValues,
    interference: Interference,
) -> list[tuple[int, int]]:
    """Offset and size of what is live together with ``buffer``."""
    tenants = [(value, place) for value, place in allocation.places.items()]
    for other, (target, offset) in placed.items():
        if target is allocation:
            tenants += [(value, (offset, sizes[other])) for value in other.values]
    return [place for tenant, place in tenants if any(interference.between(value, tenant) for value in buffer.values)]


def _tightest_gap(capacity: int, taken: list[tuple[int, int]], size: int, alignment: int) -> int | None:
    if size > capacity:
        return None
    best: tuple[int, int] | None = None
    free_from = 0
    for offset, length in [*sorted(taken, key=lambda place: place[0]), (capacity, 0)]:
        start = align_up(free_from, alignment)
        slack = offset - (start + size)
        if slack >= 0 and (best is None or slack < best[0]):
            best = (slack, start)
        free_from = max(free_from, offset + length)
    return None if best is None else best[1]
