"""Conditionals that write a part of an array in one branch and leave it alone in the other: advice to choose the part only.

``lax.cond(p, lambda b: b.at[i].set(row), lambda b: b, buffer)`` can cost a copy of the whole buffer (it does in 0.10.2; 0.6.2
finds a way in simple loops). Choosing the row in the conditional and writing it outside does not. Imitated as the changed
program would be compiled; ``here`` is what stands there already::

    written: ROOT t = (f32[8,4]) tuple(dynamic-update-slice(b, row, i, 0))         written: ROOT t = tuple(row, i, 0)
    left:    ROOT t = (f32[8,4]) tuple(b)                                    =>    left:    ROOT t = tuple(0, 0, 0)
    c = conditional(p, ...)                                                        c = conditional(p, ...)
    ... get-tuple-element(c), index=0                                              put = select(p, row, here)
                                                                                   ... dynamic-update-slice(b, put, i, 0)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from layoutsim.build import Builder, array_of
from layoutsim.experiments.advice.change import ProgramChange, find_again, where
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import TupleShape, byte_size, shape_text, tuple_shape
from layoutsim.passes.loops.carried import Callers
from layoutsim.passes.replace import remove_with_unused_operands


@frozen(eq=False)
class _Written:
    """Element ``element`` of a conditional: ``update`` in branch ``branch``, the array as it was in the other one.

    Attributes:
        old: the element of that branch's operand that the array is.
    """

    conditional: Instruction
    element: int
    branch: int
    update: Instruction
    old: int


def find_conditionals(module: Module) -> list[ProgramChange]:
    """A change for each array that one branch of a two-way conditional writes a part of."""
    instructions = [i for computation in module.computations for i in computation.instructions]
    callers = Callers(module)
    conditionals = [i for i in instructions if _is_plain(i) and callers.are_own(i)]
    return [_change(written) for conditional in conditionals for written in _find(conditional)]


def _is_plain(instruction: Instruction) -> bool:
    """A conditional with a predicate, whose branches get and return tuples that are taken apart."""
    if instruction.opcode is not Opcode.CONDITIONAL or len(instruction.called_computations) != 2:
        return False
    if array_of(instruction.operand(0)).element_type.value != "pred":
        return False
    if any(user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in instruction.users):
        return False
    return all(o.opcode is Opcode.TUPLE for o in instruction.operands[1:]) and not instruction.is_root


def _find(conditional: Instruction) -> Iterator[_Written]:
    assert isinstance(conditional.shape, TupleShape), conditional
    for element in range(len(conditional.shape.elements)):
        for writer in (0, 1):
            root, left = conditional.called_computations[writer].root, _passed(conditional, 1 - writer, element)
            if root.opcode is not Opcode.TUPLE or left is None:
                continue
            update = root.operand(element)
            if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or update.user_count > 1:
                continue
            if _from_caller(conditional, writer, update.operand(0)) is left:
                yield _Written(conditional, element, writer, update, update.operand(0).tuple_index)


def _passed(conditional: Instruction, branch: int, element: int) -> Instruction | None:
    """What the caller gives a branch that hands it back as ``element``; ``None`` if the branch computes the element."""
    root = conditional.called_computations[branch].root
    if root.opcode is Opcode.TUPLE:
        return _from_caller(conditional, branch, root.operand(element))
    return conditional.operand(1 + branch).operand(element) if root.opcode is Opcode.PARAMETER else None


def _from_caller(conditional: Instruction, branch: int, inside: Instruction) -> Instruction | None:
    """The caller's instruction for an element of a branch's parameter."""
    if inside.opcode is not Opcode.GET_TUPLE_ELEMENT or inside.operand(0).opcode is not Opcode.PARAMETER:
        return None
    return conditional.operand(1 + branch).operand(inside.tuple_index)


def _change(written: _Written) -> ProgramChange:
    def apply(module: Module) -> None:
        again = find_again(module, written.conditional)
        _choose_part(evolve(written, conditional=again, update=find_again(module, written.update)))

    whole = shape_text(written.update.shape, layouts=False)
    part = shape_text(written.update.operand(1).shape, layouts=False)
    default = "lax.dynamic_slice(buffer, starts, part.shape)"
    order = f"make_part, lambda: {default}" if written.branch == 0 else f"lambda: {default}, make_part"
    code = [
        f"# {where(written.conditional)}: the conditional chooses what is written, {part}; the write stands outside",
        f"part = lax.cond(condition, {order})",
        "buffer = lax.dynamic_update_slice(buffer, part, starts)",
    ]
    return ProgramChange(
        title=f"choose what is written in the conditional, not the whole {whole}",
        code="\n".join(code),
        size_bytes=byte_size(written.update.shape),
        apply=apply,
    )


def _choose_part(written: _Written) -> None:
    conditional, update = written.conditional, written.update
    part, starts = update.operand(1), update.operands[2:]
    _return_instead(written.conditional, written.branch, written.element, [part, *starts])
    remove_with_unused_operands(update)
    other = conditional.called_computations[1 - written.branch]
    build = Builder.into(other)
    _return_tuple(build)
    blank = build.slice(other.root.operand(written.element), [0] * array_of(part).rank, array_of(part).dimensions)
    zeros = [build.convert(build.constant(np.int32(0)), array_of(start).element_type) for start in starts]
    _return_instead(conditional, 1 - written.branch, written.element, [blank, *zeros])
    conditional.shape = conditional.called_computations[0].root.shape
    _write_outside(written, len(starts))


def _return_tuple(build: Builder) -> None:
    """Take a parameter that a branch returns whole apart."""
    root = build.computation.root
    if root.opcode is Opcode.PARAMETER:
        assert isinstance(root.shape, TupleShape), root
        build.computation.root = build.tuple(*(build.element(root, i) for i in range(len(root.shape.elements))))


def _return_instead(conditional: Instruction, branch: int, element: int, new: list[Instruction]) -> None:
    """Return the first of ``new`` as ``element`` and the others behind all elements."""
    root = conditional.called_computations[branch].root
    root.replace_operand(element, new[0])
    for instruction in new[1:]:
        root.append_operand(instruction)
    root.shape = tuple_shape(tuple(operand.shape for operand in root.operands))


def _write_outside(written: _Written, start_count: int) -> None:
    conditional = written.conditional
    assert conditional.parent is not None and isinstance(conditional.shape, TupleShape), conditional
    build = Builder.into(conditional.parent)
    readers = [user for user in conditional.users if user.tuple_index == written.element]
    old = conditional.operand(1 + written.branch).operand(written.old)
    part = build.element(conditional, written.element)
    first = len(conditional.shape.elements) - start_count
    starts = [build.element(conditional, first + i) for i in range(start_count)]
    here = build.dynamic_slice(old, starts, array_of(part).dimensions)
    condition = build.broadcast(conditional.operand(0), array_of(part).dimensions)
    taken, left = (part, here) if written.branch == 0 else (here, part)
    new = build.dynamic_update_slice(old, build.select(condition, taken, left), starts)
    for reader in readers:
        reader.replace_all_uses_with(new)
        remove_with_unused_operands(reader)
