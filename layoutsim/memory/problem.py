"""The packing problem of a temporary heap: intervals in time with a size, to be given offsets.

This file knows nothing of HLO. Time is a private clock of events, as in ``xla/service/heap_simulator/heap_simulator.h``:

1. Every allocation, every sharing and every freeing takes one tick. :class:`EventRecorder` hands the ticks out.
2. An interval is live from its ``start`` tick to its ``end`` tick, both included.
3. An interval that shares (``need=False``) gets the chunk of the interval it shares with; ``mates`` of an interval are
   those that share with it directly. An interval that needs memory and everything reached from it over ``mates`` form a
   :class:`Group`: one chunk, as large as the largest member.
4. Two groups conflict if any members of theirs are live at the same tick; then their chunks must be disjoint.
5. Intervals of size 0 take no tick and no memory; their chunk is ``(0, 0)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import define, field, frozen

from layoutsim.errors import InputError


@frozen
class Interval:
    """One value's claim on memory.

    Attributes:
        id: unique in its problem; also the last tie-break of every order.
        start: tick of its allocation.
        end: tick of its freeing, included in its life.
        size: bytes.
        mates: ids of the intervals that share with this one directly, in the order they joined.
        need: false if it shares with an earlier interval.
        name: for reports; may be empty.
    """

    id: int
    start: int
    end: int
    size: int
    mates: tuple[int, ...] = ()
    need: bool = True
    name: str = ""

    @property
    def duration(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.name or self.id} (ticks {self.start}..{self.end}, {self.size} bytes)"


@frozen
class Group:
    """An interval that needs memory, with everything that shares its chunk.

    Attributes:
        members: the interval that needs memory first, then the others by id.
        size: bytes of the chunk: the largest member's size.
        start: first tick at which a member is live.
        end: last tick at which a member is live.
    """

    members: tuple[Interval, ...]
    size: int
    start: int
    end: int

    @property
    def root(self) -> Interval:
        return self.members[0]


@frozen
class Chunk:
    """Bytes ``offset`` to ``offset + size`` of a heap."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@frozen
class Heap:
    """Chunks by interval id, and the bytes they need: the largest chunk end."""

    chunks: Mapping[int, Chunk]
    size: int


@frozen
class Placement:
    """What a heap algorithm returns: one heap, or several where the size of one heap is limited.

    Attributes:
        heaps: at least one, possibly empty. No chunks at all means that only the size is known (a lower bound).
    """

    heaps: tuple[Heap, ...]

    @property
    def size(self) -> int:
        """Bytes of all heaps together."""
        return sum(heap.size for heap in self.heaps)

    @property
    def chunks(self) -> Mapping[int, Chunk]:
        """Chunks of the only heap.

        Raises:
            InputError: there are several heaps, so that an offset alone names no place.
        """
        if len(self.heaps) != 1:
            raise InputError(f"expected a placement in one heap, got {len(self.heaps)} heaps")
        return self.heaps[0].chunks


@frozen(slots=False)
class Problem:
    """Intervals to pack.

    Attributes:
        intervals: each id once. Those of size 0 are in ``empty`` instead.
        alignment: bytes; every chunk starts at a multiple of it.
        empty: ids of size 0.
    """

    intervals: tuple[Interval, ...]
    alignment: int = 1
    empty: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.alignment < 1:
            raise InputError(f"alignment must be positive, got {self.alignment}")

    @cached_property
    def by_id(self) -> Mapping[int, Interval]:
        """Every interval by its id.

        Raises:
            InputError: an id occurs twice.
        """
        table = {interval.id: interval for interval in self.intervals}
        if len(table) != len(self.intervals):
            seen: set[int] = set()
            twice = next(i.id for i in self.intervals if i.id in seen or seen.add(i.id))
            raise InputError(f"interval {twice} occurs twice")
        return table

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Groups in the order of their roots in ``intervals``.

        Raises:
            InputError: an interval is in no group or in two, or a mate does not exist.
        """
        owner: dict[int, int] = {}
        groups = tuple(self._group(interval, owner) for interval in self.intervals if interval.need)
        for interval in self.intervals:
            if interval.id not in owner:
                raise InputError(f"interval {interval} needs no memory, but shares with no interval that does")
        return groups

    def _group(self, root: Interval, owner: dict[int, int]) -> Group:
        members = [root, *sorted(self._transitive_mates(root), key=lambda interval: interval.id)]
        for member in members:
            if owner.setdefault(member.id, root.id) != root.id or (member.need and member is not root):
                raise InputError(f"interval {member} is a mate of {owner[member.id]} and also of {root.id}")
        size = max(member.size for member in members)
        return Group(tuple(members), size, min(m.start for m in members), max(m.end for m in members))

    def _transitive_mates(self, root: Interval) -> Iterator[Interval]:
        if not root.mates:
            return
        seen = {root.id}
        pending = list(root.mates)
        while pending:
            mate = pending.pop()
            if mate in seen:
                continue
            seen.add(mate)
            if mate not in self.by_id:
                raise InputError(f"interval {root.id} has mate {mate}, which is not in the problem")
            yield self.by_id[mate]
            pending += self.by_id[mate].mates


@define
class _Pending:
    """An interval while its events are still coming."""

    id: int
    start: int
    size: int
    need: bool
    name: str
    end: int | None = None
    mates: list[int] = field(factory=list[int])


class EventRecorder:
    """Turns a stream of allocations, sharings and freeings into a :class:`Problem`; rules (1), (3) and (5)."""

    def __init__(self) -> None:
        self._clock = 0
        self._pending: dict[int, _Pending] = {}
        self._empty: list[int] = []

    def alloc(self, interval_id: int, size: int, name: str = "") -> None:
        """The interval begins and needs memory of its own."""
        self._begin(interval_id, size, need=True, name=name)

    def share_with(self, interval_id: int, source: int, size: int, name: str = "") -> None:
        """The interval begins, in the chunk of ``source``, which has begun before (and may have ended)."""
        if self._begin(interval_id, size, need=False, name=name):
            assert source in self._pending, f"{interval_id} shares with {source}, which was never allocated"
            self._pending[source].mates.append(interval_id)

    def free(self, interval_id: int) -> None:
        """The interval ends. Nothing happens for intervals of size 0."""
        pending = self._pending.get(interval_id)
        if pending is None:
            assert interval_id in self._empty, f"{interval_id} is freed, but was never allocated"
            return
        assert pending.end is None, f"{interval_id} is freed twice"
        pending.end = self._tick()

    def finish(self, alignment: int = 1) -> Problem:
        """The problem, with intervals in order of their beginning; those never freed live to the last tick."""
        last = max(self._clock - 1, 0)
        intervals = tuple(
            Interval(p.id, p.start, last if p.end is None else p.end, p.size, tuple(p.mates), p.need, p.name)
            for p in self._pending.values()
        )
        return Problem(intervals, alignment, tuple(self._empty))

    def _begin(self, interval_id: int, size: int, *, need: bool, name: str) -> bool:
        assert size >= 0, f"{interval_id} has size {size}"
        assert interval_id not in self._pending, f"{interval_id} is allocated twice"
        if size == 0:
            self._empty.append(interval_id)
            return False
        self._pending[interval_id] = _Pending(interval_id, self._tick(), size, need, name)
        return True

    def _tick(self) -> int:
        self._clock += 1
        return self._clock - 1
