"""The driver: two rounds of constraints over all computations, then layouts and copies (layout spec, section 4).

Round 0 lets layouts flow inside each computation. What comes out at parameters and roots becomes mandatory in round 1, so that
loops, branches and calls agree with their computations. Only the constraints of the last round are applied.
"""

from __future__ import annotations

from layoutsim.errors import LayoutError
from layoutsim.garbage import no_collection
from layoutsim.ir import Computation, Instruction, Module, Opcode, ShapeIndex, default_layout
from layoutsim.passes.base import Remark
from layoutsim.passes.layout_assignment import reasons
from layoutsim.passes.layout_assignment.backends import Backend, BufferDemand, Demand, OperandDemand
from layoutsim.passes.layout_assignment.computation_layouts import (
    infer_layout,
    publish_entry_layout,
    reconcile_aliases,
    update_computation_layouts,
)
from layoutsim.passes.layout_assignment.constraints import ROUNDS
from layoutsim.passes.layout_assignment.loop_invariants import Negotiation
from layoutsim.passes.layout_assignment.mandatory import add_mandatory_constraints, constrain_custom_call
from layoutsim.passes.layout_assignment.materialize import Materializer
from layoutsim.passes.layout_assignment.options import LoopInvariants
from layoutsim.passes.layout_assignment.plan import channel_of
from layoutsim.passes.layout_assignment.prepare import (
    add_protective_copies,
    check_entry_layout,
    clone_shared_branches,
)
from layoutsim.passes.layout_assignment.procedure import Procedure
from layoutsim.passes.layout_assignment.propagate import propagate
from layoutsim.passes.layout_assignment.reasons import Reason
from layoutsim.passes.layout_assignment.result import CopyKind, InsertedCopy, LayoutAssignmentResult
from layoutsim.passes.layout_assignment.rules import as_array, layout_leaves
from layoutsim.passes.layout_assignment.state import State

XLA_PROCEDURE = Procedure()

MAX_ROUNDS = 100
"""Input-output aliases ask for more rounds while they change something; XLA has no limit."""


def assign_layouts(module: Module, backend: Backend, procedure: Procedure = XLA_PROCEDURE) -> LayoutAssignmentResult:
    """Give every array of ``module`` a layout, in place.

    Args:
        module: layouts on its instructions are read by some rules, and replaced; ``module.entry_layout`` says what the
            caller wants, and is completed.
        backend: whose rules apply.
        procedure: how to go about it.

    Raises:
        LayoutError: the module demands what cannot be, or holds a bitcast.
    """
    with no_collection():
        return _assign_layouts(module, backend, procedure)


def _assign_layouts(module: Module, backend: Backend, procedure: Procedure) -> LayoutAssignmentResult:
    protective = add_protective_copies(module, backend)
    clone_shared_branches(module, backend)
    check_entry_layout(module)
    state = State.start(module, backend, procedure)
    _refuse_bitcasts(state)
    negotiation = Negotiation.start(state) if procedure.loop_invariants is LoopInvariants.CALLER else None
    _find_layouts(state, negotiation)
    materializer = Materializer(state)
    for computation in state.computations:
        materializer.assign(computation)
    module.entry_layout = publish_entry_layout(state)
    # A protective copy of a tuple copies no array, only the table of pointers.
    arrays = [copy for copy in protective if as_array(copy.shape) is not None]
    copies = (*(_protective_record(state, copy) for copy in arrays), *materializer.copies)
    return LayoutAssignmentResult(True, tuple(Remark(c.copy.name, str(c)) for c in copies), copies, _all_reasons(state))


def _refuse_bitcasts(state: State) -> None:
    """Bitcasts mean layouts, which there are none of yet."""
    for computation in state.computations:
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.BITCAST:
                raise LayoutError(f"Unexpected bitcast operation seen during layout assignment: {instruction}")


def _find_layouts(state: State, negotiation: Negotiation | None) -> None:
    if negotiation is not None:
        state.asked_of_caller = negotiation.asked_of_caller
    changed, number = True, 0
    while changed or number < ROUNDS:
        if number == MAX_ROUNDS:
            raise LayoutError(f"{state.module.name}: aliased inputs and outputs do not come to one layout")
        state.store.start_round()
        for computation in state.computations:
            _lay_out(state, computation)
        state.store.priority += 1
        changed = reconcile_aliases(state)
        if negotiation is not None and negotiation.after_round(state):
            changed = True
        number += 1


def _lay_out(state: State, computation: Computation) -> None:
    """Constrain every buffer of one computation."""
    add_mandatory_constraints(state, computation)
    _add_backend_demands(state, computation)
    for call in state.plan(computation).custom_calls:
        constrain_custom_call(state, call)
    propagate(state)
    _pick_defaults(state, computation)
    update_computation_layouts(state, computation)
    _record_channels(state, computation)


def _add_backend_demands(state: State, computation: Computation) -> None:
    for instruction, rule in state.plan(computation).demanding:
        for demand in rule(instruction, state):
            _apply(state, instruction, demand)


def _apply(state: State, instruction: Instruction, demand: Demand) -> None:
    store = state.store
    if isinstance(demand, BufferDemand):
        buffer = state.points_to.defined_at(instruction, demand.index)
        if buffer is None:
            raise LayoutError(f"{instruction.name} does not make a buffer at index {demand.index}")
        store.set_buffer(demand.layout, buffer, demand.rule, None)
        return
    node = state.node(demand.of or instruction)
    if isinstance(demand, OperandDemand):
        store.set_operand(
            demand.shape,
            node,
            demand.number,
            demand.rule,
            mandatory=demand.mandatory,
            depth_first=demand.depth_first,
            by=instruction,
        )
    else:
        store.set_instruction(demand.shape, node, demand.rule, allow_alias=demand.allow_alias, by=instruction)


def _pick_defaults(state: State, computation: Computation) -> None:
    """Free buffers get the default layout, or a constant its literal's, in the order of their ids (layout spec, 8)."""
    store = state.store
    for buffer in state.plan(computation).candidates:
        if store.buffers[buffer.id] is not None:
            continue
        layout, rule = default_layout(buffer.rank), reasons.DEFAULT
        if buffer.instruction.opcode is Opcode.CONSTANT:
            literal = dict(layout_leaves(buffer.instruction.constant.literal.shape))[buffer.index]
            layout, rule = literal.layout or layout, reasons.LITERAL
        store.set_buffer(layout, buffer, rule, None, mandatory=False)
        propagate(state)


def _record_channels(state: State, computation: Computation) -> None:
    """The first all-reduce on a channel decides for those laid out after it."""
    for instruction in state.plan(computation).channels:
        if as_array(instruction.shape) is None:
            raise LayoutError(f"{instruction.name}: a variadic all-reduce cannot constrain the layout of its channel")
        layout, _ = infer_layout(state, instruction, ())
        channel = channel_of(instruction)
        assert channel is not None, instruction
        state.channels.setdefault(channel, layout)


def _protective_record(state: State, copy: Instruction) -> InsertedCopy:
    (user,) = copy.users
    slot = user.operands.index(copy)
    (buffers,) = state.points_to.points_to(copy)[:1]
    demanded = state.store.buffer_reason(buffers[0])
    assert demanded is not None, copy
    value = copy.operand(0)
    source = state.store.buffer_reason(state.points_to.points_to(value)[0][0]) if value in state.graph.nodes else None
    return InsertedCopy(copy, CopyKind.PROTECTIVE, value, (), user, slot, demanded, source)


def _all_reasons(state: State) -> dict[tuple[Instruction, ShapeIndex], Reason]:
    found: dict[tuple[Instruction, ShapeIndex], Reason] = {}
    for constraint in state.store.buffers:
        if constraint is not None:
            for alias in state.points_to.aliases(constraint.buffer):
                found[alias] = constraint.reason
    return found
