"""First phase of copy insertion: copies that surely keep live ranges apart (memory spec, 12.1).

One alias analysis up front. Computations callees first, instructions in post-order:

1. ``while``: a part of the state that the loop does not pass on untouched (or may not) is copied in front of the loop, at the
   body's parameter and at the body's root; the parameter's copy runs before the root's. What ``send``, ``recv`` or
   ``copy-start`` produce, and buffers, are not copied.
2. ``conditional``: a part of the result that is different in different branches is copied at each branch's root.
3. ``send``, ``recv``, ``copy-start`` and pinned buffers: see :mod:`layoutsim.passes.copy_insertion_async`.
4. In-place operations: every operand they overwrite is copied for them, unless the operation says that it reads and writes
   disjoint regions and is the operand's only user.
5. Entry: donated parameters are copied for all their users, and the result where it aliases one, the parameter first.

Example, ``while`` with ``state = (counter, weights)`` of which only the counter changes::

    %init = (s32[], f32[8]) tuple(%zero, %w)       =>   %copy = s32[] copy(%gte)        ; gte(%init), index=0
    %loop = ... while(%init), body=..., ...             %tuple = ... tuple(%copy, %gte.1)
                                                        %loop = ... while(%tuple), ...

Source: ``AddCopiesToResolveInterference`` in ``xla/service/copy_insertion.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from layoutsim.analysis.alias import Aliases
from layoutsim.ir import (
    BufferShape,
    Computation,
    InputOutputAlias,
    Instruction,
    Module,
    Opcode,
    Shape,
    ShapeIndex,
    subshape,
    subshapes,
)
from layoutsim.ir.payloads import AsyncPayload
from layoutsim.ir.traverse import fusion_bodies, post_order
from layoutsim.passes.copy_insertion_async import add_copies_around_buffers, is_implicitly_pinned
from layoutsim.passes.copy_insertion_pins import holds_buffer
from layoutsim.passes.deep_copy import DeepCopy, deep_copy, replace_use, replace_uses_by

_DISJOINT = "_xla_disjoint_read_write_regions"


class InterferenceCopies:
    """Adds the copies of the first phase to a module and remembers why each is there."""

    def __init__(self, aliases: Aliases) -> None:
        self._module = module = aliases.module
        self._dataflow = aliases.dataflow
        self._sharing = aliases.sharing
        self._loop_bodies = frozenset(bodies[0] for bodies in _callees(module, Opcode.WHILE))
        self.reasons: dict[Instruction, str] = {}

    def add(self) -> None:
        """Apply rules (1) to (5) to the whole module."""
        fused = fusion_bodies(self._module)
        asynchronous = _called_by(self._module, Opcode.ASYNC_START)
        for computation in self._module.computations:
            if computation not in fused and computation not in asynchronous:
                for instruction in post_order(computation):
                    self._visit(instruction)
        if self._module.input_output_aliases:
            self._donated()

    def _visit(self, instruction: Instruction) -> None:
        if instruction.opcode is Opcode.WHILE:
            self._while(instruction)
        elif instruction.opcode is Opcode.CONDITIONAL:
            self._conditional(instruction)
        elif is_implicitly_pinned(instruction) or holds_buffer(instruction):
            self.reasons |= add_copies_around_buffers(instruction, self._loop_bodies)  # (3)
        else:
            self._in_place(instruction)

    # -- (1) -------------------------------------------------------------------------------------------------------

    def _while(self, loop: Instruction) -> None:
        indices = {index for index, _ in subshapes(loop.shape) if self._changes(loop, index)}
        if not indices:
            return
        initial, parameter, root = loop.operand(0), loop.body.parameters[0], loop.body.root
        before = deep_copy(initial, indices)
        replace_use(initial, loop, before.result)
        users = parameter.users
        entering, leaving = deep_copy(parameter, indices), deep_copy(root, indices)
        _order(entering.copies, leaving.copies)
        replace_uses_by(parameter, users, entering.result)
        loop.body.root = leaving.result
        self._explain(before, f"initial state of {loop.name}, which changes it")
        self._explain(entering, f"state of {loop.name} as its body gets it")
        self._explain(leaving, f"state of {loop.name} as its body returns it")

    def _changes(self, loop: Instruction, index: ShapeIndex) -> bool:
        """Whether the loop's state at ``index`` may differ from one iteration to the next."""
        if _is_pinned(loop.operand(0), index):
            return False
        initial = self._dataflow.value_set(loop.operand(0), index)
        final = self._dataflow.value_set(loop, index)
        return len(initial) != 1 or initial != final

    # -- (2) -------------------------------------------------------------------------------------------------------

    def _conditional(self, conditional: Instruction) -> None:
        indices = {index for index, _ in subshapes(conditional.shape) if self._is_phi(conditional, index)}
        if not indices:
            return
        for branch in conditional.called_computations:
            root = branch.root
            users = root.users
            copied = deep_copy(root, indices)
            replace_uses_by(root, users, copied.result)
            branch.root = copied.result
            self._explain(copied, f"result of {conditional.name} from branch {branch.name}")

    def _is_phi(self, conditional: Instruction, index: ShapeIndex) -> bool:
        value = self._dataflow.value_at(conditional, index)
        return value.is_phi and value.instruction is conditional

    # -- (4) -------------------------------------------------------------------------------------------------------

    def _in_place(self, instruction: Instruction) -> None:
        copied: set[int] = set()
        for pair in self._sharing.pairs(_overwriting(instruction)):
            number = pair.operand_number
            if number in copied or _is_disjoint(instruction, number):
                continue
            copied.add(number)
            operand = instruction.operand(number)
            made = deep_copy(operand)
            instruction.replace_operand(number, made.result)
            self._explain(made, f"{instruction.name} overwrites its operand {number}")

    # -- (5) -------------------------------------------------------------------------------------------------------

    def _donated(self) -> None:
        entry = self._module.entry
        parameters: dict[int, DeepCopy] = {}
        aliases = self._module.input_output_aliases
        donated: dict[int, set[ShapeIndex]] = {}
        for alias in aliases:
            donated.setdefault(alias.parameter_number, set()).add(alias.parameter_index)
        for parameter in entry.parameters:
            indices = donated.get(parameter.parameter_number)
            if not indices:
                continue
            users = parameter.users
            copied = parameters[parameter.parameter_number] = deep_copy(parameter, indices)
            if entry.root is parameter:
                entry.root = copied.result
            replace_uses_by(parameter, users, copied.result)
            self._explain(copied, f"donated parameter {parameter.name} is overwritten by a result")
        leaving = deep_copy(entry.root, {alias.output_index for alias in aliases})
        _order_donated(aliases, parameters, leaving)
        entry.root = leaving.result
        self._explain(leaving, "a result lives in a donated parameter")

    def _explain(self, copied: DeepCopy, reason: str) -> None:
        for index, made in copied.copies.items():
            self.reasons[made] = f"{reason} at {{{','.join(map(str, index))}}}" if index else reason


def _order(first: Mapping[ShapeIndex, Instruction], second: Mapping[ShapeIndex, Instruction]) -> None:
    """Make each copy in ``second`` run after the one at the same index in ``first``."""
    for index, before in first.items():
        second[index].add_control_predecessor(before)


def _order_donated(aliases: Iterable[InputOutputAlias], parameters: Mapping[int, DeepCopy], leaving: DeepCopy) -> None:
    for alias in sorted(aliases, key=lambda a: a.output_index):
        before = parameters[alias.parameter_number].copies[alias.parameter_index]
        leaving.copies[alias.output_index].add_control_predecessor(before)


def _is_pinned(initial: Instruction, index: ShapeIndex) -> bool:
    """Whether the initial state of a loop cannot be copied at ``index``."""
    if any(isinstance(part, BufferShape) for _, part in subshapes(_part(initial.shape, index))):
        return True
    return bool(index) and index[0] < initial.operand_count and is_implicitly_pinned(initial.operand(index[0]))


def _part(shape: Shape, index: ShapeIndex) -> Shape:
    return subshape(shape, index) if index else shape


def _overwriting(instruction: Instruction) -> Instruction:
    """The instruction whose in-place pairs count: what an ``async-start`` without aliasing of its own wraps."""
    if instruction.opcode is Opcode.ASYNC_START and not instruction.payload_as(AsyncPayload).output_to_operand_aliasing:
        return instruction.to_apply.root
    return instruction


def _is_disjoint(instruction: Instruction, number: int) -> bool:
    if _DISJOINT not in instruction.attributes.frontend_attributes:
        return False
    return all(user is instruction for user in instruction.operand(number).users)


def _callees(module: Module, opcode: Opcode) -> list[tuple[Computation, ...]]:
    """What the instructions of one opcode call, in stored order."""
    return [i.called_computations for c in module.computations for i in c.instructions if i.opcode is opcode]


def _called_by(module: Module, opcode: Opcode) -> frozenset[Computation]:
    return frozenset(callee for called in _callees(module, opcode) for callee in called)
