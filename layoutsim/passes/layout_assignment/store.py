"""Where constraints are kept, and how requests change them (layout spec, section 3).

Every request passes through here, so that conflicts are settled in one place:

1. A soft request on an operand slot that has a constraint does nothing; a mandatory one replaces a different layout unless
   the one that stands has a higher priority.
2. Buffers follow :meth:`BufferConstraint.update`.
3. New and changed constraints wait in ``added`` until the propagation takes them: depth-first ones at the end, the others by
   falling priority.
4. A layout set on a result that shares its buffer with an operand is demanded of that operand too.
5. Where a variant sets priorities (:mod:`.procedure`), soft requests get those of their step and never replace what is
   mandatory, and mandatory ones never have more than the round's, so that they give way to no soft one.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from layoutsim.analysis.points_to import LogicalBuffer, output_operand_aliasing
from layoutsim.errors import LayoutError
from layoutsim.ir import Computation, Instruction, Layout, Opcode, Shape, ShapeIndex, compatible, subshapes
from layoutsim.passes.layout_assignment.constraints import (
    DEFAULT_PRIORITY,
    BufferConstraint,
    ComputationConstraint,
    Constraint,
    OperandConstraint,
)
from layoutsim.passes.layout_assignment.graph import NOT_AN_ARRAY, Downgrade, Graph, Node
from layoutsim.passes.layout_assignment.reasons import OUTPUT_OPERAND_ALIAS, Reason, Rule
from layoutsim.passes.layout_assignment.rules import as_array, orders_match

LeafCauses = Mapping[ShapeIndex, Reason]

_HAS_ALIASING = frozenset({Opcode.FUSION, Opcode.CUSTOM_CALL})


@define(eq=False)
class Store:
    """All constraints of a round, and those on computations, which outlive rounds.

    Attributes:
        priorities: of soft requests, relative to ``priority``, by the name of the rule.
        priority: of requests made now; the number of the round.
        added: constraints to propagate, oldest first.
    """

    graph: Graph
    priorities: Mapping[str, int] = field(factory=dict[str, int])
    priority: int = 0
    buffers: list[BufferConstraint | None] = field(factory=list["BufferConstraint | None"], init=False)
    computations: dict[Computation, ComputationConstraint] = field(factory=dict[Computation, ComputationConstraint], init=False)
    added: list[Constraint] = field(factory=list[Constraint], init=False)

    def start_round(self) -> None:
        """Forget the buffer and operand constraints of the round before."""
        self.buffers = [None] * len(self.graph.points_to.buffers)
        self.graph.forget_constraints()

    def take_added(self) -> list[Constraint]:
        taken, self.added = self.added, []
        return taken

    def push(self, constraint: Constraint) -> None:
        """Queue a constraint for propagation."""
        added = self.added
        if constraint.depth_first:
            added.append(constraint)
            return
        at = len(added)
        while at > 0 and constraint.priority > added[at - 1].priority:
            at -= 1
        added.insert(at, constraint)

    def _priority(self, passed_on: int | None, rule: Rule, mandatory: bool) -> int:
        """Of a new request by ``rule``, which follows one of priority ``passed_on``."""
        priority = self.priority if passed_on is None else passed_on
        if self.priorities:
            if mandatory:
                return min(priority, self.priority)
            if rule.name in self.priorities:
                return self.priority + self.priorities[rule.name]
        return priority

    # -- buffers ---------------------------------------------------------------------------------------------------

    def buffer_reason(self, buffer: LogicalBuffer) -> Reason | None:
        """Why ``buffer`` has its layout."""
        constraint = self.buffers[buffer.id]
        return None if constraint is None else constraint.reason

    def set_buffer(
        self,
        layout: Layout,
        buffer: LogicalBuffer,
        rule: Rule,
        cause: Reason | None,
        *,
        mandatory: bool = True,
        depth_first: bool = True,
        priority: int | None = None,
        by: Instruction | None = None,
    ) -> None:
        """Ask for ``layout`` on ``buffer``.

        Raises:
            LayoutError: the buffer holds no array, or one of another rank.
        """
        priority = self._priority(priority, rule, mandatory)
        constraint = self.buffers[buffer.id]
        if constraint is None:
            _check_array(buffer, layout)
            node = self.graph.nodes[buffer.instruction]
            reason = Reason(rule, buffer.instruction, None, buffer.index, layout, cause, self.priority, by)
            constraint = BufferConstraint(buffer, node, layout, mandatory, depth_first, priority, reason)
            self.buffers[buffer.id] = constraint
        else:
            before = constraint.layout
            if self.priorities and constraint.mandatory and not mandatory:
                return
            if not constraint.update(layout, mandatory=mandatory, depth_first=depth_first, priority=priority):
                return
            if constraint.layout is not before:
                _check_array(buffer, layout)
                constraint.reason = Reason(rule, buffer.instruction, None, buffer.index, layout, cause, self.priority, by)
            if buffer.rank <= 1:
                return
        self.push(constraint)
        if constraint.node.opcode in _HAS_ALIASING:
            self._set_aliased_operands(constraint, layout, mandatory, depth_first, priority)

    def _set_aliased_operands(
        self, constraint: BufferConstraint, layout: Layout, mandatory: bool, depth_first: bool, priority: int
    ) -> None:
        for alias in output_operand_aliasing(constraint.buffer.instruction):
            if alias.output_index == constraint.buffer.index and not alias.operand_index:
                self.set_array_operand(
                    layout,
                    constraint.node,
                    alias.operand_number,
                    OUTPUT_OPERAND_ALIAS,
                    constraint.reason,
                    mandatory=mandatory,
                    depth_first=depth_first,
                    priority=priority,
                )

    # -- operands --------------------------------------------------------------------------------------------------

    def set_array_operand(
        self,
        layout: Layout,
        node: Node,
        number: int,
        rule: Rule,
        cause: Reason | None,
        *,
        mandatory: bool = True,
        depth_first: bool = True,
        priority: int | None = None,
        by: Instruction | None = None,
    ) -> None:
        """Ask for ``layout`` on an array operand."""
        if node.operand_ranks[number] == 0:
            return
        priority = self._priority(priority, rule, mandatory)
        standing = node.constraints[number]
        if standing is not None and (
            not mandatory
            or self._insists_more(standing, priority)
            or (standing.has_order(layout) and not standing.is_of_other_size)
        ):
            return
        if not mandatory:
            depth_first, priority = _downgraded(node, number, depth_first, priority)
        reason = Reason(rule, node.instruction, number, (), layout, cause, self.priority, by)
        self._put(standing, node, number, layout, None, mandatory, depth_first, priority, reason)

    def set_operand(
        self,
        shape: Shape,
        node: Node,
        number: int,
        rule: Rule,
        cause: Reason | None = None,
        *,
        leaf_causes: LeafCauses | None = None,
        mandatory: bool = True,
        depth_first: bool = True,
        any_size: bool = False,
        by: Instruction | None = None,
    ) -> None:
        """Ask for the layouts of ``shape``, an array's or a tuple's, on an operand.

        Args:
            any_size: the operand may be of another size.

        Raises:
            LayoutError: the operand has another shape.
        """
        array = as_array(shape)
        if array is not None and array.rank == 0:
            return
        operand = node.operands[number]
        if not any_size and not compatible(_unwrapped(shape), _unwrapped(operand.shape)):
            raise LayoutError(
                f"{node.instruction.name}: operand {number} has shape {operand.shape}, which cannot get the layout of {shape}"
            )
        priority = self._priority(None, rule, mandatory)
        standing = node.constraints[number]
        if standing is not None and (
            not mandatory or self._insists_more(standing, priority) or orders_match(standing.stated_shape, shape)
        ):
            return
        if not mandatory:
            depth_first, priority = _downgraded(node, number, depth_first, priority)
        if array is not None and leaf_causes is not None:
            cause, leaf_causes = leaf_causes.get((), cause), None
        reason = Reason(rule, node.instruction, number, (), shape, cause, self.priority, by, leaf_causes)
        layout = None if array is None else array.layout
        self._put(standing, node, number, layout, shape, mandatory, depth_first, priority, reason)

    def _insists_more(self, standing: OperandConstraint, priority: int) -> bool:
        return standing.priority > priority and (standing.mandatory or not self.priorities)

    def _put(
        self,
        standing: OperandConstraint | None,
        node: Node,
        number: int,
        layout: Layout | None,
        shape: Shape | None,
        mandatory: bool,
        depth_first: bool,
        priority: int,
        reason: Reason,
    ) -> None:
        if standing is None:
            standing = OperandConstraint(node, number, layout, shape, mandatory, depth_first, priority, reason)
            node.constraints[number] = standing
        else:
            standing.layout, standing.given_shape, standing.reason = layout, shape, reason
            standing.mandatory, standing.depth_first, standing.priority = mandatory, depth_first, priority
        self.push(standing)

    # -- whole instructions ----------------------------------------------------------------------------------------

    def set_instruction(
        self,
        shape: Shape,
        node: Node,
        rule: Rule,
        cause: Reason | None = None,
        *,
        leaf_causes: LeafCauses | None = None,
        mandatory: bool = True,
        depth_first: bool = True,
        allow_alias: bool = False,
        by: Instruction | None = None,
    ) -> None:
        """Ask for the layouts of ``shape`` on everything that an instruction makes; leaves without a layout stay free.

        If the instruction keeps layouts, its operands of the same rank are asked too.

        Raises:
            LayoutError: the instruction has another shape, or forwards a buffer without ``allow_alias``.
        """
        instruction = node.instruction
        if not compatible(shape, instruction.shape):
            raise LayoutError(f"{instruction.name} of shape {instruction.shape} cannot be assigned the layout of {shape}")
        reason = Reason(rule, instruction, None, (), shape, cause, self.priority, by, leaf_causes)
        for (index, part), buffers in zip(subshapes(shape), self.graph.points_to.points_to(instruction), strict=True):
            array = as_array(part)
            if array is None or array.layout is None:
                continue
            if len(buffers) != 1 or not (allow_alias or buffers[0].instruction is instruction):
                raise LayoutError(f"{instruction.name} does not make the array at index {index}: {buffers}")
            leaf = reason.for_leaf(index)
            self.set_buffer(array.layout, buffers[0], rule, leaf.cause, mandatory=mandatory, depth_first=depth_first, by=by)
        array = as_array(shape)
        if array is None or array.layout is None or node.opcode in (Opcode.WHILE, Opcode.CONDITIONAL) or not node.keeps:
            return
        for number, rank in enumerate(node.operand_ranks):
            if rank == array.rank != NOT_AN_ARRAY:
                self.set_array_operand(
                    array.layout, node, number, rule, cause, mandatory=mandatory, depth_first=depth_first, by=by
                )


def _check_array(buffer: LogicalBuffer, layout: Layout) -> None:
    if not buffer.is_array:
        raise LayoutError(f"{buffer.instruction.name}: {buffer.shape} is not an array and cannot have layout {layout}")
    if buffer.rank != layout.rank:
        raise LayoutError(
            f"{buffer.instruction.name}: layout {layout} does not fit {buffer.shape}, which has rank {buffer.rank}"
        )


def _downgraded(node: Node, number: int, depth_first: bool, priority: int) -> tuple[bool, int]:
    """Soft requests on small operands are followed late, and give way to others (layout spec, 3.3)."""
    match node.downgrade:
        case Downgrade.NONE:
            return depth_first, priority
        case Downgrade.ALL_BUT_FIRST:
            lowered = number > 0 and priority > DEFAULT_PRIORITY
            return (False, priority - 1) if lowered else (depth_first, priority)
        case Downgrade.ALL:
            return False, priority - 1


def _unwrapped(shape: Shape) -> Shape:
    """A ``b(...)`` buffer counts as the array inside."""
    array = as_array(shape)
    return shape if array is None else array
