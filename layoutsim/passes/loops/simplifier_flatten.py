"""A loop's state of tuples in tuples as one of all leaves: part (2) of :mod:`.while_loop_simplifier`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from layoutsim.ir import Computation, Instruction, Opcode, Shape, TupleShape, leaves, tuple_shape
from layoutsim.passes.loops.carried import (
    add_element,
    add_tuple,
    element_shapes,
    remove_if_unused,
    without_element_facts,
    without_induction_variable,
)
from layoutsim.passes.replace import has_control_edges


def flatten_state(loop: Instruction) -> str:
    """Let a loop carry the leaves of its state."""
    first, root = loop.operand(0), loop.body.root
    is_nested = isinstance(loop.shape, TupleShape) and any(isinstance(s, TupleShape) for s in element_shapes(loop))
    if not is_nested or first.opcode is not Opcode.TUPLE or root.opcode is not Opcode.TUPLE or has_control_edges(loop):
        return ""
    old = loop.shape
    flat = tuple_shape(tuple(shape for _, shape in leaves(old)))
    parent = loop.parent
    assert parent is not None, loop
    for callee in loop.called_computations:
        _take_flat(callee.parameters[0], flat)
    loop.body.root = _flat_tuple(loop.body, loop.body.root)
    remove_if_unused(root)
    loop.replace_operand(0, _flat_tuple(parent, first))
    remove_if_unused(first)
    _take_flat(loop, flat)
    config = without_induction_variable(loop.attributes.backend_config)
    loop.attributes = evolve(loop.attributes, backend_config=config)
    return f"carries {len(flat.elements)} elements instead of tuples in tuples"


def _take_flat(whole: Instruction, flat: TupleShape) -> None:
    """Give ``whole`` the flat shape; its users get tuples in tuples as before."""
    old, computation = whole.shape, whole.parent
    assert computation is not None, whole
    is_root = whole.is_root
    users = [use for use in whole.uses]
    whole.shape = flat
    whole.attributes = without_element_facts(whole.attributes)
    parts = iter([add_element(whole, number) for number in range(len(flat.elements))])
    nested = _nested(computation, old, parts)
    for user, slot in users:
        user.replace_operand(slot, nested)
    if is_root:
        computation.root = nested
    remove_if_unused(nested)


def _nested(computation: Computation, shape: Shape, parts: Iterator[Instruction]) -> Instruction:
    if not isinstance(shape, TupleShape):
        return next(parts)
    return add_tuple(computation, [_nested(computation, element, parts) for element in shape.elements])


def _flat_tuple(computation: Computation, whole: Instruction) -> Instruction:
    return add_tuple(computation, _leaves_of(whole))


def _leaves_of(whole: Instruction) -> Sequence[Instruction]:
    if not isinstance(whole.shape, TupleShape):
        return [whole]
    return [leaf for number in range(len(whole.shape.elements)) for leaf in _leaves_of(add_element(whole, number))]
