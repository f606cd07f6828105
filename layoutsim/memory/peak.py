"""What is alive at the worst moment, and how much (memory spec, sections 9.9 and 14.3).

1. *Peak values of a packed allocation*: the events are replayed. A value that shares counts only while no other member of its
   group is alive. The answer are the values that count when the bytes first reach their maximum, by id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from layoutsim.analysis.values import Value, value_id
from layoutsim.memory.simulator import Event, EventKind


def peak_values_of(events: Sequence[Event], sizes: Mapping[Value, int]) -> list[Value]:
    """Rule (1), over the values that have a size."""
    deltas = list(_deltas([event for event in events if event.value in sizes], sizes))
    if not deltas:
        return []
    totals = list(accumulate(delta for _, delta in deltas))
    peak = totals.index(max(totals))
    alive: dict[Value, None] = {}
    for value, delta in deltas[: peak + 1]:
        if delta > 0:
            alive[value] = None
        elif delta < 0:
            alive.pop(value, None)
    return sorted(alive, key=value_id)


def _deltas(events: Sequence[Event], sizes: Mapping[Value, int]) -> Iterator[tuple[Value, int]]:
    """By how much the bytes alive change with each event."""
    outstanding: dict[Value, int] = defaultdict(int)
    canonical: dict[Value, Value] = {}
    counted: dict[Value, int] = {}
    for event in events:
        value = event.value
        if event.kind is EventKind.FREE:
            outstanding[canonical.get(value, value)] -= 1
            yield value, -counted[value]
            continue
        if event.kind is EventKind.SHARE:
            assert event.source is not None
            canonical[value] = event.source
        outstanding[canonical.get(value, value)] += 1
        counted[value] = sizes[value] if outstanding[canonical.get(value, value)] == 1 else 0
        yield value, counted[value]
