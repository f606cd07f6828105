"""Two scheduled modules held against each other: same copies, same order, and where they first differ.

Passes that add ``copy``, ``get-tuple-element`` and ``tuple`` number them by what happened before, so these are compared as
expressions: opcode, shape and operands, and which of several equal ones it is. Everything else is matched by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import define, field, frozen

from layoutsim.errors import InputError
from layoutsim.ir import Computation, Instruction, Module, Opcode

_BY_EXPRESSION = frozenset({Opcode.COPY, Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE})


@frozen
class Difference:
    """What two modules do differently in one place.

    Attributes:
        position: in the sequence, where orders differ.
        ours: instruction text, or what is missing.
    """

    computation: str
    ours: str
    theirs: str
    position: int | None = None

    def __str__(self) -> str:
        where = self.computation if self.position is None else f"{self.computation} at {self.position}"
        return f"{where}: ours {self.ours}, theirs {self.theirs}"


@frozen
class ScheduleComparison:
    """The outcome.

    Attributes:
        copies: copies that only one of the modules has, as expressions.
        roots: computations whose roots differ.
        control_edges: edges that only one of the modules has.
        order: first place in each computation at which the orders differ.
        names: instructions that are the same but named differently.
    """

    copies_ours: int
    copies_theirs: int
    copies: tuple[Difference, ...]
    roots: tuple[Difference, ...]
    control_edges: tuple[Difference, ...]
    order: tuple[Difference, ...]
    names: int

    @property
    def copies_equal(self) -> bool:
        return not self.copies

    @property
    def schedule_equal(self) -> bool:
        return not self.order and not self.roots

    @property
    def equal(self) -> bool:
        """Whether the modules agree in everything but the names of added instructions."""
        return self.copies_equal and self.schedule_equal and not self.control_edges

    def __str__(self) -> str:
        first = next(iter((*self.copies, *self.roots, *self.order, *self.control_edges)), None)
        copies = "equal" if self.copies_equal else f"differ in {len(self.copies)}"
        order = "equal" if self.schedule_equal else f"differs in {len(self.order)} computations"
        edges = "equal" if not self.control_edges else f"differ in {len(self.control_edges)}"
        tail = "" if first is None else f"; first: {first}"
        return f"copies {copies} ({self.copies_ours}/{self.copies_theirs}), control edges {edges}, schedule {order}{tail}"


def compare_schedules(ours: Module, theirs: Module) -> ScheduleComparison:
    """Hold ``ours`` against ``theirs``; both are scheduled and have computations of the same names.

    Raises:
        InputError: one of them has no schedule.
    """
    pairs = list(_pairs(ours, theirs))
    return ScheduleComparison(
        _count_copies(ours),
        _count_copies(theirs),
        tuple(difference for a, b in pairs for difference in a.copy_differences(b)),
        tuple(difference for a, b in pairs for difference in a.root_differences(b)),
        tuple(difference for a, b in pairs for difference in a.edge_differences(b)),
        tuple(difference for a, b in pairs for difference in a.order_differences(b)),
        sum(a.names_differing(b) for a, b in pairs),
    )


def _pairs(ours: Module, theirs: Module) -> Iterable[tuple[_Keyed, _Keyed]]:
    if ours.schedule is None or theirs.schedule is None:
        missing = ours if ours.schedule is None else theirs
        raise InputError(f"module {missing.name} has no schedule to compare")
    by_name = {c.name: (c, sequence) for c, sequence in theirs.schedule.sequences.items()}
    interned: dict[tuple[object, ...], int] = {}
    for computation, sequence in ours.schedule.sequences.items():
        other, their_sequence = by_name.get(computation.name, (None, ()))
        a = _Keyed(computation.name, computation, sequence, interned)
        yield a, _Keyed(computation.name, other, their_sequence, interned)


def _count_copies(module: Module) -> int:
    return sum(i.opcode is Opcode.COPY for c in module.computations for i in c.instructions)


@define(eq=False)
class _Keyed:
    """A computation whose instructions have keys that do not depend on the names of added ones."""

    name: str
    computation: Computation | None
    sequence: Sequence[Instruction]
    interned: dict[tuple[object, ...], int]
    keys: dict[Instruction, int] = field(factory=dict[Instruction, int], init=False)

    def __attrs_post_init__(self) -> None:
        repeated: Counter[tuple[object, ...]] = Counter()
        for instruction in self.sequence:
            expression = self._expression(instruction)
            repeated[expression] += 1
            self.keys[instruction] = self._intern((*expression, repeated[expression]))

    def _expression(self, instruction: Instruction) -> tuple[object, ...]:
        if instruction.opcode not in _BY_EXPRESSION:
            return (instruction.name,)
        index = instruction.tuple_index if instruction.opcode is Opcode.GET_TUPLE_ELEMENT else None
        operands = [self.keys.get(o, -1) for o in instruction.operands]
        return (instruction.opcode, instruction.shape, index, *operands)

    def _intern(self, key: tuple[object, ...]) -> int:
        return self.interned.setdefault(key, len(self.interned))

    def order_differences(self, other: _Keyed) -> list[Difference]:
        mine, theirs = [self.keys[i] for i in self.sequence], [other.keys[i] for i in other.sequence]
        if mine == theirs:
            return []
        shorter = min(len(mine), len(theirs))
        at = next((i for i in range(shorter) if mine[i] != theirs[i]), shorter)
        return [Difference(self.name, self._text(at), other._text(at), at)]

    def _text(self, position: int) -> str:
        return repr(self.sequence[position]) if position < len(self.sequence) else "(end)"

    def copy_differences(self, other: _Keyed) -> list[Difference]:
        mine, theirs = self._copies(), other._copies()
        only_mine = [Difference(self.name, repr(i), "(none)") for key, i in mine.items() if key not in theirs]
        only_theirs = [Difference(self.name, "(none)", repr(i)) for key, i in theirs.items() if key not in mine]
        return [*only_mine, *only_theirs]

    def _copies(self) -> dict[int, Instruction]:
        return {key: i for i, key in self.keys.items() if i.opcode is Opcode.COPY}

    def edge_differences(self, other: _Keyed) -> list[Difference]:
        mine, theirs = self._edges(), other._edges()
        only_mine = [Difference(self.name, text, "(none)") for edge, text in mine.items() if edge not in theirs]
        return only_mine + [Difference(self.name, "(none)", text) for edge, text in theirs.items() if edge not in mine]

    def _edges(self) -> dict[tuple[int, int], str]:
        return {
            (self.keys[before], key): f"control edge {before.name} -> {i.name}"
            for i, key in self.keys.items()
            for before in i.control_predecessors
            if before in self.keys
        }

    def root_differences(self, other: _Keyed) -> list[Difference]:
        if self.computation is None or other.computation is None:
            mine, theirs = ("(none)" if keyed.computation is None else "present" for keyed in (self, other))
            return [Difference(self.name, mine, theirs)]
        mine, theirs = self.computation.root, other.computation.root
        return [] if self.keys.get(mine) == other.keys.get(theirs) else [Difference(self.name, repr(mine), repr(theirs))]

    def names_differing(self, other: _Keyed) -> int:
        names = {key: i.name for i, key in other.keys.items()}
        return sum(names.get(key, i.name) != i.name for i, key in self.keys.items())
