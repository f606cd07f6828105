"""Values of a program, where they appear and who uses them (``xla/service/hlo_value.h``; memory spec, sections 2.1 and 2.5).

1. A value is defined once: by an instruction at a shape index, or as a phi where several values meet.
2. It appears at positions ``(instruction, index)``. The first is its definition; the others follow in the order of
   computations, instructions and indices (pre-order).
3. Every user of a position uses the value, unless it only passes the value on: ``get-tuple-element`` and ``copy`` use the
   index ``{}`` alone; ``tuple`` and ``domain`` use nothing. If such a user is the root of its computation and the value
   appears there, it is a use nevertheless.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import Shape, ShapeIndex, TupleShape, index_text, subshape, subshapes

_USE_TOP_ONLY = frozenset({Opcode.GET_TUPLE_ELEMENT, Opcode.COPY})
_NEVER_USE = frozenset({Opcode.TUPLE, Opcode.DOMAIN})
_PASS_ON = _USE_TOP_ONLY | _NEVER_USE


class Position(NamedTuple):
    """A place where a value may appear."""

    instruction: Instruction
    index: ShapeIndex  # pyright: ignore[reportIncompatibleMethodOverride]  # nobody searches a position as a tuple

    def __str__(self) -> str:
        if isinstance(self.instruction.shape, TupleShape):
            return f"{self.instruction.name} {index_text(self.index)}"
        return self.instruction.name


class Use(NamedTuple):
    """A place where a value is used: an operand of an instruction, and the index in the operand's shape."""

    instruction: Instruction
    operand_number: int
    operand_index: ShapeIndex

    def __str__(self) -> str:
        text = f"{self.instruction.name}, operand {self.operand_number}"
        if isinstance(self.instruction.operand(self.operand_number).shape, TupleShape):
            text += f" {index_text(self.operand_index)}"
        return text


class Value:
    """Something that is computed once and kept in memory.

    Attributes:
        id: number in its analysis; order of definition, phis last.
        instruction: that defines it (for phis: a parameter of a loop or branch, a ``while`` or a ``conditional``).
        index: the part of the instruction's shape.
        is_phi: whether it stands for one of several values.
    """

    __slots__ = ("_users", "_uses", "id", "index", "instruction", "is_phi", "other_positions")

    def __init__(
        self, number: int, instruction: Instruction, index: ShapeIndex, users: UserTable, *, is_phi: bool = False
    ) -> None:
        self.id = number
        self.instruction = instruction
        self.index = index
        self.is_phi = is_phi
        self.other_positions: list[Position] = []
        self._users = users
        self._uses: tuple[Use, ...] | None = None

    @property
    def shape(self) -> Shape:
        return subshape(self.instruction.shape, self.index) if self.index else self.instruction.shape

    @property
    def definition(self) -> Position:
        return Position(self.instruction, self.index)

    @property
    def positions(self) -> list[Position]:
        """Where it appears, the definition first; rule (2)."""
        return [Position(self.instruction, self.index), *self.other_positions]

    @property
    def uses(self) -> tuple[Use, ...]:
        """Rule (3)."""
        if self._uses is None:
            self._uses = self._users.uses_of(self)
        return self._uses

    @property
    def is_live_out(self) -> bool:
        """Whether it appears at the root of the entry computation."""
        return any(p.instruction.is_root and _in_entry(p.instruction) for p in self.positions)

    @property
    def short_text(self) -> str:
        """As XLA prints it: ``<12 while.8{0} (phi)>``."""
        index = index_text(self.index) if isinstance(self.instruction.shape, TupleShape) else ""
        return f"<{self.id} {self.instruction.name}{index}{' (phi)' if self.is_phi else ''}>"

    def __repr__(self) -> str:
        return self.short_text


ValueSet = tuple[Value, ...]
"""Values that may stand at one position, by id."""


def union(*sets: ValueSet) -> ValueSet:
    """All values of the sets, each once, by id."""
    first = sets[0]
    if all(s is first or s == first for s in sets):
        return first
    return tuple(sorted({value for s in sets for value in s}, key=value_id))


def value_id(value: Value) -> int:
    """Sort key."""
    return value.id


@cache
def flat_positions(shape: Shape) -> Mapping[ShapeIndex, int]:
    """Rank of each index of ``shape`` in pre-order: value sets are stored flat in this order."""
    return {index: rank for rank, (index, _) in enumerate(subshapes(shape))}


@cache
def flat_size(shape: Shape) -> int:
    """Number of indices of ``shape``."""
    return 1 + sum(map(flat_size, shape.elements)) if isinstance(shape, TupleShape) else 1


@cache
def element_spans(shape: TupleShape) -> tuple[tuple[int, int], ...]:
    """Ranks ``(first, end)`` that the elements of a tuple take in pre-order."""
    spans: list[tuple[int, int]] = []
    first = 1
    for element in shape.elements:
        spans.append((first, first + flat_size(element)))
        first = spans[-1][1]
    return tuple(spans)


def rank_of(shape: Shape, index: ShapeIndex) -> int:
    """Rank of ``index`` in pre-order."""
    return flat_positions(shape)[index] if index else 0


class UserTable:
    """The users of each instruction, sorted by what they may use; shared by the values of an analysis."""

    __slots__ = ("_nested", "_top")

    def __init__(self) -> None:
        self._top: dict[Instruction, list[tuple[Instruction, int, bool]]] = {}
        self._nested: dict[Instruction, list[tuple[Instruction, int, bool]]] = {}

    def uses_of(self, value: Value) -> tuple[Use, ...]:
        """The uses of ``value`` over all its positions; rule (3)."""
        uses: list[Use] = []
        roots: set[Instruction] | None = None
        for instruction, index in value.positions:
            for user, number, only_as_root in self._users(instruction, bool(index)):
                if only_as_root:
                    roots = {p.instruction for p in value.positions if p.instruction.is_root} if roots is None else roots
                    if user not in roots:
                        continue
                uses.append(Use(user, number, index))
        return tuple(uses)

    def _users(self, instruction: Instruction, is_nested: bool) -> list[tuple[Instruction, int, bool]]:
        table = self._nested if is_nested else self._top
        found = table.get(instruction)
        if found is None:
            found = table[instruction] = _possible_users(instruction, _PASS_ON if is_nested else _NEVER_USE)
        return found


def _possible_users(instruction: Instruction, pass_on: frozenset[Opcode]) -> list[tuple[Instruction, int, bool]]:
    """Slots ``(user, operand number, only as a root)`` in which a value of ``instruction`` may be used."""
    found: list[tuple[Instruction, int, bool]] = []
    for user in instruction.users:
        only_as_root = user.opcode in pass_on
        if only_as_root and not user.is_root:
            continue
        found += [(user, number, only_as_root) for number, o in enumerate(user.operands) if o is instruction]
    return found


def _in_entry(instruction: Instruction) -> bool:
    return instruction.parent is not None and instruction.parent.is_entry
