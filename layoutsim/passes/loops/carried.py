"""Loops whose state grows or shrinks, in place: the ``while``, its body, its condition and its users stay one valid whole.

XLA builds a new loop each time (``xla/service/while_util.h``); names aside, what comes out is the same. Three things differ on
purpose: a loop keeps its backend config, which tells how often it runs, with the number of its induction variable renewed;
metadata stays; and a body that several loops call is cloned only when one of them changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field

from layoutsim.errors import PassError
from layoutsim.ir import Attributes, Computation, Instruction, Module, Opcode, Shape, TupleShape, tuple_shape
from layoutsim.ir.payloads import TupleIndexPayload
from layoutsim.passes.flatten_calls import clone_in_module
from layoutsim.passes.replace import remove_with_unused_operands


@define(eq=False)
class Callers:
    """Who calls each computation of a module, kept up to date while bodies are cloned."""

    module: Module
    _found: dict[Computation, list[Instruction]] = field(factory=dict[Computation, list[Instruction]], init=False)

    def __attrs_post_init__(self) -> None:
        if self.module.schedule is not None:
            raise PassError(f"module {self.module.name} is scheduled; passes over loops run before that")
        for computation in self.module.computations:
            self._register(computation)

    def _register(self, computation: Computation) -> None:
        for instruction in computation.instructions:
            for callee in instruction.called_computations:
                self._found.setdefault(callee, []).append(instruction)

    def of(self, computation: Computation) -> tuple[Instruction, ...]:
        """Every call of ``computation``, one entry for each time it is named."""
        return tuple(self._found.get(computation, ()))

    def are_own(self, caller: Instruction) -> bool:
        """Whether nothing else calls what ``caller`` calls: a loop's body and condition, a conditional's branches."""
        return all(len(self.of(callee)) == 1 for callee in caller.called_computations)

    def make_own(self, loop: Instruction) -> None:
        """Give ``loop`` clones of what others call, too."""
        parent = loop.parent
        assert parent is not None, loop
        called = list(loop.called_computations)
        for number, callee in enumerate(called):
            if len(self.of(callee)) > 1:
                self._found[callee].remove(loop)
                called[number] = clone_in_module(self.module, callee, before=parent)
                self._found[called[number]] = [loop]
                self._register(called[number])
        loop.called_computations = tuple(called)


def element_shapes(loop: Instruction) -> tuple[Shape, ...]:
    """The shapes of what a loop carries; the loop's state is a tuple."""
    assert isinstance(loop.shape, TupleShape), loop
    return loop.shape.elements


def is_element(instruction: Instruction, of: Instruction, number: int) -> bool:
    """Whether ``instruction`` is ``get-tuple-element(of), index=number``."""
    return instruction.opcode is Opcode.GET_TUPLE_ELEMENT and instruction.operand(0) is of and instruction.tuple_index == number


def elements_of(whole: Instruction) -> list[Instruction]:
    """The users of ``whole`` that take one element of it."""
    return [user for user in whole.users if user.opcode is Opcode.GET_TUPLE_ELEMENT]


def invariant_elements(loop: Instruction) -> dict[int, Instruction]:
    """Elements that the body hands on as they are: their numbers, and the ``get-tuple-element`` that the root takes."""
    body, (parameter,) = loop.body, loop.body.parameters
    if body.root.opcode is not Opcode.TUPLE:
        return {}
    return {number: new for number, new in enumerate(body.root.operands) if is_element(new, parameter, number)}


def add_element(whole: Instruction, number: int) -> Instruction:
    """A new ``get-tuple-element``; of a tuple its operand."""
    if whole.opcode is Opcode.TUPLE:
        return whole.operand(number)
    computation = whole.parent
    assert computation is not None and isinstance(whole.shape, TupleShape), whole
    shape = whole.shape.elements[number]
    return computation.add(Opcode.GET_TUPLE_ELEMENT, shape, [whole], payload=TupleIndexPayload(number))


def all_elements(whole: Instruction) -> list[Instruction]:
    """Every element of ``whole``, in order."""
    assert isinstance(whole.shape, TupleShape), whole
    return [add_element(whole, number) for number in range(len(whole.shape.elements))]


def add_tuple(computation: Computation, elements: Sequence[Instruction]) -> Instruction:
    """A new tuple."""
    return computation.add(Opcode.TUPLE, tuple_shape(tuple(e.shape for e in elements)), elements)


# -- more elements -----------------------------------------------------------------------------------------------------------


def widen(loop: Instruction, values: Sequence[Instruction]) -> list[Instruction]:
    """Let a loop carry ``values``, too, unchanged; its body and condition are its own.

    Returns:
        What they are in the body.
    """
    first = len(element_shapes(loop))
    shape = tuple_shape((*element_shapes(loop), *(value.shape for value in values)))
    parent, body = loop.parent, loop.body
    assert parent is not None, loop
    old = loop.operand(0)
    loop.replace_operand(0, add_tuple(parent, [*all_elements(old), *values]))
    if old.opcode is Opcode.TUPLE:
        remove_if_unused(old)
    for whole in (loop, *body.parameters, *loop.condition.parameters):
        _change_shape(whole, shape, [*range(first)])
    inside = [add_element(body.parameters[0], first + i) for i in range(len(values))]
    _replace_root(body, [*all_elements(body.root), *inside])
    return inside


# -- fewer elements ----------------------------------------------------------------------------------------------------------


def narrow(loop: Instruction, kept: Sequence[int], stands_in: Mapping[int, int] | None = None) -> None:
    """Let a loop carry only the elements ``kept``; its body and condition are its own, and use the others for nothing else.

    Args:
        stands_in: for elements that go, the one that has their value behind the loop; without it their first value is it.
    """
    shape = tuple_shape(tuple(element_shapes(loop)[number] for number in kept))
    new_number = {old: new for new, old in enumerate(kept)}
    parent, first = loop.parent, loop.operand(0)
    assert parent is not None, loop
    _take_whole_apart(loop)
    stand_ins = stands_in or {}
    for element in elements_of(loop):
        if element.tuple_index not in new_number:
            number = stand_ins.get(element.tuple_index)
            value = add_element(first, element.tuple_index) if number is None else add_element(loop, number)
            _replace_element(element, value)
    _replace_root(loop.body, [add_element(loop.body.root, number) for number in kept])
    for computation in (loop.body, loop.condition):
        _drop_elements(computation, new_number)
        _set_shape(computation.parameters[0], shape)
    loop.replace_operand(0, add_tuple(parent, [add_element(first, number) for number in kept]))
    if first.opcode is Opcode.TUPLE:
        remove_if_unused(first)
    _renumber(loop, new_number)
    _set_shape(loop, shape)
    loop.attributes = evolve(loop.attributes, backend_config=_renumbered_config(loop.attributes.backend_config, new_number))


def _replace_element(element: Instruction, value: Instruction) -> None:
    for before in element.control_predecessors:
        value.add_control_predecessor(before)
    for after in element.control_successors:
        after.add_control_predecessor(value)
    element.drop_control_edges()
    element.replace_all_uses_with(value)
    assert element.parent is not None, element
    element.parent.erase(element)  # alone: the loop may have no user left, and stays until dead code goes


def _drop_elements(computation: Computation, new_number: Mapping[int, int]) -> None:
    """Remove what depends on elements that go, and number the others anew."""
    (parameter,) = computation.parameters
    gone = [element for element in elements_of(parameter) if element.tuple_index not in new_number]
    for instruction in reversed(_dependents(gone)):
        assert not instruction.is_root, instruction
        computation.erase(instruction)
    _renumber(parameter, new_number)


def _dependents(seeds: list[Instruction]) -> list[Instruction]:
    """``seeds`` and everything computed from them, users behind what they use."""
    out: list[Instruction] = []
    state: set[Instruction] = set()
    done: set[Instruction] = set()
    stack = [*seeds]
    while stack:
        node = stack[-1]
        if node not in state:
            state.add(node)
            stack += [user for user in node.users if user not in state]
        else:
            stack.pop()
            if node not in done:
                done.add(node)
                out.append(node)
    return out[::-1]


def _renumber(whole: Instruction, new_number: Mapping[int, int]) -> None:
    for element in elements_of(whole):
        element.payload = TupleIndexPayload(new_number[element.tuple_index])


def _renumbered_config(text: str, new_number: Mapping[int, int]) -> str:
    """A backend config whose induction variable is where it is now, or is not mentioned if it is gone."""
    if "known_induction_variable" not in text:
        return text
    try:
        config = json.loads(text)
        old = int(config["known_induction_variable"]["tuple_index"])
    except (json.JSONDecodeError, KeyError, TypeError, ValueError):
        return text
    if old in new_number:
        config["known_induction_variable"]["tuple_index"] = str(new_number[old])
    else:
        del config["known_induction_variable"]
    return json.dumps(config, separators=(",", ":"))


def without_induction_variable(text: str) -> str:
    """A backend config that does not say which element counts."""
    return _renumbered_config(text, {})


# -- shared ------------------------------------------------------------------------------------------------------------------


def _change_shape(whole: Instruction, shape: Shape, numbers: Sequence[int]) -> None:
    """Give ``whole`` more elements; who used all of it gets a tuple of the old ones."""
    _take_whole_apart(whole, numbers)
    _set_shape(whole, shape)


def _take_whole_apart(whole: Instruction, numbers: Sequence[int] | None = None) -> None:
    """Let every user of ``whole`` take one element, or a tuple of elements."""
    users = [user for user in whole.users if user.opcode is not Opcode.GET_TUPLE_ELEMENT]
    if not users and not whole.is_root:
        return
    assert whole.parent is not None and isinstance(whole.shape, TupleShape), whole
    chosen = range(len(whole.shape.elements)) if numbers is None else numbers
    elements = [add_element(whole, number) for number in chosen]
    old_elements = elements_of(whole)
    together = add_tuple(whole.parent, elements)
    whole.replace_all_uses_with(together, keep=[together, *old_elements])


def _set_shape(whole: Instruction, shape: Shape) -> None:
    whole.shape = shape
    whole.attributes = without_element_facts(whole.attributes)


def without_element_facts(attributes: Attributes) -> Attributes:
    """Attributes without those that say something of each element: there are other elements now."""
    return evolve(attributes, sharding="", parameter_replication="", origin="")


def _replace_root(computation: Computation, elements: Sequence[Instruction]) -> None:
    old = computation.root
    computation.root = add_tuple(computation, elements)
    computation.root.attributes = without_element_facts(old.attributes)
    remove_if_unused(old)


def remove_if_unused(instruction: Instruction) -> None:
    """Remove an instruction without users, and what only it used."""
    if instruction.parent is not None and not instruction.user_count and not instruction.is_root:
        remove_with_unused_operands(instruction)


def loops(computations: Sequence[Computation]) -> Iterator[Instruction]:
    """Every ``while`` in ``computations``, in their order."""
    for computation in computations:
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.WHILE:
                yield instruction
