"""When a buffer may join an allocation that has values already (``MaybeAssignBuffer``; memory spec, section 9.5).

All must hold:

1. an input or output has the buffer's colour, any other allocation one that the buffer may use;
2. the buffer is no larger than the allocation, which is neither read-only, nor thread-local, nor for tuples;
3. no value of the buffer is live together with one of the allocation. Ranges may touch if the later value's instruction uses
   the earlier one's last position, can share with it, and is no ``copy``;
4. a ``copy`` does not join an allocation that its operand stands in;
5. a buffer that lives out has the allocation's size exactly.

The values of an allocation are live one after the other. Their ranges are kept in order, so that (3) looks only at neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter

from attrs import define, field

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.liveness import LiveRange, LiveRanges
from layoutsim.analysis.values import Value
from layoutsim.ir.opcode import Opcode
from layoutsim.memory.buffers import Allocation
from layoutsim.memory.occupancy import Occupancy, bits_descending

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


class Reuse:
    """Rules (1) to (5) over the allocations that buffers may join.

    There may be hundreds of those and tens of thousands of buffers. ``Occupancy`` names the allocations that are taken for
    more than an instant during a buffer's life; only the others are looked at.
    """

    def __init__(
        self,
        aliases: Aliases,
        ranges: LiveRanges,
        colors: Mapping[Value, int],
        may_use: Callable[[int, int], bool],
    ) -> None:
        self._aliases = aliases
        self._ranges = ranges
        self._colors = colors
        self._may_use = may_use
        self._interference = Interference(aliases, ranges)
        self._tenants: dict[Allocation, _Tenants] = {}
        self._open: list[Allocation] = []
        self._number_of: dict[Allocation, int] = {}
        self._occupancy = Occupancy(ranges.end + 1)

    def open(self, allocation: Allocation) -> None:
        """Let later buffers try to join ``allocation``."""
        self._number_of[allocation] = len(self._open)
        self._open.append(allocation)
        for start, end, _, _ in self._tenants_of(allocation).entries:
            self._occupancy.add(self._number_of[allocation], start, end)

    def add(self, allocation: Allocation, value: Value) -> None:
        """Take note of a value that is now in ``allocation``."""
        live = self._ranges.get(value)
        if live is None:
            return
        insort(self._tenants_of(allocation).entries, (live.start, live.end, value.id, value))
        if allocation in self._number_of:
            self._occupancy.add(self._number_of[allocation], live.start, live.end)

    def find(self, buffer: AliasedValues, size: int, operands: Iterable[Allocation]) -> Allocation | None:
        """The first allocation that the buffer may join: of its ``operands``, then of the open ones, the latest first."""
        taken = 0
        for value in buffer.values:
            live = self._ranges[value]
            taken |= self._occupancy.taken(live.start, live.end)
        for allocation in operands:
            number = self._number_of.get(allocation)
            if number is not None and not taken >> number & 1 and self.may_join(buffer, size, allocation):
                return allocation
        free = ((1 << len(self._open)) - 1) & ~taken
        candidates = (self._open[number] for number in bits_descending(free))
        return next((allocation for allocation in candidates if self.may_join(buffer, size, allocation)), None)

    def may_join(self, buffer: AliasedValues, size: int, allocation: Allocation) -> bool:
        """Whether the buffer of ``size`` bytes may be at the start of ``allocation``."""
        if size > allocation.size or allocation.is_read_only or not allocation.is_reusable:  # (2)
            return False
        color = self._colors[buffer.values[0]]
        if color != allocation.color and (allocation.is_input_or_output or not self._may_use(color, allocation.color)):
            return False
        if size != allocation.size and buffer in self._aliases.live_out:  # (5)
            return False
        return all(self._is_free_for(value, allocation) for value in buffer.values)

    def _is_free_for(self, value: Value, allocation: Allocation) -> bool:
        """Rules (3) and (4)."""
        live = self._ranges[value]
        for _, _, _, tenant in self._tenants_of(allocation).touching(live.start, live.end):
            if self._interference.between(value, tenant):
                return False
        if value.instruction.opcode is not Opcode.COPY:
            return True
        sets = self._aliases.dataflow.value_sets(value.instruction.operand(0))
        return not any(source in allocation.places for values in sets for source in values)

    def _tenants_of(self, allocation: Allocation) -> _Tenants:
        return self._tenants.setdefault(allocation, _Tenants())
