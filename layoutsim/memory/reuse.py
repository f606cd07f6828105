"""When a buffer may join an allocation that has values already (``MaybeAssignBuffer``; memory spec, section 9.5).

All must hold:

1. an input or output has the buffer's colour, any other allocation one that the buffer may use;
2. the buffer is no larger than the allocation, which is neither read-only, nor thread-local, nor for tuples;
3. no value of the buffer is live together with one of the allocation. Ranges may touch if the later value's instruction uses
   the earlier one's last position, can share with it, and is no ``copy``;
4. a ``copy`` does not join an allocation that its operand stands in;
5. a buffer that lives out has the allocation's size exactly;
6. no value that must not be live-out (an option of XLA's pass) comes together with one that is.

The values of an allocation are live one after the other. Their ranges are kept in order, so that (3) looks only at neighbours.

Without a schedule there are no ranges; then (3) asks :class:`~layoutsim.analysis.ordering.ValueOrdering`, pair by pair.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Protocol

from attrs import define, field

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.liveness import LiveRange, LiveRanges
from layoutsim.analysis.ordering import ValueOrdering
from layoutsim.analysis.values import Value
from layoutsim.ir.opcode import Opcode
from layoutsim.memory.buffers import Allocation
from layoutsim.memory.occupancy import Occupancy, bits_descending
from layoutsim.memory.profile import MemoryProfile

_Entry = tuple[int, int, int, Value]
_end = itemgetter(1)
_start = itemgetter(0)


@define
class _Tenants:
    """The values of one allocation as ``(start, end, id, value)``; starts ascend, and so do ends."""

    entries: list[_Entry] = field(factory=list[_Entry])

    def touching(self, start: int, end: int) -> list[_Entry]:
        """Those with a time in common with ``start .. end``."""
        first = bisect_left(self.entries, start, key=_end)
        return self.entries[first : bisect_right(self.entries, end, lo=first, key=_start)]


class Interference:
    """Whether two values may be in one place, by their live ranges; rule (3)."""

    def __init__(self, aliases: Aliases, ranges: LiveRanges) -> None:
        self._sharing = aliases.sharing
        self._ranges = ranges

    def between(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b`` get in each other's way."""
        first, second = self._ranges[a], self._ranges[b]
        if first.start > second.end or second.start > first.end:
            return False
        if first.end == second.start:
            return not self._can_follow(b, first)
        return second.end != first.start or not self._can_follow(a, second)

    def _can_follow(self, later: Value, earlier: LiveRange) -> bool:
        user = later.instruction
        last, index = earlier.end_position
        if user.opcode is Opcode.COPY or last not in user.operands:
            return False
        return self._sharing.can_share(last, index, user, later.index)


class Tenancy(Protocol):
    """How rule (3) is decided."""

    def open(self, number: int, allocation: Allocation) -> None:
        """An allocation that buffers may join, under this number."""
        ...

    def add(self, allocation: Allocation, value: Value) -> None:
        """A value is now in an allocation, open or not."""
        ...

    def taken(self, buffer: AliasedValues) -> int:
        """Numbers of open allocations that the buffer is sure to get in the way of, as bits."""
        ...

    def interferes(self, value: Value, allocation: Allocation) -> bool:
        """Whether a value in the allocation is live together with ``value``."""
        ...


class TenancyByRanges:
    """Live ranges decide.

    There may be hundreds of open allocations and tens of thousands of buffers. ``Occupancy`` names the allocations that are
    taken for more than an instant during a buffer's life; only the others are looked at.
    """

    def __init__(self, aliases: Aliases, ranges: LiveRanges) -> None:
        self._ranges = ranges
        self._interference = Interference(aliases, ranges)
        self._tenants: dict[Allocation, _Tenants] = defaultdict(_Tenants)
        self._occupancy = Occupancy(ranges.end + 1)
        self._number_of: dict[Allocation, int] = {}

    def open(self, number: int, allocation: Allocation) -> None:
        self._number_of[allocation] = number
        for start, end, _, _ in self._tenants[allocation].entries:
            self._occupancy.add(number, start, end)

    def add(self, allocation: Allocation, value: Value) -> None:
        live = self._ranges.get(value)
        if live is None:
            return
        insort(self._tenants[allocation].entries, (live.start, live.end, value.id, value))
        if allocation in self._number_of:
            self._occupancy.add(self._number_of[allocation], live.start, live.end)

    def taken(self, buffer: AliasedValues) -> int:
        taken = 0
        for value in buffer.values:
            live = self._ranges[value]
            taken |= self._occupancy.taken(live.start, live.end)
        return taken

    def interferes(self, value: Value, allocation: Allocation) -> bool:
        live = self._ranges[value]
        touching = self._tenants[allocation].touching(live.start, live.end)
        return any(self._interference.between(value, tenant) for _, _, _, tenant in touching)


class TenancyByDependency:
    """The order of dependencies decides, pair by pair."""

    def __init__(self, ordering: ValueOrdering) -> None:
        self._ordering = ordering

    def open(self, number: int, allocation: Allocation) -> None:
        """Nothing to prepare."""

    def add(self, allocation: Allocation, value: Value) -> None:
        """Nothing to prepare."""

    def taken(self, buffer: AliasedValues) -> int:
        return 0

    def interferes(self, value: Value, allocation: Allocation) -> bool:
        return any(self._ordering.may_interfere(tenant, value) for tenant in allocation.places)


class Reuse:
    """Rules (1) to (6) over the allocations that buffers may join."""

    def __init__(self, aliases: Aliases, colors: Mapping[Value, int], profile: MemoryProfile, tenancy: Tenancy) -> None:
        self._aliases = aliases
        self._colors = colors
        self._profile = profile
        self._tenancy = tenancy
        self._open: list[Allocation] = []
        self._number_of: dict[Allocation, int] = {}

    def open(self, allocation: Allocation) -> None:
        """Let later buffers try to join ``allocation``."""
        self._number_of[allocation] = len(self._open)
        self._tenancy.open(len(self._open), allocation)
        self._open.append(allocation)

    def add(self, allocation: Allocation, value: Value) -> None:
        """Take note of a value that is now in ``allocation``."""
        self._tenancy.add(allocation, value)

    def find(self, buffer: AliasedValues, size: int, operands: Iterable[Allocation]) -> Allocation | None:
        """The first allocation that the buffer may join: of its ``operands``, then of the open ones, the latest first."""
        free = ((1 << len(self._open)) - 1) & ~self._tenancy.taken(buffer)
        for allocation in operands:
            number = self._number_of.get(allocation)
            if number is not None and free >> number & 1 and self.may_join(buffer, size, allocation):
                return allocation
        candidates = (self._open[number] for number in bits_descending(free))
        return next((allocation for allocation in candidates if self.may_join(buffer, size, allocation)), None)

    def may_join(self, buffer: AliasedValues, size: int, allocation: Allocation) -> bool:
        """Whether the buffer of ``size`` bytes may be at the start of ``allocation``."""
        if size > allocation.size or allocation.is_read_only or not allocation.is_reusable:  # (2)
            return False
        color = self._colors[buffer.values[0]]
        if color != allocation.color and (allocation.is_input_or_output or not self._profile.may_use(color, allocation.color)):
            return False
        if not self._may_live_out_together(buffer, allocation):
            return False
        if size != allocation.size and buffer in self._aliases.live_out:  # (5)
            return False
        return all(self._is_free_for(value, allocation) for value in buffer.values)

    def _may_live_out_together(self, buffer: AliasedValues, allocation: Allocation) -> bool:  # (6)
        may_live_out = self._profile.may_live_out
        if allocation.is_live_out and not all(map(may_live_out, buffer.values)):
            return False
        return buffer not in self._aliases.live_out or all(map(may_live_out, allocation.places))

    def _is_free_for(self, value: Value, allocation: Allocation) -> bool:
        """Rules (3) and (4)."""
        if self._tenancy.interferes(value, allocation):
            return False
        if value.instruction.opcode is not Opcode.COPY:
            return True
        sets = self._aliases.dataflow.value_sets(value.instruction.operand(0))
        return not any(source in allocation.places for values in sets for source in values)
