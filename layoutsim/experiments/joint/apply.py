"""An assignment as a module: layouts on every shape, copies where slots disagree.

Before and after, with the loop's stack in the order in which its caller has it::

    w = while((i, stack)), body=b      =>      w = (..., bf16[4,8,16]{2,0,1}) while((i, stack)), body=b

1. Every array gets the layout of its variable; what is pinned has XLA's.
2. A slot gets a copy where its order means other bytes, and a bitcast where only dimensions of size 1 are in other places. In
   tuples that is done element by element, as XLA's pass does it.
3. Transposes and reshapes take their operand as it is, and move it themselves where they are no bitcasts.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutsim.experiments.joint.model import Model
from layoutsim.experiments.joint.problem import Edge
from layoutsim.ir import (
    NO_ATTRIBUTES,
    ArrayShape,
    Instruction,
    Layout,
    Opcode,
    Shape,
    ShapeIndex,
    TupleShape,
    subshape,
)
from layoutsim.ir.payloads import ConstantPayload, TupleIndexPayload
from layoutsim.passes.layout_assignment.copy_attributes import copied_attributes
from layoutsim.passes.layout_assignment.layout_math import equal_without_ones
from layoutsim.passes.layout_assignment.rules import array_of, layout_leaves, with_layouts

Wanted = Mapping[ShapeIndex, Layout]


def apply_assignment(model: Model, chosen: list[int]) -> None:
    """Lay out the model's module, in place."""
    slots = _slots(model)
    lay_out(model, chosen)
    for (user, slot), edges in slots.items():
        wanted = {edge.index: _wanted(model, edge, chosen) for edge in edges}
        _convert_slot(user, slot, wanted)
    _store_result_as_asked(model)
    model.arrays.module.entry_layout = model.answer.module.entry_layout


def _store_result_as_asked(model: Model) -> None:
    """The entry's result has the element size, tiles and padding of XLA's, which are the caller's."""
    entry = model.arrays.module.entry
    twin = next(c for c in model.answer.module.computations if c.is_entry)
    root = entry.root
    if root.opcode not in (Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT):
        root.shape = twin.root.shape


def _slots(model: Model) -> dict[tuple[Instruction, int | None], list[Edge]]:
    found: dict[tuple[Instruction, int | None], list[Edge]] = {}
    for edge in model.problem.edges:
        if not edge.moves_itself:
            found.setdefault((edge.user, edge.slot), []).append(edge)
    return found


def lay_out(model: Model, chosen: list[int]) -> None:
    """Give every array the layout of its variable (1); nothing is copied yet."""
    inside = frozenset(model.arrays.computations)
    for computation in model.arrays.module.computations:
        for instruction in computation.instructions:
            if computation not in inside:  # fusion bodies follow their fusions, which are pinned
                instruction.shape = model.answer.twin(instruction).shape
            else:
                leaves = [index for index, _ in layout_leaves(instruction.shape)]
                found = {index: model.result_layout(instruction, index, chosen) for index in leaves}
                instruction.shape = with_layouts(instruction.shape, found)
            if instruction.opcode is Opcode.CONSTANT:
                literal = instruction.constant.literal
                instruction.payload = ConstantPayload(literal.with_shape(instruction.shape))


def _wanted(model: Model, edge: Edge, chosen: list[int]) -> Layout:
    if edge.consumer is not None:
        order = edge.wanted(edge.consumer.modes[chosen[edge.consumer.number]])
        assert order is not None, edge
        # Element sizes of the entry's parameters do not go further than their first copy, as in XLA's pass.
        source = edge.consumer if edge.consumer.rank == edge.producer.rank else edge.producer
        return source.template.with_order(order)
    adapted = edge.adapted(edge.producer.modes[chosen[edge.producer.number]])
    assert edge.preferred is not None, edge
    return edge.preferred if adapted is None else edge.preferred.with_order(adapted)


def _convert_slot(user: Instruction, slot: int | None, wanted: Wanted) -> None:
    assert user.parent is not None, user
    if user.opcode is Opcode.GET_TUPLE_ELEMENT and slot is not None:
        _convert_element(user)
        return
    value = user.parent.root if slot is None else user.operand(slot)  # a root may have been converted as an element
    changed = {index: layout for index, layout in wanted.items() if _differs(subshape(value.shape, index), layout)}
    if not changed:
        return
    new = _converted(value, with_layouts(value.shape, changed), ())
    if slot is None:
        assert value.parent is not None, value
        value.parent.root = new
    else:
        user.replace_operand(slot, new)
    if value.opcode is Opcode.TUPLE and not value.users and not value.is_root:
        assert value.parent is not None, value
        value.parent.erase(value)


def _convert_element(element: Instruction) -> None:
    """Let all users of a tuple's element have it in the layout that was given to it."""
    wanted, taken = element.shape, subshape(element.operand(0).shape, (element.tuple_index,))
    if array_of(wanted).minor_to_major == array_of(taken).minor_to_major:
        return
    assert element.parent is not None, element
    users, is_root = list(element.users), element.is_root
    element.shape = taken
    new = _converted(element, wanted, ())
    for user in users:
        for number, operand in enumerate(user.operands):
            if operand is element:
                user.replace_operand(number, new)
    if is_root:
        element.parent.root = new


def _differs(shape: Shape, wanted: Layout) -> bool:
    return array_of(shape).minor_to_major != wanted.minor_to_major


def _converted(value: Instruction, wanted: Shape, index: ShapeIndex) -> Instruction:
    """``value`` with the layouts of ``wanted``."""
    computation = value.parent
    assert computation is not None, value
    if value.shape == wanted:
        return value
    if isinstance(value.shape, TupleShape):
        elements: list[Instruction] = []
        for number, element in enumerate(value.shape.elements):
            part = element_of(value, number, element)
            elements.append(_converted(part, subshape(wanted, (number,)), (*index, number)))
        return computation.add(Opcode.TUPLE, wanted, elements, attributes=copied_attributes(value, ()))
    assert isinstance(value.shape, ArrayShape) and isinstance(wanted, ArrayShape), value
    moves = not equal_without_ones(wanted.dimensions, value.shape.minor_to_major, wanted.minor_to_major)
    opcode = Opcode.COPY if moves and wanted.element_count else Opcode.BITCAST
    return computation.add(opcode, wanted, [value], attributes=copied_attributes(value, ()))


def element_of(value: Instruction, number: int, shape: Shape) -> Instruction:
    """Element ``number``; of a tuple its operand, so that what it is (a loop's first count) stays in sight."""
    if value.opcode is Opcode.TUPLE:
        return value.operand(number)
    computation = value.parent
    assert computation is not None, value
    payload = TupleIndexPayload(number)
    return computation.add(Opcode.GET_TUPLE_ELEMENT, shape, [value], payload=payload, attributes=NO_ATTRIBUTES)
