"""Which arrays of a module must be laid out alike, across loops, branches and calls, and what XLA decided for them.

1. Arrays that pass through tuples, get-tuple-elements and barriers are one buffer (points-to analysis).
2. What a loop returns, what its body takes and what its condition takes are one array each.
3. All results of calls to one computation are alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from layoutsim.analysis.points_to import LogicalBuffer, PointsTo
from layoutsim.ir import ArrayShape, Computation, Instruction, Layout, Module, Opcode, Shape, ShapeIndex, subshape
from layoutsim.ir.traverse import computations_post_order, fusion_bodies
from layoutsim.passes.layout_assignment.rules import array_of, layout_leaves


@define(eq=False)
class LaidOut:
    """A copy of the module after one run of XLA's pass; its instructions are found by those of the module."""

    module: Module
    _twins: dict[str, dict[str, Instruction]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._twins = {c.name: {i.name: i for i in c.instructions} for c in self.module.computations}

    def twin(self, instruction: Instruction) -> Instruction:
        """The same instruction after the pass."""
        assert instruction.parent is not None, instruction
        return self._twins[instruction.parent.name][instruction.name]

    def result_layout(self, instruction: Instruction, index: ShapeIndex) -> Layout:
        """The layout of a part of an instruction's result."""
        return _layout(self.twin(instruction), index)

    def operand_layout(self, instruction: Instruction, number: int, index: ShapeIndex) -> Layout:
        """The layout in which an instruction reads a part of an operand, behind any copy."""
        return _layout(self.twin(instruction).operand(number), index)

    def root_layout(self, computation: Computation, index: ShapeIndex) -> Layout:
        """The layout in which a computation returns a part of its result."""
        twin = self.twin(computation.root).parent
        assert twin is not None, computation
        return _layout(twin.root, index)


def _layout(instruction: Instruction, index: ShapeIndex) -> Layout:
    found = array_of(subshape(instruction.shape, index)).layout
    assert found is not None, (instruction, index)
    return found


@define(eq=False)
class Arrays:
    """The arrays of a module, in groups that are laid out alike.

    Attributes:
        computations: reachable ones outside fusions, callees first.
        controlled: those of them that are reached through loops, conditionals and calls only.
    """

    module: Module
    points_to: PointsTo = field(init=False)
    computations: list[Computation] = field(init=False)
    controlled: frozenset[Computation] = field(init=False)
    _leader: dict[LogicalBuffer, LogicalBuffer] = field(factory=dict[LogicalBuffer, LogicalBuffer], init=False)
    _first_calls: dict[Computation, Instruction] = field(factory=dict[Computation, Instruction], init=False)

    def __attrs_post_init__(self) -> None:
        self.points_to = PointsTo(self.module)
        bodies = fusion_bodies(self.module)
        self.computations = [c for c in computations_post_order(self.module) if c not in bodies]
        self.controlled = frozenset(_controlled(self.module.entry))
        self._join_ambiguous()
        for computation in self.computations:
            for instruction in computation.instructions:
                self._join_callees(instruction)

    def at(self, instruction: Instruction, index: ShapeIndex) -> LogicalBuffer:
        """The group of a part of an instruction's value, named by one of its buffers."""
        return self.leader(self.points_to.at(instruction, index)[0])

    def leader(self, buffer: LogicalBuffer) -> LogicalBuffer:
        """The group of a buffer."""
        path: list[LogicalBuffer] = []
        while (above := self._leader.get(buffer)) is not None:
            path.append(buffer)
            buffer = above
        for passed in path[:-1]:
            self._leader[passed] = buffer
        return buffer

    def buffers(self) -> Iterator[LogicalBuffer]:
        """Every array that is made outside fusions, by id."""
        inside = frozenset(self.computations)
        for buffer in self.points_to.buffers:
            if buffer.is_array and buffer.instruction.parent in inside:
                yield buffer

    def is_first_call(self, call: Instruction) -> bool:
        """Whether ``call`` is the one that stands for all calls of its computation."""
        return self._first_calls[call.to_apply] is call

    # -- joining ---------------------------------------------------------------------------------------------------

    def _join(self, a: LogicalBuffer, b: LogicalBuffer) -> None:
        first, second = self.leader(a), self.leader(b)
        if first is not second:
            low, high = sorted((first, second), key=lambda buffer: buffer.id)
            self._leader[high] = low

    def _join_ambiguous(self) -> None:
        for computation in self.computations:
            for instruction in computation.instructions:
                for buffers in self.points_to.points_to(instruction):
                    for other in buffers[1:]:
                        self._join(buffers[0], other)

    def _join_callees(self, instruction: Instruction) -> None:
        if instruction.opcode is Opcode.WHILE:  # (2)
            for called in instruction.called_computations:
                self._join_parts(instruction, called.parameters[0])
        elif instruction.opcode is Opcode.CALL:  # (3)
            first = self._first_calls.setdefault(instruction.to_apply, instruction)
            if first is not instruction:
                self._join_parts(first, instruction)

    def _join_parts(self, a: Instruction, b: Instruction) -> None:
        for index, _ in layout_leaves(a.shape):
            self._join(self.points_to.at(a, index)[0], self.points_to.at(b, index)[0])


def _controlled(entry: Computation) -> Iterator[Computation]:
    seen, waiting = {entry}, [entry]
    while waiting:
        computation = waiting.pop()
        yield computation
        for instruction in computation.instructions:
            if instruction.opcode in (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL):
                fresh = [c for c in instruction.called_computations if c not in seen]
                seen.update(fresh)
                waiting += fresh


def sized_dimensions(shape: ArrayShape) -> frozenset[int]:
    """The dimensions whose size is not 1."""
    return frozenset(d for d, size in enumerate(shape.dimensions) if size != 1)


def ranked_leaves(shape: Shape) -> Iterator[tuple[ShapeIndex, ArrayShape]]:
    """Arrays of rank 2 and more; all others have one layout."""
    return ((index, leaf) for index, leaf in layout_leaves(shape) if leaf.rank > 1)
