"""Memory over time: what is alive when, as data to draw, print or export.

Time is the logical time of the flattened schedule: one step for each instruction, loop bodies and branches once, in place.
A value is alive from the instruction that makes it until its last use, when a value made there may take over its place;
spans are half-open, so that one that takes over begins where the other ends.
"""

from __future__ import annotations

from itertools import accumulate

from attrs import frozen

from layoutsim.analysis.source_lines import source_line
from layoutsim.analysis.values import Value
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import byte_size, index_text, shape_text
from layoutsim.memory.buffers import Allocation, BufferAssignment


@frozen
class Span:
    """One value in memory.

    Attributes:
        start: first logical time, ``end`` the first at which it is no more.
        offset: in its allocation.
        size_bytes: of the value.
        kind: ``parameter``, ``constant``, ``output``, ``temp``.
        opcode: of the instruction that makes it.
        computation: where it is made.
    """

    name: str
    shape: str
    start: int
    end: int
    allocation: int
    offset: int
    size_bytes: int
    kind: str
    opcode: str
    computation: str
    location: str


@frozen
class Timeline:
    """A module's memory over time.

    Attributes:
        spans: values of temporaries that are packed, by start.
        static_bytes: parameters, outputs and constants, held all the time.
        live_bytes: bytes of temporaries alive at each logical time.
    """

    name: str
    spans: tuple[Span, ...]
    static_bytes: int
    live_bytes: tuple[int, ...]

    @property
    def peak_time(self) -> int:
        """First time at which most temporaries are alive."""
        return self.live_bytes.index(max(self.live_bytes))

    def alive_at(self, time: int) -> tuple[Span, ...]:
        """Spans that contain ``time``, largest first."""
        return tuple(sorted((s for s in self.spans if s.start <= time < s.end), key=lambda s: (-s.size_bytes, s.name)))


def timeline(assignment: BufferAssignment) -> Timeline:
    """Memory over time of an assignment."""
    spans = [
        _span(assignment, allocation, value)
        for allocation in assignment.allocations
        if allocation.is_temp and not allocation.is_tuple
        for value in _packed(allocation)
    ]
    spans = sorted((s for s in spans if s.end > s.start and s.size_bytes), key=lambda s: (s.start, s.name))
    static = [a for a in assignment.allocations if a.parameter is not None or a.is_live_out or a.is_constant]
    changes = [0] * (assignment.ranges.end + 2)
    for span in spans:
        changes[span.start] += span.size_bytes
        changes[span.end] -= span.size_bytes
    live = tuple(accumulate(changes))
    return Timeline(assignment.aliases.module.name, tuple(spans), sum(a.size for a in static), live)


def _packed(allocation: Allocation) -> list[Value]:
    """Values that the heap placed, without tuple tables."""
    packed = {event.value for heap in allocation.heaps for event in heap.events}
    return sorted((value for value in allocation.places if value in packed), key=lambda value: value.id)


def _span(assignment: BufferAssignment, allocation: Allocation, value: Value) -> Span:
    instruction, live = value.instruction, assignment.ranges[value]
    return Span(
        name=instruction.name + (index_text(value.index) if value.index else ""),
        shape=shape_text(value.shape),
        start=live.start,
        end=live.end,
        allocation=allocation.index,
        offset=allocation.places[value][0],
        size_bytes=byte_size(value.shape),
        kind=allocation.kind,
        opcode=Opcode(instruction.opcode).value,
        computation=instruction.parent.name if instruction.parent is not None else "",
        location=source_line(instruction),
    )
