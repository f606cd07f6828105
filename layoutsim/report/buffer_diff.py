"""Two buffer assignments held against each other: ours and a reference, usually the real compiler's report.

Values are matched by name, shape index and whether they are phis; ids are not compared, since they depend on the history of
the compiler. Differences are of these kinds:

* ``allocations``: how many allocations of some size and kind there are;
* ``sharing``: values that are together on one side and apart on the other;
* ``offset`` and ``size``: of a value in its allocation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import frozen

from layoutsim.memory.report_format import AssignmentReport, ReportedAllocation, ReportedValue

ValueKey = tuple[str, tuple[int, ...], bool]


@frozen
class BufferDifference:
    """One difference."""

    kind: str
    where: str
    ours: str
    theirs: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "where": self.where, "ours": self.ours, "theirs": self.theirs}

    def __str__(self) -> str:
        return f"{self.kind} of {self.where}: ours {self.ours}, theirs {self.theirs}"


@frozen
class BufferComparison:
    """Totals of both sides, and what differs."""

    ours_total_bytes: int
    theirs_total_bytes: int
    ours_temp_bytes: int
    theirs_temp_bytes: int
    differences: tuple[BufferDifference, ...]

    @property
    def agrees(self) -> bool:
        return not self.differences

    def to_json(self) -> dict[str, object]:
        return {
            "ours_total_bytes": self.ours_total_bytes,
            "theirs_total_bytes": self.theirs_total_bytes,
            "ours_temp_bytes": self.ours_temp_bytes,
            "theirs_temp_bytes": self.theirs_temp_bytes,
            "differences": [difference.to_json() for difference in self.differences],
        }


def compare_assignments(ours: AssignmentReport, theirs: AssignmentReport, *, names: bool = True) -> BufferComparison:
    """Compare two reports.

    Args:
        ours: computed.
        theirs: the reference.
        names: also compare the values in each allocation; without, only sizes and kinds (for modules whose instruction names
            differ because passes added instructions).
    """
    differences = [*_allocation_differences(ours, theirs)]
    if names:
        differences += _value_differences(ours, theirs)
    return BufferComparison(total_bytes(ours), total_bytes(theirs), temp_bytes(ours), temp_bytes(theirs), tuple(differences))


def total_bytes(report: AssignmentReport) -> int:
    """Bytes of all allocations."""
    return sum(allocation.size for allocation in report.allocations)


def temp_bytes(report: AssignmentReport) -> int:
    """Bytes of the preallocated temporaries."""
    return sum(allocation.size for allocation in report.allocations if allocation.preallocated_temp)


def _allocation_differences(ours: AssignmentReport, theirs: AssignmentReport) -> Iterator[BufferDifference]:
    have, want = (Counter(map(_describe, report.allocations)) for report in (ours, theirs))
    for description in sorted(have.keys() | want.keys()):
        if have[description] != want[description]:
            yield BufferDifference("allocations", description, str(have[description]), str(want[description]))


def _describe(allocation: ReportedAllocation) -> str:
    flags = [
        (f"parameter {allocation.parameter.number} {allocation.parameter.index}" if allocation.parameter else "", True),
        ("constant", allocation.constant),
        ("thread-local", allocation.thread_local),
        ("live-out", allocation.maybe_live_out),
        ("temporary", allocation.preallocated_temp),
        (f"color {allocation.color}", allocation.color != 0),
    ]
    return f"{allocation.size} bytes, {', '.join(name for name, applies in flags if name and applies) or 'plain'}"


def _value_differences(ours: AssignmentReport, theirs: AssignmentReport) -> Iterator[BufferDifference]:
    have, want = _places(ours), _places(theirs)
    partner: dict[int, int] = {}
    for key, (their_allocation, their_value) in want.items():
        where = _key_text(key)
        if key not in have:
            yield BufferDifference("value", where, "absent", f"allocation {their_allocation}")
            continue
        our_allocation, our_value = have[key]
        expected = partner.setdefault(their_allocation, our_allocation)
        if expected != our_allocation:
            yield BufferDifference("sharing", where, f"allocation {our_allocation}", f"allocation {expected} in our numbers")
        if our_value.offset != their_value.offset:
            yield BufferDifference("offset", where, str(our_value.offset), str(their_value.offset))
        if our_value.size != their_value.size:
            yield BufferDifference("size", where, str(our_value.size), str(their_value.size))
    for key in have.keys() - want.keys():
        yield BufferDifference("value", _key_text(key), f"allocation {have[key][0]}", "absent")


def _places(report: AssignmentReport) -> dict[ValueKey, tuple[int, ReportedValue]]:
    return {
        (value.value.name, value.value.index or (), value.value.is_phi): (allocation.index, value)
        for allocation in report.allocations
        for value in allocation.values
    }


def _key_text(key: ValueKey) -> str:
    name, index, is_phi = key
    return f"{name}{{{','.join(map(str, index))}}}{' (phi)' if is_phi else ''}"
