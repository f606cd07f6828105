"""The peak as a function of an assignment: live ranges of one schedule, with what each copy adds to them.

The schedule and the live ranges depend on the copies that are there. To state the peak as a sum, they are taken from one
module: laid out as by XLA, with a *stand-in* for the copy on every edge that can cost one, and run through the rest of the
preset's passes. There

1. a buffer is live in the ranges of its values; parameters, outputs and constants always are;
2. a value that takes over an operand's place begins after it, if nothing else keeps that operand's array;
3. an edge that is satisfied needs no copy: source and stand-in are one array, live where either is;
4. an edge that is not satisfied adds the array's size at each time at which source and stand-in are both live. Edges between
   the same two buffers add it once;
5. a stand-in that copy insertion needs anyway (found in a second module, whose stand-ins keep the layout, so that it may elide
   them) is there in any case and adds nothing.

What it leaves out: a schedule of its own for each assignment, and the holes between packed buffers. So whoever chooses by this
sum compares the result by the real passes (:func:`layoutsim.experiments.joint.assignment.assign_jointly` does).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import define, frozen

from layoutsim.analysis.alias import AliasedValues
from layoutsim.analysis.values import Value
from layoutsim.experiments.joint.apply import element_of, lay_out
from layoutsim.experiments.joint.model import Model
from layoutsim.experiments.joint.problem import Assignment, Edge, Problem, is_open
from layoutsim.experiments.simulate import profile_of
from layoutsim.ir import ArrayShape, Instruction, Module, Opcode, ShapeIndex, TupleShape
from layoutsim.ir.clone import clone_module
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.simulator import EventKind, buffer_size
from layoutsim.memory.summary import MemorySummary, summarize
from layoutsim.passes import Pipeline
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.copy_attributes import copied_attributes

Span = tuple[int, int]
"""First and last logical time, both included."""


@frozen
class Overlap:
    """Edges between the same two buffers, and when both are live.

    Attributes:
        edges: their numbers in the problem.
        size_bytes: added at each of the times if one of the edges is not satisfied.
        spans: the times.
    """

    edges: tuple[int, ...]
    size_bytes: int
    spans: tuple[Span, ...]

    def covers(self, moment: int) -> bool:
        """Whether both buffers are live at a time."""
        return any(first <= moment <= last for first, last in self.spans)


@frozen(eq=False)
class PeakModel:
    """Live bytes over time.

    Attributes:
        base: bytes live at each logical time if every edge is satisfied.
        overlaps: what edges add.
    """

    base: np.ndarray
    overlaps: tuple[Overlap, ...]

    def live_bytes(self, problem: Problem, chosen: Assignment) -> np.ndarray:
        """Bytes live at each logical time."""
        changes = np.zeros(len(self.base) + 1, dtype=np.int64)
        for overlap in self.overlaps:
            if any(not problem.is_satisfied(problem.edges[number], chosen) for number in overlap.edges):
                _add(changes, overlap.spans, overlap.size_bytes)
        return self.base + np.cumsum(changes)[:-1]

    def peak(self, problem: Problem, chosen: Assignment) -> int:
        """The most bytes live at a time."""
        return int(self.live_bytes(problem, chosen).max())


def peak_model(model: Model, pipeline: Pipeline) -> PeakModel:
    """The sum for a model whose modes are complete; it and its module stay as they are.

    Args:
        pipeline: what runs after its layout assignment decides the live ranges.
    """
    chosen = model.assignment_of(model.answer)
    edges = {n: edge for n, edge in enumerate(model.problem.edges) if _can_cost(model.problem, edge, chosen)}
    rest = pipeline.parted_at(LayoutAssignment)[2]
    needed = _still_there(model.twin(clone_module(model.arrays.module)), edges, chosen, rest)
    twin = model.twin(clone_module(model.arrays.module))
    stand_ins = _put_stand_ins(twin, edges, chosen, turned=True)
    rest.run(twin.arrays.module)
    assignment = assign_buffers(twin.arrays.module, profile_of(pipeline))
    return _Ranges(assignment).model({n: name for n, name in stand_ins.items() if n not in needed})


def memory_after(module: Module, pipeline: Pipeline) -> MemorySummary:
    """Memory of a laid out module once the passes behind the pipeline's layout assignment have run; it is used up."""
    pipeline.parted_at(LayoutAssignment)[2].run(module)
    return summarize(assign_buffers(module, profile_of(pipeline)))


def _can_cost(problem: Problem, edge: Edge, chosen: Assignment) -> bool:
    if not (edge.cost or edge.tie) or edge.moves_itself:
        return False
    return is_open(edge.producer) or is_open(edge.consumer) or not problem.is_satisfied(edge, chosen)


# -- stand-ins -------------------------------------------------------------------------------------------------------------


def _still_there(model: Model, edges: Iterable[int], chosen: Assignment, rest: Pipeline) -> frozenset[int]:
    """Rule (5): the edges whose stand-in survives."""
    stand_ins = _put_stand_ins(model, edges, chosen, turned=False)
    rest.run(model.arrays.module)
    left = {instruction.name for computation in model.arrays.module.computations for instruction in computation.instructions}
    return frozenset(number for number, name in stand_ins.items() if name in left)


def _put_stand_ins(model: Model, edges: Iterable[int], chosen: Assignment, *, turned: bool) -> dict[int, str]:
    """Lay the module out and put a copy on each of the edges; its name by the edge's number."""
    slots: dict[tuple[Instruction, int | None], dict[ShapeIndex, int]] = {}
    for number in edges:
        edge = model.problem.edges[number]
        slots.setdefault((edge.user, edge.slot), {})[edge.index] = number
    lay_out(model, chosen)
    names: dict[int, str] = {}
    for (user, slot), numbers in slots.items():
        value = user if slot is None else user.operand(slot)
        made: dict[ShapeIndex, Instruction] = {}
        new = _with_copies(value, numbers, (), made, turned=turned)
        names.update((number, made[index].name) for index, number in numbers.items())
        if slot is None:
            assert value.parent is not None, value
            value.parent.root = new
        else:
            user.replace_operand(slot, new)
    return names


def _with_copies(
    value: Instruction,
    places: Mapping[ShapeIndex, int],
    index: ShapeIndex,
    made: dict[ShapeIndex, Instruction],
    *,
    turned: bool,
) -> Instruction:
    if not any(place[: len(index)] == index for place in places):
        return value
    computation = value.parent
    assert computation is not None, value
    if isinstance(value.shape, TupleShape):
        parts = [
            _with_copies(element_of(value, number, element), places, (*index, number), made, turned=turned)
            for number, element in enumerate(value.shape.elements)
        ]
        shape = TupleShape(tuple(part.shape for part in parts))
        return computation.add(Opcode.TUPLE, shape, parts, attributes=copied_attributes(value, ()))
    assert isinstance(value.shape, ArrayShape), value
    shape = _turned(value.shape) if turned else value.shape
    made[index] = computation.add(Opcode.COPY, shape, [value], attributes=copied_attributes(value, ()))
    return made[index]


def _turned(shape: ArrayShape) -> ArrayShape:
    """In another layout, so that no pass takes the copy for one that may go."""
    layout = shape.layout
    assert layout is not None, shape
    return shape.with_layout(layout.with_order(tuple(reversed(layout.minor_to_major))))


# -- live ranges -----------------------------------------------------------------------------------------------------------


@define(eq=False)
class _Arrays:
    """Buffers that are one array if all edges are satisfied."""

    leaders: dict[AliasedValues, AliasedValues]

    def find(self, buffer: AliasedValues) -> AliasedValues:
        while (above := self.leaders.get(buffer, buffer)) is not buffer:
            buffer = above
        return buffer

    def join(self, a: AliasedValues, b: AliasedValues) -> None:
        low, high = sorted((self.find(a), self.find(b)), key=lambda buffer: buffer.id)
        if low is not high:
            self.leaders[high] = low


class _Ranges:
    """When each buffer of an assignment is live."""

    def __init__(self, assignment: BufferAssignment) -> None:
        self._aliases, self._ranges = assignment.aliases, assignment.ranges
        self._assignment = assignment
        self._size = assignment.profile.size
        self._end = self._ranges.end + 1
        self._late: frozenset[Value] = frozenset()
        self._instructions = {i.name: i for i in self._ranges.schedule.instructions}

    def model(self, stand_ins: Mapping[int, str]) -> PeakModel:
        pairs = {
            number: self._sides(self._instructions[name]) for number, name in stand_ins.items() if name in self._instructions
        }
        arrays = _Arrays({})
        for source, copy in pairs.values():
            arrays.join(source, copy)
        self._late = frozenset(self._taking_over(arrays))
        edges_of: dict[tuple[AliasedValues, AliasedValues], list[int]] = {}
        for number, (a, b) in pairs.items():
            edges_of.setdefault((a, b) if a.id <= b.id else (b, a), []).append(number)
        overlaps = [self._overlap(sides, numbers) for sides, numbers in edges_of.items()]
        return PeakModel(self._base(arrays), tuple(overlap for overlap in overlaps if overlap.spans and overlap.size_bytes))

    def _sides(self, copy: Instruction) -> tuple[AliasedValues, AliasedValues]:
        source = self._aliases.dataflow.value_set(copy.operand(0))[0]
        return self._aliases.buffer_of(source), self._aliases.buffer_at(copy)

    def _overlap(self, sides: tuple[AliasedValues, AliasedValues], edges: Sequence[int]) -> Overlap:
        source, copy = sides
        size = min(buffer_size(source, self._size), buffer_size(copy, self._size))
        return Overlap(tuple(edges), size, tuple(_common(self._spans(source), self._spans(copy))))

    def _spans(self, buffer: AliasedValues) -> list[Span]:
        """Rules (1) and (2)."""
        home = self._assignment.allocation_of.get(buffer.values[0])
        if home is None or home.is_thread_local:
            return []
        if self._is_held(buffer):
            return [(0, self._end - 1)]
        live = [(value, self._ranges[value]) for value in buffer.values if self._ranges.get(value) is not None]
        spans = [(live_range.start + (value in self._late), live_range.end) for value, live_range in live]
        return sorted(span for span in spans if span[0] <= span[1])

    def _is_held(self, buffer: AliasedValues) -> bool:
        kinds = {value.instruction.opcode for value in buffer.values if value.instruction.parent is self._aliases.module.entry}
        return buffer in self._aliases.live_out or bool(kinds & {Opcode.PARAMETER, Opcode.CONSTANT})

    def _taking_over(self, arrays: _Arrays) -> Iterator[Value]:
        """Rule (2)."""
        until: dict[AliasedValues, int] = {}
        for buffer in self._aliases.buffers:
            last = max((end for _, end in self._spans(buffer)), default=-1)
            leader = arrays.find(buffer)
            until[leader] = max(last, until.get(leader, -1))
        for allocation in self._assignment.allocations:
            for heap in allocation.heaps:
                for event in heap.events:
                    if event.kind is EventKind.SHARE and event.source is not None:
                        ours, theirs = (arrays.find(self._aliases.buffer_of(v)) for v in (event.value, event.source))
                        if ours is not theirs and until[theirs] <= self._ranges[event.value].start:
                            yield event.value

    def _base(self, arrays: _Arrays) -> np.ndarray:
        """Rule (3)."""
        members: dict[AliasedValues, list[AliasedValues]] = {}
        for buffer in self._aliases.buffers:
            members.setdefault(arrays.find(buffer), []).append(buffer)
        allocations = self._assignment.allocations
        held = sum(allocation.size for allocation in allocations if not (allocation.is_temp or allocation.is_thread_local))
        changes = np.zeros(self._end + 1, dtype=np.int64)
        for buffers in members.values():
            homes = [self._assignment.allocation_of.get(buffer.values[0]) for buffer in buffers]
            if not all(home is None or home.is_temp for home in homes):
                continue
            spans = list(_joined(sorted(span for buffer in buffers for span in self._spans(buffer))))
            if spans:
                _add(changes, spans, max(buffer_size(buffer, self._size) for buffer in buffers))
        return held + np.cumsum(changes)[:-1]


def _add(changes: np.ndarray, spans: Iterable[Span], size: int) -> None:
    for first, last in spans:
        changes[first] += size
        changes[last + 1] -= size


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Disjoint spans of the same times, from ones in order."""
    start, end = None, -1
    for first, last in spans:
        if start is None or first > end:
            if start is not None:
                yield start, end
            start, end = first, last
        end = max(end, last)
    if start is not None:
        yield start, end


def _common(ours: Iterable[Span], theirs: Iterable[Span]) -> Iterator[Span]:
    """The times in both."""
    mine, others = list(_joined(ours)), list(_joined(theirs))
    for first, last in mine:
        for start, end in others:
            if max(first, start) <= min(last, end):
                yield max(first, start), min(last, end)
