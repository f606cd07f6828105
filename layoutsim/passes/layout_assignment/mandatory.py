"""What must hold on every backend before anything is propagated (layout spec, section 5; ``AddMandatoryConstraints``).

1. Instructions that come with layouts: infeeds, outfeeds, parameters whose layout is known, collectives with constrained
   layouts, all-reduces on a channel that has a layout.
2. Callers of computations that were laid out: calls, loops (which carry what the body returns), conditionals (which follow
   their largest branch).
3. The result, where it is known.
"""

from __future__ import annotations

from layoutsim.errors import LayoutError
from layoutsim.ir import Computation, Instruction, Opcode, Shape, TupleShape
from layoutsim.ir.payloads import CustomCallPayload, OutfeedPayload
from layoutsim.ir.shape import EMPTY_TUPLE, static_shape
from layoutsim.passes.layout_assignment import reasons
from layoutsim.passes.layout_assignment.constraints import ROUNDS, ComputationConstraint
from layoutsim.passes.layout_assignment.plan import channel_of
from layoutsim.passes.layout_assignment.reasons import Reason, Rule
from layoutsim.passes.layout_assignment.rules import (
    array_of,
    is_constrained_collective,
    orders_match,
    without_memory_space,
)
from layoutsim.passes.layout_assignment.state import State, all_layouts_set, any_layout_set


def add_mandatory_constraints(state: State, computation: Computation) -> None:
    """Queue what every backend demands of ``computation``."""
    plan = state.plan(computation)
    for instruction in plan.given:
        _constrain_given(state, instruction)
    for instruction in plan.callers:
        _constrain_caller(state, instruction)
    _constrain_result(state, computation)


# -- (1) -----------------------------------------------------------------------------------------------------------------


def _constrain_given(state: State, instruction: Instruction) -> None:
    store = state.store
    match instruction.opcode:
        case Opcode.INFEED:
            store.set_instruction(instruction.shape, state.node(instruction), reasons.INFEED)
        case Opcode.OUTFEED:
            shape = instruction.payload_as(OutfeedPayload).outfeed_shape
            store.set_operand(shape, state.node(instruction), 0, reasons.OUTFEED)
        case Opcode.PARAMETER:
            _constrain_parameter(state, instruction)
        case _ if is_constrained_collective(instruction):
            _constrain_collective(state, instruction)
        case _:
            _constrain_channel(state, instruction)


def _constrain_parameter(state: State, parameter: Instruction) -> None:
    computation = parameter.parent
    assert computation is not None, parameter
    constraint = state.constraint(computation)
    is_given = computation.is_entry and state.entry.any_set
    is_found = computation not in state.mismatches and constraint.parameters_are_set
    if not (state.is_reverse or is_given or is_found):
        return
    number = parameter.parameter_number
    shape = constraint.parameters[number]
    if not any_layout_set(shape):
        return
    causes = constraint.parameter_reasons[number]
    rule = reasons.PARAMETER if causes else (reasons.ENTRY_PARAMETER if computation.is_entry else reasons.GIVEN)
    shape = without_memory_space(shape)
    state.store.set_instruction(shape, state.node(parameter), rule, leaf_causes=causes)
    if state.is_reverse:
        _ask_users(state, parameter, shape, Reason(rule, parameter, None, (), shape, None, state.round, None, causes))


def _ask_users(state: State, value: Instruction, shape: Shape, reason: Reason) -> None:
    """Reverse order only: a parameter's layout is offered to its users, through get-tuple-elements."""
    for user in value.users:
        if user.opcode is Opcode.TUPLE:
            continue
        if user.opcode is Opcode.GET_TUPLE_ELEMENT:
            assert isinstance(shape, TupleShape), user
            element = shape.elements[user.tuple_index]
            inner = reason.for_leaf((user.tuple_index,))
            state.store.set_instruction(
                element,
                state.node(user),
                reasons.DEFINITION_TO_USE,
                inner,
                mandatory=False,
                depth_first=False,
                allow_alias=True,
            )
            _ask_users(state, user, element, inner)
        elif all_layouts_set(shape):  # parts of a parameter may be automatic
            number = user.operands.index(value)
            state.store.set_operand(
                shape,
                state.node(user),
                number,
                reasons.DEFINITION_TO_USE,
                reason,
                mandatory=False,
                depth_first=False,
            )


def _constrain_collective(state: State, collective: Instruction) -> None:
    node, shape = state.node(collective), collective.shape
    state.store.set_instruction(shape, node, reasons.CONSTRAINED_COLLECTIVE)
    for number in range(collective.operand_count):
        wanted = shape.elements[number] if isinstance(shape, TupleShape) else shape
        state.store.set_operand(wanted, node, number, reasons.CONSTRAINED_COLLECTIVE, any_size=True)


def _constrain_channel(state: State, all_reduce: Instruction) -> None:
    channel = channel_of(all_reduce)
    if not state.module.config.uses_spmd_partitioning and channel in state.channels:
        layout = state.channels[channel]
        shape = array_of(all_reduce.operand(0).shape).with_layout(layout)
        state.store.set_instruction(shape, state.node(all_reduce), reasons.CHANNEL)


# -- (2) -----------------------------------------------------------------------------------------------------------------


def _constrain_caller(state: State, instruction: Instruction) -> None:
    if instruction.called_computations[0] not in state.store.computations:
        return
    match instruction.opcode:
        case Opcode.CALL:
            _constrain_call(state, instruction)
        case Opcode.WHILE:
            _constrain_while(state, instruction)
        case _:
            _constrain_conditional(state, instruction)


def _constrain_call(state: State, call: Instruction) -> None:
    callee, node = state.constraint(call.to_apply), state.node(call)
    state.store.set_instruction(callee.result, node, reasons.CALL, leaf_causes=callee.result_reasons)
    for number, shape in enumerate(callee.parameters):
        causes = callee.parameter_reasons[number]
        state.store.set_operand(shape, node, number, reasons.CALL, leaf_causes=causes)


def _constrain_while(state: State, loop: Instruction) -> None:
    """What the body returns is what it takes, what the condition takes, and what the loop takes and returns."""
    body, condition = state.constraint(loop.body), state.constraint(loop.condition)
    priority = state.round + ROUNDS
    if not _equal(body.result, body.parameters[0]):
        _take_parameter(body, body, priority, body.result)
    if not _equal(condition.parameters[0], body.parameters[0]):
        _take_parameter(condition, body, priority, body.parameters[0])
    node = state.node(loop)
    asked = state.asked_of_caller(loop, body.result)
    state.store.set_operand(asked, node, 0, reasons.WHILE, leaf_causes=body.result_reasons)
    state.store.set_instruction(body.result, node, reasons.WHILE, leaf_causes=body.result_reasons)


def _take_parameter(to: ComputationConstraint, body: ComputationConstraint, priority: int, shape: Shape) -> None:
    to.parameters[0] = shape
    to.parameter_reasons[0] = dict(body.result_reasons)
    to.priority = priority
    to.result_is_set = to.parameters_are_set = True


def _equal(a: Shape, b: Shape) -> bool:
    """Equal with whole layouts; bounded-dynamic flags are ignored."""
    return a is b or static_shape(a) == static_shape(b)


def _constrain_conditional(state: State, conditional: Instruction) -> None:
    branches = conditional.called_computations
    best = _largest_branch(conditional)
    chosen = state.constraint(branches[best])
    node = state.node(conditional)
    for number, branch in enumerate(branches):
        constraint = state.constraint(branch)
        if not orders_match(constraint.result, chosen.result):
            _note_mismatch(state, constraint, chosen)
        else:
            _constrain_branch_operand(state, conditional, number, constraint)
    _constrain_branch_operand(state, conditional, best, chosen)
    state.store.set_instruction(chosen.result, node, reasons.CONDITIONAL, leaf_causes=chosen.result_reasons)


def _largest_branch(conditional: Instruction) -> int:
    best, most = 0, 0
    for number, branch in enumerate(conditional.called_computations):
        if branch.instruction_count > most and conditional.operand(number + 1).shape != EMPTY_TUPLE:
            best, most = number, branch.instruction_count
    return best


def _note_mismatch(state: State, branch: ComputationConstraint, chosen: ComputationConstraint) -> None:
    if branch.computation in state.mismatches:
        raise LayoutError(f"{branch.computation.name}: two branches share a computation whose result layout must change")
    state.mismatches[branch.computation] = ComputationConstraint(
        branch.computation,
        list(branch.parameters),
        chosen.result,
        branch.priority,
        result_reasons=dict(chosen.result_reasons),
    )


def _constrain_branch_operand(state: State, conditional: Instruction, number: int, branch: ComputationConstraint) -> None:
    node, causes = state.node(conditional), branch.parameter_reasons[0]
    state.store.set_operand(branch.parameters[0], node, number + 1, reasons.BRANCH_OPERAND, leaf_causes=causes)


# -- (3) -----------------------------------------------------------------------------------------------------------------


def _constrain_result(state: State, computation: Computation) -> None:
    constraint = state.constraint(computation)
    mismatch = state.mismatches.get(computation)
    if mismatch is not None:
        constraint.result, constraint.result_is_set = mismatch.result, True
        constraint.result_reasons = dict(mismatch.result_reasons)
        constraint.priority = state.round + ROUNDS
        state.store.push(constraint)
        return
    is_given = computation.is_entry and state.entry.any_set and any_layout_set(state.entry.result)
    if (state.is_reverse or is_given or state.round > 0) and state.result_layout_known(computation):
        state.store.push(constraint)


def result_rule(state: State, constraint: ComputationConstraint) -> Rule:
    """Why a computation's result has the layout that its constraint says."""
    if constraint.computation in state.mismatches:
        return reasons.BRANCH_MISMATCH
    if constraint.result_reasons:
        return reasons.RESULT
    return reasons.ENTRY_RESULT if constraint.computation.is_entry else reasons.GIVEN


# -- layout-constrained custom calls, behind the backend's demands ---------------------------------------------------------


def constrain_custom_call(state: State, call: Instruction) -> None:
    """Section 5.4: a custom call that states its layouts gets them."""
    store, node = state.store, state.node(call)
    store.set_instruction(call.shape, node, reasons.CUSTOM_CALL, allow_alias=True)
    for number, shape in enumerate(custom_call_operand_shapes(call)):
        store.set_operand(shape, node, number, reasons.CUSTOM_CALL)
        operand = call.operand(number)
        if operand.opcode is Opcode.COPY and not is_layout_constraint(call) and state.backend.transparent_copies:
            store.set_operand(shape, state.node(operand), 0, reasons.CUSTOM_CALL, by=call)


def is_layout_constraint(call: Instruction) -> bool:
    """Whether it is the custom call that does nothing but fix a layout."""
    return call.custom_call_target == "LayoutConstraint"


def custom_call_operand_shapes(call: Instruction) -> tuple[Shape, ...]:
    """The operand shapes that a constrained custom call states."""
    if is_layout_constraint(call):
        return (call.shape,)
    return call.payload_as(CustomCallPayload).operand_layout_constraints or ()
