"""A schedule turned into allocations, sharings and freeings of a heap (``HeapSimulator``; memory spec, section 7).

Time runs over the logical times of the schedule. At each:

1. Values that begin are taken in order of (start, end, id). If another value of the same buffer came before, the value shares
   its place. Otherwise a value that is alone in its buffer may take over the place of an operand: of one that is alone too,
   ends now, was not taken over yet, is defined by a direct operand (not of a ``copy``), and that can share. It is freed
   first. Otherwise the value is allocated.
2. Then the values that end are freed. So what ends at a time overlaps with what begins at it, unless they share.
3. Sizes are those of groups: a buffer is as large as its largest value, and a value that takes over an operand's place makes
   one group with it, as large as the larger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum

from attrs import frozen

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.analysis.values import Value
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import Shape
from layoutsim.memory.problem import EventRecorder, Problem


class EventKind(Enum):
    """What happens to a value."""

    ALLOC = "alloc"
    SHARE = "share"
    FREE = "free"


@frozen(eq=False)
class Event:
    """One step of the simulation; ``source`` is the value whose place a sharing value gets."""

    kind: EventKind
    value: Value
    size: int
    source: Value | None = None


@frozen(eq=False)
class HeapEvents:
    """What a simulation yields.

    Attributes:
        events: in order.
        problem: the same as intervals to pack.
        peak_bytes: most bytes alive at once; a value that shares counts like any other.
    """

    events: tuple[Event, ...]
    problem: Problem
    peak_bytes: int


def simulate_heap(
    aliases: Aliases,
    ranges: LiveRanges,
    size: Callable[[Shape], int],
    *,
    chosen: Collection[Value] | None = None,
    with_constants: bool = False,
    alignment: int = 1,
) -> HeapEvents:
    """Replay a schedule.

    Args:
        aliases: buffers and sharing rules.
        ranges: live ranges under the schedule.
        size: bytes of a shape.
        chosen: values that need memory; all with a live range by default.
        with_constants: whether constants need memory too.
        alignment: of the problem.
    """
    return _Replay(aliases, ranges, size, chosen, with_constants).run(alignment)


class _Replay:
    def __init__(
        self,
        aliases: Aliases,
        ranges: LiveRanges,
        size: Callable[[Shape], int],
        chosen: Collection[Value] | None,
        with_constants: bool,
    ) -> None:
        self._aliases = aliases
        self._ranges = ranges
        self._size_of = size
        self._with_constants = with_constants
        self._chosen = None if chosen is None else frozenset(chosen)
        self._heap = _RecordingHeap()
        self._groups = _Groups(aliases, size)
        self._first_of: dict[AliasedValues, Value] = {}
        self._ends: dict[Value, int] = {}
        self._born: list[list[Value]] = []
        self._dying: list[dict[Value, None]] = []

    def run(self, alignment: int) -> HeapEvents:
        self._set_times()
        for time, born in enumerate(self._born):
            for value in born:
                self._begin(value, time)
            for value in self._dying[time]:
                self._heap.free(value, self._groups.size(value))
        return self._heap.finish(alignment)

    def _set_times(self) -> None:
        live = [(r.start, r.end, value.id, value) for value, r in self._ranges.ranges.items() if self._is_chosen(value)]
        live.sort(key=lambda entry: entry[:3])
        self._born = [[] for _ in range(self._ranges.end + 1)]
        self._dying = [{} for _ in range(self._ranges.end + 1)]
        for start, end, _, value in live:
            self._born[start].append(value)
            self._dying[end][value] = None
            self._ends[value] = end

    def _is_chosen(self, value: Value) -> bool:
        if not self._with_constants and value.instruction.opcode is Opcode.CONSTANT:
            return False
        return self._chosen is None or value in self._chosen

    def _begin(self, value: Value, time: int) -> None:
        buffer = self._aliases.buffer_of(value)
        first = self._first_of.get(buffer)
        if first is not None:
            self._share(value, first)
            return
        if len(buffer.values) == 1:
            operand = self._operand_to_take_over(value, time)
            if operand is not None:
                del self._dying[time][operand]
                self._heap.free(operand, self._groups.size(operand))
                self._share(value, operand)
                self._ends[operand] = self._ends[value]
                return
        self._heap.alloc(value, self._groups.size(value))
        self._first_of[buffer] = value

    def _share(self, value: Value, source: Value) -> None:
        self._heap.share(value, source, self._groups.join(value, source))

    def _operand_to_take_over(self, value: Value, time: int) -> Value | None:
        """Rule (1), second part."""
        user = value.instruction
        dying = self._dying[time]
        if user.opcode is Opcode.COPY or not dying:
            return None
        for operand in user.operands:
            for candidate in self._aliases.dataflow.value_sets(operand)[0]:
                if candidate not in dying or self._ends[candidate] != time:
                    continue
                if len(self._aliases.buffer_of(candidate).values) > 1 or candidate.instruction not in user.operands:
                    continue
                if self._aliases.sharing.can_share(candidate.instruction, candidate.index, user, value.index):
                    return candidate
        return None


class _Groups:
    """Sizes; rule (3)."""

    def __init__(self, aliases: Aliases, size: Callable[[Shape], int]) -> None:
        self._aliases = aliases
        self._size_of = size
        self._parent: dict[AliasedValues, AliasedValues] = {}
        self._sizes: dict[AliasedValues, int] = {}

    def size(self, value: Value) -> int:
        root = self._root(self._aliases.buffer_of(value))
        known = self._sizes.get(root)
        if known is None:
            known = self._sizes[root] = buffer_size(root, self._size_of)
        return known

    def join(self, value: Value, source: Value) -> int:
        """Make one group of both values' groups; its size."""
        size = max(self.size(value), self.size(source))
        root, other = self._root(self._aliases.buffer_of(source)), self._root(self._aliases.buffer_of(value))
        if other is not root:
            self._parent[other] = root
        self._sizes[root] = size
        return size

    def _root(self, buffer: AliasedValues) -> AliasedValues:
        while buffer in self._parent:
            buffer = self._parent[buffer]
        return buffer


def buffer_size(buffer: AliasedValues, size: Callable[[Shape], int]) -> int:
    """Bytes of a buffer: of its largest value."""
    values = buffer.values
    return size(values[0].shape) if len(values) == 1 else max(size(value.shape) for value in values)


class _RecordingHeap:
    """Writes down what happens, and counts the bytes alive."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._recorder = EventRecorder()
        self._live = 0
        self._peak = 0

    def alloc(self, value: Value, size: int) -> None:
        self._recorder.alloc(value.id, size, value.instruction.name)
        self._add(Event(EventKind.ALLOC, value, size), size)

    def share(self, value: Value, source: Value, size: int) -> None:
        self._recorder.share_with(value.id, source.id, size, value.instruction.name)
        self._add(Event(EventKind.SHARE, value, size, source), size)

    def free(self, value: Value, size: int) -> None:
        self._recorder.free(value.id)
        self._add(Event(EventKind.FREE, value, size), -size)

    def finish(self, alignment: int) -> HeapEvents:
        return HeapEvents(tuple(self._events), self._recorder.finish(alignment), self._peak)

    def _add(self, event: Event, bytes_: int) -> None:
        self._events.append(event)
        self._live += bytes_
        self._peak = max(self._peak, self._live)


def minimum_memory(aliases: Aliases, ranges: LiveRanges, size: Callable[[Shape], int]) -> int:
    """Bytes that a schedule needs at least, ignoring fragmentation: parameters, outputs and tuple tables, not constants.

    This is the peak that XLA compares schedules by (memory spec, section 14.1).
    """
    return simulate_heap(aliases, ranges, size).peak_bytes
