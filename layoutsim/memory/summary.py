"""A buffer assignment in a few numbers, and what is alive when memory use is highest (memory spec, section 14).

1. *Arguments, outputs, temporaries* as ``jax``'s ``memory_analysis()`` counts them: an entry parameter's allocation is an
   argument, and also *aliased* if it is donated; an allocation that the result holds is an output, be it a parameter or not;
   preallocated temporaries are temporary, tuple tables included.
2. *Peak*: the largest value in each allocation of a parameter, constant or output counts from beginning to end; the events of
   the heaps come on top. Alignment gaps, tuple tables and thread-local values do not count.
3. *Lower bound*: allocations that are no temporaries, tuple tables, and of each heap the most bytes alive at once, where values
   that share a place count once: no packing of the same events is smaller.
4. *Fragmentation*: what is lost above the lower bound, to gaps between values and to alignment. XLA's own number for it counts
   values that share twice while both are alive, and so can be smaller than this, even negative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate

from attrs import frozen

from layoutsim.analysis.values import Value
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.shape import Shape, TupleShape
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.heaps import live_peak
from layoutsim.memory.simulator import EventKind, HeapEvents


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
    alias_bytes: int
    temp_bytes: int
    constant_bytes: int
    thread_local_bytes: int
    peak_bytes: int
    lower_bound_bytes: int
    fragmentation_bytes: int
    xla_fragmentation_bytes: int


def summarize(assignment: BufferAssignment) -> MemorySummary:
    """The numbers of an assignment."""

    def bytes_of(is_counted: Callable[[Allocation], bool]) -> int:
        return sum(allocation.size for allocation in assignment.allocations if is_counted(allocation))

    lower_bound = live_bytes_bound(assignment)
    return MemorySummary(
        total_bytes=assignment.total_bytes,
        argument_bytes=bytes_of(lambda a: a.parameter is not None),
        output_bytes=bytes_of(lambda a: a.is_live_out),
        alias_bytes=bytes_of(lambda a: a.parameter is not None and a.parameter.is_donated),
        temp_bytes=assignment.temp_bytes,
        constant_bytes=bytes_of(lambda a: a.is_constant),
        thread_local_bytes=bytes_of(lambda a: a.is_thread_local),
        peak_bytes=find_peak(assignment).bytes,
        lower_bound_bytes=lower_bound,
        fragmentation_bytes=assignment.total_bytes - lower_bound,
        xla_fragmentation_bytes=assignment.temp_fragmentation_bytes,
    )


def find_peak(assignment: BufferAssignment) -> Peak:
    """The peak; rule (2)."""
    size = assignment.profile.size
    static = [value for value in (_largest_value(a, size) for a in _static(assignment)) if value is not None]
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


def _static(assignment: BufferAssignment) -> list[Allocation]:
    return [a for a in assignment.allocations if not a.is_thread_local and not a.is_temp]


def _largest_value(allocation: Allocation, size: Callable[[Shape], int]) -> Value | None:
    """The first of the largest values in an allocation, by id."""
    return min(allocation.places, key=lambda value: (-size(value.shape), value.id), default=None)


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


def live_bytes_bound(assignment: BufferAssignment) -> int:
    """The lower bound; rule (3)."""
    fixed = sum(allocation.size for allocation in assignment.allocations if not allocation.is_temp)
    tables = sum(size for allocation in assignment.allocations for size in _table_sizes(assignment, allocation))
    return fixed + tables + sum(live_peak(heap.problem) for heap in _heaps(assignment))


def _table_sizes(assignment: BufferAssignment, allocation: Allocation) -> Iterator[int]:
    """Sizes of the buffers of tuple tables in an allocation of temporaries."""
    if allocation.is_temp:
        tuples = [value for value in allocation.places if isinstance(value.shape, TupleShape)]
        for buffer in dict.fromkeys(assignment.aliases.buffer_of(value) for value in tuples):
            yield allocation.places[buffer.values[0]][1]
