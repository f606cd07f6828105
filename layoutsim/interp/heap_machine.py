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

from attrs import frozen

from layoutsim.interp.arena import Fault, Finding
from layoutsim.interp.device_memory import Cell, DeviceMemory, retained
from layoutsim.interp.evaluator import Interpreter, async_value, branch_number
from layoutsim.interp.options import DEFAULT_OPTIONS, Options
from layoutsim.interp.places import PlaceFinder, Places, position_text
from layoutsim.interp.values import Value, as_array, fail
from layoutsim.ir import Computation, Instruction, Opcode, subshapes

_PASSES_ON = frozenset(
    {
        Opcode.TUPLE,
        Opcode.BITCAST,
        Opcode.OPT_BARRIER,
        Opcode.DOMAIN,
        Opcode.ADD_DEPENDENCY,
        Opcode.ASYNC_UPDATE,
    }
)
"""Opcodes that read no bytes."""

_CONTROL_FLOW = (Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.ASYNC_START)

Devices = tuple[int, ...]


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
    """The interpreter with a memory for each watched device."""

    def __init__(
        self,
        places: Places,
        options: Options = DEFAULT_OPTIONS,
        watched: Sequence[int] | None = None,
        max_findings: int = 20,
    ) -> None:
        super().__init__(places.module, options)
        self._finder = PlaceFinder(places)
        self._findings: list[Finding] = []
        self._max_findings = max_findings
        self._time = 0
        with_memory = range(self.devices.count) if watched is None else watched
        self._memories = {d: DeviceMemory(d, places, self._finder, self._note, lambda: self._time) for d in with_memory}
        self._constant_cells: dict[tuple[Instruction, int], Cell] = {}

    def execute(self, arguments: Sequence[Sequence[object]]) -> HeapRun:
        """Run the entry once."""
        devices = tuple(range(self.devices.count))
        entry = self.module.entry
        prepared = self.prepare(arguments)
        self._load_constants(devices)
        lent = [
            [self._lent(p, device, value) for p, value in zip(entry.parameters, row, strict=True)]
            for device, row in zip(devices, prepared, strict=True)
        ]
        for row in lent:
            retained(row)  # the caller's references, who looks at the parameters when all is over
        roots = self._run(entry, devices, [retained(row) for row in lent])
        for device, memory in self._memories.items():
            self._check_results(memory, roots[device])
            self._check_lent(memory, lent[device])
        return HeapRun(tuple(root.value for root in roots), tuple(self._findings))

    # -- computations ------------------------------------------------------------------------------------------------------

    def _run(self, computation: Computation, devices: Devices, arguments: Sequence[Sequence[Cell]]) -> list[Cell]:
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

    def _step(
        self, instruction: Instruction, devices: Devices, operands: list[list[Cell]], let_go: Callable[[], None]
    ) -> list[Cell]:
        """One instruction on all devices; the cells returned are retained.

        Args:
            let_go: gives up operands that nobody reads after this instruction. Control flow does so before it runs its
                computations: what they carry on is theirs, and dies inside.
        """
        match instruction.opcode:
            case Opcode.WHILE:
                states = retained(operands[0])
                let_go()
                return self._loop(instruction, devices, states)
            case Opcode.CONDITIONAL:
                return self._choose(instruction, devices, operands, let_go)
            case Opcode.CALL:
                rows = [retained(row) for row in _rows(operands, devices)]
                let_go()
                return self._run(instruction.to_apply, devices, rows)
            case Opcode.ASYNC_START:
                return self._start(instruction, devices, operands)
            case Opcode.CONSTANT:
                return [self._constant_cell(instruction, device).retain() for device in devices]
            case _:
                return self._compute(instruction, devices, operands)

    def _compute(self, instruction: Instruction, devices: Devices, operands: list[list[Cell]]) -> list[Cell]:
        self._read_operands(instruction, devices, operands)
        plain = [tuple(cell.value for cell in column) for column in operands]
        values = self.evaluate_instruction(instruction, devices, plain)
        results = zip(devices, values, _rows(operands, devices), strict=True)
        return [self._result(instruction, device, value, row) for device, value, row in results]

    def _loop(self, loop: Instruction, devices: Devices, states: list[Cell]) -> list[Cell]:
        """Takes over ``states``."""
        active = list(range(len(devices)))
        for _ in range(self.options.max_trips):
            running = tuple(devices[i] for i in active)
            conditions = self._run(loop.condition, running, [retained([states[i]]) for i in active])
            self._read_all(loop, running, loop.condition.root, conditions)
            go_on = [bool(as_array(cell.value)) for cell in conditions]
            self._release(conditions, running)
            active = [i for i, flag in zip(active, go_on, strict=True) if flag]
            if not active:
                return states
            running = tuple(devices[i] for i in active)
            new = self._run(loop.body, running, [[states[i]] for i in active])
            for i, cell in zip(active, new, strict=True):
                states[i] = cell
        raise fail(loop, f"still running after {self.options.max_trips} iterations")

    def _choose(
        self, choice: Instruction, devices: Devices, operands: list[list[Cell]], let_go: Callable[[], None]
    ) -> list[Cell]:
        self._read_all(choice, devices, choice.operand(0), operands[0])
        selected = [branch_number(as_array(cell.value), len(choice.called_computations)) for cell in operands[0]]
        arguments = [retained([operands[number + 1][i]]) for i, number in enumerate(selected)]
        let_go()
        results: dict[int, Cell] = {}
        for number, branch in enumerate(choice.called_computations):
            members = [i for i, chosen in enumerate(selected) if chosen == number]
            if members:
                cells = self._run(branch, tuple(devices[i] for i in members), [arguments[i] for i in members])
                results.update(zip(members, cells, strict=True))
        return [results[i] for i in range(len(devices))]

    def _start(self, start: Instruction, devices: Devices, operands: list[list[Cell]]) -> list[Cell]:
        rows = _rows(operands, devices)
        roots = self._run(start.to_apply, devices, [retained(row) for row in rows])
        out: list[Cell] = []
        for device, row, root in zip(devices, rows, roots, strict=True):
            value = async_value(start, tuple(cell.value for cell in row), root.value)
            out.append(self._result(start, device, value, row, root))
        self._release(roots, devices)
        return out

    # -- cells -------------------------------------------------------------------------------------------------------------

    def _result(
        self, instruction: Instruction, device: int, value: Value, operands: Sequence[Cell], root: Cell | None = None
    ) -> Cell:
        """The retained cell of a result (1, 5)."""
        memory = self._memories.get(device)
        cell = Cell(value, {}) if memory is None else memory.result(instruction, value, operands, root)
        return cell.retain()

    def _lent(self, instruction: Instruction, device: int, value: Value) -> Cell:
        memory = self._memories.get(device)
        return Cell(value, {}) if memory is None else memory.lent(instruction, value)

    def _load_constants(self, devices: Devices) -> None:
        """Constants with a place are there from the beginning, and nobody gives them up."""
        for computation in self._reached():
            for instruction in computation.instructions:
                if instruction.opcode is Opcode.CONSTANT and self._finder.find(instruction) is not None:
                    for device in devices:
                        self._constant_cell(instruction, device)

    def _constant_cell(self, instruction: Instruction, device: int) -> Cell:
        cell = self._constant_cells.get((instruction, device))
        if cell is None:
            cell = self._lent(instruction, device, self.constant_value(instruction)).retain()
            self._constant_cells[instruction, device] = cell
        return cell

    def _reached(self) -> Iterator[Computation]:
        """The computations that control flow reaches."""
        pending = [self.module.entry]
        seen = {self.module.entry}
        while pending:
            computation = pending.pop()
            yield computation
            for instruction in computation.instructions:
                if instruction.opcode in _CONTROL_FLOW:
                    new = [callee for callee in instruction.called_computations if callee not in seen]
                    seen.update(new)
                    pending += new

    def _drop(self, frame: dict[Instruction, list[Cell]], dead: Sequence[Instruction], devices: Devices) -> None:
        """Give up what a frame still holds of ``dead`` (2)."""
        for instruction in dead:
            if instruction in frame:
                self._release(frame.pop(instruction), devices)

    def _release(self, cells: Sequence[Cell], devices: Devices) -> None:
        for cell, device in zip(cells, devices, strict=True):
            if device in self._memories:
                self._memories[device].release(cell)

    # -- reading -----------------------------------------------------------------------------------------------------------

    def _read_operands(self, instruction: Instruction, devices: Devices, operands: list[list[Cell]]) -> None:
        """Rules (3) and (4); a ``get-tuple-element`` reads the table of pointers."""
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            for device, cell in zip(devices, operands[0], strict=True):
                if device in self._memories:
                    self._memories[device].read(instruction, instruction.operand(0), (), cell)
        elif instruction.opcode not in _PASSES_ON:
            for operand, column in zip(instruction.operands, operands, strict=True):
                self._read_all(instruction, devices, operand, column)

    def _read_all(self, reader: Instruction, devices: Devices, source: Instruction, cells: Sequence[Cell]) -> None:
        for device, cell in zip(devices, cells, strict=True):
            if device in self._memories:
                self._memories[device].read_arrays(reader, source, cell)

    def _check_results(self, memory: DeviceMemory, root: Cell) -> None:
        """Rule (6) for results, and for outputs that are to be in a donated parameter."""
        entry = self.module.entry
        for index, _ in subshapes(entry.root.shape):
            memory.read(entry.root, entry.root, index, root)
        for alias in self.module.input_output_aliases:
            output = self._finder.find(entry.root, alias.output_index)
            given = self._finder.find(entry.parameters[alias.parameter_number], alias.parameter_index)
            if output is not None and given is not None and output.allocation != given.allocation:
                memory.report(Fault.MISPLACED, entry.root, position_text(entry.root, alias.output_index), output)

    def _check_lent(self, memory: DeviceMemory, parameters: Sequence[Cell]) -> None:
        """Rule (6) for parameters and constants."""
        blocks = memory.arena.blocks
        cells = [*zip(self.module.entry.parameters, parameters, strict=True)]
        cells += [(instruction, cell) for (instruction, on), cell in self._constant_cells.items() if on == memory.device]
        for instruction, cell in cells:
            for index in cell.instances:
                place = self._finder.find(instruction, index)
                if place is not None and place.allocation in blocks and blocks[place.allocation].is_read_only:
                    memory.read(instruction, instruction, index, cell)

    def _note(self, finding: Finding) -> None:
        if len(self._findings) < self._max_findings:
            self._findings.append(finding)


def _rows(operands: list[list[Cell]], devices: Devices) -> list[tuple[Cell, ...]]:
    """The operands of each device."""
    return list(zip(*operands, strict=True)) if operands else [()] * len(devices)
