"""A buffer assignment in a few numbers, and what is alive when memory use is highest (memory spec, section 14).

1. *Arguments, outputs, temporaries* as ``jax``'s ``memory_analysis()`` counts them: an entry parameter's allocation is an
   argument, and also *aliased* if it is donated; an allocation that the result holds is an output, be it a parameter or not;
   preallocated temporaries are temporary, tuple tables included.
2. *Peak*: the largest value in each allocation of a parameter, constant or output counts from beginning to end; the events of
   the heaps come on top. Alignment gaps, tuple tables and thread-local values do not count.
3. *Lower bound*: the same static part plus the most bytes of packed buffers that are alive between two instructions. No packing
   of these live ranges needs less.
4. *Fragmentation*: what temporaries take above tuple tables and the bytes of packed values alive at once, be it gaps between
   values or alignment. XLA's own number leaves the alignment of tables out and counts values that share twice while both
   are alive, so that it can be negative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate

from attrs import asdict, frozen

from layoutsim.analysis.values import Value
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.shape import Shape, TupleShape
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.simulator import EventKind, HeapEvents, buffer_size


@frozen(eq=False)
class Peak:
    """The first moment at which the most bytes are alive.

    Attributes:
        bytes: alive then.
        at: the instruction that begins then; ``None`` if nothing temporary is ever alive.
        alive: values with their own bytes, the largest first, equals by id.
    """

    bytes: int
    at: Instruction | None
    alive: tuple[tuple[Value, int], ...]


@frozen
class MemorySummary:
    """Bytes of a buffer assignment; see the module for what each counts."""

    total_bytes: int
    argument_bytes: int
    output_bytes: int
    aliased_bytes: int
    temp_bytes: int
    constant_bytes: int
    thread_local_bytes: int
    peak_bytes: int
    lower_bound_bytes: int
    fragmentation_bytes: int
    xla_fragmentation_bytes: int

    def to_json(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


def summarize(assignment: BufferAssignment) -> MemorySummary:
    """The numbers of an assignment."""

    def bytes_of(is_counted: Callable[[Allocation], bool]) -> int:
        return sum(allocation.size for allocation in assignment.allocations if is_counted(allocation))

    peak, static = find_peak(assignment).bytes, _bytes(_static_values(assignment), assignment.profile.size)
    return MemorySummary(
        total_bytes=assignment.total_bytes,
        argument_bytes=bytes_of(lambda a: a.parameter is not None),
        output_bytes=bytes_of(lambda a: a.is_live_out),
        aliased_bytes=bytes_of(lambda a: a.parameter is not None and a.parameter.is_donated),
        temp_bytes=assignment.temp_bytes,
        constant_bytes=bytes_of(lambda a: a.is_constant),
        thread_local_bytes=bytes_of(lambda a: a.is_thread_local),
        peak_bytes=peak,
        lower_bound_bytes=static + most_live_bytes(assignment),
        fragmentation_bytes=assignment.temp_bytes - _table_bytes(assignment) - (peak - static),
        xla_fragmentation_bytes=assignment.temp_fragmentation_bytes,
    )


def find_peak(assignment: BufferAssignment) -> Peak:
    """The peak; rule (2)."""
    size = assignment.profile.size
    static = _static_values(assignment)
    changes = list(_changes(assignment, static))
    totals = list(accumulate((sign * size(root.shape) for _, root, sign in changes), initial=_bytes(static, size)))
    moment = totals.index(max(totals))
    alive = dict.fromkeys(static)
    for _, root, sign in changes[:moment]:
        if sign > 0:
            alive[root] = None
        else:
            del alive[root]
    sized = sorted(((value, size(value.shape)) for value in alive), key=lambda pair: (-pair[1], pair[0].id))
    return Peak(totals[moment], changes[moment - 1][0].instruction if moment else None, tuple(sized))


def _bytes(values: list[Value], size: Callable[[Shape], int]) -> int:
    return sum(size(value.shape) for value in values)


def _static_values(assignment: BufferAssignment) -> list[Value]:
    """The first of the largest values, by id, of each allocation that is held for the whole run."""
    size = assignment.profile.size
    static = [a for a in assignment.allocations if not a.is_thread_local and not a.is_temp and a.places]
    return [min(a.places, key=lambda value: (-size(value.shape), value.id)) for a in static]


def _changes(assignment: BufferAssignment, static: list[Value]) -> Iterator[tuple[Value, Value, int]]:
    """Each value whose event makes another one begin (1) or cease (-1) to count, with that one."""
    references: dict[Value, int] = defaultdict(int, dict.fromkeys(static, 1))
    for heap in _heaps(assignment):
        for value, root, change in _reference_changes(heap):
            references[root] += change
            if references[root] == (1 if change > 0 else 0):
                yield value, root, change


def _heaps(assignment: BufferAssignment) -> Iterator[HeapEvents]:
    for allocation in assignment.allocations:
        yield from allocation.heaps


def _reference_changes(heap: HeapEvents) -> Iterator[tuple[Value, Value, int]]:
    """For each event its value, the value that is counted in its place, and whether one more or one less refers to that."""
    underlying: dict[Value, Value] = {}
    for event in heap.events:
        match event.kind:
            case EventKind.ALLOC:
                yield event.value, event.value, 1
            case EventKind.SHARE:
                assert event.source is not None
                root = underlying[event.value] = _root(underlying, event.source)
                yield event.value, root, 1
            case EventKind.FREE:
                root = _root(underlying, event.value)
                underlying.pop(event.value, None)
                yield event.value, root, -1


def _root(underlying: dict[Value, Value], value: Value) -> Value:
    while value in underlying:
        value = underlying[value]
    return value


def most_live_bytes(assignment: BufferAssignment) -> int:
    """The most bytes of packed buffers alive between two instructions; rule (3). The values of one buffer abut."""
    deltas: dict[int, int] = defaultdict(int)
    packed = dict.fromkeys(event.value for heap in _heaps(assignment) for event in heap.events)
    for value in packed:
        live = assignment.ranges[value]
        bytes_ = buffer_size(assignment.aliases.buffer_of(value), assignment.profile.size)
        deltas[live.start] += bytes_
        deltas[live.end] -= bytes_
    return max(accumulate(deltas[time] for time in sorted(deltas)), default=0)


def _table_bytes(assignment: BufferAssignment) -> int:
    """Bytes of the tuple tables among the temporaries."""
    total = 0
    for allocation in (a for a in assignment.allocations if a.is_temp):
        tuples = [value for value in allocation.places if isinstance(value.shape, TupleShape)]
        for buffer in dict.fromkeys(assignment.aliases.buffer_of(value) for value in tuples):
            total += allocation.places[buffer.values[0]][1]
    return total
