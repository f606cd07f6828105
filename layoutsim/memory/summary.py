"""The figures of a buffer assignment that people ask for first (memory spec, section 14).

All in bytes:

1. *Arguments* and *outputs*: allocations that are entry parameters; allocations that hold (part of) the result. A donated
   parameter that holds a result is both, and is counted once more in *aliased*.
2. *Temporaries*: the preallocated ones, tuple tables and alignment gaps included (jax's ``temp_size_in_bytes``).
3. *Peak*: parameters, constants and outputs, each its largest value, plus the most bytes of packed temporaries that are alive
   at once (jax's ``peak_memory_in_bytes``; ``ComputePeakMemory`` in ``xla/service/buffer_assignment.cc``).
4. *Lower bound*: the same static part plus the largest sum of temporary buffers that are alive between two instructions. No
   packing of these live ranges needs less.
5. *Fragmentation*: what the packed temporaries take above what is alive at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from attrs import frozen

from layoutsim.analysis.alias import AliasedValues
from layoutsim.analysis.values import Value
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.live_bytes import LivePeak, live_peak


@frozen
class MemorySummary:
    """Figures of one module, in bytes; the module docstring says what each is."""

    argument_bytes: int
    output_bytes: int
    aliased_bytes: int
    temp_bytes: int
    constant_bytes: int
    total_bytes: int
    peak_bytes: int
    lower_bound_bytes: int
    fragmentation_bytes: int

    def to_json(self) -> dict[str, int]:
        return {
            "peak_bytes": self.peak_bytes,
            "temp_bytes": self.temp_bytes,
            "argument_bytes": self.argument_bytes,
            "output_bytes": self.output_bytes,
            "aliased_bytes": self.aliased_bytes,
            "constant_bytes": self.constant_bytes,
            "total_bytes": self.total_bytes,
            "lower_bound_bytes": self.lower_bound_bytes,
            "fragmentation_bytes": self.fragmentation_bytes,
        }


def summarize(assignment: BufferAssignment) -> MemorySummary:
    """The figures of ``assignment``."""
    allocations = assignment.allocations
    static = sum(max((size for _, size in a.places.values()), default=0) for a in allocations if is_static(a))
    return MemorySummary(
        argument_bytes=sum(a.size for a in allocations if a.parameter is not None),
        output_bytes=sum(a.size for a in allocations if a.is_live_out),
        aliased_bytes=sum(a.size for a in allocations if a.parameter is not None and a.is_live_out),
        temp_bytes=assignment.temp_bytes,
        constant_bytes=sum(a.size for a in allocations if a.is_constant),
        total_bytes=assignment.total_bytes,
        peak_bytes=static + max((peak.size_bytes for peak in temp_peaks(allocations)), default=0),
        lower_bound_bytes=static + _most_live_bytes(assignment),
        fragmentation_bytes=assignment.temp_fragmentation_bytes,
    )


def is_static(allocation: Allocation) -> bool:
    """Rule (3): held for the whole run."""
    return not allocation.is_thread_local and (
        allocation.parameter is not None or allocation.is_constant or allocation.is_live_out
    )


def temp_peaks(allocations: Iterable[Allocation]) -> list[LivePeak]:
    """The peak of each heap that was packed; XLA replays them one after the other, so the largest counts."""
    return [
        live_peak(heap.events, {value: size for value, (_, size) in allocation.places.items()})
        for allocation in allocations
        for heap in allocation.heaps
    ]


def _most_live_bytes(assignment: BufferAssignment) -> int:
    """Rule (4), over the buffers that were packed."""
    deltas: dict[int, int] = {}
    for start, end, size in _packed_ranges(assignment):
        deltas[start] = deltas.get(start, 0) + size
        deltas[end] = deltas.get(end, 0) - size
    return max(accumulate(deltas[time] for time in sorted(deltas)), default=0)


def _packed_ranges(assignment: BufferAssignment) -> Iterator[tuple[int, int, int]]:
    """Start, end (not included) and bytes of each packed value; the values of one buffer abut."""
    size = assignment.profile.size
    packed = {event.value for a in assignment.allocations for heap in a.heaps for event in heap.events}
    sizes: dict[AliasedValues, int] = {}
    for value in sorted(packed, key=_id):
        buffer = assignment.aliases.buffer_of(value)
        if buffer not in sizes:
            sizes[buffer] = max(size(member.shape) for member in buffer.values)
        found = assignment.ranges.get(value)
        if found is not None and found.end > found.start:
            yield found.start, found.end, sizes[buffer]


def _id(value: Value) -> int:
    return value.id
