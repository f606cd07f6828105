"""Shape rules of control flow, calls, effects, asynchronous pairs and random numbers (text spec, 3.7).

Calls return their callee's root shape, layout included; ``while`` returns its operand's. An asynchronous start returns
``((operands), result, contexts...)``, where only the contexts are taken from the stated shape.
"""

from __future__ import annotations

from layoutsim.infer.registry import ProgramShape, Site, shape_rule
from layoutsim.infer.shapes import dynamic_flags, scalar, with_dynamic
from layoutsim.ir import (
    TOKEN,
    ArrayShape,
    ElementType,
    Opcode,
    Shape,
    TupleShape,
    array_leaves,
    array_shape,
    compatible,
    replace_subshape,
    subshape,
    tuple_shape,
)
from layoutsim.ir.payloads import OutfeedPayload, RngPayload

_PRED = scalar(ElementType.PRED)
_S32 = scalar(ElementType.S32)
_U32 = scalar(ElementType.U32)


def _check_arguments(site: Site, program: ProgramShape, *, count: int | None = None) -> None:
    """Each of the first ``count`` operands (all, if unset) fits the callee's parameter."""
    operands = site.operands[:count]
    if len(program.parameters) != len(operands):
        site.fail(f"calls a computation with {len(program.parameters)} parameters, expected {len(operands)}")
    for number, (operand, parameter) in enumerate(zip(operands, program.parameters, strict=True)):
        if not compatible(operand, parameter):
            site.fail(f"operand {number} has shape {operand}, expected {parameter} (parameter {number} of the callee)")


# -- calls ---------------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.CALL)
def _call(site: Site) -> Shape:
    program = site.program()
    _check_arguments(site, program)
    return program.result


@shape_rule(Opcode.FUSION)
def _fusion(site: Site) -> Shape:
    """A body may leave out its last parameters, which then go unused."""
    program = site.program()
    if len(program.parameters) > len(site.operands):
        site.fail(f"has a body with {len(program.parameters)} parameters, expected at most {len(site.operands)}")
    _check_arguments(site, program, count=len(program.parameters))
    return program.result


@shape_rule(Opcode.CUSTOM_CALL)
def _custom_call(site: Site) -> Shape:
    """What a custom call returns is known to its target only."""
    return site.stated_shape()


@shape_rule(Opcode.WHILE)
def _while(site: Site) -> Shape:
    initial = site.operands[0]
    for name, program in (("body", site.program(0, count=2)), ("condition", site.program(1, count=2))):
        if len(program.parameters) != 1:
            site.fail(f"{name} has {len(program.parameters)} parameters, expected 1")
        if not compatible(program.parameters[0], initial):
            site.fail(f"{name} takes {program.parameters[0]}, expected {initial} (same as operand 0)")
    body, condition = site.programs
    if not compatible(body.result, initial):
        site.fail(f"body returns {body.result}, expected {initial} (same as operand 0)")
    if not compatible(condition.result, _PRED):
        site.fail(f"condition returns {condition.result}, expected pred[]")
    return initial


@shape_rule(Opcode.CONDITIONAL)
def _conditional(site: Site) -> Shape:
    index, branches = site.operands[0] if site.operands else TOKEN, site.programs
    if not compatible(index, _PRED) and not compatible(index, _S32):
        site.fail(f"operand 0 has shape {index}, expected pred[] or s32[]")
    if not branches or (compatible(index, _PRED) and len(branches) != 2):
        site.fail(f"has {len(branches)} branches, expected two for pred[] and at least one for s32[]")
    if len(site.operands) != 1 + len(branches):
        site.fail(f"has {len(site.operands)} operands, expected the index and one for each of {len(branches)} branches")
    for number, (operand, branch) in enumerate(zip(site.operands[1:], branches, strict=True)):
        if len(branch.parameters) != 1 or not compatible(branch.parameters[0], operand):
            site.fail(f"branch {number} is {branch}, expected one parameter {operand} (operand {number + 1})")
        if not compatible(branch.result, branches[0].result):
            site.fail(f"branch {number} returns {branch.result}, expected {branches[0].result} (same as branch 0)")
    return _dynamic_in_any(branches)


def _dynamic_in_any(branches: tuple[ProgramShape, ...]) -> Shape:
    """Result of branch 0, where a dimension is dynamic when it is dynamic in any branch."""
    result = branches[0].result
    for index, leaf in array_leaves(result):
        parts = [subshape(branch.result, index) for branch in branches]
        flags = [dynamic_flags(part) for part in parts if isinstance(part, ArrayShape)]
        either = tuple(map(any, zip(*flags, strict=True)))
        if either != dynamic_flags(leaf):
            result = replace_subshape(result, index, with_dynamic(leaf, either))
    return result


# -- asynchronous pairs --------------------------------------------------------------------------------------------------


@shape_rule(Opcode.ASYNC_START)
def _async_start(site: Site) -> Shape:
    program = site.program()
    _check_arguments(site, program)
    contexts: tuple[Shape, ...] = ()
    if isinstance(site.stated, TupleShape):
        contexts = site.stated.elements[2:]
    return tuple_shape((tuple_shape(site.operands), program.result, *contexts))


@shape_rule(Opcode.ASYNC_UPDATE)
def _async_update(site: Site) -> Shape:
    _started(site)
    return site.operands[0]


@shape_rule(Opcode.ASYNC_DONE)
def _async_done(site: Site) -> Shape:
    return _started(site).elements[1]


def _started(site: Site) -> TupleShape:
    start = site.tuple(0)
    if len(start.elements) < 2 or not isinstance(start.elements[0], TupleShape):
        site.fail(f"operand 0 has shape {start}, expected ((operands), result, contexts...)")
    return start


@shape_rule(Opcode.COPY_START)
def _copy_start(site: Site) -> Shape:
    """``(destination, source, context)``; the destination's layout is free, and stated."""
    operand = site.operands[0]
    destination: Shape = operand
    context: Shape = _U32
    if isinstance(site.stated, TupleShape):
        if len(site.stated.elements) != 3:
            site.fail(f"has shape {site.stated}, expected (destination, source, context)")
        destination, source, context = site.stated.elements
        if not compatible(destination, operand) or not compatible(source, operand):
            site.fail(f"has shape {site.stated}, expected destination and source {operand} (same as operand 0)")
    return tuple_shape((destination, operand, context))


@shape_rule(Opcode.COPY_DONE)
def _copy_done(site: Site) -> Shape:
    start = site.tuple(0)
    if len(start.elements) != 3 or not compatible(start.elements[0], start.elements[1]):
        site.fail(f"operand 0 has shape {start}, expected (destination, source, context)")
    return start.elements[0]


# -- tokens and transfers ------------------------------------------------------------------------------------------------


@shape_rule(Opcode.AFTER_ALL)
def _after_all(site: Site) -> Shape:
    return TOKEN


@shape_rule(Opcode.INFEED)
def _infeed(site: Site) -> Shape:
    site.token(0)
    return tuple_shape((_stated_data(site, "(data, token[])"), TOKEN))


def _stated_data(site: Site, expected: str) -> Shape:
    stated = site.stated_shape()
    if not isinstance(stated, TupleShape) or not stated.elements:
        site.fail(f"has shape {stated}, expected {expected}")
    return stated.elements[0]


@shape_rule(Opcode.OUTFEED)
def _outfeed(site: Site) -> Shape:
    site.token(1)
    expected = site.payload_as(OutfeedPayload).outfeed_shape
    if not compatible(site.operands[0], expected):
        site.fail(f"operand 0 has shape {site.operands[0]}, expected {expected}, its outfeed_shape")
    return TOKEN


@shape_rule(Opcode.SEND)
def _send(site: Site) -> Shape:
    site.token(1)
    return tuple_shape((site.operands[0], _U32, TOKEN))


@shape_rule(Opcode.SEND_DONE)
def _send_done(site: Site) -> Shape:
    return _transfer(site).elements[2]


@shape_rule(Opcode.RECV)
def _recv(site: Site) -> Shape:
    site.token(0)
    return tuple_shape((_stated_data(site, "(data, u32[], token[])"), _U32, TOKEN))


@shape_rule(Opcode.RECV_DONE)
def _recv_done(site: Site) -> Shape:
    start = _transfer(site)
    return tuple_shape((start.elements[0], TOKEN))


def _transfer(site: Site) -> TupleShape:
    start = site.tuple(0)
    if len(start.elements) != 3 or start.elements[2] != TOKEN:
        site.fail(f"operand 0 has shape {start}, expected (data, u32[], token[])")
    return start


# -- random numbers and ids ----------------------------------------------------------------------------------------------


@shape_rule(Opcode.RNG)
def _rng(site: Site) -> Shape:
    low, high, result = site.scalar(0), site.scalar(1), site.stated_array()
    if low.element_type is not high.element_type:
        site.fail(f"operand 1 has shape {high}, expected {low} (same as operand 0)")
    normal = site.payload_as(RngPayload).distribution == "rng_normal"
    if low.element_type.is_complex or (normal and not low.element_type.is_floating):
        site.fail(f"operand 0 has element type {low.element_type}, expected {'a floating' if normal else 'a real'} type")
    if result.element_type is not low.element_type and not (result.element_type.is_floating and low.element_type.is_floating):
        site.fail(f"has shape {result}, expected element type {low.element_type} (same as operand 0)")
    return result


@shape_rule(Opcode.RNG_BIT_GENERATOR)
def _rng_bit_generator(site: Site) -> Shape:
    stated = site.stated_shape()
    if not isinstance(stated, TupleShape):
        return stated
    if len(stated.elements) != 2 or not compatible(stated.elements[0], site.operands[0]):
        site.fail(f"has shape {stated}, expected (state, bits) with state {site.operands[0]} (same as operand 0)")
    return stated


@shape_rule(Opcode.RNG_GET_AND_UPDATE_STATE)
def _rng_get_and_update_state(site: Site) -> Shape:
    return array_shape(ElementType.U64, (2,))


@shape_rule(Opcode.PARTITION_ID, Opcode.REPLICA_ID)
def _id(site: Site) -> Shape:
    return _U32
