"""The judge of placements: no two live buffers may have a byte in common.

Shares no code with the heaps: it takes a problem and a placement (or claims on memory, from wherever), and says what is
wrong. A placement is right if

1. every interval has exactly one chunk, within its heap, at least as large as the interval;
2. every chunk starts at a multiple of the alignment;
3. intervals that share, directly or over others, have the same heap and the same chunk;
4. two intervals that do not share and are live at the same tick have no byte of one heap in common.

Rule (4) is a sweep over time. The byte ranges alive at a tick are disjoint as long as nothing is wrong, so a sorted list of
them finds a clash of a new range with a binary search, instead of comparing every pair.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum

from attrs import define, frozen

from layoutsim.memory.problem import Chunk, Placement, Problem


class Fault(Enum):
    """What can be wrong with a placement."""

    MISSING = "has no chunk"
    UNKNOWN = "is not in the problem"
    TWICE = "has chunks in two heaps"
    TOO_SMALL = "has a chunk that is too small"
    OUTSIDE = "reaches beyond its heap"
    MISALIGNED = "is not aligned"
    SPLIT = "shares with an interval, but not its chunk"
    OVERLAP = "overlaps another that is live at the same time"


@frozen
class Finding:
    """One thing wrong: the kind, the interval (or the two intervals), and a sentence with the numbers."""

    fault: Fault
    names: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return self.message


@frozen
class Claim:
    """A buffer's claim: bytes ``offset`` to ``offset + size`` of ``space`` while ``start <= tick <= end``.

    Attributes:
        space: what the offset counts in: the number of a heap or of an allocation.
        group: claims of one group at the same place are one memory by intention; elsewhere they clash like any other.
    """

    name: str
    space: int
    offset: int
    size: int
    start: int
    end: int
    group: int

    @property
    def top(self) -> int:
        return self.offset + self.size


@frozen
class Overlap:
    """Two claims live from tick ``start`` to ``end`` that both have bytes ``low`` to ``high`` of ``space``."""

    first: Claim
    second: Claim

    @property
    def space(self) -> int:
        return self.first.space

    @property
    def low(self) -> int:
        return max(self.first.offset, self.second.offset)

    @property
    def high(self) -> int:
        return min(self.first.top, self.second.top)

    @property
    def start(self) -> int:
        return max(self.first.start, self.second.start)

    @property
    def end(self) -> int:
        return min(self.first.end, self.second.end)

    def __str__(self) -> str:
        return (
            f"{self.first.name} and {self.second.name} are both live at {self.start}..{self.end}"
            f" and both at bytes {self.low}..{self.high} of heap {self.space}"
        )


def check_placement(problem: Problem, placement: Placement) -> tuple[Finding, ...]:
    """Everything wrong with ``placement``, by rule; empty if it is right."""
    findings = [*_check_presence(problem, placement), *_check_chunks(problem, placement), *_check_sharing(problem, placement)]
    for overlap in find_overlaps(_claims(problem, placement)):
        names = (overlap.first.name, overlap.second.name)
        findings.append(Finding(Fault.OVERLAP, names, str(overlap)))
    return tuple(findings)


def find_overlaps(claims: Iterable[Claim], may_touch: Callable[[Claim, Claim], bool] | None = None) -> list[Overlap]:
    """Pairs of live claims with bytes in common, by the tick at which the later one starts; rule (4).

    A claim that clashes is reported with everything it clashes with, and then left out, so that one wrong buffer is not
    found again in every later one. No clash at all means that every pair is disjoint.

    Args:
        claims: in any order; those of size 0 take no bytes.
        may_touch: says of an earlier claim that ends at the tick at which a later one starts whether the two may
            have bytes in common (an operand whose memory its user takes over). Without it they may not.
    """
    sweep = _Sweep(may_touch)
    ordered = sorted((claim for claim in claims if claim.size), key=lambda claim: claim.start)
    by_end = sorted(range(len(ordered)), key=lambda number: ordered[number].end)
    ended = 0
    for number, claim in enumerate(ordered):
        while ordered[by_end[ended]].end < claim.start:
            sweep.remove(by_end[ended])
            ended += 1
        sweep.insert(number, claim)
    return sweep.overlaps


_Place = tuple[int, int, int, int]  # space, group, offset and size


@define
class _Live:
    """Bytes alive: those of one group at one place.

    Attributes:
        claim: the one of its claims that lives longest.
        count: how many of its claims are alive.
    """

    claim: Claim
    count: int = 1


class _Sweep:
    """The byte ranges alive at the current tick, disjoint and sorted in each space.

    A range is known by the number of the claim that began it.
    """

    def __init__(self, may_touch: Callable[[Claim, Claim], bool] | None) -> None:
        self.overlaps: list[Overlap] = []
        self._may_touch = may_touch
        self._ranges: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)  # (low, high, number) by space
        self._live: dict[int, _Live] = {}
        self._number_at: dict[_Place, int] = {}
        self._number_of: dict[int, int] = {}
        self._leavers: list[Claim] = []

    def insert(self, number: int, claim: Claim) -> None:
        """The claim starts: it joins its group's range at its place, or gets one of its own, or clashes."""
        at_place = self._number_at.get(_place(claim))
        if at_place is not None:
            self._join(number, claim, self._live[at_place], at_place)
            return
        clashing = [self._live[other].claim for other in self._touched(claim) if not self._gives_way(other, claim)]
        clashing += self._clashing_leavers(claim)
        self.overlaps += [Overlap(other, claim) for other in clashing]
        if not clashing:
            self._number_of[number] = self._number_at[_place(claim)] = number
            self._live[number] = _Live(claim)
            insort(self._ranges[claim.space], (claim.offset, claim.top, number))

    def remove(self, number: int) -> None:
        """The claim has ended; its range goes with the last claim of its group there."""
        at = self._number_of.pop(number, None)
        if at is None or at not in self._live:
            return  # it clashed and was never taken in, or it gave way
        self._live[at].count -= 1
        if not self._live[at].count:
            self._drop(at)

    def _join(self, number: int, claim: Claim, live: _Live, at: int) -> None:
        self._number_of[number] = at
        live.count += 1
        if claim.end > live.claim.end:
            live.claim = claim

    def _drop(self, number: int) -> None:
        claim = self._live.pop(number).claim
        del self._number_at[_place(claim)]
        ranges = self._ranges[claim.space]
        del ranges[bisect_left(ranges, (claim.offset, claim.top, number))]

    def _touched(self, claim: Claim) -> list[int]:
        """Ranges with a byte of the claim; they follow one another, since ranges alive are disjoint."""
        ranges = self._ranges[claim.space]
        first = bisect_left(ranges, (claim.offset,))
        if first and ranges[first - 1][1] > claim.offset:
            first -= 1
        return [number for _, _, number in ranges[first : bisect_left(ranges, (claim.top,))]]

    def _gives_way(self, number: int, claim: Claim) -> bool:
        """Whether the range ends at this very tick and may be taken over; then it leaves at once."""
        other = self._live[number].claim
        if not self._takes_over(other, claim):
            return False
        self._leavers.append(other)
        self._drop(number)
        return True

    def _clashing_leavers(self, claim: Claim) -> list[Claim]:
        """Claims that gave way at this tick to another one, but may not give way to this one."""
        self._leavers = [leaver for leaver in self._leavers if leaver.end == claim.start]
        return [
            leaver
            for leaver in self._leavers
            if leaver.space == claim.space and leaver.offset < claim.top and claim.offset < leaver.top
            if not self._takes_over(leaver, claim)
        ]

    def _takes_over(self, earlier: Claim, later: Claim) -> bool:
        return self._may_touch is not None and earlier.end == later.start and self._may_touch(earlier, later)


def _place(claim: Claim) -> _Place:
    return (claim.space, claim.group, claim.offset, claim.size)


def _check_presence(problem: Problem, placement: Placement) -> Iterable[Finding]:
    if len(placement.heaps) == 1 and not placement.heaps[0].chunks and problem.intervals:
        yield Finding(Fault.MISSING, (), f"the placement has no chunks for {len(problem.intervals)} intervals")
        return
    known = {interval.id for interval in problem.intervals} | set(problem.empty)
    count: defaultdict[int, int] = defaultdict(int)
    for heap in placement.heaps:
        for interval_id in heap.chunks:
            count[interval_id] += 1
    for interval_id, times in count.items():
        if interval_id not in known:
            yield Finding(Fault.UNKNOWN, (str(interval_id),), f"{interval_id} has a chunk, but is not in the problem")
        elif times > 1:
            yield Finding(Fault.TWICE, (str(interval_id),), f"{interval_id} has chunks in {times} heaps")
    for interval in problem.intervals:
        if interval.id not in count:
            yield Finding(Fault.MISSING, (_name(problem, interval.id),), f"{interval} has no chunk")


def _check_chunks(problem: Problem, placement: Placement) -> Iterable[Finding]:
    sizes = {interval.id: interval.size for interval in problem.intervals}
    for number, heap in enumerate(placement.heaps):
        for interval_id, chunk in heap.chunks.items():
            name = _name(problem, interval_id)
            if chunk.size < sizes.get(interval_id, 0):
                message = f"{name}: the chunk has {chunk.size} bytes, the interval {sizes[interval_id]}"
                yield Finding(Fault.TOO_SMALL, (name,), message)
            if chunk.offset < 0 or chunk.end > heap.size:
                message = f"{name}: bytes {chunk.offset}..{chunk.end} are not within heap {number} of {heap.size} bytes"
                yield Finding(Fault.OUTSIDE, (name,), message)
            if chunk.offset % problem.alignment:
                message = f"{name}: offset {chunk.offset} is not a multiple of {problem.alignment}"
                yield Finding(Fault.MISALIGNED, (name,), message)


def _check_sharing(problem: Problem, placement: Placement) -> Iterable[Finding]:
    where = _places(placement)
    leaders = _leaders(problem)
    for interval in problem.intervals:
        leader = leaders[interval.id]
        if interval.id in where and leader in where and where[interval.id] != where[leader]:
            names = (_name(problem, leader), _name(problem, interval.id))
            (heap, chunk), (other_heap, other) = where[leader], where[interval.id]
            places = f"heap {heap} {chunk.offset}..{chunk.end} and heap {other_heap} {other.offset}..{other.end}"
            yield Finding(Fault.SPLIT, names, f"{names[0]} and {names[1]} share one chunk, but are at {places}")


def _claims(problem: Problem, placement: Placement) -> list[Claim]:
    where = _places(placement)
    leaders = _leaders(problem)
    claims: list[Claim] = []
    for interval in problem.intervals:
        if interval.id in where:
            heap, chunk = where[interval.id]
            name = _name(problem, interval.id)
            # The whole chunk counts: its owner may be any member of the group.
            claims.append(Claim(name, heap, chunk.offset, chunk.size, interval.start, interval.end, leaders[interval.id]))
    return claims


def _places(placement: Placement) -> dict[int, tuple[int, Chunk]]:
    return {
        interval_id: (number, chunk)
        for number, heap in enumerate(placement.heaps)
        for interval_id, chunk in heap.chunks.items()
    }


def _leaders(problem: Problem) -> dict[int, int]:
    """Some member of each interval's group, the same for all members; over mates in both directions."""
    parent = {interval.id: interval.id for interval in problem.intervals}

    def find(member: int) -> int:
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    for interval in problem.intervals:
        for mate in interval.mates:
            parent[find(mate)] = find(interval.id)
    return {interval_id: find(interval_id) for interval_id in parent}


def _name(problem: Problem, interval_id: int) -> str:
    interval = problem.by_id.get(interval_id)
    return (interval.name if interval else "") or str(interval_id)
