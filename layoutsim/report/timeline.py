"""Memory over time: what is alive when, as data to draw, print or export.

1. Time is the logical time of the flattened schedule: one step for each instruction, loop bodies and branches once, in place.
2. While an instruction runs, what it makes is alive, and what it reads, even for the last time. Only where it works in place is
   there one value instead of two.
3. So a span is half-open and ends one step after the last use, or where another value takes over its place. The sum of the
   spans at a time is what the heap holds then (``live_bytes``); the most of it, with what is held all the time, is the peak
   that :mod:`layoutsim.memory.summary` reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate

from attrs import frozen

from layoutsim.analysis.source_lines import source_line
from layoutsim.analysis.values import Value
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import index_text, shape_text
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.simulator import EventKind, HeapEvents
from layoutsim.memory.waste import WasteReport, waste_report


@frozen
class Span:
    """One value in memory.

    Attributes:
        start: first logical time, ``end`` the first at which it is no more.
        offset: in its allocation.
        size_bytes: of the value, padding included.
        waste: what its buffer is at the peak for (:class:`layoutsim.memory.waste.Waste`); ``""`` if it is not alive then.
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
    waste: str
    opcode: str
    computation: str
    location: str

    @property
    def instruction(self) -> str:
        """Name of the instruction that makes it."""
        return self.name.partition("{")[0]


@frozen
class Timeline:
    """A module's memory over time.

    Attributes:
        spans: values of temporaries that are packed, by start.
        static_bytes: parameters, outputs and constants, held all the time.
        live_bytes: bytes of temporaries alive at each logical time.
        allocation_bytes: sizes of the allocations that the spans lie in, by their numbers.
    """

    name: str
    spans: tuple[Span, ...]
    static_bytes: int
    live_bytes: tuple[int, ...]
    allocation_bytes: Mapping[int, int]

    @property
    def peak_time(self) -> int:
        """First time at which most temporaries are alive."""
        return self.live_bytes.index(max(self.live_bytes))

    @property
    def bases(self) -> dict[int, int]:
        """Where each allocation begins if they are put one behind the other."""
        ends = accumulate(self.allocation_bytes.values(), initial=0)
        return dict(zip(self.allocation_bytes, ends, strict=False))

    def alive_at(self, time: int) -> tuple[Span, ...]:
        """Spans that contain ``time``, largest first."""
        return tuple(sorted((s for s in self.spans if s.start <= time < s.end), key=lambda s: (-s.size_bytes, s.name)))


def timeline(assignment: BufferAssignment, report: WasteReport | None = None) -> Timeline:
    """Memory over time of an assignment.

    Args:
        report: classes of all that is alive at the peak, if they are known already.
    """
    report = report or waste_report(assignment)
    waste = {row.value: row.waste.value for row in report.rows if row.value is not None}
    temporaries = [a for a in assignment.allocations if a.is_temp and a.heaps]
    spans = [
        span
        for allocation in temporaries
        for heap in allocation.heaps
        for group in _groups(heap)
        for span in _spans(assignment, allocation, group, next((waste[v] for v in group if v in waste), ""))
    ]
    spans.sort(key=lambda s: (s.start, s.name))
    static = [a for a in assignment.allocations if a.parameter is not None or a.is_live_out or a.is_constant]
    return Timeline(
        name=assignment.aliases.module.name,
        spans=tuple(spans),
        static_bytes=sum(a.size for a in static),
        live_bytes=_live_bytes(spans, assignment.ranges.end + 1),
        allocation_bytes={a.index: a.size for a in temporaries},
    )


def _groups(heap: HeapEvents) -> list[list[Value]]:
    """The values that take each other's place, in order."""
    groups: list[list[Value]] = []
    group_of: dict[Value, list[Value]] = {}
    for event in heap.events:
        if event.kind is EventKind.ALLOC:
            group_of[event.value] = [event.value]
            groups.append(group_of[event.value])
        elif event.kind is EventKind.SHARE:
            assert event.source is not None
            group_of[event.value] = group_of[event.source]
            group_of[event.value].append(event.value)
    return groups


def _spans(assignment: BufferAssignment, allocation: Allocation, group: list[Value], waste: str) -> Iterator[Span]:
    starts = [assignment.ranges[value].start for value in group]
    for value, following in zip(group, [*starts[1:], None], strict=True):
        live = assignment.ranges[value]
        end = live.end + 1 if following is None else min(live.end + 1, following)
        size = assignment.profile.size(value.shape)
        if end > live.start and size:
            yield _span(value, live.start, end, allocation, size, waste)


def _span(value: Value, start: int, end: int, allocation: Allocation, size: int, waste: str) -> Span:
    instruction = value.instruction
    return Span(
        name=instruction.name + (index_text(value.index) if value.index else ""),
        shape=shape_text(value.shape),
        start=start,
        end=end,
        allocation=allocation.index,
        offset=allocation.places[value][0],
        size_bytes=size,
        waste=waste,
        opcode=Opcode(instruction.opcode).value,
        computation=instruction.parent.name if instruction.parent is not None else "",
        location=source_line(instruction),
    )


def _live_bytes(spans: list[Span], times: int) -> tuple[int, ...]:
    changes = [0] * (times + 1)
    for span in spans:
        changes[span.start] += span.size_bytes
        changes[span.end] -= span.size_bytes
    return tuple(accumulate(changes))[:times]
