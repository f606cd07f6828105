"""What a backend is to layout assignment: data, namely a handful of pure rules (layout spec, section 6).

A *demand rule* looks at one instruction and yields what the backend demands of its operands and result. Rules see the
constraints made so far through a :class:`View`, and change nothing themselves. A variant of a backend is another value::

    mine = evolve(gpu_backend(), demands={**gpu_backend().demands, Opcode.ALL_GATHER: my_rule})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Protocol

from attrs import frozen

from layoutsim.ir import Instruction, Layout, Opcode, Shape, ShapeIndex
from layoutsim.passes.layout_assignment.layout_math import Order
from layoutsim.passes.layout_assignment.reasons import Rule
from layoutsim.passes.layout_assignment.rules import (
    array_of,
    keeps_layout,
    reshape_operand_order,
    reshape_result_order,
)


class View(Protocol):
    """What a demand rule may know besides the instruction."""

    def operand_shape(self, instruction: Instruction, number: int) -> Shape | None:
        """The shape that operand ``number`` is constrained to so far."""
        ...

    def any_forwarded(self, instruction: Instruction, number: int) -> bool:
        """Whether the result shares a buffer with operand ``number``."""
        ...

    def notes(self, subject: str) -> dict[Instruction, bool]:
        """What rules found out about instructions during this run, for them to read and add to."""
        ...

    def is_automatic_parameter(self, instruction: Instruction) -> bool:
        """Whether a parameter of the entry was given no layout at all."""
        ...


@frozen
class OperandDemand:
    """Operand ``number`` must come with the layouts of ``shape``.

    Attributes:
        of: the instruction whose operand it is, where that is not the one the rule looked at.
    """

    number: int
    shape: Shape
    rule: Rule
    mandatory: bool = True
    depth_first: bool = True
    of: Instruction | None = None


@frozen
class ResultDemand:
    """The result has the layouts of ``shape``; same-rank operands follow if the instruction keeps layouts."""

    shape: Shape
    rule: Rule
    allow_alias: bool = False
    of: Instruction | None = None


@frozen
class BufferDemand:
    """The part of the result at ``index`` has ``layout``; operands are not asked."""

    index: ShapeIndex
    layout: Layout
    rule: Rule


Demand = OperandDemand | ResultDemand | BufferDemand
DemandRule = Callable[[Instruction, View], Iterable[Demand]]
ReshapeRule = Callable[[Instruction, Order], "Order | None"]


def _no_reduction(_reduce: Instruction) -> bool:
    return False


def generic_reshape_operand(reshape: Instruction, order: Order) -> Order | None:
    """The operand order for a result order, size-1 dimensions most major."""
    return reshape_operand_order(array_of(reshape.operand(0).shape), array_of(reshape.shape), order)


def generic_reshape_result(reshape: Instruction, order: Order) -> Order | None:
    """The result order for an operand order, size-1 dimensions most major."""
    return reshape_result_order(array_of(reshape.operand(0).shape), array_of(reshape.shape), order)


class VisitOrder(Enum):
    """In which order a backend looks at the instructions of a computation; what it demands last is propagated first."""

    STORED = "as stored"
    USERS_FIRST = "post-order, from the last to the first"


@frozen(eq=False)
class Backend:
    """The rules of one backend.

    Attributes:
        demands: by opcode.
        otherwise: for opcodes that are not in ``demands``.
        order: in which instructions are looked at.
        keeps_layout: same-rank operands must have the result's layout.
        pulls_reduction: a reduce that wants its operand laid out so that it reduces the most minor dimensions.
        reshape_operand: operand order that makes a reshape with this result order a bitcast.
        reshape_result: result order that makes a reshape with this operand order a bitcast.
        main_thread_only: computations of other execution threads (the host's) keep the layouts they came with.
        outputs_follow_aliases: the output of a custom call that shares its buffer with an operand follows the operand's layout.
        derive_bitcast_convert: the operand of a bitcast-convert between ranks gets a layout from the result's.
        transparent_copies: a copy in front of a constrained custom call hands the layout on to what it copies.
    """

    name: str
    demands: Mapping[Opcode, DemandRule] = {}
    otherwise: DemandRule | None = None
    order: VisitOrder = VisitOrder.STORED
    keeps_layout: Callable[[Instruction], bool] = keeps_layout
    pulls_reduction: Callable[[Instruction], bool] = _no_reduction
    reshape_operand: ReshapeRule = generic_reshape_operand
    reshape_result: ReshapeRule = generic_reshape_result
    transparent_copies: bool = True
    outputs_follow_aliases: bool = True
    derive_bitcast_convert: bool = True
    main_thread_only: bool = False

    def rule_for(self, opcode: Opcode) -> DemandRule | None:
        return self.demands.get(opcode, self.otherwise)
