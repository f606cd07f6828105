"""Changing what a loop carries, in place: dropping an element, or giving one another element type.

Both need loops as ``jax.lax.scan`` makes them: the first value and the body's root are ``tuple`` instructions, and the loop,
its body's and its condition's parameter are read by ``get-tuple-element`` only. Body and condition belong to that loop alone.
"""

from __future__ import annotations

from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import TupleIndexPayload
from layoutsim.ir.shape import Shape, tuple_shape
from layoutsim.passes.loops.carried import Callers, element_shapes, is_element, loops
from layoutsim.passes.replace import remove_with_unused_operands


def plain_loops(module: Module) -> list[Instruction]:
    """The loops of the form above, in stored order."""
    callers = Callers(module)
    return [loop for loop in loops(module.computations) if callers.are_own(loop) and _is_plain(loop)]


def _is_plain(loop: Instruction) -> bool:
    if loop.operand(0).opcode is not Opcode.TUPLE or loop.body.root.opcode is not Opcode.TUPLE:
        return False
    return all(user.opcode is Opcode.GET_TUPLE_ELEMENT for holder in _holders(loop) for user in holder.users)


def _holders(loop: Instruction) -> tuple[Instruction, Instruction, Instruction]:
    """What has the loop's tuple: the loop, the body's parameter and the condition's."""
    return loop, loop.body.parameters[0], loop.condition.parameters[0]


def readers_of(holder: Instruction, element: int) -> list[Instruction]:
    """The ``get-tuple-element`` instructions of one element."""
    return [user for user in holder.users if user.tuple_index == element]


def is_invariant(loop: Instruction, element: int) -> bool:
    """Whether the body hands the element on as it gets it."""
    return is_element(loop.body.root.operand(element), loop.body.parameters[0], element)


def drop_element(loop: Instruction, element: int) -> None:
    """Carry everything but ``element``, which nothing reads any more but the instruction that makes it for the next round."""
    dropped = loop.body.root.operand(element)
    loop.body.root.remove_operand(element)
    _own_initial(loop).remove_operand(element)
    _set_shapes(loop, [s for i, s in enumerate(element_shapes(loop)) if i != element])
    remove_with_unused_operands(dropped)
    for holder in _holders(loop):
        for reader in holder.users:
            assert reader.tuple_index != element or not reader.user_count, reader
            if reader.tuple_index == element:
                remove_with_unused_operands(reader)
            elif reader.tuple_index > element:
                reader.payload = TupleIndexPayload(reader.tuple_index - 1)


def carry_instead(loop: Instruction, element: int, new: Instruction) -> None:
    """Start the loop with ``new`` as ``element``; its readers get that shape."""
    initial = _own_initial(loop)
    initial.replace_operand(element, new)
    _set_shapes(loop, [new.shape if i == element else s for i, s in enumerate(element_shapes(loop))])
    for holder in _holders(loop):
        for reader in readers_of(holder, element):
            reader.shape = new.shape


def _own_initial(loop: Instruction) -> Instruction:
    """The tuple that the loop starts with, made its own if others read it too."""
    initial = loop.operand(0)
    if initial.user_count > 1:
        assert loop.parent is not None, loop
        initial = loop.parent.add(Opcode.TUPLE, initial.shape, initial.operands, name=f"{initial.name}.own")
        loop.replace_operand(0, initial)
    return initial


def _set_shapes(loop: Instruction, elements: list[Shape]) -> None:
    shape = tuple_shape(tuple(elements))
    for holder in (*_holders(loop), loop.body.root, loop.operand(0)):
        holder.shape = shape
