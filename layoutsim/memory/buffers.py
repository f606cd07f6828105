"""The result of buffer assignment: allocations and the values in them (``xla/service/buffer_assignment.h``; memory spec, 9.2).

1. An allocation is a block of memory with a size and a colour. Entry parameters, constants, thread-local values, tuple tables
   and outputs have allocations of their own; temporaries are packed into one for each colour.
2. It is *live-out* if its contents are part of the result. It is *read-only* if it is a constant, or an entry parameter
   that is not donated.
3. It is a *preallocated temporary* if it is neither parameter, constant, thread-local nor live-out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from attrs import define, field, frozen

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.analysis.values import Value
from layoutsim.errors import InputError
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.shape import ShapeIndex
from layoutsim.memory.profile import MemoryProfile
from layoutsim.memory.simulator import HeapEvents


@frozen(eq=False)
class AssignedValue:
    """Where a value is in its allocation; ``size`` is that of the place, not of the value."""

    value: Value
    offset: int
    size: int


@frozen
class EntryParameter:
    """The part of an entry parameter that an allocation is."""

    number: int
    index: ShapeIndex
    is_donated: bool


@define(eq=False)
class Allocation:
    """A block of memory.

    Attributes:
        index: place in the assignment.
        size: bytes.
        color: memory space.
        places: offset and size by value.
        cross_color: values of another colour that use free space here.
        heaps: what was packed into it, for temporaries.
        peak_values: those alive when the most bytes were.
    """

    index: int
    size: int
    color: int = 0
    parameter: EntryParameter | None = None
    is_constant: bool = False
    is_thread_local: bool = False
    is_tuple: bool = False
    is_live_out: bool = False
    places: dict[Value, tuple[int, int]] = field(factory=dict[Value, tuple[int, int]])
    cross_color: list[Value] = field(factory=list[Value])
    heaps: list[HeapEvents] = field(factory=list[HeapEvents])
    peak_values: list[Value] = field(factory=list[Value])

    @property
    def is_temp(self) -> bool:
        """Rule (3)."""
        return self.parameter is None and not (self.is_live_out or self.is_thread_local or self.is_constant)

    @property
    def is_input_or_output(self) -> bool:
        return self.parameter is not None or self.is_live_out

    @property
    def is_reusable(self) -> bool:
        """Whether other buffers may join at all."""
        return not self.is_thread_local and not self.is_tuple

    @property
    def is_read_only(self) -> bool:
        """Rule (2)."""
        return self.is_constant or (self.parameter is not None and not self.parameter.is_donated)

    @property
    def kind(self) -> str:
        """``parameter``, ``constant``, ``thread-local``, ``output`` or ``temp``; a donated parameter is a parameter."""
        kinds = [
            ("parameter", self.parameter is not None),
            ("constant", self.is_constant),
            ("thread-local", self.is_thread_local),
            ("output", self.is_live_out),
        ]
        return next((name for name, applies in kinds if applies), "temp")

    @property
    def values(self) -> list[AssignedValue]:
        """The values by id."""
        return [AssignedValue(value, *self.places[value]) for value in sorted(self.places, key=lambda v: v.id)]

    def __repr__(self) -> str:
        return f"<allocation {self.index}: {self.kind}, {self.size} bytes, {len(self.places)} values>"


@frozen(eq=False, slots=False)
class BufferAssignment:
    """Allocations of a module.

    Attributes:
        profile: the backend.
        aliases: values and buffers.
        live_ranges: live ranges of the values; ``None`` where no schedule orders them.
        colors: memory space of every value.
        allocations: by index.
        temp_fragmentation_bytes: bytes of the heaps above what is alive at once.
    """

    profile: MemoryProfile
    aliases: Aliases
    live_ranges: LiveRanges | None
    colors: Mapping[Value, int]
    allocations: tuple[Allocation, ...]
    temp_fragmentation_bytes: int

    @property
    def ranges(self) -> LiveRanges:
        """Live ranges of the values.

        Raises:
            InputError: buffers were assigned without a schedule.
        """
        if self.live_ranges is None:
            raise InputError("buffers were assigned without a schedule, so there are no live ranges")
        return self.live_ranges

    @property
    def total_bytes(self) -> int:
        """Bytes of all allocations, constants and thread-local ones included."""
        return sum(allocation.size for allocation in self.allocations)

    @property
    def temp_bytes(self) -> int:
        """Bytes of the preallocated temporaries, tuple tables included."""
        return sum(allocation.size for allocation in self.allocations if allocation.is_temp)

    @cached_property
    def allocation_of(self) -> Mapping[Value, Allocation]:
        """The allocation of each value that has one."""
        return {value: allocation for allocation in self.allocations for value in allocation.places}

    def slice_of(self, value: Value) -> tuple[Allocation, int, int]:
        """Allocation, offset and size of a value's place.

        Raises:
            InputError: the value has no allocation (it is inside a fusion, or not reachable).
        """
        allocation = self.allocation_of.get(value)
        if allocation is None:
            raise InputError(f"{value.short_text} has no allocation")
        return (allocation, *allocation.places[value])

    def slice_at(self, instruction: Instruction, index: ShapeIndex = ()) -> tuple[Allocation, int, int]:
        """The one place of the values at a position.

        Raises:
            InputError: there is none, or values at the position are in different places.
        """
        values = self.aliases.dataflow.value_set(instruction, index)
        places = {self.slice_of(value) for value in values if value in self.allocation_of}
        if len(places) != 1:
            raise InputError(f"{instruction.name} at {index} is in {len(places)} places, expected one")
        return places.pop()
