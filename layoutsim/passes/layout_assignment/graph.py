"""What propagation needs to know of each instruction, found once and used in both rounds.

A node repeats facts that never change during the pass (operands, users, ranks, traits), because propagation asks for them
millions of times, and holds the operand constraints of the current round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from attrs import define, field

from layoutsim.analysis.points_to import LogicalBuffer, PointsTo
from layoutsim.ir import Computation, Instruction, Module, Opcode, TupleShape
from layoutsim.ir.payloads import FusionPayload
from layoutsim.passes.layout_assignment.rules import (
    as_array,
    is_at_most_rank_1,
    is_constrained_collective,
    opcodes,
    propagates_depth_first,
)

if TYPE_CHECKING:
    from layoutsim.passes.layout_assignment.constraints import OperandConstraint

NOT_AN_ARRAY = -1
"""Rank of tuples, tokens and opaque values."""

_FORWARDING = opcodes(
    "get-tuple-element tuple copy bitcast domain add-dependency opt-barrier async-start async-update async-done send "
    "recv-done copy-start copy-done"
)


class Downgrade(Enum):
    """Which soft requests on operand slots count less than others (layout spec, 3.3)."""

    NONE = 0
    ALL_BUT_FIRST = 1
    """Of a dynamic-update-slice: the array updated is larger than the update, and should decide."""
    ALL = 2
    """Of a reshape of a dynamic-slice."""


@define(eq=False)
class Node:
    """One instruction.

    Attributes:
        rank: of an array result, :data:`NOT_AN_ARRAY` otherwise.
        operand_ranks: the same for each operand.
        skips_operand: whether all arrays in the operand have rank 0 or 1.
        keeps: same-rank operands must have the result's layout.
        operand_always_forward: an operand's layout dictates the result's.
        operand_always_to_siblings: an operand's layout dictates the other operands'.
        may_forward: some operand's buffer may be part of the result.
        is_variadic_reduce: its buffers are not set from its users.
        results: the buffers of rank 2 and more that it makes.
        downgrade: which soft requests on its operands count less.
        constraints: the operand constraints of this round.
        back_edge_slot: where a loop body's root tuple takes this value.
    """

    instruction: Instruction
    opcode: Opcode
    operands: tuple[Instruction, ...]
    rank: int
    operand_ranks: tuple[int, ...]
    skips_operand: tuple[bool, ...]
    is_at_most_rank_1: bool
    keeps: bool
    operand_always_forward: bool
    operand_always_to_siblings: bool
    result_always_to_operands: bool
    depth_first: bool
    may_forward: bool
    is_constrained_collective: bool
    is_variadic_reduce: bool
    results: tuple[LogicalBuffer, ...]
    downgrade: Downgrade
    constraints: list[OperandConstraint | None]
    back_edge_slot: int | None = None

    @property
    def is_array(self) -> bool:
        return self.rank != NOT_AN_ARRAY


@define(eq=False)
class Graph:
    """The nodes of a module, and which operands share buffers with their users."""

    points_to: PointsTo
    keeps_layout: Callable[[Instruction], bool]
    nodes: dict[Instruction, Node] = field(factory=dict[Instruction, Node], init=False)
    _buffer_sets: dict[Instruction, frozenset[LogicalBuffer]] = field(
        factory=dict[Instruction, frozenset[LogicalBuffer]], init=False
    )
    _uses: dict[LogicalBuffer, tuple[tuple[Node, int], ...]] = field(
        factory=dict[LogicalBuffer, tuple[tuple[Node, int], ...]], init=False
    )

    def add(self, computation: Computation, callers: Sequence[Instruction]) -> None:
        """Make the nodes of ``computation``, which ``callers`` call."""
        for instruction in computation.instructions:
            self.nodes[instruction] = self._node(instruction)
        is_loop = len(callers) == 1 and callers[0].opcode is Opcode.WHILE
        if is_loop and computation.root.opcode is Opcode.TUPLE:
            for number, operand in reversed(list(enumerate(computation.root.operands))):
                self.nodes[operand].back_edge_slot = number

    def _node(self, instruction: Instruction) -> Node:
        opcode, operands = instruction.opcode, instruction.operands
        keeps = self.keeps_layout(instruction)
        is_reduce = opcode is Opcode.REDUCE
        return Node(
            instruction=instruction,
            opcode=opcode,
            operands=operands,
            rank=_rank(instruction),
            operand_ranks=tuple(map(_rank, operands)),
            skips_operand=tuple(is_at_most_rank_1(o.shape) for o in operands),
            is_at_most_rank_1=is_at_most_rank_1(instruction.shape),
            keeps=keeps,
            operand_always_forward=keeps or is_reduce or opcode is Opcode.TRANSPOSE,
            operand_always_to_siblings=keeps or is_reduce,
            result_always_to_operands=keeps and opcode is not Opcode.RESHAPE,
            depth_first=propagates_depth_first(instruction),
            may_forward=opcode in _FORWARDING or _is_aliasing_fusion(instruction),
            is_constrained_collective=is_constrained_collective(instruction),
            is_variadic_reduce=is_reduce and isinstance(instruction.shape, TupleShape),
            results=tuple(b for b in self.points_to.defined_by(instruction) if b.rank > 1),
            downgrade=_downgrade(instruction),
            constraints=[None] * len(operands),
        )

    def any_forwarded(self, node: Node, number: int) -> bool:
        """Whether some buffer of operand ``number`` is part of the result."""
        if not node.may_forward:
            return False
        return not self._buffers(node.instruction).isdisjoint(self._buffers(node.operands[number]))

    def all_forwarded(self, node: Node, number: int) -> bool:
        """Whether every buffer of operand ``number`` is part of the result."""
        return self._buffers(node.operands[number]) <= self._buffers(node.instruction)

    def _buffers(self, instruction: Instruction) -> frozenset[LogicalBuffer]:
        found = self._buffer_sets.get(instruction)
        if found is None:
            sets = self.points_to.points_to(instruction)
            found = self._buffer_sets[instruction] = frozenset(b for buffers in sets for b in buffers)
        return found

    def array_uses(self, buffer: LogicalBuffer) -> tuple[tuple[Node, int], ...]:
        """The operand slots that read ``buffer`` as an array and do not forward it, in XLA's order."""
        found = self._uses.get(buffer)
        if found is None:
            aliases = (alias for alias, _ in self.points_to.aliases(buffer))
            found = self._uses[buffer] = tuple(use for alias in aliases for use in self._reading_slots(alias))
        return found

    def _reading_slots(self, value: Instruction) -> Iterator[tuple[Node, int]]:
        nodes = self.nodes
        if nodes[value].rank == NOT_AN_ARRAY:
            return
        for user in value.users:
            # Tuples forward every operand, and may have thousands.
            if user.opcode is not Opcode.TUPLE:
                node = nodes[user]
                for number, operand in enumerate(node.operands):
                    if operand is value and not self.any_forwarded(node, number):
                        yield node, number

    def forget_constraints(self) -> None:
        """Drop every operand constraint, for the next round."""
        for node in self.nodes.values():
            node.constraints = [None] * len(node.operands)


def _rank(instruction: Instruction) -> int:
    array = as_array(instruction.shape)
    return NOT_AN_ARRAY if array is None else array.rank


def _is_aliasing_fusion(instruction: Instruction) -> bool:
    payload = instruction.payload
    return isinstance(payload, FusionPayload) and bool(payload.output_to_operand_aliasing)


def _downgrade(instruction: Instruction) -> Downgrade:
    if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return Downgrade.ALL_BUT_FIRST
    if instruction.opcode is Opcode.RESHAPE and instruction.operand(0).opcode is Opcode.DYNAMIC_SLICE:
        return Downgrade.ALL
    return Downgrade.NONE


def callers_of(module: Module) -> dict[Computation, list[Instruction]]:
    """The instructions that call each computation, each once, in stored order."""
    found: dict[Computation, dict[Instruction, None]] = {c: {} for c in module.computations}
    for computation in module.computations:
        for instruction in computation.instructions:
            for called in instruction.called_computations:
                found[called][instruction] = None
    return {computation: list(calling) for computation, calling in found.items()}
