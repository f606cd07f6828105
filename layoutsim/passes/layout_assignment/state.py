"""What one run of layout assignment works on: the module, the rules, and the constraints so far (layout spec, section 4)."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from layoutsim.analysis.points_to import PointsTo
from layoutsim.ir import (
    MAIN_THREAD,
    Computation,
    ComputationLayout,
    Instruction,
    Layout,
    Module,
    Shape,
    TupleShape,
    with_default_layout,
)
from layoutsim.ir.traverse import computations_post_order, fusion_bodies
from layoutsim.passes.layout_assignment.backends import Backend
from layoutsim.passes.layout_assignment.constraints import DEFAULT_PRIORITY, GIVEN_PRIORITY, ComputationConstraint
from layoutsim.passes.layout_assignment.graph import Graph, Node, callers_of
from layoutsim.passes.layout_assignment.options import ComputationOrder
from layoutsim.passes.layout_assignment.plan import Plan, plan_of
from layoutsim.passes.layout_assignment.procedure import Procedure
from layoutsim.passes.layout_assignment.rules import as_array
from layoutsim.passes.layout_assignment.store import Store


@define(eq=False)
class EntryLayout:
    """The entry computation's layout while it is being worked out; ``requested`` is what the caller gave, and stays."""

    parameters: list[Shape]
    result: Shape
    requested: ComputationLayout

    @staticmethod
    def of(given: ComputationLayout) -> EntryLayout:
        return EntryLayout(list(given.parameters), given.result, given)

    @property
    def any_set(self) -> bool:
        return any(map(any_layout_set, self.parameters)) or any_layout_set(self.result)

    def as_layout(self) -> ComputationLayout:
        return ComputationLayout(tuple(self.parameters), self.result)


@define(eq=False)
class State:
    """One run.

    Attributes:
        entry: layout of the entry computation, as it is being found.
        computations: those to lay out, in working order.
        mismatches: branches whose result must be that of another branch, and the layout they had.
        channels: layout of each cross-module channel.
        asked_of_caller: the layouts that a loop with this carried shape demands of its operand; all of them, unless a variant
            leaves some to the caller.
    """

    module: Module
    backend: Backend
    procedure: Procedure
    entry: EntryLayout
    points_to: PointsTo
    graph: Graph
    store: Store
    computations: list[Computation]
    mismatches: dict[Computation, ComputationConstraint] = field(factory=dict[Computation, ComputationConstraint], init=False)
    channels: dict[int, Layout] = field(factory=dict[int, Layout], init=False)
    plans: dict[Computation, Plan] = field(factory=dict[Computation, Plan], init=False)
    _notes: dict[str, dict[Instruction, bool]] = field(factory=dict[str, dict[Instruction, bool]], init=False)
    asked_of_caller: Callable[[Instruction, Shape], Shape] = field(default=lambda _loop, shape: shape, init=False)

    @staticmethod
    def start(module: Module, backend: Backend, procedure: Procedure) -> State:
        """The state in front of the first round; the module must not change until layouts are assigned."""
        assert module.entry_layout is not None, module
        points_to = PointsTo(module)
        graph = Graph(points_to, backend.keeps_layout)
        bodies = fusion_bodies(module)
        computations = [c for c in computations_post_order(module) if c not in bodies and runs_here(c, backend)]
        callers = callers_of(module)
        for computation in computations:
            graph.add(computation, callers[computation])
        if procedure.order is ComputationOrder.REVERSE:
            computations.reverse()
        entry = EntryLayout.of(module.entry_layout)
        state = State(
            module,
            backend,
            procedure,
            entry,
            points_to,
            graph,
            Store(graph, procedure.priorities),
            computations,
        )
        state.store.computations[module.entry] = state._entry_constraint()
        return state

    @property
    def is_reverse(self) -> bool:
        return self.procedure.order is ComputationOrder.REVERSE

    @property
    def round(self) -> int:
        """Number of the round; also the priority of requests made in it."""
        return self.store.priority

    def node(self, instruction: Instruction) -> Node:
        return self.graph.nodes[instruction]

    def constraint(self, computation: Computation) -> ComputationConstraint:
        """The constraint on ``computation``'s layout; made with default layouts when first asked for."""
        found = self.store.computations.get(computation)
        if found is None:
            parameters = [with_default_layout(p.shape) for p in computation.parameters]
            result = with_default_layout(computation.root.shape)
            found = ComputationConstraint(computation, parameters, result, DEFAULT_PRIORITY)
            self.store.computations[computation] = found
        return found

    def result_layout_known(self, computation: Computation) -> bool:
        return computation.is_entry or self.constraint(computation).result_is_set

    def plan(self, computation: Computation) -> Plan:
        """What to look at in ``computation``."""
        found = self.plans.get(computation)
        if found is None:
            found = self.plans[computation] = plan_of(computation, self.points_to, self.backend)
        return found

    # -- the view of demand rules ----------------------------------------------------------------------------------

    def operand_shape(self, instruction: Instruction, number: int) -> Shape | None:
        found = self.graph.nodes[instruction].constraints[number]
        return None if found is None else found.shape

    def any_forwarded(self, instruction: Instruction, number: int) -> bool:
        return self.graph.any_forwarded(self.graph.nodes[instruction], number)

    def notes(self, subject: str) -> dict[Instruction, bool]:
        return self._notes.setdefault(subject, {})

    def is_automatic_parameter(self, instruction: Instruction) -> bool:
        return not any_layout_set(self.entry.requested.parameters[instruction.parameter_number])

    def _entry_constraint(self) -> ComputationConstraint:
        entry = self.module.entry
        if self.entry.any_set:
            constraint = ComputationConstraint(entry, list(self.entry.parameters), self.entry.result, GIVEN_PRIORITY)
            constraint.result_is_set = constraint.parameters_are_set = True
            return constraint
        # A fully automatic entry keeps the layouts that its instructions came with until round 0 has found better ones.
        return ComputationConstraint(entry, [p.shape for p in entry.parameters], entry.root.shape, DEFAULT_PRIORITY)


def runs_here(computation: Computation, backend: Backend) -> bool:
    """Whether ``backend`` lays out ``computation``."""
    return computation.execution_thread == MAIN_THREAD or not backend.main_thread_only


def any_layout_set(shape: Shape) -> bool:
    """Whether some leaf has a layout; tokens and opaque values count as having one (as in XLA)."""
    if isinstance(shape, TupleShape):
        return any(map(any_layout_set, shape.elements))
    array = as_array(shape)
    return array is None or array.layout is not None


def all_layouts_set(shape: Shape) -> bool:
    """Whether every leaf has a layout."""
    if isinstance(shape, TupleShape):
        return all(map(all_layouts_set, shape.elements))
    array = as_array(shape)
    return array is None or array.layout is not None
