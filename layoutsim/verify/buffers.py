"""Mutable buffers ``b(...)`` (invariants B1 to B4; list in ``layoutsim.verify``)."""

from __future__ import annotations

from functools import cache

from layoutsim.ir import ArrayShape, BufferShape, CallContext, Instruction, Opcode, Shape, ShapeIndex, leaves
from layoutsim.ir.payloads import CustomCallPayload, TupleIndexPayload
from layoutsim.verify.equality import Ignoring, equal
from layoutsim.verify.findings import Findings

_CARRY = frozenset(
    {
        Opcode.TUPLE,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.WHILE,
        Opcode.PARAMETER,
        Opcode.CUSTOM_CALL,
        Opcode.ASYNC_START,
        Opcode.ASYNC_UPDATE,
        Opcode.ASYNC_DONE,
        Opcode.DYNAMIC_UPDATE_SLICE,
    }
)
_STREAM_CALL = "_xla_stream_annotation"
"""Frontend attribute of calls that become asynchronous ones and may carry buffers."""


def verify_buffers(findings: Findings) -> None:
    """B1 to B4; nothing where no value holds a buffer."""
    loops = {i.body for c in findings.module.computations for i in c.instructions if i.opcode is Opcode.WHILE}
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            held = buffer_indices(instruction.shape)
            taken = any(buffer_indices(operand.shape) for operand in instruction.operands)
            if held or taken:
                _check(findings, instruction, held, in_loop=computation in loops)


@cache
def buffer_indices(shape: Shape) -> tuple[ShapeIndex, ...]:
    """Where a shape holds buffers."""
    if isinstance(shape, ArrayShape):
        return ()
    return tuple(index for index, leaf in leaves(shape) if isinstance(leaf, BufferShape))


def _check(findings: Findings, instruction: Instruction, held: tuple[ShapeIndex, ...], *, in_loop: bool) -> None:
    assert instruction.parent is not None, instruction
    carries = instruction.opcode in _CARRY or _STREAM_CALL in instruction.attributes.frontend_attributes
    if not carries or (instruction.opcode is Opcode.PARAMETER and instruction.parent.is_entry):
        findings.add(instruction, "B1", f"{instruction.opcode} holds a buffer in {instruction.shape} or an operand")
        return
    if isinstance(instruction.payload, CustomCallPayload):
        _check_custom_call(findings, instruction, instruction.payload, held)
    if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        _check_update(findings, instruction)
    if instruction.opcode in (Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE):
        return  # its source is looked at
    for index in held:
        writers = _count_writers(instruction, index, in_loop=in_loop)
        if writers > 1:
            findings.add(instruction, "B2", f"the buffer at {list(index)} is written {writers} times, expected at most once")


def _count_writers(instruction: Instruction, index: ShapeIndex, *, in_loop: bool) -> int:
    """Uses that may write the buffer: calls, loops and updates of it; also the root of a loop body."""
    count = 0
    for user in instruction.users:
        if user.opcode in (Opcode.DYNAMIC_UPDATE_SLICE, Opcode.CUSTOM_CALL) or user.opcode.spec.calls is not CallContext.NONE:
            count += 1
        elif user.opcode is Opcode.GET_TUPLE_ELEMENT and isinstance(user.payload, TupleIndexPayload):
            count += _count_writers(user, index[1:], in_loop=in_loop) if user.payload.index == index[0] else 0
        elif user.opcode is Opcode.TUPLE and user.is_root:
            count += in_loop
        elif user.opcode is Opcode.TUPLE:
            count += _count_writers(user, (user.operands.index(instruction), *index), in_loop=in_loop)
    return count


def _check_update(findings: Findings, update: Instruction) -> None:
    """B4: only the operand that is written may be a buffer, and then the result is one."""
    if isinstance(update.operand(0).shape, BufferShape) is not isinstance(update.shape, BufferShape):
        findings.add(update, "B4", f"has shape {update.shape}, expected {update.operand(0).shape} (same as operand 0)")
    for number, operand in enumerate(update.operands[1:], 1):
        if buffer_indices(operand.shape):
            findings.add(update, "B4", f"operand {number} has shape {operand.shape}, expected no buffer")


def _check_custom_call(findings: Findings, call: Instruction, payload: CustomCallPayload, held: tuple[ShapeIndex, ...]) -> None:
    """B3."""
    target, ignoring = payload.custom_call_target, Ignoring.BUFFERS
    if not findings.options.layout_sensitive:
        ignoring |= Ignoring.LAYOUTS
    if target == "CreateBuffer":
        if call.operand_count or not isinstance(call.shape, BufferShape):
            findings.add(call, "B3", f"CreateBuffer has shape {call.shape}, expected a buffer and no operands")
    elif target in ("Pin", "Unpin"):
        _check_pin(findings, call, payload, ignoring)
    else:
        _check_aliased(findings, call, payload, held)


def _check_pin(findings: Findings, call: Instruction, payload: CustomCallPayload, ignoring: Ignoring) -> None:
    shapes = [operand.shape for operand in call.operands] + [call.shape]
    kinds = [ArrayShape, BufferShape] if payload.custom_call_target == "Pin" else [BufferShape, ArrayShape]
    if [type(shape) for shape in shapes] != kinds or not equal(shapes[0], shapes[1], ignoring):
        findings.add(call, "B3", f"{payload.custom_call_target} turns {shapes[0]} into {call.shape}, expected the same array")
    if len(payload.output_to_operand_aliasing) != 1:
        findings.add(call, "B3", f"{payload.custom_call_target} has no output_to_operand_aliasing, expected one")


def _check_aliased(findings: Findings, call: Instruction, payload: CustomCallPayload, held: tuple[ShapeIndex, ...]) -> None:
    """Every buffer goes in once and comes out once."""
    inward = [(alias.operand_number, alias.operand_index) for alias in payload.output_to_operand_aliasing]
    outward = [alias.output_index for alias in payload.output_to_operand_aliasing]
    for number, operand in enumerate(call.operands):
        for index in buffer_indices(operand.shape):
            if inward.count((number, index)) != 1:
                findings.add(call, "B3", f"the buffer in operand {number} is not aliased with exactly one result")
    for index in held:
        if outward.count(index) != 1:
            findings.add(call, "B3", f"the buffer at {list(index)} of the result is not aliased with exactly one operand")
