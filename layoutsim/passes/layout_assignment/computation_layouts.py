"""Layouts of computations, found from their insides (layout spec, section 9; ``CalculateComputationLayout``).

1. After a computation was laid out for the first time, its parameters and root define its layout; callers and the second round
   must respect it.
2. Fusion bodies take the layouts of their fusion. In reverse order, callees take those of their callers.
3. An entry whose layout was not given at all publishes what was found.
4. An input and an output that alias must end with one layout; where they differ, one is changed and another round runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutsim.errors import LayoutError
from layoutsim.ir import (
    Computation,
    ComputationLayout,
    InputOutputAlias,
    Instruction,
    Layout,
    Opcode,
    Shape,
    ShapeIndex,
    subshape,
)
from layoutsim.passes.layout_assignment import reasons
from layoutsim.passes.layout_assignment.constraints import ROUNDS, ComputationConstraint
from layoutsim.passes.layout_assignment.reasons import Reason
from layoutsim.passes.layout_assignment.rules import as_array, layout_leaves, orders_match, with_layouts
from layoutsim.passes.layout_assignment.state import State, all_layouts_set


def infer_layout(state: State, instruction: Instruction, index: ShapeIndex) -> tuple[Layout, Reason]:
    """The layout of a part, from the buffers it may point to, and why.

    Raises:
        LayoutError: a buffer has no layout yet, or two buffers have different ones.
    """
    chosen: tuple[Layout, Reason] | None = None
    for buffer in state.points_to.at(instruction, index):
        constraint = state.store.buffers[buffer.id]
        if constraint is None:
            raise LayoutError(f"{buffer} does not have a layout")
        if chosen is None:
            chosen = (constraint.layout, constraint.reason)
            continue
        array = as_array(buffer.shape)
        assigned = None if array is None else array.layout
        if assigned is None or assigned.minor_to_major != chosen[0].minor_to_major:
            raise LayoutError(f"{instruction.name} at index {index} aliases buffers with different layouts")
    assert chosen is not None, f"{instruction} at {index} points to nothing"
    return chosen


def update_computation_layouts(state: State, computation: Computation) -> None:
    """Record what ``computation`` says about the layouts of itself and of what it calls."""
    for instruction in state.plan(computation).embedding:
        _update_callees(state, instruction)
    if state.round == 0 or computation in state.mismatches:  # (1)
        constraint = state.constraint(computation)
        _take_from(state, constraint, computation.root, state.plan(computation).parameters, state.round + ROUNDS)
        if computation.is_entry:  # (3)
            state.entry.parameters, state.entry.result = list(constraint.parameters), constraint.result


def _update_callees(state: State, instruction: Instruction) -> None:  # (2)
    priority, called = state.round + 1, instruction.called_computations
    match instruction.opcode:
        case Opcode.FUSION:
            _take_from(state, state.constraint(called[0]), instruction, instruction.operands, priority)
        case Opcode.CALL if state.is_reverse:
            _take_from(state, state.constraint(called[0]), instruction, instruction.operands, priority)
        case Opcode.CONDITIONAL if state.is_reverse:
            for number, branch in enumerate(called):
                operand = instruction.operand(number + 1)
                _take_from(state, state.constraint(branch), instruction, [operand], priority)
        case Opcode.WHILE if state.is_reverse:
            init = instruction.operand(0)
            _take_from(state, state.constraint(instruction.body), instruction, [init], priority)
            # XLA takes the condition's result from the loop's operand too, although it is a pred[].
            _take_from(state, state.constraint(instruction.condition), None, [init], priority)
        case _:
            pass


def _take_from(
    state: State,
    constraint: ComputationConstraint,
    result: Instruction | None,
    operands: Sequence[Instruction],
    priority: int,
) -> None:
    is_mismatch = constraint.computation in state.mismatches
    if constraint.priority >= priority and not is_mismatch:
        return
    if not is_mismatch and result is not None:
        constraint.result = _updated(state, result, constraint.result, constraint.result_reasons)
    for number, operand in enumerate(operands):
        causes = constraint.parameter_reasons[number]
        constraint.parameters[number] = _updated(state, operand, constraint.parameters[number], causes)
    constraint.priority = priority
    constraint.result_is_set = constraint.parameters_are_set = True


def _updated(state: State, source: Instruction, shape: Shape, causes: dict[ShapeIndex, Reason]) -> Shape:
    """``shape`` with the layouts of ``source``; parts that ``source`` came without a layout for stay as they are."""
    found: dict[ShapeIndex, Layout] = {}
    for index, leaf in layout_leaves(source.shape):
        if leaf.layout is None:
            continue
        try:
            found[index], causes[index] = infer_layout(state, source, index)
        except LayoutError:  # XLA leaves an ambiguous part as it was, too
            continue
    return with_layouts(shape, found)


# -- (4) -----------------------------------------------------------------------------------------------------------------


def reconcile_aliases(state: State) -> bool:
    """Give inputs and the outputs that alias them one layout; whether another round is needed."""
    changed = [_reconcile(state, alias) for alias in state.module.input_output_aliases]  # every one, so no lazy any()
    return any(changed)


def _reconcile(state: State, alias: InputOutputAlias) -> bool:
    number, index = alias.parameter_number, alias.parameter_index
    requested = state.entry.requested
    parameter_is_given = _has_layout(requested.parameters[number], index)
    if parameter_is_given and _has_layout(requested.result, alias.output_index):
        return False
    entry = state.module.entry
    parameter_layout, parameter_reason = infer_layout(state, state.plan(entry).parameters[number], index)
    result_layout, result_reason = infer_layout(state, entry.root, alias.output_index)
    if parameter_layout.minor_to_major == result_layout.minor_to_major:
        return False
    if parameter_is_given:
        _set_both(state, alias, parameter_layout, parameter_reason)
    else:
        _set_both(state, alias, result_layout, result_reason)
    return True


def _has_layout(shape: Shape, index: ShapeIndex) -> bool:
    leaf = as_array(subshape(shape, index))
    return leaf is not None and leaf.layout is not None


def _set_both(state: State, alias: InputOutputAlias, layout: Layout, cause: Reason) -> None:
    number = alias.parameter_number
    parameter, result = {alias.parameter_index: layout}, {alias.output_index: layout}
    for holder in (state.entry, state.constraint(state.module.entry)):
        holder.parameters[number] = with_layouts(holder.parameters[number], parameter)
        holder.result = with_layouts(holder.result, result)
    constraint, root = state.constraint(state.module.entry), state.module.entry.root
    reason = Reason(reasons.ALIAS, root, None, alias.output_index, layout, cause, state.round)
    constraint.parameter_reasons[number][alias.parameter_index] = reason
    constraint.result_reasons[alias.output_index] = reason


# -- (3), after layouts were assigned ------------------------------------------------------------------------------------


def publish_entry_layout(state: State) -> ComputationLayout:
    """The module's entry layout, complete: what was requested, and what was found where nothing was.

    Raises:
        LayoutError: a requested layout was not honoured.
    """
    entry = state.module.entry
    parameters = [
        _published(requested, p.shape, f"parameter {p.name}")
        for requested, p in zip(state.entry.parameters, entry.parameters, strict=True)
    ]
    result = state.entry.result
    if all_layouts_set(result):
        if not orders_match(result, entry.root.shape):
            raise LayoutError(f"result {entry.root.name} has shape {entry.root.shape}, but {result} was requested")
    else:
        result = _with_memory_spaces_of(result, entry.root.shape)
    return ComputationLayout(tuple(parameters), result)


def _published(requested: Shape, assigned: Shape, what: str) -> Shape:
    for (_, wanted), (_, got) in zip(layout_leaves(requested), layout_leaves(assigned), strict=True):
        if wanted.layout is not None and wanted.layout.minor_to_major != got.minor_to_major:
            raise LayoutError(f"{what} was assigned {assigned}, but {requested} was requested")
    return requested if all_layouts_set(requested) else _with_memory_spaces_of(requested, assigned)


def _with_memory_spaces_of(requested: Shape, assigned: Shape) -> Shape:
    """The assigned shape; leaves whose layout was requested keep the memory space asked for."""
    spaces = {index: leaf.layout.memory_space for index, leaf in layout_leaves(requested) if leaf.layout is not None}
    layouts = {
        index: leaf.layout.with_memory_space(spaces[index])
        for index, leaf in layout_leaves(assigned)
        if index in spaces and leaf.layout is not None
    }
    return with_layouts(assigned, layouts)
