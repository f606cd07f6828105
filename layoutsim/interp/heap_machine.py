"""A machine that runs a scheduled module inside the memory that a buffer assignment gives it.

The reference interpreter (:mod:`layoutsim.interp.evaluator`) computes every value. The machine stores each value's bytes, laid
out by its layout, at the place that the assignment names, and looks there whenever an instruction reads:

1. What an instruction defines is written to its place. Positions that pass values on look where those are
   (:mod:`layoutsim.interp.places`).
2. A value is alive while a position that is still needed holds it. When the last one goes, its bytes are poisoned.
3. Before an instruction runs, every operand that it reads is looked up: the bytes must be those that the value's own writer
   wrote, and they must be the reference value's. Tables of pointers are memory like any other.
4. Asynchronous operations read until their done: their operands are looked up there again.
5. A result may overlap an operand of its own only where the operation works in place.
6. In the end the results must be in their places, and memory that was lent read-only must be as it was.

The machine knows nothing of live ranges, aliasing rules or heaps: what they got wrong shows up as a :class:`Finding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from attrs import define, frozen

from layoutsim.interp.arena import Arena, Fault, Finding, Instance
from layoutsim.interp.evaluator import Interpreter, async_value, branch_number
from layoutsim.interp.options import DEFAULT_OPTIONS, Options
from layoutsim.interp.places import Place, PlaceFinder, Places, forwarded_from, position_text
from layoutsim.interp.strided import from_memory, physical_bytes, to_memory
from layoutsim.interp.values import Array, Value, as_array, fail
from layoutsim.ir import (
    ArrayShape,
    BufferShape,
    Computation,
    Instruction,
    Opcode,
    Shape,
    ShapeIndex,
    TupleShape,
    subshape,
    subshapes,
)
from layoutsim.ir.opcode import ASYNC_DONES, ELEMENTWISE
from layoutsim.ir.shape import POINTER_BYTES

_IN_PLACE = ELEMENTWISE | {
    Opcode.DYNAMIC_UPDATE_SLICE,
    Opcode.SCATTER,
    Opcode.SORT,
    Opcode.FUSION,
    Opcode.CUSTOM_CALL,
    Opcode.ALL_REDUCE,
    Opcode.ALL_REDUCE_START,
    Opcode.COLLECTIVE_BROADCAST,
    Opcode.COLLECTIVE_PERMUTE,
    Opcode.COLLECTIVE_PERMUTE_START,
    Opcode.MAP,
    Opcode.RAGGED_ALL_TO_ALL,
    Opcode.RNG,
    Opcode.TRIANGULAR_SOLVE,
    Opcode.CHOLESKY,
    Opcode.SET_DIMENSION_SIZE,
}
"""Operations that may write a result over an operand of theirs (5); element by element, or because XLA defines them so."""

_PASSES_ON = frozenset(
    {
        Opcode.TUPLE,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.BITCAST,
        Opcode.OPT_BARRIER,
        Opcode.DOMAIN,
        Opcode.ADD_DEPENDENCY,
        Opcode.ASYNC_UPDATE,
        *ASYNC_DONES,
    }
)
"""Opcodes that read no array bytes themselves."""


@define(eq=False)
class Cell:
    """A value at a position: the reference value, and the instances that hold it, by shape index.

    Devices without a memory have no instances.
    """

    value: Value
    instances: dict[ShapeIndex, Instance]


@frozen
class HeapRun:
    """What came out.

    Attributes:
        results: the entry's result on each device, as the reference interpreter computes it.
        findings: everything that went wrong, in order of time.
    """

    results: tuple[Value, ...]
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        return not self.findings


def run_in_memory(
    places: Places,
    arguments: Sequence[Sequence[object]],
    *,
    options: Options = DEFAULT_OPTIONS,
    watched: Sequence[int] | None = None,
    max_findings: int = 20,
) -> HeapRun:
    """Execute the module of ``places`` inside its assigned memory.

    Args:
        arguments: as :meth:`Interpreter.run` takes them.
        watched: devices that have a memory; the others compute without. All devices run the same instructions in the same
            places, so that one of them shows most faults. All if absent.
        max_findings: where to stop looking; execution goes on.
    """
    return HeapMachine(places, options, watched, max_findings).execute(arguments)


class HeapMachine(Interpreter):
    """The interpreter with a memory for each device."""

    def __init__(
        self,
        places: Places,
        options: Options = DEFAULT_OPTIONS,
        watched: Sequence[int] | None = None,
        max_findings: int = 20,
    ) -> None:
        super().__init__(places.module, options)
        self._finder = PlaceFinder(places)
        with_memory = range(self.devices.count) if watched is None else watched
        self._arenas = {device: Arena(places.blocks) for device in with_memory}
        self._findings: list[Finding] = []
        self._max_findings = max_findings
        self._time = 0
        self._constant_cells: dict[tuple[Instruction, int], Cell] = {}
        self._last_encoded: tuple[Array | None, ArrayShape | None, Array] = (None, None, np.empty(0, np.uint8))

    def execute(self, arguments: Sequence[Sequence[object]]) -> HeapRun:
        """Run the entry once."""
        devices = tuple(range(self.devices.count))
        entry = self.module.entry
        prepared = self.prepare(arguments)
        self._load_constants(devices)
        cells = [
            tuple(self._defined(p, d, value, is_lent=True) for p, value in zip(entry.parameters, row, strict=True))
            for d, row in zip(devices, prepared, strict=True)
        ]
        for row in cells:
            _retained(row)  # the caller's, who looks at them when all is over
        roots = self._run(entry, devices, [_retained(row) for row in cells])
        for device in self._arenas:
            self._check_results(device, roots[device])
            self._check_lent(device, cells[device])
        return HeapRun(tuple(root.value for root in roots), tuple(self._findings))

    # -- computations ------------------------------------------------------------------------------------------------------

    def _run(self, computation: Computation, devices: tuple[int, ...], arguments: Sequence[Sequence[Cell]]) -> list[Cell]:
        """The root's cells; takes over a reference to each argument, and hands over one to each result."""
        plan = self.plan(computation)
        frame: dict[Instruction, list[Cell]] = {}
        for instruction, released in zip(plan.order, plan.releases, strict=True):
            if instruction.opcode is Opcode.PARAMETER:
                frame[instruction] = [row[instruction.parameter_number] for row in arguments]
            else:
                last_uses = [operand for operand in released if operand is not instruction]
                operands = [frame[operand] for operand in instruction.operands]
                let_go = partial(self._drop, frame, last_uses, devices)
                frame[instruction] = self._step(instruction, devices, operands, let_go)
                let_go()
                self._time += 1
            if instruction in released:
                self._drop(frame, [instruction], devices)
        return frame[computation.root]

    def _drop(self, frame: dict[Instruction, list[Cell]], dead: Sequence[Instruction], devices: tuple[int, ...]) -> None:
        """Give up what a frame still holds of ``dead``."""
        for instruction in dead:
            if instruction in frame:
                self._release_all(frame.pop(instruction), devices)

    def _step(
        self, instruction: Instruction, devices: tuple[int, ...], operands: list[list[Cell]], let_go: Callable[[], None]
    ) -> list[Cell]:
        """One instruction on all devices; the cells returned are retained.

        Args:
            let_go: gives up operands that nobody reads after this instruction. Control flow does so before it runs its
                computations: what they carry on is theirs, and dies inside.
        """
        match instruction.opcode:
            case Opcode.WHILE:
                states = _retained(operands[0])
                let_go()
                return self._loop(instruction, devices, states)
            case Opcode.CONDITIONAL:
                return self._choose(instruction, devices, operands, let_go)
            case Opcode.CALL:
                rows = [_retained(row) for row in _rows(operands, devices)]
                let_go()
                return self._run(instruction.to_apply, devices, rows)
            case Opcode.ASYNC_START:
                return self._start(instruction, devices, operands)
            case Opcode.CONSTANT:
                return [self._constant_cell(instruction, device) for device in devices]
            case _:
                self._read_operands(instruction, devices, operands)
                plain = [tuple(cell.value for cell in column) for column in operands]
                values = self.evaluate_instruction(instruction, devices, plain)
                results = zip(devices, values, _rows(operands, devices), strict=True)
                return [self._result(instruction, device, value, row) for device, value, row in results]

    def _loop(self, loop: Instruction, devices: tuple[int, ...], states: list[Cell]) -> list[Cell]:
        """Takes over ``states``."""
        active = list(range(len(devices)))
        for _ in range(self.options.max_trips):
            running = tuple(devices[i] for i in active)
            conditions = self._run(loop.condition, running, [_retained([states[i]]) for i in active])
            self._read_all(loop, running, loop.condition.root, conditions)
            go_on = [bool(as_array(cell.value)) for cell in conditions]
            self._release_all(conditions, running)
            active = [i for i, flag in zip(active, go_on, strict=True) if flag]
            if not active:
                return states
            running = tuple(devices[i] for i in active)
            new = self._run(loop.body, running, [[states[i]] for i in active])
            for i, cell in zip(active, new, strict=True):
                states[i] = cell
        raise fail(loop, f"still running after {self.options.max_trips} iterations")

    def _choose(
        self, choice: Instruction, devices: tuple[int, ...], operands: list[list[Cell]], let_go: Callable[[], None]
    ) -> list[Cell]:
        self._read_all(choice, devices, choice.operand(0), operands[0])
        selected = [branch_number(as_array(cell.value), len(choice.called_computations)) for cell in operands[0]]
        arguments = [_retained([operands[number + 1][i]]) for i, number in enumerate(selected)]
        let_go()
        results: dict[int, Cell] = {}
        for number, branch in enumerate(choice.called_computations):
            members = [i for i, chosen in enumerate(selected) if chosen == number]
            if members:
                rows = [arguments[i] for i in members]
                results.update(zip(members, self._run(branch, tuple(devices[i] for i in members), rows), strict=True))
        return [results[i] for i in range(len(devices))]

    def _start(self, start: Instruction, devices: tuple[int, ...], operands: list[list[Cell]]) -> list[Cell]:
        rows = _rows(operands, devices)
        roots = self._run(start.to_apply, devices, [_retained(row) for row in rows])
        pairs = zip(rows, roots, strict=True)
        values = [async_value(start, tuple(cell.value for cell in row), root.value) for row, root in pairs]
        out: list[Cell] = []
        for device, value, row, root in zip(devices, values, rows, roots, strict=True):
            out.append(self._result(start, device, value, row, root))
            self._release(root, device)
        return out

    # -- writing -----------------------------------------------------------------------------------------------------------

    def _result(
        self, instruction: Instruction, device: int, value: Value, operands: Sequence[Cell], root: Cell | None = None
    ) -> Cell:
        """The cell of a result: parts passed on keep their instances, the others are written (1)."""
        cell = Cell(value, {})
        for index, shape in _parts(instruction.shape) if device in self._arenas else ():
            source = None if self._finder.is_defined(instruction, index) else forwarded_from(instruction, index)
            if source is not None:
                cell.instances.update(_instance_at(instruction, source, index, operands, root))
            else:
                self._check_overlap(instruction, device, index, operands)
                cell.instances[index] = self._written(instruction, device, index, shape, _value_at(value, index))
        _retain(cell)
        return cell

    def _defined(self, instruction: Instruction, device: int, value: Value, *, is_lent: bool) -> Cell:
        """A cell all of whose parts are written: an entry parameter or a constant."""
        cell = Cell(value, {})
        for index, shape in _parts(instruction.shape) if device in self._arenas else ():
            part = _value_at(value, index)
            cell.instances[index] = self._written(instruction, device, index, shape, part, is_lent=is_lent)
        return cell

    def _written(
        self, instruction: Instruction, device: int, index: ShapeIndex, shape: Shape, value: Value, *, is_lent: bool = False
    ) -> Instance:
        arena = self._arenas[device]
        data = self._memory_of(instruction, device, index, shape, value)
        place = self._finder.find(instruction, index) if data is not None else None
        instance = arena.new_instance(instruction, index, place)
        if data is None:
            return instance
        fault = self._placing_fault(instruction, device, place, len(data), is_lent)
        if fault is None:
            instance.value = value
            arena.write(instance, data)
        else:
            instance.place = None
            self._report(fault, device, instruction, position_text(instruction, index), place)
        return instance

    def _placing_fault(
        self, instruction: Instruction, device: int, place: Place | None, size: int, is_lent: bool
    ) -> Fault | None:
        if place is None:
            return Fault.NO_PLACE if size and instruction.opcode is not Opcode.CONSTANT else None
        if place.size < size:
            return Fault.TOO_SMALL
        arena = self._arenas[device]
        if not arena.fits(place):
            return Fault.OUTSIDE
        return Fault.READ_ONLY if arena.blocks[place.allocation].is_read_only and not is_lent else None

    def _memory_of(self, instruction: Instruction, device: int, index: ShapeIndex, shape: Shape, value: Value) -> Array | None:
        """The bytes of a part: an array by its layout, a tuple as a table of addresses; nothing for tokens."""
        match shape:
            case ArrayShape():
                return self._encoded(as_array(value), shape)
            case BufferShape():
                return to_memory(as_array(value), shape.array)
            case TupleShape():
                places = [self._finder.find(instruction, (*index, i)) for i in range(len(shape.elements))]
                addresses = [-1 if place is None else self._arenas[device].address(place) for place in places]
                return np.array(addresses, np.int64).view(np.uint8)
            case _:
                return None

    def _encoded(self, value: Array, shape: ArrayShape) -> Array:
        """Bytes of an array; one object on several devices is laid out once."""
        last, last_shape, data = self._last_encoded
        if value is not last or shape != last_shape:
            data = to_memory(value, shape)
            self._last_encoded = (value, shape, data)
        return data

    def _check_overlap(self, instruction: Instruction, device: int, index: ShapeIndex, operands: Sequence[Cell]) -> None:
        """Rule (5)."""
        place = self._finder.find(instruction, index)
        if place is None:
            return
        size = _byte_size(subshape(instruction.shape, index))
        for number, operand in enumerate(operands):
            for part, instance in operand.instances.items():
                shape = subshape(instruction.operand(number).shape, part)
                other = instance.place
                if other is None or isinstance(shape, TupleShape) or not _overlap(place, other):
                    continue
                if not _works_in_place(instruction, number, place.offset == other.offset and _byte_size(shape) == size):
                    text = f"operand {position_text(instruction.operand(number), part)}"
                    self._report(Fault.IN_PLACE, device, instruction, text, place)

    def _load_constants(self, devices: tuple[int, ...]) -> None:
        """Constants are in memory from the beginning, in the computations that control flow reaches."""
        for computation in self._reached(self.module.entry):
            for instruction in computation.instructions:
                if instruction.opcode is not Opcode.CONSTANT or self._finder.find(instruction) is None:
                    continue
                value = self.constant_value(instruction)
                for device in devices:
                    cell = self._defined(instruction, device, value, is_lent=True)
                    _retain(cell)
                    self._constant_cells[instruction, device] = cell

    def _constant_cell(self, instruction: Instruction, device: int) -> Cell:
        """The constant in memory; one that the assignment gives no place has none."""
        cell = self._constant_cells.get((instruction, device))
        if cell is None:
            cell = self._defined(instruction, device, self.constant_value(instruction), is_lent=True)
        _retain(cell)
        return cell

    def _reached(self, entry: Computation) -> Iterator[Computation]:
        pending, seen = [entry], {entry}
        while pending:
            computation = pending.pop()
            yield computation
            for instruction in computation.instructions:
                if instruction.opcode in (Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.ASYNC_START):
                    new = [c for c in instruction.called_computations if c not in seen]
                    seen.update(new)
                    pending += new

    # -- reading -----------------------------------------------------------------------------------------------------------

    def _read_operands(self, instruction: Instruction, devices: tuple[int, ...], operands: list[list[Cell]]) -> None:
        """Rules (3) and (4)."""
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            for device, cell in zip(devices, operands[0], strict=True):
                self._read(instruction, device, instruction.operand(0), (), cell)
            return
        if instruction.opcode in _PASSES_ON and instruction.opcode not in ASYNC_DONES:
            return
        for operand, column in zip(instruction.operands, operands, strict=True):
            self._read_all(instruction, devices, operand, column)

    def _read_all(self, reader: Instruction, devices: tuple[int, ...], source: Instruction, cells: Sequence[Cell]) -> None:
        for device, cell in zip(devices, cells, strict=True):
            for index, shape in _parts(source.shape):
                if not isinstance(shape, TupleShape):
                    self._read(reader, device, source, index, cell)

    def _read(self, reader: Instruction, device: int, source: Instruction, index: ShapeIndex, cell: Cell) -> None:
        """Look up one part where readers of ``source`` look for it."""
        if device not in self._arenas:
            return
        instance = cell.instances[index]
        place = self._finder.find(source, index)
        shape = subshape(source.shape, index)
        size = _byte_size(shape)
        arena = self._arenas[device]
        if place is None or instance.place is None or not size or not arena.fits(place):
            return
        foreign = arena.foreign(place, min(size, place.size), instance)
        if foreign is not None:
            first, end, owner = foreign
            at = Place(place.allocation, place.offset + first, end - first)
            values = self._two_elements(arena, place, shape, _value_at(cell.value, index), first)
            fault, writer = (Fault.POISON, "") if owner is None else (Fault.CLOBBERED, owner.text)
            self._report(fault, device, reader, position_text(source, index), at, *values, writer)
        elif isinstance(shape, ArrayShape):
            value = as_array(_value_at(cell.value, index))
            is_as_written = value is instance.value and shape == subshape(instance.instruction.shape, instance.index)
            if not is_as_written:  # its own bytes, written from this very value in this very layout, are what they are
                self._compare(reader, device, source, index, place, shape, value)

    def _compare(
        self,
        reader: Instruction,
        device: int,
        source: Instruction,
        index: ShapeIndex,
        place: Place,
        shape: ArrayShape,
        expected: Array,
    ) -> None:
        """The bytes against the reference value's."""
        data, wanted = self._arenas[device].read(place, physical_bytes(shape)), to_memory(expected, shape)
        wrong = np.flatnonzero(data != wanted)
        if wrong.size:
            at = Place(place.allocation, place.offset + int(wrong[0]), int(wrong[-1]) + 1 - int(wrong[0]))
            values = self._two_elements(self._arenas[device], place, shape, expected, int(wrong[0]))
            self._report(Fault.DIFFERENT, device, reader, position_text(source, index), at, *values)

    def _two_elements(
        self, arena: Arena, place: Place, shape: Shape, expected: Value, first_byte: int
    ) -> tuple[object, object]:
        """The reference's element and memory's, at the first byte that is wrong."""
        if not isinstance(shape, ArrayShape) or place.size < physical_bytes(shape):
            return None, None
        number = np.arange(shape.element_count).reshape(shape.dimensions)
        found = from_memory(arena.read(place, physical_bytes(shape)), shape)
        slot = first_byte // max(1, physical_bytes(shape) // max(1, shape.element_count))
        order = number.transpose(shape.layout.major_to_minor if shape.layout else range(shape.rank)).reshape(-1)
        at = np.unravel_index(int(order[min(slot, len(order) - 1)]), shape.dimensions) if len(order) else ()
        return as_array(expected)[at].item(), found[at].item()

    def _check_results(self, device: int, root: Cell) -> None:
        """Rule (6) for results, and for outputs that are to be in a donated parameter."""
        entry = self.module.entry
        for index, _ in _parts(entry.root.shape):
            self._read(entry.root, device, entry.root, index, root)
        for alias in self.module.input_output_aliases:
            output = self._finder.find(entry.root, alias.output_index)
            given = self._finder.find(entry.parameters[alias.parameter_number], alias.parameter_index)
            if output is not None and given is not None and output.allocation != given.allocation:
                self._report(Fault.MISPLACED, device, entry.root, position_text(entry.root, alias.output_index), output)

    def _check_lent(self, device: int, parameters: Sequence[Cell]) -> None:
        """Rule (6) for parameters and constants."""
        arena = self._arenas[device]
        cells = [*zip(self.module.entry.parameters, parameters, strict=True)]
        cells += [(i, cell) for (i, on), cell in self._constant_cells.items() if on == device]
        for instruction, cell in cells:
            for index in cell.instances:
                place = self._finder.find(instruction, index)
                if place is not None and place.allocation in arena.blocks and arena.blocks[place.allocation].is_read_only:
                    self._read(instruction, device, instruction, index, cell)

    # -- life and death ----------------------------------------------------------------------------------------------------

    def _release_all(self, cells: Sequence[Cell], devices: tuple[int, ...]) -> None:
        for cell, device in zip(cells, devices, strict=True):
            self._release(cell, device)

    def _release(self, cell: Cell, device: int) -> None:
        """Give up one reference; what nobody holds dies (2)."""
        for instance in cell.instances.values():
            instance.references -= 1
            if not instance.references:
                self._arenas[device].kill(instance)

    def _report(
        self,
        fault: Fault,
        device: int,
        instruction: Instruction,
        position: str,
        place: Place | None,
        expected: object = None,
        found: object = None,
        writer: str = "",
    ) -> None:
        if len(self._findings) >= self._max_findings:
            return
        where = (-1, 0, 0) if place is None else (place.allocation, place.offset, place.offset + place.size)
        self._findings.append(Finding(fault, self._time, device, instruction.name, position, *where, expected, found, writer))


def _retain(cell: Cell) -> None:
    for instance in cell.instances.values():
        instance.references += 1


def _retained(cells: Sequence[Cell]) -> list[Cell]:
    """The same cells with one more reference to each."""
    for cell in cells:
        _retain(cell)
    return list(cells)


def _rows(operands: list[list[Cell]], devices: tuple[int, ...]) -> list[tuple[Cell, ...]]:
    """The operands of each device."""
    return list(zip(*operands, strict=True)) if operands else [()] * len(devices)


def _parts(shape: Shape) -> Iterator[tuple[ShapeIndex, Shape]]:
    yield from subshapes(shape)


def _value_at(value: Value, index: ShapeIndex) -> Value:
    for i in index:
        assert isinstance(value, tuple), value
        value = value[i]
    return value


def _instance_at(
    instruction: Instruction,
    source: tuple[Instruction, ShapeIndex],
    index: ShapeIndex,
    operands: Sequence[Cell],
    root: Cell | None,
) -> dict[ShapeIndex, Instance]:
    """The instance that this part keeps, under its index here."""
    where, at = source
    if root is not None and where is instruction.to_apply.root and index[:1] == (1,):
        return {index: root.instances[at]}
    number = instruction.operands.index(where)
    return {index: operands[number].instances[at]}


def _byte_size(shape: Shape) -> int:
    match shape:
        case ArrayShape():
            return physical_bytes(shape)
        case BufferShape():
            return physical_bytes(shape.array)
        case TupleShape():
            return POINTER_BYTES * len(shape.elements)
        case _:
            return 0


def _works_in_place(instruction: Instruction, operand_number: int, is_same_place: bool) -> bool:
    """Whether a result may be written over this operand while it is being computed (5)."""
    if instruction.opcode in (Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER) and operand_number:
        return False
    return is_same_place and instruction.opcode in _IN_PLACE


def _overlap(a: Place, b: Place) -> bool:
    return a.allocation == b.allocation and a.offset < b.offset + b.size and b.offset < a.offset + a.size
