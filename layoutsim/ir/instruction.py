"""One node of the graph (``xla/hlo/ir/hlo_instruction.h``).

Use edges are kept on both sides and written only by :meth:`Instruction.replace_operand`,
:meth:`Instruction.replace_all_uses_with`, :meth:`Instruction.append_operand` and ``Computation.erase``. The order of
``users`` is XLA's, because layout assignment and scheduling depend on it: order of first use, and a removed user leaves its
place to the *last* one (layout spec, 13.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from attrs import define, field

from layoutsim.ir.attributes import NO_ATTRIBUTES, Attributes, Metadata
from layoutsim.ir.layout import Layout
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import ConstantPayload, CustomCallPayload, ParameterPayload, Payload, TupleIndexPayload
from layoutsim.ir.shape import Shape

if TYPE_CHECKING:
    from layoutsim.ir.computation import Computation

P = TypeVar("P")

_INDEX_USERS_FROM = 32
"""From this many users on, removal looks positions up in a dict instead of scanning the list."""


@define(eq=False, repr=False)
class Instruction:
    """An operation and the value it computes.

    Attributes:
        name: unique in its computation, without ``%``.
        shape: of the result, layouts included; assign it to change a layout.
        payload: opcode-specific attributes, ``None`` for opcodes without.
        called_computations: in XLA's order (``while``: body, condition; ``conditional``: branches).
        attributes: metadata, sharding and other common attributes.
        parent: the computation that owns it, ``None`` while it is in none.
    """

    name: str
    opcode: Opcode
    shape: Shape
    payload: Payload | None = None
    _operands: list[Instruction] = field(factory=list["Instruction"])
    called_computations: tuple[Computation, ...] = ()
    attributes: Attributes = NO_ATTRIBUTES
    parent: Computation | None = field(default=None, init=False)
    _users: list[Instruction] = field(factory=list["Instruction"], init=False)
    _user_positions: dict[Instruction, int] | None = field(default=None, init=False)
    _control_predecessors: list[Instruction] | None = field(default=None, init=False)
    _control_successors: list[Instruction] | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        for operand in self._operands:
            users = operand._users
            # An instruction registers all its uses at once, so a second use of the same operand finds itself last.
            if not users or users[-1] is not self:
                users.append(self)
                if operand._user_positions is not None:
                    operand._user_positions[self] = len(users) - 1

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def operands(self) -> tuple[Instruction, ...]:
        return tuple(self._operands)

    def operand(self, number: int) -> Instruction:
        return self._operands[number]

    @property
    def operand_count(self) -> int:
        return len(self._operands)

    @property
    def users(self) -> tuple[Instruction, ...]:
        """Each user once, in XLA's order."""
        return tuple(self._users)

    @property
    def user_count(self) -> int:
        return len(self._users)

    @property
    def uses(self) -> Iterator[tuple[Instruction, int]]:
        """Every use edge ``(user, operand number)``: users in order, the slots of one user ascending."""
        for user in tuple(self._users):
            for number, operand in enumerate(user._operands):
                if operand is self:
                    yield user, number

    @property
    def control_predecessors(self) -> tuple[Instruction, ...]:
        return tuple(self._control_predecessors or ())

    @property
    def control_successors(self) -> tuple[Instruction, ...]:
        return tuple(self._control_successors or ())

    @property
    def is_root(self) -> bool:
        return self.parent is not None and self.parent.root is self

    @property
    def metadata(self) -> Metadata:
        return self.attributes.metadata

    @property
    def to_apply(self) -> Computation:
        """The one computation called (reducer, comparator, callee, fusion body, async body)."""
        (computation,) = self.called_computations
        return computation

    @property
    def body(self) -> Computation:
        """Body of a ``while``."""
        return self.called_computations[0]

    @property
    def condition(self) -> Computation:
        """Condition of a ``while``."""
        return self.called_computations[1]

    @property
    def parameter_number(self) -> int:
        assert isinstance(self.payload, ParameterPayload), self
        return self.payload.number

    @property
    def tuple_index(self) -> int:
        assert isinstance(self.payload, TupleIndexPayload), self
        return self.payload.index

    @property
    def custom_call_target(self) -> str:
        """The target of a custom call; empty for every other instruction."""
        return self.payload.custom_call_target if isinstance(self.payload, CustomCallPayload) else ""

    @property
    def constant(self) -> ConstantPayload:
        assert isinstance(self.payload, ConstantPayload), self
        return self.payload

    def payload_as(self, kind: type[P]) -> P:
        """The payload, known to be of ``kind``."""
        assert isinstance(self.payload, kind), f"{self!r} carries {type(self.payload).__name__}, not {kind.__name__}"
        return self.payload

    # -- writing ---------------------------------------------------------------------------------------------------

    def set_layout(self, layout: Layout | None) -> None:
        """Set the layout of an array-shaped instruction."""
        from layoutsim.ir.shape import ArrayShape

        assert isinstance(self.shape, ArrayShape), self
        self.shape = self.shape.with_layout(layout)

    def append_operand(self, new: Instruction) -> None:
        """Add an operand behind the others (tuples and calls that grow)."""
        new._add_user(self)
        self._operands.append(new)

    def replace_operand(self, number: int, new: Instruction) -> None:
        """Make slot ``number`` read ``new``; shapes are the caller's business."""
        old = self._operands[number]
        if old is new:
            return
        new._add_user(self)
        self._operands[number] = new
        if not any(operand is old for operand in self._operands):
            old._remove_user(self)

    def remove_operand(self, number: int) -> None:
        """Close slot ``number``; the slots behind it move up."""
        old = self._operands.pop(number)
        if not any(operand is old for operand in self._operands):
            old._remove_user(self)

    def move_last_among_users(self) -> None:
        """Be the last user of every operand, as an instruction is that was created last."""
        for operand in dict.fromkeys(self._operands):
            operand._users.remove(self)
            operand._users.append(self)
            operand._user_positions = None

    def sort_users(self, position: Callable[[Instruction], int]) -> None:
        """Bring the users into the order of their positions; equal ones stay as they are."""
        self._users.sort(key=position)
        self._user_positions = None

    def replace_all_uses_with(self, new: Instruction, *, keep: Iterable[Instruction] = ()) -> None:
        """Make every user, and the computation's root, read ``new``; users in ``keep`` and ``new`` itself go on as before."""
        spared = {new, *keep}
        staying: list[Instruction] = []
        for user in self._users:
            if user in spared:
                staying.append(user)
                continue
            new._add_user(user)
            user._operands[:] = [new if operand is self else operand for operand in user._operands]
        self._users[:] = staying
        self._user_positions = None
        if self.parent is not None and self.parent.root is self:
            self.parent.root = new

    def add_control_predecessor(self, before: Instruction) -> None:
        """Demand that ``before`` runs before this one."""
        if self._control_predecessors is None:
            self._control_predecessors = []
        if before in self._control_predecessors:
            return
        self._control_predecessors.append(before)
        if before._control_successors is None:
            before._control_successors = []
        before._control_successors.append(self)

    def drop_control_edges(self) -> None:
        """Remove every control edge into and out of this instruction."""
        for before in self._control_predecessors or ():
            assert before._control_successors is not None
            before._control_successors.remove(self)
        for after in self._control_successors or ():
            assert after._control_predecessors is not None
            after._control_predecessors.remove(self)
        self._control_predecessors = self._control_successors = None

    def detach(self) -> None:
        """Give up all operands and control edges; used by ``Computation.erase`` only."""
        for operand in dict.fromkeys(self._operands):
            operand._remove_user(self)
        self._operands.clear()
        self.drop_control_edges()

    def wire(self, operands: list[Instruction], users: list[Instruction]) -> None:
        """Set both sides of this instruction's use edges at once; used by cloning, which keeps the order of users."""
        assert not self._operands and not self._users, self
        self._operands = operands
        self._users = users

    def _add_user(self, user: Instruction) -> None:
        if any(operand is self for operand in user._operands):
            return
        self._users.append(user)
        if self._user_positions is not None:
            self._user_positions[user] = len(self._users) - 1

    def _remove_user(self, user: Instruction) -> None:
        """Remove ``user``; the last user takes its place."""
        users = self._users
        if self._user_positions is None and len(users) >= _INDEX_USERS_FROM:
            self._user_positions = {u: i for i, u in enumerate(users)}
        position = users.index(user) if self._user_positions is None else self._user_positions.pop(user)
        last = users.pop()
        if last is not user:
            users[position] = last
            if self._user_positions is not None:
                self._user_positions[last] = position

    def __repr__(self) -> str:
        return f"<%{self.name} = {self.shape} {self.opcode}({', '.join(f'%{o.name}' for o in self._operands)})>"
