"""The memory of one simulated device: bytes, who wrote each of them, and poison where nothing is alive.

Every write makes an :class:`Instance`. A byte belongs to the last instance written there until that instance dies; then the
byte is poison. A reader names the instance that it expects; bytes of another owner mean that the assignment let one live
value overwrite another, even where the numbers happen to be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np
from attrs import define, frozen

from layoutsim.errors import InputError
from layoutsim.interp.places import Block, Place, position_text
from layoutsim.interp.values import Array, Value
from layoutsim.ir import Instruction, ShapeIndex

POISON_BYTE = 0xA5
"""What dead bytes hold: a large negative number in most types, and no plausible result."""

MAX_BYTES = 1 << 30
_ALIGNMENT = 256
_NOBODY = 0


class Fault(Enum):
    """What can go wrong."""

    CLOBBERED = "was overwritten"
    POISON = "is dead or was never written"
    DIFFERENT = "differs from the reference interpreter"
    TOO_SMALL = "does not fit its place"
    OUTSIDE = "lies outside of its allocation"
    NO_PLACE = "has no place"
    READ_ONLY = "is written into read-only memory"
    IN_PLACE = "overlaps an operand that is still being read"
    MISPLACED = "is not where its alias is"


@frozen
class Finding:
    """One fault.

    Attributes:
        time: how many instructions ran before on this device.
        instruction: the one that reads (or writes, where the fault is about a result).
        position: what is read or written.
        first_byte: of the allocation, where the fault begins; the range is half-open.
        expected: the reference interpreter's element there (``None`` where no value is compared).
        found: the element that memory holds.
        writer: who wrote there last.
    """

    fault: Fault
    time: int
    device: int
    instruction: str
    position: str
    allocation: int = -1
    first_byte: int = 0
    end_byte: int = 0
    expected: object = None
    found: object = None
    writer: str = ""

    def __str__(self) -> str:
        where = f" (allocation {self.allocation}, bytes {self.first_byte}:{self.end_byte})" if self.allocation >= 0 else ""
        values = "" if self.expected is None else f": {self.found}, expected {self.expected}"
        by = f", last written by {self.writer}" if self.writer else ""
        return (
            f"time {self.time}, device {self.device}, {self.instruction}: {self.position}{where} {self.fault.value}{values}{by}"
        )


@define(eq=False)
class Instance:
    """The bytes of one value, written once.

    Attributes:
        number: from 1 on, in order of writing.
        references: how many living positions hold it; at 0 it dies.
        place: where it was written, ``None`` for values without memory.
        value: what was written, while it is alive.
    """

    number: int
    instruction: Instruction
    index: ShapeIndex
    place: Place | None
    value: Value | None = None
    references: int = 0

    @property
    def text(self) -> str:
        return position_text(self.instruction, self.index)


class Arena:
    """The allocations of one device, one behind the other."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = {block.index: block for block in blocks}
        self._starts: dict[int, int] = {}
        total = 0
        for block in blocks:
            self._starts[block.index] = total
            total += -(-block.size // _ALIGNMENT) * _ALIGNMENT
        if total > MAX_BYTES:
            raise InputError(f"the assignment needs {total} bytes, more than the heap machine's limit of {MAX_BYTES}")
        self._bytes = np.full(total, POISON_BYTE, np.uint8)
        self._owners = np.full(total, _NOBODY, np.int32)
        self._instances: list[Instance] = []

    def new_instance(self, instruction: Instruction, index: ShapeIndex, place: Place | None) -> Instance:
        """An instance that has written nothing yet."""
        instance = Instance(len(self._instances) + 1, instruction, index, place)
        self._instances.append(instance)
        return instance

    def fits(self, place: Place) -> bool:
        """Whether the place is inside its allocation."""
        block = self.blocks.get(place.allocation)
        return block is not None and place.offset >= 0 and place.offset + place.size <= block.size

    def address(self, place: Place) -> int:
        """Where the place begins in the whole arena."""
        return self._starts[place.allocation] + place.offset

    def write(self, instance: Instance, data: Array) -> None:
        """Store the bytes of an instance; its place is large enough."""
        assert instance.place is not None
        start = self.address(instance.place)
        self._bytes[start : start + len(data)] = data
        self._owners[start : start + len(data)] = instance.number

    def read(self, place: Place, size: int) -> Array:
        """The first ``size`` bytes at a place."""
        start = self.address(place)
        return self._bytes[start : start + size]

    def foreign(self, place: Place, size: int, expected: Instance) -> tuple[int, int, Instance | None] | None:
        """The range of bytes (relative to the place) that do not belong to ``expected``, and the first one's owner."""
        start = self.address(place)
        is_wrong = self._owners[start : start + size] != expected.number
        if not is_wrong.any():
            return None
        wrong = np.flatnonzero(is_wrong)
        owner = int(self._owners[start + wrong[0]])
        return int(wrong[0]), int(wrong[-1]) + 1, self._instances[owner - 1] if owner else None

    def kill(self, instance: Instance) -> None:
        """Poison what an instance still owns."""
        instance.value = None
        if instance.place is None:
            return
        start = self.address(instance.place)
        owners = self._owners[start : start + instance.place.size]
        own = owners == instance.number
        self._bytes[start : start + instance.place.size][own] = POISON_BYTE
        owners[own] = _NOBODY
