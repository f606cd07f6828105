"""Where the value of one copy goes, and who reads it in the end: through tuples, loops and barriers, unchanged.

A *position* is an instruction and a shape index at which the value stands as a whole. From the copy:

1. A tuple holds it at a slot, ``get-tuple-element`` takes it out again, a barrier passes it on. A transpose that moves no bytes
   passes it on with its dimensions in other places; their numbers in the copy go with the position.
2. A loop that starts with it at an element has it there in the parameters of its body and condition and behind the loop, if its
   body hands that element on: the body's root must have the value there, too, with its dimensions in the same places.
3. A slice of it, dynamic or not, is a *reader*; so is another copy.

Any other use is in the way: the value must stand there as the copy made it.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from layoutsim.ir import ArrayShape, Computation, Instruction, Opcode, ShapeIndex
from layoutsim.passes.layout_assignment.layout_math import transpose_is_bitcast
from layoutsim.passes.layout_assignment.rules import array_of, dimensions_of
from layoutsim.passes.loops.carried import Callers

Position = tuple[Instruction, ShapeIndex]

Dimensions = tuple[int, ...]
"""For each dimension of a value, which dimension of the copy it is."""

SLICES = frozenset({Opcode.DYNAMIC_SLICE, Opcode.SLICE})


@define(eq=False)
class CopyFlow:
    """Where the value of ``copy`` goes.

    Attributes:
        positions: everywhere it stands, the copy itself first, and for each dimension there which one of the copy it is.
        readers: slices and copies of it, with the same.
        obstacle: the first use that is neither; empty if there is none.
    """

    copy: Instruction
    positions: dict[Position, Dimensions] = field(factory=dict[Position, Dimensions], init=False)
    readers: dict[Instruction, Dimensions] = field(factory=dict[Instruction, Dimensions], init=False)
    obstacle: str = field(default="", init=False)

    @property
    def loops(self) -> list[Instruction]:
        """The loops it goes through, as found."""
        return [instruction for instruction, _ in self.positions if instruction.opcode is Opcode.WHILE]

    @staticmethod
    def of(copy: Instruction, callers: Callers) -> CopyFlow:
        """Follow ``copy``."""
        flow = CopyFlow(copy)
        flow._follow(callers)
        return flow

    def _follow(self, callers: Callers) -> None:
        assert isinstance(self.copy.shape, ArrayShape), self.copy
        pending: list[tuple[Position, Dimensions]] = [((self.copy, ()), tuple(range(self.copy.shape.rank)))]
        while pending and not self.obstacle:
            position, dimensions = pending.pop()
            if position in self.positions:
                if self.positions[position] != dimensions:
                    self.obstacle = f"{position[0].name} has it in two ways"
                continue
            self.positions[position] = dimensions
            instruction, index = position
            for user, slot in instruction.uses:
                pending += self._step(user, slot, index, dimensions, callers)
        if not self.obstacle:
            self._check_loops(callers)

    def _step(
        self, user: Instruction, slot: int, index: ShapeIndex, dimensions: Dimensions, callers: Callers
    ) -> Iterator[tuple[Position, Dimensions]]:
        """Where one use takes the value."""
        match user.opcode:
            case Opcode.TUPLE:  # (1)
                yield (user, (slot, *index)), dimensions
            case Opcode.GET_TUPLE_ELEMENT:
                if index[0] == user.tuple_index:
                    yield (user, index[1:]), dimensions
            case Opcode.OPT_BARRIER:
                yield (user, index), dimensions
            case Opcode.TRANSPOSE if _moves_nothing(user):
                yield (user, ()), tuple(dimensions[d] for d in dimensions_of(user))
            case Opcode.WHILE if callers.are_own(user) and index:  # (2)
                for place in (user, *(callee.parameters[0] for callee in user.called_computations)):
                    yield (place, index), dimensions
            case Opcode.COPY if not index:  # (3)
                self.readers[user] = dimensions
            case opcode if opcode in SLICES and slot == 0:
                self.readers[user] = dimensions
            case _:
                self.obstacle = self.obstacle or f"operand {slot} of {user.name} needs it as it is"

    def order_of(self, dimensions: Dimensions, minor_to_major: tuple[int, ...]) -> tuple[int, ...]:
        """The order of a value whose dimensions are these if the copy had the order ``minor_to_major``."""
        return tuple(dimensions.index(d) for d in minor_to_major)

    def _check_loops(self, callers: Callers) -> None:
        """The value returns only from bodies, at the element at which the loop takes it, and from every body."""
        for (place, index), dimensions in self.positions.items():
            if place.opcode is Opcode.WHILE and self.positions.get((place.body.root, index)) != dimensions:
                self.obstacle = f"{place.name} changes it"
                return
            if place.is_root:
                loop = _loop_of(place.parent, callers)
                if loop is None or self.positions.get((loop, index)) != dimensions:
                    self.obstacle = f"{place.parent.name if place.parent else place.name} returns it"
                    return


def _moves_nothing(transpose: Instruction) -> bool:
    source = array_of(transpose.operand(0).shape)
    return transpose_is_bitcast(source.minor_to_major, array_of(transpose.shape).minor_to_major, dimensions_of(transpose))


def _loop_of(body: Computation | None, callers: Callers) -> Instruction | None:
    found = [] if body is None else [c for c in callers.of(body) if c.opcode is Opcode.WHILE and c.body is body]
    return found[0] if len(found) == 1 else None
