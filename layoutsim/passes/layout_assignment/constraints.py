"""The three kinds of constraints (layout spec, 1.3 and section 3; ``xla/service/layout_assignment.h``).

A constraint is an object with identity: it may wait in the worklist several times while it changes, and is then propagated
with what it says at that moment. Each carries the :class:`Reason` of its latest value.

Common fields: ``mandatory`` (it may override), ``depth_first`` (propagate at once), ``priority`` (the round it was made in,
mostly).
"""

from __future__ import annotations

from attrs import define, field

from layoutsim.analysis.points_to import LogicalBuffer
from layoutsim.ir import ArrayShape, Computation, ComputationLayout, Layout, Shape, ShapeIndex
from layoutsim.passes.layout_assignment.graph import Node
from layoutsim.passes.layout_assignment.reasons import Reason
from layoutsim.passes.layout_assignment.rules import as_array, with_layouts

DEFAULT_PRIORITY = -2
GIVEN_PRIORITY = 3
ROUNDS = 2
MAX_SOFT_CHANGES = 2
"""A buffer whose layout changed this often takes no more soft requests, so that propagation ends."""


@define(eq=False)
class BufferConstraint:
    """The layout of one logical buffer; ``history`` counts the layouts it has had."""

    buffer: LogicalBuffer
    node: Node
    layout: Layout
    mandatory: bool
    depth_first: bool
    priority: int
    reason: Reason
    history: int = 1

    def update(self, layout: Layout, *, mandatory: bool, depth_first: bool, priority: int) -> bool:
        """Take a new request into account; whether anything changed.

        A mandatory request always wins, the last one over those before. A soft one needs a higher priority, and then makes
        the constraint soft even if it was mandatory. The same layout again only raises flags.
        """
        if layout.minor_to_major == self.layout.minor_to_major:
            return self._raise_flags(mandatory=mandatory, depth_first=depth_first, priority=priority)
        if not mandatory and (
            self.history > MAX_SOFT_CHANGES or as_array(self.buffer.instruction.shape) is None or priority <= self.priority
        ):
            return False
        self.mandatory, self.depth_first, self.priority = mandatory, depth_first, priority
        self.layout = layout
        self.history += 1
        return True

    def _raise_flags(self, *, mandatory: bool, depth_first: bool, priority: int) -> bool:
        before = (self.mandatory, self.depth_first, self.priority)
        self.mandatory |= mandatory
        self.depth_first |= depth_first
        self.priority = max(self.priority, priority)
        return before != (self.mandatory, self.depth_first, self.priority)


@define(eq=False)
class OperandConstraint:
    """The layout in which one operand slot takes its value.

    Attributes:
        layout: for arrays; ``None`` for tuples.
        given_shape: the shape asked for, where it was given as a whole (always for tuples); what a ``reduce-scatter`` with
            ``constrain_layout`` asks for its operand is of its result's size.
    """

    node: Node
    number: int
    layout: Layout | None
    given_shape: Shape | None
    mandatory: bool
    depth_first: bool
    priority: int
    reason: Reason

    def has_order(self, layout: Layout) -> bool:
        """Whether this asks for an array with the dimensions in this order."""
        return self.layout is not None and self.layout.minor_to_major == layout.minor_to_major

    @property
    def is_of_other_size(self) -> bool:
        """Whether the shape asked for is not of the operand's size; XLA takes any demand after it for another one then."""
        given, operand = self.given_shape, self.node.operands[self.number].shape
        return isinstance(given, ArrayShape) and isinstance(operand, ArrayShape) and given.dimensions != operand.dimensions

    @property
    def stated_shape(self) -> Shape:
        """The shape asked for as it was given, of another size or not."""
        return self.given_shape if self.given_shape is not None else self.shape

    @property
    def shape(self) -> Shape:
        """The operand's shape with the layouts asked for."""
        if self.given_shape is not None and not self.is_of_other_size:
            return self.given_shape
        assert self.layout is not None, self
        return with_layouts(self.node.operands[self.number].shape, {(): self.layout})


@define(eq=False)
class ComputationConstraint:
    """Layouts of a computation's parameters and result; always mandatory and depth first.

    Attributes:
        result_is_set: the result layout was found or given (XLA: state bit 1).
        parameters_are_set: the same for the parameters (bit 2).
        result_reasons: why each leaf of the result has its layout.
        parameter_reasons: the same for each parameter.
    """

    computation: Computation
    parameters: list[Shape]
    result: Shape
    priority: int
    result_is_set: bool = False
    parameters_are_set: bool = False
    result_reasons: dict[ShapeIndex, Reason] = field(factory=dict[ShapeIndex, Reason])
    parameter_reasons: list[dict[ShapeIndex, Reason]] = field(factory=list[dict[ShapeIndex, Reason]])
    depth_first: bool = True
    mandatory: bool = True

    def __attrs_post_init__(self) -> None:
        self.parameter_reasons = self.parameter_reasons or [{} for _ in self.parameters]

    def as_layout(self) -> ComputationLayout:
        return ComputationLayout(tuple(self.parameters), self.result)


Constraint = BufferConstraint | OperandConstraint | ComputationConstraint
