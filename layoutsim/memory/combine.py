"""Temporaries joined into one allocation for each colour, and the final numbering (memory spec, section 9.8).

1. The list is partitioned in place, temporaries last, by the two-pointer exchange of C++'s ``std::partition``: from the left
   the next temporary is exchanged with the last other allocation. Allocations keep no order beyond that.
2. The first temporary of a colour takes in the later ones: each begins at the next aligned byte behind what is there.
   Where a limit is set, one that would reach it starts a new allocation.
3. The joined allocations come last; all are numbered anew.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from layoutsim.memory.buffers import Allocation
from layoutsim.memory.heaps import align_up


def combine_temps(allocations: list[Allocation], alignment: int, limit: int | None = None) -> list[Allocation]:
    """The final list of allocations; those given are used up."""
    order = list(allocations)
    first_temp = partition(order, lambda allocation: not allocation.is_temp)
    kept, temps = order[:first_temp], order[first_temp:]
    open_ones: dict[int, Allocation] = {}
    combined: list[Allocation] = []
    for temp in temps:
        into = open_ones.get(temp.color)
        if into is None or (limit is not None and into.size + temp.size >= limit):
            into = open_ones[temp.color] = evolve(temp)
            combined.append(into)
        else:
            _absorb(into, temp, alignment)
    return [_numbered(allocation, index) for index, allocation in enumerate([*kept, *combined])]


def partition(items: list[Allocation], is_first: Callable[[Allocation], bool]) -> int:
    """Rule (1); the number of items that are ``is_first``."""
    low, high = 0, len(items)
    while True:
        while low < high and is_first(items[low]):
            low += 1
        high -= 1
        while low < high and not is_first(items[high]):
            high -= 1
        if low >= high:
            return low
        items[low], items[high] = items[high], items[low]
        low += 1


def _absorb(into: Allocation, temp: Allocation, alignment: int) -> None:
    base = align_up(into.size, alignment)
    into.size = base + temp.size
    into.places |= {value: (base + offset, size) for value, (offset, size) in temp.places.items()}
    into.heaps += temp.heaps
    into.peak_values += temp.peak_values
    into.cross_color += temp.cross_color


def _numbered(allocation: Allocation, index: int) -> Allocation:
    allocation.index = index
    return allocation
