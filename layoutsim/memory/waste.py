"""What the largest buffers at the peak are there for: waste that has a name and a remedy, or need.

Each buffer alive at the peak is put into the first class that applies:

1. *padding*: at least half of its bytes are padding of tiles.
2. *needed*: it is an argument or a constant.
3. *restacked loop input*: a loop stacks it slice by slice from an input that has the same content
   (:mod:`layoutsim.memory.restack`).
4. *layout copy*: a value in it is made by nothing but transposing another one (:mod:`layoutsim.memory.movement`).
5. *hoisted up-cast*: it is made by nothing but widening the elements of another array, outside of a loop that reads it, or
   reads a copy of it.
6. *kept alive by a select or conditional*: everything else that reads it has run; only the select still needs it beside a
   value computed from it, or the conditional.
7. *outputs of one fusion*: a fusion makes several large outputs at once which are read one after the other.
8. *loop carry*: a loop carries it from iteration to iteration.
9. *needed*: all others.

*Fragmentation*, the bytes of the temporaries that no value has at the peak, is a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cached_property

from attrs import frozen

from layoutsim.analysis.values import Value
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ArrayShape
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.movement import movement_of
from layoutsim.memory.restack import restacked_input
from layoutsim.memory.sharing_verdict import value_label
from layoutsim.memory.summary import Peak, find_peak, summarize
from layoutsim.memory.tiles import has_tiles, tile_padding

_DERIVATION_STEPS = 500
_LARGE_PART = 0.01
"""A fusion's output is large if it has at least this part of the bytes at the peak."""


class Waste(Enum):
    """Why a buffer is there; the rules above."""

    PADDING = "padding"
    RESTACKED = "restacked loop input"
    LAYOUT_COPY = "layout copy"
    UP_CAST = "dtype up-cast hoisted out of a loop"
    KEPT_ALIVE = "kept alive by select or conditional"
    FUSION_OUTPUTS = "fusion making many outputs live"
    LOOP_CARRY = "loop carry"
    FRAGMENTATION = "fragmentation"
    NEEDED = "needed"


@frozen(eq=False)
class WasteRow:
    """A buffer at the peak (or the gaps between buffers: ``value`` is ``None``), its class, and why."""

    value: Value | None
    size: int
    waste: Waste
    reason: str

    @property
    def label(self) -> str:
        return "gaps between values" if self.value is None else value_label(self.value)

    def to_json(self) -> dict[str, object]:
        """By name."""
        return {"name": self.label, "bytes": self.size, "class": self.waste.value, "reason": self.reason}


@frozen(eq=False, slots=False)
class WasteReport:
    """Rows, the largest first."""

    rows: tuple[WasteRow, ...]

    @cached_property
    def bytes_by_class(self) -> Mapping[str, int]:
        """Bytes at the peak by class, the most first."""
        sums: dict[Waste, int] = {}
        for row in self.rows:
            sums[row.waste] = sums.get(row.waste, 0) + row.size
        return {waste.value: sums[waste] for waste in sorted(sums, key=lambda waste: (-sums[waste], waste.value))}


def waste_report(assignment: BufferAssignment, largest: int | None = None) -> WasteReport:
    """Classes of the ``largest`` buffers at the peak (all by default), and fragmentation."""
    peak = find_peak(assignment)
    classifier = _Classifier(assignment, peak)
    rows = [WasteRow(value, size, *classifier.classify(value)) for value, size in peak.alive[:largest]]
    gaps = summarize(assignment).fragmentation_bytes
    if gaps > 0:
        reason = "bytes of the temporaries that are lost to alignment or lie between values"
        rows.append(WasteRow(None, gaps, Waste.FRAGMENTATION, reason))
    return WasteReport(tuple(sorted(rows, key=lambda row: -row.size)))


class _Classifier:
    def __init__(self, assignment: BufferAssignment, peak: Peak) -> None:
        self._assignment = assignment
        self._aliases = assignment.aliases
        self._dataflow = assignment.aliases.dataflow
        self._times = assignment.ranges.schedule.times
        self._peak = peak
        self._peak_time = self._times.get(peak.at, 0) if peak.at is not None else 0
        self._alive = {self._aliases.buffer_of(value) for value, _ in peak.alive}
        self._outputs = self._fusion_outputs()

    def classify(self, value: Value) -> tuple[Waste, str]:
        """The first class that applies."""
        home = self._assignment.allocation_of[value]
        values = self._aliases.buffer_of(value).values
        reasons: Sequence[tuple[Waste, str]] = [
            (Waste.PADDING, self._padding(value)),
            (Waste.NEEDED, _held(home)),
            (Waste.RESTACKED, self._restacked(values)),
            (Waste.LAYOUT_COPY, self._layout_copy(values)),
            (Waste.UP_CAST, self._up_cast(values)),
            (Waste.KEPT_ALIVE, self._kept_alive(value)),
            (Waste.FUSION_OUTPUTS, self._outputs.get(value, "")),
            (Waste.LOOP_CARRY, self._loop_carry(values)),
        ]
        found = next((entry for entry in reasons if entry[1]), None)
        return found or (Waste.NEEDED, "part of the result" if home.is_live_out else self._last_reader(value))

    def _padding(self, value: Value) -> str:
        """Rule (1)."""
        shape = value.shape
        if not isinstance(shape, ArrayShape) or not has_tiles(shape):
            return ""
        padding = tile_padding(shape)
        if 2 * padding.padding_bytes < padding.padded_bytes:
            return ""
        text = f"{padding.data_bytes:,} bytes of data in {padding.padded_bytes:,}"
        if padding.saved_by_best_order:
            text += f"; in the order {{{','.join(map(str, padding.best_order))}}} it would take {padding.best_padded_bytes:,}"
        return text

    def _restacked(self, values: Sequence[Value]) -> str:
        """Rule (3)."""
        for value in values:
            source = restacked_input(self._dataflow, value)
            if source is not None and self._aliases.buffer_of(source) is not self._aliases.buffer_of(value):
                loop = next((value_label(v) for v in values if v.instruction.opcode is Opcode.WHILE), value_label(value))
                label = value_label(source)
                return f"loop output {loop} equals loop input {label} (re-stacked): drop it from the scan outputs"
        return ""

    def _layout_copy(self, values: Sequence[Value]) -> str:
        """Rule (4)."""
        for value in values:
            movement = movement_of(value.instruction, value.index)
            if movement is not None and movement.transposes:
                source = movement.source
                beside = ", which is alive too" if self._is_alive(source) else ""
                return f"{value_label(value)} is a transposing copy of {source.name}{beside}"
        return ""

    def _is_alive(self, instruction: Instruction) -> bool:
        return any(self._aliases.buffer_of(value) in self._alive for value in self._dataflow.value_set(instruction))

    def _up_cast(self, values: Sequence[Value]) -> str:
        """Rule (5)."""
        for value in values:
            movement = movement_of(value.instruction, value.index)
            if movement is None or not movement.widens:
                continue
            loop = self._loop_reading(value)
            if loop is not None:
                types = f"{_element_type(movement.source)} to {_element_type(value.instruction)}"
                return f"{value_label(value)} widens {movement.source.name} from {types} before {loop.name}"
        return ""

    def _loop_reading(self, value: Value) -> Instruction | None:
        """The loop that carries the value, or what nothing but movements make of it, unchanged."""
        pending = [value]
        while pending:
            moved = pending.pop()
            loop = _loop_carrying(moved)
            if loop is not None:
                return loop
            users = (use.instruction for use in moved.uses if movement_of(use.instruction) is not None)
            pending += [self._dataflow.value_at(user) for user in users if user.opcode is not Opcode.BITCAST]
        return None

    def _kept_alive(self, value: Value) -> str:
        """Rule (6)."""
        times = self._times
        late = [use.instruction for use in value.uses if times.get(use.instruction, -1) > self._peak_time]
        early = [use.instruction for use in value.uses if -1 < times.get(use.instruction, -1) <= self._peak_time]
        if not late or not early:
            return ""
        if all(user.opcode is Opcode.CONDITIONAL for user in late):
            return f"only {late[0].name} (conditional) still reads it"
        if all(_selects(user) and self._beside_own_successor(user, value) for user in late):
            return f"only {late[0].name} still reads it, to choose between it and what was computed from it"
        return ""

    def _beside_own_successor(self, user: Instruction, value: Value) -> bool:
        """Whether another operand of ``user`` was computed from ``value``, as far as the computation shows."""
        pending = [o for o in user.operands if value not in self._dataflow.value_set(o)]
        seen: dict[Instruction, None] = {}
        while pending and len(seen) < _DERIVATION_STEPS:
            instruction = pending.pop()
            if instruction in seen:
                continue
            seen[instruction] = None
            if any(value in values for o in instruction.operands for values in self._dataflow.value_sets(o)):
                return True
            pending += instruction.operands
        return False

    def _fusion_outputs(self) -> dict[Value, str]:
        """Rule (7), for all values at once."""
        by_fusion: dict[Instruction, list[tuple[Value, int]]] = {}
        for value, size in self._peak.alive:
            if value.instruction.opcode is Opcode.FUSION and value.index and size >= _LARGE_PART * self._peak.bytes:
                by_fusion.setdefault(value.instruction, []).append((value, size))
        found: dict[Value, str] = {}
        for fusion, outputs in by_fusion.items():
            if len({self._first_reading(value) for value, _ in outputs}) > 1:
                total = sum(size for _, size in outputs)
                reason = f"{fusion.name} makes {len(outputs)} outputs of {total:,} bytes at once, read one after the other"
                found |= {value: reason for value, _ in outputs}
        return found

    def _first_reading(self, value: Value) -> int:
        return min((self._times[use.instruction] for use in value.uses if use.instruction in self._times), default=-1)

    def _loop_carry(self, values: Sequence[Value]) -> str:
        """Rule (8)."""
        loop = next((v for v in values if v.is_phi and v.instruction.opcode is Opcode.WHILE), None)
        return f"carried by {value_label(loop)}" if loop is not None else ""

    def _last_reader(self, value: Value) -> str:
        users = [use.instruction for use in value.uses if use.instruction in self._times]
        if not users:
            return "made here"
        last = max(users, key=lambda user: self._times[user])
        return f"read until {last.name} ({last.opcode})"


def _held(home: Allocation) -> str:
    """Rule (2)."""
    if home.parameter is not None:
        return f"argument {home.parameter.number}{' (donated)' if home.parameter.is_donated else ''}"
    return "constant" if home.is_constant else ""


def _loop_carrying(value: Value) -> Instruction | None:
    """The loop that carries the value unchanged."""
    homes = [p.instruction.parent for p in value.positions if p.instruction.opcode is Opcode.PARAMETER]
    users = (use.instruction for use in value.uses if use.instruction.opcode is Opcode.WHILE)
    return next((user for user in users if user.body in homes), None)


def _selects(user: Instruction) -> bool:
    """A select, or a fusion that ends in one."""
    end = user.to_apply.root if user.opcode is Opcode.FUSION else user
    while end.opcode in (Opcode.BITCAST, Opcode.COPY):
        end = end.operand(0)
    return end.opcode is Opcode.SELECT


def _element_type(instruction: Instruction) -> str:
    shape = instruction.shape
    return shape.element_type.value if isinstance(shape, ArrayShape) else str(shape)
