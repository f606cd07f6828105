"""How many bytes of packed temporaries are alive after each event, and what is alive when they are most.

Values that share a place count once, as long as any of them is alive (``ComputePeakMemory`` in
``xla/service/buffer_assignment.cc``; memory spec, 14.3). XLA's own list of peak values, which
:mod:`layoutsim.memory.peak` reproduces, loses a place as soon as the value that it was allocated for is freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field, frozen

from layoutsim.analysis.values import Value
from layoutsim.memory.simulator import Event, EventKind


@frozen
class LivePeak:
    """The most bytes alive at once.

    Attributes:
        size_bytes: sum over places.
        values: the youngest value of each place that is taken at the earliest such moment, in order of birth.
    """

    size_bytes: int
    values: tuple[Value, ...]


@define(eq=False)
class _Places:
    """Who is alive in each place; a place is named by the value that it was allocated for."""

    sizes: Mapping[Value, int]
    place_of: dict[Value, Value] = field(factory=dict[Value, Value])
    alive: dict[Value, dict[Value, None]] = field(factory=dict[Value, dict[Value, None]])
    total: int = 0

    def apply(self, event: Event) -> None:
        if event.kind is EventKind.FREE:
            self._free(event.value)
            return
        place = event.value
        if event.kind is EventKind.SHARE:
            assert event.source is not None, event
            place = self.place_of.get(event.source, event.source)
        self.place_of[event.value] = place
        if place not in self.alive:
            self.alive[place] = {}
            self.total += self.sizes[place]
        self.alive[place][event.value] = None

    def _free(self, value: Value) -> None:
        place = self.place_of[value]
        members = self.alive[place]
        del members[value]
        if not members:
            del self.alive[place]
            self.total -= self.sizes[place]


def live_peak(events: Sequence[Event], sizes: Mapping[Value, int]) -> LivePeak:
    """The peak of one heap.

    Args:
        events: as simulated; those of values without a size are passed over.
        sizes: bytes of the place of each value.
    """
    totals = list(_totals(events, sizes))
    if not totals:
        return LivePeak(0, ())
    peak = max(totals)
    places = _Places(sizes)
    for event in (e for e in events if e.value in sizes):
        places.apply(event)
        if places.total == peak:
            break
    return LivePeak(peak, tuple(next(reversed(members)) for members in places.alive.values()))


def _totals(events: Sequence[Event], sizes: Mapping[Value, int]) -> Iterator[int]:
    places = _Places(sizes)
    for event in events:
        if event.value in sizes:
            places.apply(event)
            yield places.total
