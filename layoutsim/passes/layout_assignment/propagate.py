"""Propagation to a fixed point (layout spec, section 7.4; ``LayoutAssignment::PropagateConstraints``).

Constraints wait in a double-ended queue; new depth-first ones go to its front one by one (so the last one made is followed
first), others to its back (:class:`~.options.WorkList` has variants). Taking one asks its neighbours:

* An **operand constraint** asks (1) the buffers that the operand may be, softly; and, unless the value is forwarded or a
  vector, (2) the other operands and the result of an instruction that keeps layouts, by force; (3) the result of a transpose
  (by force) or reshape (softly) so that it becomes a bitcast.
* A **buffer constraint** asks (4) the operands of its instruction, (5) every slot that uses it as an array, softly; and (6) in
  a loop body the parameter that takes it in the next iteration, softly.
* A **computation constraint** asks the buffers of the root, softly.
"""

from __future__ import annotations

from collections import deque

from layoutsim.analysis.points_to import LogicalBuffer, output_operand_aliasing, position
from layoutsim.errors import LayoutError
from layoutsim.ir import Layout, Opcode, default_layout, layout, leaves
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.passes.layout_assignment import reasons
from layoutsim.passes.layout_assignment.constraints import (
    BufferConstraint,
    ComputationConstraint,
    Constraint,
    OperandConstraint,
)
from layoutsim.passes.layout_assignment.graph import NOT_AN_ARRAY, Node
from layoutsim.passes.layout_assignment.layout_math import (
    Order,
    append_minor,
    delete_dimensions,
    keep_dimensions,
    transpose_operand_order,
    transpose_result_order,
)
from layoutsim.passes.layout_assignment.mandatory import result_rule
from layoutsim.passes.layout_assignment.options import WorkList
from layoutsim.passes.layout_assignment.reasons import Reason, Rule
from layoutsim.passes.layout_assignment.rules import (
    array_of,
    as_array,
    dimensions_of,
    row_reduction_operand_order,
    without_memory_space,
)
from layoutsim.passes.layout_assignment.state import State

STEPS_PER_BUFFER = 1000
"""XLA has no guard against two mandatory rules that fight over a buffer for ever; this is ours."""


def propagate(state: State) -> None:
    """Follow all queued constraints until none is left.

    Raises:
        LayoutError: mandatory rules keep overriding each other.
    """
    store = state.store
    waiting: deque[Constraint] = deque()
    work_list = state.procedure.work_list
    steps = STEPS_PER_BUFFER * (len(store.buffers) + 1)
    while True:
        if store.added:
            for added in store.take_added():
                if is_followed_at_once(added, work_list):
                    waiting.appendleft(added)
                else:
                    waiting.append(added)
        if not waiting:
            return
        constraint = waiting.popleft()
        steps -= 1
        if steps < 0:
            raise LayoutError(f"{state.module.name}: mandatory layouts override each other for ever at {constraint}")
        if isinstance(constraint, BufferConstraint):
            _follow_buffer(state, constraint)
        elif isinstance(constraint, OperandConstraint):
            _follow_operand(state, constraint)
        else:
            _follow_result(state, constraint)


def is_followed_at_once(constraint: Constraint, work_list: WorkList) -> bool:
    """Whether a new constraint goes to the front of the queue."""
    return constraint.depth_first if work_list is WorkList.XLA else work_list is WorkList.DEPTH_FIRST


# -- operand constraints -------------------------------------------------------------------------------------------------


def _follow_operand(state: State, constraint: OperandConstraint) -> None:
    node, number = constraint.node, constraint.number
    if node.skips_operand[number]:
        return
    _ask_definitions(state, constraint)  # (1)
    if node.opcode is Opcode.CUSTOM_CALL and state.backend.outputs_follow_aliases:
        _ask_aliased_output(state, constraint)
    rank, wanted = node.operand_ranks[number], constraint.layout
    if rank == NOT_AN_ARRAY or wanted is None or node.is_constrained_collective:
        return
    if node.opcode is Opcode.ALL_REDUCE:
        buffer = state.points_to.defined_at(node.instruction, () if len(node.operands) == 1 else (number,))
        if buffer is not None:
            state.store.set_buffer(wanted, buffer, reasons.OPERAND_TO_RESULT, constraint.reason)
    if not node.keeps and not node.is_array and node.opcode is not Opcode.REDUCE:
        return
    if rank <= 1 or state.graph.any_forwarded(node, number):
        return
    if node.operand_always_to_siblings:
        _ask_siblings_and_results(state, constraint, wanted)  # (2)
    elif node.results:
        _ask_result(state, constraint, wanted)  # (3)


def _ask_definitions(state: State, constraint: OperandConstraint) -> None:
    operand = constraint.node.operands[constraint.number]
    sets = state.points_to.points_to(operand)
    if constraint.layout is not None:
        for buffer in sets[0]:
            _ask_definition(state, buffer, constraint.layout, constraint.priority, constraint.reason)
        return
    shape = constraint.shape
    for index, leaf in leaves(shape):
        array = as_array(leaf)
        if array is not None and array.layout is not None:
            for buffer in sets[position(shape, index)]:
                _ask_definition(state, buffer, array.layout, constraint.priority, constraint.reason.for_leaf(index))


def _ask_definition(
    state: State, buffer: LogicalBuffer, wanted: Layout, priority: int, cause: Reason | None, rule: Rule | None = None
) -> None:
    if buffer.is_array and not state.graph.nodes[buffer.instruction].is_variadic_reduce:
        state.store.set_buffer(wanted, buffer, rule or reasons.USE_TO_DEFINITION, cause, mandatory=False, priority=priority)


def _ask_aliased_output(state: State, constraint: OperandConstraint) -> None:
    """A custom call that writes its output over this operand has it in the operand's layout."""
    node, wanted = constraint.node, constraint.layout
    for alias in output_operand_aliasing(node.instruction):
        if alias.operand_number == constraint.number:
            buffer = state.points_to.defined_at(node.instruction, alias.output_index)
            if buffer is not None and wanted is not None:
                state.store.set_buffer(
                    wanted,
                    buffer,
                    reasons.OUTPUT_OPERAND_ALIAS,
                    constraint.reason,
                    mandatory=node.operand_always_forward,
                    depth_first=node.depth_first,
                    priority=constraint.priority,
                )
            return


def _ask_siblings_and_results(state: State, constraint: OperandConstraint, wanted: Layout) -> None:
    node, number = constraint.node, constraint.number
    if node.opcode is Opcode.CONCATENATE and _has_larger_sibling(node, number):
        return
    operand, rank = node.operands[number], node.operand_ranks[number]
    store, priority, reason = state.store, constraint.priority, constraint.reason
    for other, sibling in enumerate(node.operands):
        if sibling is not operand and node.operand_ranks[other] == rank:
            store.set_array_operand(wanted, node, other, reasons.SIBLING, reason, priority=priority)
    for buffer in node.results:
        if buffer.rank == rank:
            store.set_buffer(wanted, buffer, reasons.OPERAND_TO_RESULT, reason, priority=priority)


def _has_larger_sibling(concatenate: Node, number: int) -> bool:
    """Only the largest operand of a concatenate speaks."""
    payload = concatenate.instruction.payload_as(DimensionsPayload)
    (dimension,) = payload.dimensions
    operand = concatenate.operands[number]
    size = array_of(operand.shape).dimensions[dimension]
    return any(o is not operand and array_of(o.shape).dimensions[dimension] > size for o in concatenate.operands)


def _ask_result(state: State, constraint: OperandConstraint, wanted: Layout) -> None:
    node = constraint.node
    order: Order | None = None
    if node.opcode is Opcode.TRANSPOSE:
        order = transpose_result_order(wanted.minor_to_major, dimensions_of(node.instruction))
    elif node.opcode is Opcode.RESHAPE:
        order = state.backend.reshape_result(node.instruction, wanted.minor_to_major)
    if order is None:
        return
    for buffer in node.results:
        state.store.set_buffer(
            layout(order),
            buffer,
            reasons.BITCAST_RESULT,
            constraint.reason,
            mandatory=node.operand_always_forward,
            depth_first=node.depth_first,
            priority=constraint.priority,
        )


# -- buffer constraints --------------------------------------------------------------------------------------------------


def _follow_buffer(state: State, constraint: BufferConstraint) -> None:
    node = constraint.node
    if not node.is_at_most_rank_1:
        _ask_operands(state, constraint)  # (4)
    wanted, priority, reason = constraint.layout, constraint.priority, constraint.reason
    for user, number in state.graph.array_uses(constraint.buffer):  # (5)
        if user.constraints[number] is None:
            state.store.set_array_operand(
                wanted, user, number, reasons.DEFINITION_TO_USE, reason, mandatory=False, priority=priority
            )
    if node.back_edge_slot is not None:  # (6)
        _ask_next_iteration(state, constraint, node.back_edge_slot)


def _ask_operands(state: State, constraint: BufferConstraint) -> None:
    node, wanted, reason = constraint.node, constraint.layout, constraint.reason
    store = state.store
    if node.opcode is Opcode.ALL_REDUCE:
        number = 0 if len(node.operands) == 1 else constraint.buffer.index[0]
        store.set_array_operand(wanted, node, number, reasons.RESULT_TO_OPERAND, reason, priority=constraint.priority)
        return
    for number, rank in enumerate(node.operand_ranks):
        if node.skips_operand[number] or rank == NOT_AN_ARRAY:
            continue
        if node.keeps:
            if rank == wanted.rank:
                store.set_array_operand(wanted, node, number, reasons.RESULT_TO_OPERAND, reason)
            elif node.opcode is Opcode.BITCAST_CONVERT and state.backend.derive_bitcast_convert:
                order = _bitcast_convert_operand_order(node, rank)
                store.set_array_operand(layout(order), node, number, reasons.BITCAST_OPERAND, reason)
        elif node.opcode is Opcode.BROADCAST:
            order = keep_dimensions(wanted.minor_to_major, dimensions_of(node.instruction))
            store.set_array_operand(
                wanted.with_order(order), node, number, reasons.BROADCAST_OPERAND, reason, depth_first=node.depth_first
            )
        elif not constraint.buffer.index:
            _ask_operand(state, constraint, number)


def _bitcast_convert_operand_order(node: Node, operand_rank: int) -> Order:
    """From the layout that the result came with, whatever is wanted of it now (as XLA does)."""
    result = array_of(node.instruction.shape)
    order = (result.layout or default_layout(result.rank)).minor_to_major
    return delete_dimensions(order, [result.rank - 1]) if operand_rank < result.rank else append_minor(order)


def _ask_operand(state: State, constraint: BufferConstraint, number: int) -> None:
    node, order = constraint.node, constraint.layout.minor_to_major
    instruction = node.instruction
    found: Order | None = None
    rule = reasons.BITCAST_OPERAND
    if node.opcode is Opcode.RESHAPE:
        found = state.backend.reshape_operand(instruction, order)
    elif node.opcode is Opcode.TRANSPOSE:
        found = transpose_operand_order(order, dimensions_of(instruction))
    elif node.opcode is Opcode.REDUCE and node.is_array and state.backend.pulls_reduction(instruction):
        found, rule = row_reduction_operand_order(instruction, order), reasons.REDUCE_OPERAND
    if found is not None:
        state.store.set_array_operand(
            layout(found),
            node,
            number,
            rule,
            constraint.reason,
            mandatory=node.result_always_to_operands,
            depth_first=node.depth_first,
        )


def _ask_next_iteration(state: State, constraint: BufferConstraint, slot: int) -> None:
    buffer = constraint.buffer
    computation = buffer.instruction.parent
    assert computation is not None, buffer
    parameter = state.plan(computation).parameters[0]
    index = (slot, *buffer.index)
    target = state.points_to.defined_at(parameter, index)
    if target is None:
        raise LayoutError(f"{parameter.name} does not make a buffer at index {index}")
    state.store.set_buffer(constraint.layout, target, reasons.BACK_EDGE, constraint.reason, mandatory=False)


# -- computation constraints ---------------------------------------------------------------------------------------------


def _follow_result(state: State, constraint: ComputationConstraint) -> None:
    root = constraint.computation.root
    shape = without_memory_space(constraint.result) if constraint.computation.is_entry else constraint.result
    rule, causes = result_rule(state, constraint), constraint.result_reasons
    for index, leaf in leaves(shape):
        array = as_array(leaf)
        if array is None or array.layout is None:
            continue
        demand = Reason(rule, root, None, index, array.layout, causes.get(index), state.round)
        for buffer in state.points_to.at(root, index):
            _ask_definition(state, buffer, array.layout, state.round, demand)
