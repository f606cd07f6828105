"""Elements of a loop's state that need not be carried: parts (1), (3), (4) and (6) of :mod:`.while_loop_simplifier`."""

from __future__ import annotations

from layoutsim.analysis.side_effects import has_side_effect
from layoutsim.ir import ArrayShape, Computation, Instruction, Opcode, TupleShape
from layoutsim.ir.equality import literals_equal
from layoutsim.ir.traverse import post_order
from layoutsim.passes.loops.carried import (
    add_element,
    element_shapes,
    elements_of,
    invariant_elements,
    is_element,
    narrow,
    remove_if_unused,
)
from layoutsim.passes.replace import has_control_edges, replace_instruction

Key = tuple[Instruction, ...]


def takes_elements_only(loop: Instruction) -> bool:
    """Whether the body and the condition use their state through ``get-tuple-element`` only, and the body makes a tuple."""
    if not isinstance(loop.shape, TupleShape) or loop.body.root.opcode is not Opcode.TUPLE:
        return False
    inside = [callee.parameters[0] for callee in loop.called_computations]
    return not any(p.is_root or any(u.opcode is not Opcode.GET_TUPLE_ELEMENT for u in p.users) for p in inside)


# -- (1) ---------------------------------------------------------------------------------------------------------------------


def merge_repeated(loop: Instruction) -> str:
    """Let elements that always have the same value be one."""
    first = loop.operand(0)
    if has_control_edges(loop) or not takes_elements_only(loop) or first.opcode is not Opcode.TUPLE:
        return ""
    unchanged = _merge(
        loop, {number: (loop.operand(0).operand(number),) for number in invariant_elements(loop)}, is_unchanged=True
    )
    return _merged_text(unchanged + _merge(loop, _updated(loop), is_unchanged=False))


def _merged_text(count: int) -> str:
    return f"carries {count} elements less, which others are equal to" if count else ""


def _updated(loop: Instruction) -> dict[int, Key]:
    """Elements that the body changes by one ``dynamic-update-slice``: what tells that two are the same."""
    (parameter,), first = loop.body.parameters, loop.operand(0)
    return {
        number: (first.operand(number), *new.operands[1:])
        for number, new in enumerate(loop.body.root.operands)
        if new.opcode is Opcode.DYNAMIC_UPDATE_SLICE and is_element(new.operand(0), parameter, number)
    }


def _merge(loop: Instruction, keys: dict[int, Key], *, is_unchanged: bool) -> int:
    """Keep the first element of each key; how many went."""
    survivors: dict[Key, int] = {}
    stands_in = {number: survivors.setdefault(key, number) for number, key in keys.items()}
    stands_in = {dead: kept for dead, kept in stands_in.items() if dead != kept}
    if not stands_in:
        return 0
    for callee in loop.called_computations:
        (parameter,) = callee.parameters
        for element in elements_of(parameter):
            if element.tuple_index in stands_in:
                element.replace_all_uses_with(add_element(parameter, stands_in[element.tuple_index]))
                element.drop_control_edges()
                remove_if_unused(element)
    kept = [number for number in range(len(element_shapes(loop))) if number not in stands_in]
    narrow(loop, kept, None if is_unchanged else stands_in)
    return len(stands_in)


# -- (3) ---------------------------------------------------------------------------------------------------------------------


def remove_dead(loop: Instruction) -> str:
    """Stop carrying what makes no difference."""
    if has_control_edges(loop) or not takes_elements_only(loop):
        return ""
    count = len(element_shapes(loop))
    dead = _Needs(loop).dead()
    if not dead:
        return ""
    narrow(loop, [number for number in range(count) if number not in dead])
    return f"carries {len(dead)} elements less, which nothing needs"


class _Needs:
    """Which elements each instruction of one iteration is computed from, and what has to stay."""

    def __init__(self, loop: Instruction) -> None:
        self._loop = loop
        self._new = loop.body.root.operands
        self._from: dict[Instruction, frozenset[int]] = {}
        self._groups = _Groups()
        self._used_behind = _used_behind(loop)
        self._needed: set[int] = set()
        """Elements that the condition or a side effect depends on."""
        for computation in (loop.body, loop.condition):
            self._visit(computation)

    def _visit(self, computation: Computation) -> None:
        (parameter,) = computation.parameters
        for instruction in post_order(computation):
            if instruction is parameter or instruction is self._loop.body.root:
                continue
            if instruction.opcode is Opcode.GET_TUPLE_ELEMENT and instruction.operand(0) is parameter:
                self._from[instruction] = frozenset([instruction.tuple_index])
                self._groups.join(self._new[instruction.tuple_index], instruction)
            else:
                self._from[instruction] = frozenset().union(*(self._from[o] for o in instruction.operands))
                self._groups.join(instruction, *instruction.operands)
            if instruction is self._loop.condition.root or has_side_effect(instruction):
                self._needed |= self._from[instruction]

    def dead(self) -> set[int]:
        affects_others = {source for number, new in enumerate(self._new) for source in self._from[new] if source != number}
        alone = set(range(len(self._new))) - affects_others - self._used_behind - self._needed
        return alone | self._dead_groups()

    def _dead_groups(self) -> set[int]:
        """Elements of which nothing in their group is needed."""
        unchanged = invariant_elements(self._loop)
        members: dict[Instruction, set[int]] = {}
        for number, new in enumerate(self._new):
            members.setdefault(self._groups.find(new), set()).add(number)
        for callee in self._loop.called_computations:
            for element in elements_of(callee.parameters[0]):
                members.setdefault(self._groups.find(element), set()).add(element.tuple_index)
        stay = self._needed | {number for number in self._used_behind if number not in unchanged}
        return {number for group in members.values() if stay.isdisjoint(group) for number in group}


class _Groups:
    """Instructions that depend on each other, in one direction or the other."""

    def __init__(self) -> None:
        self._parent: dict[Instruction, Instruction] = {}

    def find(self, instruction: Instruction) -> Instruction:
        while (above := self._parent.setdefault(instruction, instruction)) is not instruction:
            self._parent[instruction] = instruction = self._parent.setdefault(above, above)
        return instruction

    def join(self, instruction: Instruction, *others: Instruction) -> None:
        for other in others:
            self._parent[self.find(other)] = self.find(instruction)


def _used_behind(loop: Instruction) -> set[int]:
    users = loop.users
    if loop.is_root or any(user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in users):
        return set(range(len(element_shapes(loop))))
    return {user.tuple_index for user in users}


# -- (4) ---------------------------------------------------------------------------------------------------------------------


def remove_constants(loop: Instruction) -> str:
    """Stop carrying what starts as a constant and is set to it each time."""
    first, root = loop.operand(0), loop.body.root
    if first.opcode is not Opcode.TUPLE or root.opcode is not Opcode.TUPLE:
        return ""
    same = [number for number in range(len(first.operands)) if _same_constant(first.operand(number), root.operand(number))]
    # Only what is taken out by get-tuple-element can be replaced in place; XLA rebuilds the tuple, which comes to the same
    # once tuples are simplified.
    if not same or has_control_edges(loop) or not takes_elements_only(loop):
        return ""
    for callee in loop.called_computations:
        _make_constants(callee, {number: first.operand(number) for number in same})
    kept = [number for number in range(len(first.operands)) if number not in same]
    if kept:
        narrow(loop, kept)
        return f"carries {len(same)} constants less"
    replace_instruction(loop, first)
    return "is what it starts with: it carries constants only"


def _same_constant(a: Instruction, b: Instruction) -> bool:
    if a.opcode is not Opcode.CONSTANT or b.opcode is not Opcode.CONSTANT:
        return False
    one, other = a.constant.literal, b.constant.literal
    return not one.is_elided and not other.is_elided and literals_equal(one, other)


def _make_constants(computation: Computation, constants: dict[int, Instruction]) -> bool:
    """Let a computation have these elements of its state as constants of its own; whether there was a use."""
    used = [e for e in elements_of(computation.parameters[0]) if e.tuple_index in constants and (e.user_count or e.is_root)]
    for element in used:
        value = constants[element.tuple_index]
        new = computation.add(Opcode.CONSTANT, value.shape, payload=value.payload, name=value.name, attributes=value.attributes)
        element.replace_all_uses_with(new)
    return bool(used)


# -- (6) ---------------------------------------------------------------------------------------------------------------------


def propagate_scalars(loop: Instruction) -> str:
    """Let unchanged scalars that start as constants be constants inside."""
    first = loop.operand(0)
    if first.opcode is not Opcode.TUPLE:
        return ""
    unchanged = invariant_elements(loop)
    constants = {number: first.operand(number) for number in unchanged if _is_scalar_constant(first.operand(number))}
    changed = [_make_constants(callee, constants) for callee in loop.called_computations]
    return f"knows {len(constants)} constants" if any(changed) else ""


def _is_scalar_constant(value: Instruction) -> bool:
    return value.opcode is Opcode.CONSTANT and isinstance(value.shape, ArrayShape) and not value.shape.rank
