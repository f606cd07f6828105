"""Outputs and parameters of fusions that nobody uses go (part of ``xla/hlo/transforms/simplifiers/hlo_dce.cc``).

1. Of a fusion whose users are all ``get-tuple-element`` the outputs that none of them takes go. A tuple of one becomes the
   value itself. Left alone: roots, custom fusions, fusions with control edges or outputs in place, bodies with a sharded root.
2. A parameter of the body that nobody uses goes, and the fusion's operand with it; then whatever only that operand needed. The
   parameters behind it are made anew as ``param_N``.

The value that a fusion becomes (1) keeps the shape it has inside, which in XLA is one without a layout. Later passes see that:
an update in place whose result has no layout may not overwrite its operand, and the operand is copied inside the fusion.

XLA asks nothing about side effects of that operand (2): it goes even if it has some. A parameter of a fusion around this one
that (2) leaves unused goes when the pass runs next.

::

    f { a = f32[4] parameter(0)                          f { param_0 = f32[4] parameter(0)
        b = f32[4] parameter(1)                              ROOT n = f32[4] negate(param_0) }
        n = f32[4] negate(b)
        ROOT t = (f32[4], f32[4]) tuple(a, n) }      =>

    f = (f32[4], f32[4]) fusion(x, y), calls=f           f = f32[4] fusion(y), calls=f
    ROOT g = f32[4] get-tuple-element(f), index=1
"""

from __future__ import annotations

from layoutsim.ir import Computation, Instruction, Opcode
from layoutsim.ir.payloads import FusionPayload, ParameterPayload, TupleIndexPayload
from layoutsim.ir.shape import Shape, TupleShape
from layoutsim.passes.replace import has_control_edges, remove_with_unused_operands, replace_instruction


def remove_unused_outputs(fusion: Instruction) -> bool:
    """Rule (1); whether anything went."""
    if not _may_lose_outputs(fusion):
        return False
    used = sorted({user.tuple_index for user in fusion.users})
    if len(used) == fusion.to_apply.root.operand_count:
        return False
    if len(used) == 1:
        _become_the_value(fusion, used[0])
    else:
        _keep_outputs(fusion, used)
    return True


def _may_lose_outputs(fusion: Instruction) -> bool:
    payload, root = fusion.payload_as(FusionPayload), fusion.to_apply.root
    return (
        root.opcode is Opcode.TUPLE
        and not root.attributes.sharding
        and not payload.output_to_operand_aliasing
        and not has_control_edges(fusion)
        and payload.kind != "kCustom"
        and not fusion.is_root
        and bool(fusion.user_count)
        and all(user.opcode is Opcode.GET_TUPLE_ELEMENT for user in fusion.users)
    )


def _become_the_value(fusion: Instruction, index: int) -> None:
    body = fusion.to_apply
    old_root = body.root
    fusion.shape = _elements(fusion)[index]
    for element in fusion.users:
        replace_instruction(element, fusion, relay_control=True)
    body.root = old_root.operand(index)
    remove_with_unused_operands(old_root)


def _keep_outputs(fusion: Instruction, used: list[int]) -> None:
    body = fusion.to_apply
    fusion.shape = TupleShape(tuple(_elements(fusion)[index] for index in used))
    for element in fusion.users:
        element.payload = TupleIndexPayload(used.index(element.tuple_index))
    replace_instruction(body.root, body.add(Opcode.TUPLE, fusion.shape, [body.root.operand(index) for index in used]))


def _elements(fusion: Instruction) -> tuple[Shape, ...]:
    assert isinstance(fusion.shape, TupleShape), fusion
    return fusion.shape.elements


def remove_unused_parameters(fusion: Instruction) -> int:
    """Rule (2); how many went."""
    unused = [p for p in reversed(fusion.to_apply.parameters) if _is_unused(p)]
    for parameter in unused:
        _remove_parameter(fusion, parameter)
    return len(unused)


def _is_unused(instruction: Instruction) -> bool:
    return not instruction.user_count and not instruction.is_root and not has_control_edges(instruction)


def _remove_parameter(fusion: Instruction, parameter: Instruction) -> None:
    body, number = fusion.to_apply, parameter.parameter_number
    behind = body.parameters[number + 1 :]
    body.erase(parameter)
    for place, old in enumerate(behind, start=number):
        _renew(body, old, place)
    operand = fusion.operand(number)
    fusion.remove_operand(number)
    if _is_unused(operand) and operand.opcode is not Opcode.PARAMETER:
        remove_with_unused_operands(operand)


def _renew(body: Computation, old: Instruction, number: int) -> None:
    payload = ParameterPayload(number)
    new = body.add(Opcode.PARAMETER, old.shape, payload=payload, name=f"param_{number}", attributes=old.attributes)
    old.replace_all_uses_with(new)
    body.erase(old)
