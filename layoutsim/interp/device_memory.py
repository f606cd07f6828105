"""One device's side of the heap machine: writing results to their places, looking operands up, and noting what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import define

from layoutsim.interp.arena import Arena, Fault, Finding, Instance
from layoutsim.interp.places import Place, PlaceFinder, Places, forwarded_from, position_text
from layoutsim.interp.strided import PADDING, from_memory, is_packed, physical_bytes, physical_slots, to_memory
from layoutsim.interp.values import Array, Value, as_array
from layoutsim.ir import (
    ArrayShape,
    BufferShape,
    Instruction,
    Opcode,
    Shape,
    ShapeIndex,
    TupleShape,
    subshape,
    subshapes,
)
from layoutsim.ir.opcode import ELEMENTWISE
from layoutsim.ir.shape import POINTER_BYTES

_IN_PLACE = ELEMENTWISE | {
    Opcode.DYNAMIC_UPDATE_SLICE,
    Opcode.SCATTER,
    Opcode.SORT,
    Opcode.MAP,
    Opcode.RNG,
    Opcode.FUSION,
    Opcode.CUSTOM_CALL,
    Opcode.ALL_REDUCE,
    Opcode.ALL_REDUCE_START,
    Opcode.COLLECTIVE_BROADCAST,
    Opcode.COLLECTIVE_PERMUTE,
    Opcode.COLLECTIVE_PERMUTE_START,
    Opcode.RAGGED_ALL_TO_ALL,
    Opcode.TRIANGULAR_SOLVE,
    Opcode.CHOLESKY,
    Opcode.SET_DIMENSION_SIZE,
}
"""Operations that may write a result over an operand of theirs: element by element, or because XLA defines them so."""


@define(eq=False)
class Cell:
    """A value at a position: the reference value, and the instances that hold it, by shape index.

    Devices without a memory have no instances.
    """

    value: Value
    instances: dict[ShapeIndex, Instance]

    def retain(self) -> Cell:
        """One more position holds the value."""
        for instance in self.instances.values():
            instance.references += 1
        return self


def retained(cells: Sequence[Cell]) -> list[Cell]:
    """The same cells with one more reference to each."""
    return [cell.retain() for cell in cells]


class DeviceMemory:
    """The memory of one device.

    Args:
        note: takes findings.
        now: the time.
    """

    def __init__(
        self, device: int, places: Places, finder: PlaceFinder, note: Callable[[Finding], None], now: Callable[[], int]
    ) -> None:
        self.device = device
        self.arena = Arena(places.blocks)
        self._finder = finder
        self._note = note
        self._now = now

    # -- writing -----------------------------------------------------------------------------------------------------------

    def result(self, instruction: Instruction, value: Value, operands: Sequence[Cell], root: Cell | None) -> Cell:
        """The cell of a result: parts passed on keep their instances, the others are written.

        Args:
            root: of an ``async-start``'s computation.
        """
        cell = Cell(value, {})
        for index, shape in subshapes(instruction.shape):
            source = None if self._finder.is_defined(instruction, index) else forwarded_from(instruction, index)
            if source is None:
                self._check_overlap(instruction, index, operands)
                cell.instances[index] = self._written(instruction, index, shape, _part(value, index))
            else:
                cell.instances[index] = _instance_at(instruction, source, index, operands, root)
        return cell

    def lent(self, instruction: Instruction, value: Value) -> Cell:
        """A cell all of whose parts are in memory from the beginning: an entry parameter or a constant."""
        parts = {
            index: self._written(instruction, index, shape, _part(value, index), is_lent=True)
            for index, shape in subshapes(instruction.shape)
        }
        return Cell(value, parts)

    def _written(
        self, instruction: Instruction, index: ShapeIndex, shape: Shape, value: Value, *, is_lent: bool = False
    ) -> Instance:
        data = self._encoded(instruction, index, shape, value)
        place = self._finder.find(instruction, index) if data is not None else None
        instance = self.arena.new_instance(instruction, index, place)
        if data is None:
            return instance
        fault = self._placing_fault(instruction, place, len(data), is_lent)
        if fault is None:
            instance.value = value
            self.arena.write(instance, data)
        elif place is not None or instruction.opcode is not Opcode.CONSTANT:  # a constant may live in the code
            self.report(fault, instruction, position_text(instruction, index), place)
        if fault is not None:
            instance.place = None
        return instance

    def _placing_fault(self, instruction: Instruction, place: Place | None, size: int, is_lent: bool) -> Fault | None:
        if place is None:
            return Fault.NO_PLACE if size else None
        if place.size < size:
            return Fault.TOO_SMALL
        if not self.arena.fits(place):
            return Fault.OUTSIDE
        return Fault.READ_ONLY if self.arena.blocks[place.allocation].is_read_only and not is_lent else None

    def _encoded(self, instruction: Instruction, index: ShapeIndex, shape: Shape, value: Value) -> Array | None:
        """The bytes of a part: an array by its layout, a tuple as a table of addresses; nothing for tokens."""
        match shape:
            case ArrayShape():
                return to_memory(as_array(value), shape)
            case BufferShape():
                return to_memory(as_array(value), shape.array)
            case TupleShape():
                places = [self._finder.find(instruction, (*index, i)) for i in range(len(shape.elements))]
                addresses = [-1 if place is None else self.arena.address(place) for place in places]
                return np.array(addresses, np.int64).view(np.uint8)
            case _:
                return None

    def _check_overlap(self, instruction: Instruction, index: ShapeIndex, operands: Sequence[Cell]) -> None:
        """A result may overlap an operand only where the operation works in place."""
        place = self._finder.find(instruction, index)
        if place is None:
            return
        size = _byte_size(subshape(instruction.shape, index))
        for number, part, shape, other in _operand_places(instruction, operands):
            if isinstance(shape, TupleShape) or not _overlap(place, other):
                continue
            is_same = place.offset == other.offset and _byte_size(shape) == size
            if not _works_in_place(instruction, number, is_same):
                text = f"operand {position_text(instruction.operand(number), part)}"
                self.report(Fault.IN_PLACE, instruction, text, place)

    # -- reading -----------------------------------------------------------------------------------------------------------

    def read_arrays(self, reader: Instruction, source: Instruction, cell: Cell) -> None:
        """Look up every part of ``source`` that is no tuple, but for operands of a start that its results are written over."""
        parts = [index for index, shape in subshapes(source.shape) if not isinstance(shape, TupleShape)]
        if reader.opcode is Opcode.ASYNC_DONE:
            results = {self._finder.find(source, index) for index in parts if index[:1] == (1,)}
            parts = [index for index in parts if index[:1] != (0,) or self._finder.find(source, index) not in results]
        for index in parts:
            self.read(reader, source, index, cell)

    def read(self, reader: Instruction, source: Instruction, index: ShapeIndex, cell: Cell) -> None:
        """Look up one part where readers of ``source`` look for it."""
        instance, place = cell.instances[index], self._finder.find(source, index)
        shape = subshape(source.shape, index)
        size = _byte_size(shape)
        if place is None or instance.place is None or not size or not self.arena.fits(place):
            return
        value = _part(cell.value, index)
        foreign = self.arena.foreign(place, min(size, place.size), instance)
        if foreign is not None:
            first, end, owner = foreign
            fault = Fault.POISON if owner is None else Fault.CLOBBERED
            writer = "" if owner is None else owner.text
            self._report_bytes(fault, reader, position_text(source, index), place, shape, value, (first, end), writer)
        elif isinstance(shape, ArrayShape) and not _is_as_written(instance, shape, value):
            wrong = np.flatnonzero(self.arena.read(place, size) != to_memory(as_array(value), shape))
            if wrong.size:
                at = (int(wrong[0]), int(wrong[-1]) + 1)
                self._report_bytes(Fault.DIFFERENT, reader, position_text(source, index), place, shape, value, at, "")

    def release(self, cell: Cell) -> None:
        """Give up one reference; what nobody holds dies."""
        for instance in cell.instances.values():
            instance.references -= 1
            if not instance.references:
                self.arena.kill(instance)

    # -- reporting ---------------------------------------------------------------------------------------------------------

    def report(
        self,
        fault: Fault,
        instruction: Instruction,
        position: str,
        place: Place | None,
        elements: tuple[object, object] = (None, None),
        writer: str = "",
    ) -> None:
        """Note a finding; ``elements`` are the expected one and what memory holds."""
        where = (-1, 0, 0) if place is None else (place.allocation, place.offset, place.offset + place.size)
        self._note(Finding(fault, self._now(), self.device, instruction.name, position, *where, *elements, writer))

    def _report_bytes(
        self,
        fault: Fault,
        reader: Instruction,
        position: str,
        place: Place,
        shape: Shape,
        value: Value,
        wrong: tuple[int, int],
        writer: str,
    ) -> None:
        """Note a range of bytes of a place, relative to it, with the first element that is wrong."""
        first, end = wrong
        at = Place(place.allocation, place.offset + first, end - first)
        elements: tuple[object, object] = (None, None)
        if isinstance(shape, ArrayShape) and place.size >= physical_bytes(shape):
            elements = self._two_elements(place, shape, as_array(value), first)
        self.report(fault, reader, position, at, elements, writer)

    def _two_elements(self, place: Place, shape: ArrayShape, expected: Array, first_byte: int) -> tuple[object, object]:
        """The reference's element and memory's at a byte; nothing where the byte is padding."""
        slots = physical_slots(shape)
        bits = (shape.layout.element_size_bits if shape.layout and is_packed(shape) else 0) or 8 * expected.itemsize
        size = physical_bytes(shape)
        slot = first_byte * 8 // bits if is_packed(shape) else first_byte * len(slots) // size
        element = int(slots[slot])
        if element == PADDING:
            return None, None
        at = np.unravel_index(element, shape.dimensions) if shape.dimensions else ()
        found = from_memory(self.arena.read(place, size), shape)
        return expected[at].item(), found[at].item()


def _is_as_written(instance: Instance, shape: ArrayShape, value: Value) -> bool:
    """Whether the instance's own bytes were made from this very value in this very layout, and so need no comparing."""
    return value is instance.value and shape == subshape(instance.instruction.shape, instance.index)


def _operand_places(instruction: Instruction, operands: Sequence[Cell]) -> Iterator[tuple[int, ShapeIndex, Shape, Place]]:
    """Operand number, part, shape and place of everything that the operands hold in memory."""
    for number, operand in enumerate(operands):
        for part, instance in operand.instances.items():
            if instance.place is not None:
                yield number, part, subshape(instruction.operand(number).shape, part), instance.place


def _works_in_place(instruction: Instruction, operand_number: int, is_same_place: bool) -> bool:
    """Whether a result may be written over this operand while it is being computed."""
    if instruction.opcode in (Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER) and operand_number:
        return False
    return is_same_place and instruction.opcode in _IN_PLACE


def _instance_at(
    instruction: Instruction,
    source: tuple[Instruction, ShapeIndex],
    index: ShapeIndex,
    operands: Sequence[Cell],
    root: Cell | None,
) -> Instance:
    """The instance that a part passed on keeps."""
    where, at = source
    if root is not None and where is instruction.to_apply.root and index[:1] == (1,):
        return root.instances[at]
    return operands[instruction.operands.index(where)].instances[at]


def _part(value: Value, index: ShapeIndex) -> Value:
    for i in index:
        assert isinstance(value, tuple), value
        value = value[i]
    return value


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


def _overlap(a: Place, b: Place) -> bool:
    return a.allocation == b.allocation and a.offset < b.offset + b.size and b.offset < a.offset + a.size
