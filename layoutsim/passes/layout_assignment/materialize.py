"""Writing layouts onto shapes, and inserting copies where they disagree (layout spec, section 10; ``AssignLayouts``).

Per instruction, operands first: its own buffers get the layouts of their constraints, forwarded parts those of the buffers
they come from; then each operand slot whose constraint differs from its operand gets a copy of its own (two slots that read
one value get two). Last the computation's root.

Where the variant :attr:`~.options.CopyComparison.MODULO_DEGENERATE` says so, layouts that are the same in memory are joined
by a ``bitcast`` instead.

A copy of a tuple goes element by element: ``get-tuple-element``, a copy where the layouts differ, and a new ``tuple``. If only
a conditional reads a value, the copy goes into the branch, so that other branches do not pay for it.
"""

from __future__ import annotations

from attrs import define, evolve, field

from layoutsim.errors import LayoutError
from layoutsim.ir import (
    NO_ATTRIBUTES,
    ArrayShape,
    Computation,
    Instruction,
    Layout,
    Opcode,
    Shape,
    ShapeIndex,
    TupleShape,
    subshape,
    without_layout,
)
from layoutsim.ir.payloads import ConstantPayload, FusionPayload, TupleIndexPayload
from layoutsim.ir.traverse import post_order
from layoutsim.passes.fusion_operands import merge_equal_operands
from layoutsim.passes.layout_assignment.computation_layouts import infer_layout
from layoutsim.passes.layout_assignment.constraints import ComputationConstraint, OperandConstraint
from layoutsim.passes.layout_assignment.copy_attributes import copied_attributes
from layoutsim.passes.layout_assignment.graph import Node
from layoutsim.passes.layout_assignment.layout_math import equal_without_ones
from layoutsim.passes.layout_assignment.mandatory import result_rule
from layoutsim.passes.layout_assignment.options import CopyComparison
from layoutsim.passes.layout_assignment.reasons import Reason
from layoutsim.passes.layout_assignment.result import CopyKind, InsertedCopy
from layoutsim.passes.layout_assignment.rules import (
    array_of,
    as_array,
    layout_leaves,
    orders_match,
    with_layouts,
    without_memory_space,
)
from layoutsim.passes.layout_assignment.state import State, all_layouts_set


@define(eq=False)
class Materializer:
    """Applies the constraints of the last round.

    Attributes:
        copies: what was inserted so far.
    """

    state: State
    copies: list[InsertedCopy] = field(factory=list[InsertedCopy], init=False)

    def assign(self, computation: Computation) -> None:
        """Lay out every instruction of ``computation`` and insert the copies it needs.

        Raises:
            LayoutError: an array's layout cannot be told.
        """
        for instruction in self.state.plan(computation).post_order:
            node = self.state.node(instruction)
            self._lay_out(node)
            for number, constraint in enumerate(node.constraints):
                if constraint is not None:
                    self._copy_operand(node, number, constraint)
            if instruction.opcode is Opcode.FUSION:
                _lay_out_fusion(instruction)
        self._finish_root(computation)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def _lay_out(self, node: Node) -> None:
        instruction = node.instruction
        if isinstance(instruction.shape, ArrayShape):
            (buffers,) = self.state.points_to.points_to(instruction)
            constraint = self.state.store.buffers[buffers[0].id] if len(buffers) == 1 else None
            found = infer_layout(self.state, instruction, ())[0] if constraint is None else constraint.layout
            instruction.shape = instruction.shape.with_layout(found)
        else:
            layouts = self._layouts(instruction)
            instruction.shape = with_layouts(without_layout(instruction.shape), layouts)
        if instruction.opcode is Opcode.CONSTANT:
            _lay_out_literal(instruction)

    def _layouts(self, instruction: Instruction) -> dict[ShapeIndex, Layout]:
        leaves = layout_leaves(instruction.shape)
        return {index: infer_layout(self.state, instruction, index)[0] for index, _ in leaves}

    # -- copies ----------------------------------------------------------------------------------------------------

    def _copy_operand(self, node: Node, number: int, constraint: OperandConstraint) -> None:
        instruction = node.instruction
        operand = instruction.operand(number)
        wanted = constraint.shape
        if orders_match(wanted, operand.shape, dynamic_matters=True):
            return
        reason = constraint.reason
        if instruction.opcode is Opcode.CONDITIONAL and number > 0 and operand.user_count == 1 and not self.state.is_reverse:
            self._copy_in_branch(instruction, number, wanted, reason)
            return
        place = _Place(CopyKind.OPERAND, operand, instruction, number, reason)
        instruction.replace_operand(number, self._copied(operand, wanted, place, ()))

    def _copy_in_branch(self, conditional: Instruction, number: int, wanted: Shape, reason: Reason) -> None:
        branch = conditional.called_computations[number - 1]
        operand, (parameter,) = conditional.operand(number), branch.parameters
        parameter.shape = operand.shape
        users = parameter.users
        was_root = parameter.is_root
        place = _Place(CopyKind.BRANCH_PARAMETER, operand, conditional, number, reason)
        copy = self._copied(parameter, wanted, place, ())
        for user in users:
            for slot, value in enumerate(user.operands):
                if value is parameter:
                    user.replace_operand(slot, copy)
            if user.opcode is Opcode.FUSION:
                merge_equal_operands(user)
        if was_root:
            branch.root = copy
        constraint = self.state.constraint(branch)
        constraint.parameters, constraint.result = [parameter.shape], branch.root.shape
        constraint.priority = self.state.round + 1

    def _copied(self, value: Instruction, wanted: Shape, place: _Place, index: ShapeIndex) -> Instruction:
        """A copy of ``value``, which is ``place.value``'s part at ``index``, with the layouts of ``wanted``."""
        computation = value.parent
        assert computation is not None, value
        if isinstance(value.shape, TupleShape):
            return self._copied_tuple(value, wanted, place, index)
        if as_array(value.shape) is None:
            raise LayoutError(f"{value.name}: only arrays and tuples can be copied, not {value.shape}")
        layouts = {(): _layout_of(wanted)}
        shape = with_layouts(value.shape, layouts)
        if self._needs_no_copy(value.shape, shape):
            return computation.add(Opcode.BITCAST, shape, [value], attributes=copied_attributes(value, ()))
        copy = computation.add(Opcode.COPY, shape, [value], attributes=copied_attributes(value, ()))
        self.copies.append(self._record(copy, place, index))
        return copy

    def _needs_no_copy(self, shape: Shape, wanted: Shape) -> bool:
        """Whether a variant finds that two layouts, which differ, are the same in memory."""
        if self.state.procedure.copies is CopyComparison.EXACT or not isinstance(shape, ArrayShape):
            return False
        assert isinstance(wanted, ArrayShape) and shape.dynamic == wanted.dynamic, (shape, wanted)
        return not shape.element_count or equal_without_ones(shape.dimensions, shape.minor_to_major, wanted.minor_to_major)

    def _copied_tuple(self, value: Instruction, wanted: Shape, place: _Place, index: ShapeIndex) -> Instruction:
        computation = value.parent
        assert computation is not None and isinstance(value.shape, TupleShape), value
        elements: list[Instruction] = []
        for i, element in enumerate(value.shape.elements):
            target = subshape(wanted, (i,))
            matches = orders_match(target, element, dynamic_matters=True)
            part = computation.add(
                Opcode.GET_TUPLE_ELEMENT,
                element,
                [value],
                payload=TupleIndexPayload(i),
                # XLA gives metadata only to the elements that it copies.
                attributes=NO_ATTRIBUTES if matches else copied_attributes(value, (i,)),
            )
            elements.append(part if matches else self._copied(part, target, place, (*index, i)))
        layouts = {at: leaf.layout for at, leaf in layout_leaves(wanted) if leaf.layout is not None}
        shape = with_layouts(without_layout(value.shape), layouts)
        return computation.add(Opcode.TUPLE, shape, elements, attributes=copied_attributes(value, ()))

    def _record(self, copy: Instruction, place: _Place, index: ShapeIndex) -> InsertedCopy:
        buffers = self.state.points_to.at(place.value, index)
        source = self.state.store.buffer_reason(buffers[0]) if buffers else None
        demanded = place.demanded.for_leaf(index)
        return InsertedCopy(copy, place.kind, place.value, index, place.reader, place.slot, demanded, source)

    # -- the root --------------------------------------------------------------------------------------------------

    def _finish_root(self, computation: Computation) -> None:
        constraint = self.state.constraint(computation)
        if not self.state.result_layout_known(computation) or not all_layouts_set(constraint.result):
            return
        wanted, root = without_memory_space(constraint.result), computation.root
        if orders_match(wanted, root.shape):
            root.shape = _with_storage_of(wanted, root.shape)
            return
        place = _Place(CopyKind.ROOT, self._value_behind(root), root, None, self._root_reason(constraint, wanted))
        computation.root = self._copied(root, wanted, place, ())

    def _root_reason(self, constraint: ComputationConstraint, wanted: Shape) -> Reason:
        rule, root = result_rule(self.state, constraint), constraint.computation.root
        return Reason(rule, root, None, (), wanted, None, self.state.round, None, constraint.result_reasons)

    def _value_behind(self, root: Instruction) -> Instruction:
        """The root itself, or, where it is the copy of a branch parameter, the value that points-to analysis knows."""
        while root not in self.state.graph.nodes:
            root = root.operand(0)
        return root


@define(eq=False)
class _Place:
    """What a copy is made for."""

    kind: CopyKind
    value: Instruction
    reader: Instruction
    slot: int | None
    demanded: Reason


def _layout_of(shape: Shape) -> Layout:
    found = array_of(shape).layout
    assert found is not None, shape
    return found


def _lay_out_literal(constant: Instruction) -> None:
    payload = constant.payload_as(ConstantPayload)
    if payload.literal.shape != constant.shape:
        constant.payload = ConstantPayload(payload.literal.with_shape(constant.shape))


def _with_storage_of(wanted: Shape, shape: Shape) -> Shape:
    """``shape`` with the tiles, if any, and the element size and tail padding that were asked for."""
    layouts: dict[ShapeIndex, Layout] = {}
    for (index, asked), (_, leaf) in zip(layout_leaves(wanted), layout_leaves(shape), strict=True):
        assert asked.layout is not None and leaf.layout is not None, (wanted, shape)
        if not asked.layout.is_plain or not leaf.layout.is_plain:
            layouts[index] = evolve(
                leaf.layout,
                tiles=asked.layout.tiles or leaf.layout.tiles,
                element_size_bits=asked.layout.element_size_bits,
                tail_padding_alignment=asked.layout.tail_padding_alignment,
            )
    return with_layouts(shape, layouts)


def _lay_out_fusion(fusion: Instruction) -> None:
    """Parameters and root have the fusion's layouts, what is between has none (layout spec, 10.6)."""
    body = fusion.to_apply
    is_custom = fusion.payload_as(FusionPayload).kind == "kCustom"
    for inner in post_order(body):
        match inner.opcode:
            case Opcode.PARAMETER:
                inner.shape = _laid_out_as(inner.shape, fusion.operand(inner.parameter_number).shape)
            case _ if inner is body.root:
                inner.shape = _laid_out_as(inner.shape, fusion.shape)
            case Opcode.GET_TUPLE_ELEMENT:
                inner.shape = _laid_out_as(inner.shape, subshape(inner.operand(0).shape, (inner.tuple_index,)))
            case Opcode.CONSTANT:
                inner.shape = _laid_out_as(inner.shape, inner.constant.literal.shape)
            case Opcode.INFEED:
                pass
            case _ if not is_custom:
                inner.shape = without_layout(inner.shape)
            case _:
                pass


def _laid_out_as(shape: Shape, model: Shape) -> Shape:
    layouts = {index: leaf.layout for index, leaf in layout_leaves(model) if leaf.layout is not None}
    return with_layouts(without_layout(shape), layouts)
