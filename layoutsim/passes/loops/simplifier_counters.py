"""Elements that grow by a constant, computed from one counter: part (8) of :mod:`.while_loop_simplifier`."""

from __future__ import annotations

import numpy as np

from layoutsim.ir import ArrayShape, Computation, ElementType, Instruction, Literal, Opcode, array_shape
from layoutsim.ir.payloads import ConstantPayload, ReshapePayload
from layoutsim.passes.loops.carried import (
    add_element,
    add_tuple,
    element_shapes,
    elements_of,
    is_element,
    remove_if_unused,
    widen,
)
from layoutsim.passes.loops.simplifier_elements import takes_elements_only
from layoutsim.passes.replace import has_control_edges

_TYPES = {
    ElementType.S8: np.int8,
    ElementType.U8: np.uint8,
    ElementType.S32: np.int32,
    ElementType.U32: np.uint32,
    ElementType.S64: np.int64,
    ElementType.U64: np.uint64,
}


def merge_counters(loop: Instruction) -> str:
    """For each type of integers, compute all elements that grow by a constant from one that counts iterations."""
    if has_control_edges(loop) or any(i.opcode is Opcode.DOMAIN for c in loop.called_computations for i in c.instructions):
        return ""
    # Only what is taken out by get-tuple-element is replaced in place.
    if loop.operand(0).opcode is not Opcode.TUPLE or not takes_elements_only(loop):
        return ""
    merged = sum(_merge(loop, kind) for kind in _TYPES)
    return f"computes {merged} elements from one that counts" if merged else ""


def _merge(loop: Instruction, kind: ElementType) -> int:
    steps = {n: step for n in range(len(element_shapes(loop))) if (step := _step(loop, n, kind)) is not None}
    counter = next((n for n, step in steps.items() if _is_all(step, 1) and _is_all(loop.operand(0).operand(n), 0)), None)
    others = {n: step for n, step in steps.items() if n != counter}
    if len(steps) < 2:
        return 0
    if counter is None:
        counter = _add_counter(loop, kind)
    for number, step in others.items():
        _compute(loop, number, step, counter)
    return len(others)


def _step(loop: Instruction, number: int, kind: ElementType) -> Instruction | None:
    """The constant by which an element grows, if it does nothing else."""
    new, (parameter,) = loop.body.root.operand(number), loop.body.parameters
    shape = new.shape
    if new.opcode is not Opcode.ADD or not isinstance(shape, ArrayShape) or shape.element_type is not kind:
        return None
    for element, step in (new.operands, new.operands[::-1]):
        if is_element(element, parameter, number) and _is_known_scalar(step):
            return step
    return None


def _is_known_scalar(value: Instruction) -> bool:
    if value.opcode is not Opcode.CONSTANT or not isinstance(value.shape, ArrayShape):
        return False
    return value.shape.element_count == 1 and not value.constant.literal.is_elided


def _is_all(value: Instruction, number: int) -> bool:
    return _is_known_scalar(value) and int(value.constant.literal.array().reshape(-1)[0]) == number


def _add_counter(loop: Instruction, kind: ElementType) -> int:
    """Let the loop count its iterations; which element that is."""
    parent, body = loop.parent, loop.body
    assert parent is not None, loop
    (inside,) = widen(loop, [_scalar(parent, kind, 0)])
    number = inside.tuple_index
    following = body.add(Opcode.ADD, inside.shape, [inside, _scalar(body, kind, 1)])
    body.root.replace_operand(number, following)
    return number


def _compute(loop: Instruction, number: int, step: Instruction, counter: int) -> None:
    """Let an element stay what it starts with, and its users compute what it was."""
    body = loop.body
    for callee in loop.called_computations:
        (parameter,) = callee.parameters
        kept = (body.root, number) if callee is body else None
        uses = [use for e in elements_of(parameter) if e.tuple_index == number for use in e.uses if use != kept]
        is_returned = is_element(callee.root, parameter, number)
        if uses or is_returned:
            now = _value_now(parameter, number, step, counter)
            for user, slot in uses:
                user.replace_operand(slot, now)
            if is_returned:
                callee.root = now
    previous = body.root.operand(number)
    body.root.replace_operand(number, add_element(body.parameters[0], number))
    remove_if_unused(previous)
    _compute_behind(loop, number, step, counter)


def _compute_behind(loop: Instruction, number: int, step: Instruction, counter: int) -> None:
    """The same behind the loop; users of all of it get a tuple with the computed element."""
    parent = loop.parent
    assert parent is not None, loop
    takes_all = loop.is_root or any(user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in loop.users)
    taking_one = elements_of(loop)
    old = [element for element in taking_one if element.tuple_index == number]
    if not takes_all and not old:
        return
    now = _value_now(loop, number, step, counter)
    for element in old:
        element.replace_all_uses_with(now)
        if not element.user_count and not has_control_edges(element):
            parent.erase(element)
    if takes_all:
        others = [now if n == number else add_element(loop, n) for n in range(len(element_shapes(loop)))]
        together = add_tuple(parent, others)
        loop.replace_all_uses_with(together, keep=[*elements_of(loop), together])


def _value_now(whole: Instruction, number: int, step: Instruction, counter: int) -> Instruction:
    """An element's first value, and its step for each iteration counted."""
    computation = whole.parent
    first, count = add_element(whole, number), add_element(whole, counter)
    shape = first.shape
    assert computation is not None and isinstance(shape, ArrayShape), whole
    constant = computation.add(Opcode.CONSTANT, step.shape, payload=step.payload)
    grown = computation.add(Opcode.MULTIPLY, shape, [_shaped(count, shape), _shaped(constant, shape)])
    return computation.add(Opcode.ADD, shape, [first, grown])


def _shaped(value: Instruction, shape: ArrayShape) -> Instruction:
    """A value of one element under a shape of one element."""
    computation = value.parent
    assert computation is not None and isinstance(value.shape, ArrayShape), value
    if value.shape.dimensions == shape.dimensions:
        return value
    return computation.add(Opcode.RESHAPE, shape, [value], payload=ReshapePayload())


def _scalar(computation: Computation, kind: ElementType, number: int) -> Instruction:
    shape = array_shape(kind, ())
    literal = Literal.of(np.asarray(number, _TYPES[kind]), shape)
    return computation.add(Opcode.CONSTANT, shape, payload=ConstantPayload(literal))
