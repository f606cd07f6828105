"""Where every value of a module is in memory, as a buffer assignment says it: our own, or one that XLA printed.

An assignment gives a place to each value at the instruction that defines it. Other positions look elsewhere, and where is a
matter of the instruction alone:

1. ``get-tuple-element``, ``tuple``, ``bitcast``, barriers and the done of an asynchronous operation look where their operand's
   part is; so do the parts of a start that repeat its operands.
2. A parameter looks where its caller's operand is, a call where its callee's root is.
3. A ``while`` or ``conditional`` without a place of its own looks where its operand, or its first branch's root, is.

This is worked out here from the module, without the analyses that the assignment was made with.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from layoutsim.errors import InputError
from layoutsim.ir import Computation, Instruction, Module, Opcode, ShapeIndex, TupleShape, index_text
from layoutsim.ir.opcode import CallContext
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.report_format import AssignmentReport

Position = tuple[Instruction, ShapeIndex]


@frozen
class Place:
    """``size`` bytes at ``offset`` of an allocation."""

    allocation: int
    offset: int
    size: int

    def __str__(self) -> str:
        return f"allocation {self.allocation}, bytes {self.offset}:{self.offset + self.size}"


@frozen
class Block:
    """An allocation.

    Attributes:
        is_read_only: a constant, or an entry parameter that is not donated.
    """

    index: int
    size: int
    is_read_only: bool


@frozen(eq=False)
class Places:
    """An assignment as the heap machine needs it: allocations, and the places of defined values."""

    module: Module
    blocks: tuple[Block, ...]
    defined: Mapping[Position, Place]

    @staticmethod
    def of_assignment(assignment: BufferAssignment) -> Places:
        """The places of one of our assignments."""
        blocks = tuple(Block(a.index, a.size, a.is_read_only) for a in assignment.allocations)
        defined = {
            (value.instruction, value.index): Place(allocation.index, offset, size)
            for allocation in assignment.allocations
            for value, (offset, size) in allocation.places.items()
        }
        return Places(assignment.aliases.module, blocks, defined)

    @staticmethod
    def of_report(report: AssignmentReport, module: Module) -> Places:
        """The places in a report that XLA printed for ``module``.

        Raises:
            InputError: the report names an instruction that the module does not have.
        """
        by_name = {i.name: i for computation in module.computations for i in computation.instructions}
        donated = {(alias.parameter_number, alias.parameter_index) for alias in module.input_output_aliases}
        blocks: list[Block] = []
        defined: dict[Position, Place] = {}
        for allocation in report.allocations:
            parameter = allocation.parameter
            is_given = parameter is not None and (parameter.number, parameter.index) in donated
            is_read_only = allocation.constant or (parameter is not None and not is_given)
            blocks.append(Block(allocation.index, allocation.size, is_read_only))
            for value in allocation.values:
                instruction = by_name.get(value.value.name)
                if instruction is None:
                    raise InputError(f"the report names {value.value.name}, which module {module.name} does not have")
                place = Place(allocation.index, value.offset, value.size)
                defined[instruction, value.value.index or ()] = place
        return Places(module, tuple(blocks), defined)


class PlaceFinder:
    """Looks up the place of any position (rules 1 to 3)."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._found: dict[Position, Place | None] = {}
        self._callers = _control_flow_callers(places.module)

    def is_defined(self, instruction: Instruction, index: ShapeIndex) -> bool:
        """Whether the assignment gives a place to this very position (the table of a variadic done, for instance)."""
        return (instruction, index) in self._places.defined

    def find(self, instruction: Instruction, index: ShapeIndex = ()) -> Place | None:
        """The place that readers of this position look at, ``None`` where the assignment gives none."""
        trail: list[Position] = []
        position: Position | None = (instruction, index)
        while position is not None and position not in self._found and position not in self._places.defined:
            trail.append(position)
            position = self._source(*position)
            if position in trail:
                position = None
        found = None
        if position is not None:
            found = self._places.defined.get(position) or self._found.get(position)
        for passed in trail:
            self._found[passed] = found
        return found

    def _source(self, instruction: Instruction, index: ShapeIndex) -> Position | None:
        """Where this position looks instead of having a place."""
        if instruction.opcode is Opcode.PARAMETER:
            return self._argument(instruction, index)
        if instruction.opcode is Opcode.WHILE:
            return instruction.operand(0), index
        if instruction.opcode in (Opcode.CALL, Opcode.CONDITIONAL):
            return instruction.called_computations[0].root, index
        return forwarded_from(instruction, index)

    def _argument(self, parameter: Instruction, index: ShapeIndex) -> Position | None:
        assert parameter.parent is not None
        found = self._callers.get(parameter.parent)
        if found is None:
            return None
        caller, number = found
        match caller.opcode:
            case Opcode.WHILE:
                return caller.operand(0), index
            case Opcode.CONDITIONAL:
                return caller.operand(number + 1), index
            case _:
                return caller.operand(parameter.parameter_number), index


def _control_flow_callers(module: Module) -> dict[Computation, tuple[Instruction, int]]:
    """The caller of each computation of control flow, and which of the caller's computations it is.

    Raises:
        InputError: a computation has several callers, so no place can be told for its values.
    """
    out: dict[Computation, tuple[Instruction, int]] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode.spec.calls is not CallContext.CONTROL_FLOW or not _starts(instruction):
                continue
            for number, callee in enumerate(instruction.called_computations):
                if callee in out:
                    raise InputError(f"computation {callee.name} has several callers; flatten the call graph first")
                out[callee] = (instruction, number)
    return out


def _starts(instruction: Instruction) -> bool:
    return instruction.opcode not in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)


_WHOLE = frozenset(
    {
        Opcode.BITCAST,
        Opcode.OPT_BARRIER,
        Opcode.DOMAIN,
        Opcode.ADD_DEPENDENCY,
        Opcode.ASYNC_UPDATE,
        Opcode.ALL_REDUCE_DONE,
    }
)
_SECOND_PART = frozenset({Opcode.ASYNC_DONE, Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE})
_FIRST_PART = frozenset({Opcode.COPY_DONE})


def forwarded_from(instruction: Instruction, index: ShapeIndex) -> Position | None:
    """The position whose value this one passes on unchanged; ``None`` where the instruction makes one (rule 1)."""
    opcode = instruction.opcode
    if opcode is Opcode.GET_TUPLE_ELEMENT:
        return instruction.operand(0), (instruction.tuple_index, *index)
    if opcode in _WHOLE:
        return instruction.operand(0), index
    if opcode in _SECOND_PART:
        return instruction.operand(0), (1, *index)
    if opcode in _FIRST_PART:
        return instruction.operand(0), (0, *index)
    return _part_from(instruction, index) if index else None


def _part_from(instruction: Instruction, index: ShapeIndex) -> Position | None:
    first, rest = index[0], index[1:]
    match instruction.opcode:
        case Opcode.TUPLE:
            return instruction.operand(first), rest
        case Opcode.ASYNC_START:
            if first == 1:
                return instruction.to_apply.root, rest
            return (instruction.operand(rest[0]), rest[1:]) if first == 0 and rest else None
        case Opcode.ALL_GATHER_START | Opcode.COLLECTIVE_PERMUTE_START:
            return _start_operand(instruction, rest) if first == 0 else None
        case Opcode.COPY_START:
            return (instruction.operand(0), rest) if first == 1 else None
        case Opcode.SEND | Opcode.RECV_DONE:
            return _transfer_part(instruction, first, rest)
        case _:
            return None


def _start_operand(instruction: Instruction, rest: ShapeIndex) -> Position | None:
    """Part 0 of a start is its operand, or the tuple of its operands."""
    shape = instruction.shape
    assert isinstance(shape, TupleShape), instruction
    if not isinstance(shape.elements[0], TupleShape) or instruction.operand_count == 1:
        return instruction.operand(0), rest
    return (instruction.operand(rest[0]), rest[1:]) if rest else None


def _transfer_part(instruction: Instruction, first: int, rest: ShapeIndex) -> Position | None:
    if first != 0:
        return None
    return (instruction.operand(0), rest) if instruction.opcode is Opcode.SEND else (instruction.operand(0), (0, *rest))


def position_text(instruction: Instruction, index: ShapeIndex) -> str:
    """``add.1``, or ``while.2{0}`` for a part."""
    return instruction.name + (index_text(index) if isinstance(instruction.shape, TupleShape) else "")
