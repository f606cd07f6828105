"""Why two values share memory, or what keeps them apart.

The answer is the first of these that applies:

1. One of them has no place: it is inside a fusion, or not reachable.
2. *Same buffer*: the rules say they must be in one place (loop carry, branch result, donation, in-place update).
3. *Same bytes*: they are in one place one after the other.
4. *Apart*: a thread-local value, a constant or a parameter that is not donated shares with nothing; a table of a tuple neither;
   values in different memory spaces do not share; values that are live at the same time cannot; where the end of one touches
   the begin of the other, the later one's instruction has to be able to work in the earlier one's place.
5. *Placement*: nothing keeps them apart; they were put elsewhere.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from layoutsim.analysis.liveness import LiveRange
from layoutsim.analysis.values import Value
from layoutsim.errors import InputError
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import TupleShape, index_text
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.report_format_lines import parse_index


class Verdict(Enum):
    """Whether two values share, and by what; the number of the rule above."""

    NO_PLACE = "no place"
    SAME_BUFFER = "same buffer"
    SAME_BYTES = "same bytes"
    NEVER_SHARES = "never shares"
    MEMORY_SPACES = "different memory spaces"
    LIVE_TOGETHER = "live at the same time"
    CANNOT_TAKE_OVER = "cannot work in its operand's place"
    PLACEMENT = "placed elsewhere"

    @property
    def shares(self) -> bool:
        return self in (Verdict.SAME_BUFFER, Verdict.SAME_BYTES)


@frozen(eq=False)
class SharingVerdict:
    """The verdict on two values, with the reason in a sentence."""

    first: Value
    second: Value
    verdict: Verdict
    reason: str

    @property
    def shares(self) -> bool:
        return self.verdict.shares

    def to_text(self) -> str:
        answer = "share memory" if self.shares else "do not share memory"
        return f"{value_label(self.first)} and {value_label(self.second)} {answer}: {self.reason}"

    def to_json(self) -> dict[str, object]:
        """By name."""
        return {
            "first": value_label(self.first),
            "second": value_label(self.second),
            "shares": self.shares,
            "verdict": self.verdict.value,
            "reason": self.reason,
        }


def why_shared(assignment: BufferAssignment, first: Value, second: Value) -> SharingVerdict:
    """Whether two values share memory, and why."""
    verdict, reason = _Judge(assignment, first, second).decide()
    return SharingVerdict(first, second, verdict, reason)


def find_value(assignment: BufferAssignment, text: str) -> Value:
    """The value that stands at ``NAME`` or ``NAME{INDEX}``.

    Raises:
        InputError: there is no such instruction or index, or several values may stand there.
    """
    name, brace, index_part = text.strip().lstrip("%").partition("{")
    dataflow = assignment.aliases.dataflow
    found = [i for c in dataflow.module.computations for i in c.instructions if i.name == name.strip()]
    if len(found) != 1:
        many = f"{len(found)} instructions are named" if found else "no instruction of the module is named"
        raise InputError(f"{many} {name.strip()!r}; `layoutsim memory FILE` lists the values at the peak")
    try:
        index = parse_index(brace + index_part) if brace else ()
        values = dataflow.value_set(found[0], index)
    except (KeyError, ValueError) as error:
        raise InputError(f"{text}: {found[0].name} has shape {found[0].shape}, which has no part at that index") from error
    if len(values) != 1:
        raise InputError(f"{text}: {len(values)} values may stand there, expected one")
    return values[0]


def value_label(value: Value) -> str:
    """``while.8{0}``: the name of the defining instruction, and the index where its shape is a tuple."""
    index = index_text(value.index) if isinstance(value.instruction.shape, TupleShape) else ""
    return f"{value.instruction.name}{index}"


class _Judge:
    def __init__(self, assignment: BufferAssignment, first: Value, second: Value) -> None:
        self._assignment = assignment
        self._pair = (first, second)

    def decide(self) -> tuple[Verdict, str]:
        homes = [self._assignment.allocation_of.get(value) for value in self._pair]
        for value, home in zip(self._pair, homes, strict=True):
            if home is None:
                return Verdict.NO_PLACE, f"{value_label(value)} has no memory of its own (inside a fusion, or not reachable)"
        first, second = (home for home in homes if home is not None)
        buffer = self._assignment.aliases.buffer_of(self._pair[0])
        if buffer is self._assignment.aliases.buffer_of(self._pair[1]):
            return Verdict.SAME_BUFFER, f"{self._why_united()}; {_where(first, self._pair[0])}"
        if self._overlap(first, second):
            return Verdict.SAME_BYTES, f"{self._times()}; {_where(first, self._pair[0])}"
        return self._why_apart(first, second)

    def _overlap(self, first: Allocation, second: Allocation) -> bool:
        if first is not second:
            return False
        (offset, size), (other_offset, other_size) = (first.places[value] for value in self._pair)
        return offset < other_offset + other_size and other_offset < offset + size

    def _why_united(self) -> str:
        """What ties a buffer together: the loops, branches, updates and donations among its values."""
        buffer = self._assignment.aliases.buffer_of(self._pair[0])
        ties = dict.fromkeys(filter(None, (self._tie(value) for value in buffer.values)))
        return f"they are one buffer ({', '.join(ties)})" if ties else "they are one buffer"

    def _tie(self, value: Value) -> str:
        instruction = value.instruction
        if value.is_phi and instruction.opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
            carried = "carried by" if instruction.opcode is Opcode.WHILE else "result of"
            return f"{carried} {value_label(value)}"
        if any(pair.output_index == value.index for pair in self._assignment.aliases.sharing.pairs(instruction)):
            return f"{value_label(value)} updates it in place"
        home = self._assignment.allocation_of.get(value)
        is_donated = home is not None and home.parameter is not None and home.parameter.is_donated
        if (
            is_donated
            and instruction.opcode is Opcode.PARAMETER
            and instruction.parent is self._assignment.aliases.module.entry
        ):
            return f"{value_label(value)} is donated"
        return ""

    def _why_apart(self, first: Allocation, second: Allocation) -> tuple[Verdict, str]:
        for value, home in zip(self._pair, (first, second), strict=True):
            reason = self._keeps_to_itself(value, home)
            if reason:
                return Verdict.NEVER_SHARES, f"{value_label(value)} {reason}"
        colors = [self._assignment.colors[value] for value in self._pair]
        if colors[0] != colors[1]:
            return Verdict.MEMORY_SPACES, f"they are in memory spaces {colors[0]} and {colors[1]}"
        ranges = self._ranges()
        if ranges is not None:
            early, late = sorted(zip(ranges, self._pair, strict=True), key=lambda entry: (entry[0].start, entry[0].end))
            if early[0].end > late[0].start:
                return Verdict.LIVE_TOGETHER, self._times()
            if early[0].end == late[0].start and not self._can_take_over(early[1], late[1]):
                return Verdict.CANNOT_TAKE_OVER, f"{self._take_over_text(early[1], late[1])}; {self._times()}"
        places = f"{_where(first, self._pair[0])}, {_where(second, self._pair[1])}"
        return Verdict.PLACEMENT, f"nothing keeps them apart, they were placed elsewhere ({places}); {self._times()}"

    @staticmethod
    def _keeps_to_itself(value: Value, home: Allocation) -> str:
        if home.is_thread_local:
            return "is local to a reducer, comparator or the like"
        if home.is_constant:
            return "is a constant"
        if home.is_tuple or isinstance(value.shape, TupleShape):
            return "is the table of a tuple"
        if home.is_read_only:
            return "is a parameter that is not donated"
        return ""

    def _ranges(self) -> list[LiveRange] | None:
        if self._assignment.live_ranges is None:
            return None
        found = [self._assignment.live_ranges.get(value) for value in self._pair]
        return [live for live in found if live is not None] if None not in found else None

    def _times(self) -> str:
        ranges = self._ranges()
        if ranges is None:
            return "their order is not known"
        parts = [
            f"{value_label(value)} is live {live.start}..{live.end}, {self._span(live.start, live.end)}"
            for value, live in zip(self._pair, ranges, strict=True)
        ]
        start, end = max(live.start for live in ranges), min(live.end for live in ranges)
        both = f"; both {start}..{end}, {self._span(start, end)}" if start <= end else ""
        return f"{parts[0]}; {parts[1]}{both}"

    def _span(self, start: int, end: int) -> str:
        first, last = self._instruction_at(start), self._instruction_at(end)
        return f"at {first}" if first == last else f"from {first} to {last}"

    def _instruction_at(self, time: int) -> str:
        instructions = self._assignment.ranges.schedule.instructions
        return instructions[time].name if time < len(instructions) else "the end"

    def _can_take_over(self, early: Value, late: Value) -> bool:
        user = late.instruction
        sharing = self._assignment.aliases.sharing
        return user.opcode is not Opcode.COPY and any(
            p.instruction in user.operands and sharing.can_share(p.instruction, p.index, user, late.index)
            for p in early.positions
        )

    def _take_over_text(self, early: Value, late: Value) -> str:
        user = late.instruction
        if not any(p.instruction in user.operands for p in early.positions):
            return f"{value_label(late)} begins while {value_label(early)} ends, and is not computed from it"
        if user.opcode is Opcode.COPY:
            return f"{user.name} is a copy, which never works in its operand's place"
        return f"{user.name} ({user.opcode}) cannot be written over {value_label(early)} while it reads it"


def _where(home: Allocation, value: Value) -> str:
    offset, size = home.places[value]
    return f"allocation {home.index} ({home.kind}) at {offset}..{offset + size}"
