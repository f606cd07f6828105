"""Changes to the module in front of the first round (layout spec, 4.2 to 4.4).

1. What a ``send`` sends, and what a layout-constrained custom call writes over, is copied, because such operands share their
   buffer with the result and could not be copied later. A ``copy`` with no other user serves as it is.
2. A computation that a conditional shares with other callers is cloned, because branches must agree in their result layouts.
"""

from __future__ import annotations

from layoutsim.errors import LayoutError
from layoutsim.ir import (
    Computation,
    ComputationLayout,
    Instruction,
    Module,
    Opcode,
    compatible,
    with_default_layout,
    without_layout,
)
from layoutsim.passes.flatten_calls import clone_in_module
from layoutsim.passes.layout_assignment.backend_generic import GENERIC
from layoutsim.passes.layout_assignment.backends import Backend
from layoutsim.passes.layout_assignment.copy_attributes import copied_attributes
from layoutsim.passes.layout_assignment.graph import callers_of
from layoutsim.passes.layout_assignment.rules import is_constrained_custom_call, output_operand_numbers
from layoutsim.passes.layout_assignment.state import runs_here


def add_protective_copies(module: Module, backend: Backend = GENERIC) -> list[Instruction]:
    """Rule (1); the copies made, still without layout."""
    added: list[Instruction] = []
    for computation in (c for c in module.computations if runs_here(c, backend)):
        wanted = [(i, number) for i in computation.instructions for number in _protected_operands(i)]
        added += [copy for i, number in wanted if (copy := _protect(computation, i, number)) is not None]
    return added


def _protected_operands(instruction: Instruction) -> tuple[int, ...]:
    if instruction.opcode is Opcode.SEND:
        return (0,)
    return output_operand_numbers(instruction) if is_constrained_custom_call(instruction) else ()


def _protect(computation: Computation, user: Instruction, number: int) -> Instruction | None:
    operand = user.operand(number)
    if operand.opcode is Opcode.COPY and operand.user_count == 1:
        return None
    shape = without_layout(operand.shape)
    copy = computation.add(Opcode.COPY, shape, [operand], attributes=copied_attributes(operand, ()))
    user.replace_operand(number, copy)
    return copy


def clone_shared_branches(module: Module, backend: Backend = GENERIC) -> list[Computation]:
    """Rule (2); the clones."""
    clones: list[Computation] = []
    requests: list[tuple[Instruction, Computation]] = []
    for computation, calling in callers_of(module).items():
        conditionals = [i for i in calling if i.opcode is Opcode.CONDITIONAL]
        if len(calling) > 1 and conditionals and runs_here(computation, backend):
            # If only conditionals call it, the last one can keep the original.
            keep = len(conditionals) == len(calling)
            requests += [(caller, computation) for caller in conditionals[: len(conditionals) - keep]]
    for caller, computation in requests:
        assert caller.parent is not None, caller
        clone = clone_in_module(module, computation, before=caller.parent)
        caller.called_computations = tuple(clone if c is computation else c for c in caller.called_computations)
        clones.append(clone)
    return clones


def check_entry_layout(module: Module) -> ComputationLayout:
    """The module's entry layout, default where the module has none.

    Raises:
        LayoutError: it does not fit the entry computation.
    """
    entry = module.entry
    parameters = entry.parameters
    if module.entry_layout is None:
        shapes = tuple(with_default_layout(p.shape) for p in parameters)
        module.entry_layout = ComputationLayout(shapes, with_default_layout(entry.root.shape))
    given = module.entry_layout
    if len(given.parameters) != len(parameters):
        raise LayoutError(f"entry layout has {len(given.parameters)} parameters, expected {len(parameters)}")
    for shape, parameter in zip(given.parameters, parameters, strict=True):
        if not compatible(shape, parameter.shape):
            raise LayoutError(f"entry layout has {shape} for {parameter.name}, expected the layout of {parameter.shape}")
    if not compatible(given.result, entry.root.shape):
        raise LayoutError(f"entry layout has result {given.result}, expected the layout of {entry.root.shape}")
    return given
