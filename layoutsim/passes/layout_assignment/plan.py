"""What a round looks at in each computation, in which order; the same in every round, so found once."""

from __future__ import annotations

from attrs import frozen

from layoutsim.analysis.points_to import LogicalBuffer, PointsTo
from layoutsim.ir import Computation, Instruction, Opcode
from layoutsim.ir.payloads import CollectivePayload
from layoutsim.ir.traverse import post_order
from layoutsim.passes.layout_assignment.backends import Backend, DemandRule, VisitOrder
from layoutsim.passes.layout_assignment.rules import (
    is_constrained_collective,
    is_constrained_custom_call,
    opcodes,
)

_CALLS = opcodes("call while conditional")
_COMES_WITH_LAYOUT = opcodes("infeed outfeed parameter")
ALL_REDUCES = opcodes("all-reduce all-reduce-start all-reduce-done")


@frozen(eq=False)
class Plan:
    """One computation.

    Attributes:
        post_order: all instructions.
        parameters: by number.
        given: instructions that may come with mandatory layouts, in list order.
        callers: calls, loops and conditionals, in list order.
        demanding: instructions that the backend has a rule for, in its order, and the rule.
        custom_calls: those that state their layouts, in post-order.
        candidates: the array buffers made here, by id.
        channels: all-reduces across modules, in post-order.
        embedding: instructions whose computations may take their layouts (fusions, calls, loops, conditionals), in post-order.
    """

    post_order: tuple[Instruction, ...]
    parameters: tuple[Instruction, ...]
    given: tuple[Instruction, ...]
    callers: tuple[Instruction, ...]
    demanding: tuple[tuple[Instruction, DemandRule], ...]
    custom_calls: tuple[Instruction, ...]
    candidates: tuple[LogicalBuffer, ...]
    channels: tuple[Instruction, ...]
    embedding: tuple[Instruction, ...]


def plan_of(computation: Computation, points_to: PointsTo, backend: Backend) -> Plan:
    """The plan of one computation."""
    instructions, ordered = computation.instructions, post_order(computation)
    candidates = [b for i in instructions for b in points_to.defined_by(i) if b.is_array]
    visited = instructions if backend.order is VisitOrder.STORED else reversed(ordered)
    rules = ((i, backend.rule_for(i.opcode)) for i in visited)
    return Plan(
        post_order=tuple(ordered),
        parameters=computation.parameters,
        given=tuple(i for i in instructions if _may_be_given(i)),
        callers=tuple(i for i in instructions if i.opcode in _CALLS),
        demanding=tuple((i, rule) for i, rule in rules if rule is not None),
        custom_calls=tuple(i for i in ordered if is_constrained_custom_call(i)),
        candidates=tuple(sorted(candidates, key=lambda buffer: buffer.id)),
        channels=tuple(i for i in ordered if i.opcode is Opcode.ALL_REDUCE and channel_of(i) is not None),
        embedding=tuple(i for i in ordered if i.opcode in _CALLS or i.opcode is Opcode.FUSION),
    )


def _may_be_given(instruction: Instruction) -> bool:
    return (
        instruction.opcode in _COMES_WITH_LAYOUT
        or is_constrained_collective(instruction)
        or (instruction.opcode in ALL_REDUCES and channel_of(instruction) is not None)
    )


def channel_of(collective: Instruction) -> int | None:
    """The channel of a collective, ``None`` where it has none."""
    payload = collective.payload
    return payload.channel_id if isinstance(payload, CollectivePayload) else None
