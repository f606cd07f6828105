"""The problem of a module: which rules of XLA's pass become variables, edges and refusals.

Free to choose are arrays made by instructions of these kinds; what they ask is the same as in XLA's pass:

1. Instructions that keep layouts have their operands of the result's rank laid out like the result.
2. Collectives need their dimension most major. XLA asks for one whole order in which it is; here any such order will do
   (:attr:`DemandReading.NEEDED`) or that order only (``STATED``). Dimensions of size 1 do not count.
3. Products: operands with a demand may come in any order that is a batch of matrices (``NEEDED``) or in the one that XLA asks
   for (``STATED``). Results may be written in any order that is a batch of matrices: XLA's choice among them depends on when
   their users are looked at. Demands for minor contracting dimensions hold as they are.
4. Loops carry, branches and calls take and return what their computations do; a copy may stand at each of these places. So it
   may where an element of a tuple is taken; then all users of the element share it.
5. A transpose or reshape costs its bytes unless it is a bitcast (see :mod:`measure`).
6. Broadcasts, reductions and gathers read any order and write any order, as in XLA. Preferences that XLA does not force
   (reductions along minor dimensions, soft demands) are not part of the problem.

Everything else is *pinned*: result and operands keep what XLA's pass gave them. So are the entry's parameters and result, which
the caller fixed or XLA chose; constrained collectives; and all-reduces that share a channel outside SPMD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field

from layoutsim.analysis.points_to import LogicalBuffer
from layoutsim.errors import UnsupportedError
from layoutsim.experiments.joint.arrays import Arrays, LaidOut, ranked_leaves, sized_dimensions
from layoutsim.experiments.joint.dots import dot_operand_fit, dot_result_fit
from layoutsim.experiments.joint.fits import any_order, fixed_fit, major_fit
from layoutsim.experiments.joint.measure import packed_size
from layoutsim.experiments.joint.objective import DemandReading, Objective
from layoutsim.experiments.joint.problem import Edge, Follow, Problem, Variable
from layoutsim.ir import ArrayShape, Computation, Instruction, Layout, Module, Opcode, Shape, ShapeIndex, subshape
from layoutsim.ir.payloads import CollectivePayload
from layoutsim.passes.layout_assignment import Backend, Demand, OperandDemand, ResultDemand
from layoutsim.passes.layout_assignment.layout_math import (
    Order,
    align,
    transpose_operand_order,
    transpose_result_order,
)
from layoutsim.passes.layout_assignment.plan import channel_of
from layoutsim.passes.layout_assignment.rules import (
    array_of,
    as_array,
    dimensions_of,
    is_constrained_collective,
    layout_leaves,
)

_FORWARDS = frozenset({Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY})
_MAKES_ANY = frozenset({Opcode.CONSTANT, Opcode.IOTA, Opcode.BROADCAST, Opcode.REDUCE, Opcode.GATHER, Opcode.PARAMETER})
_MOVES = frozenset({Opcode.TRANSPOSE, Opcode.RESHAPE, Opcode.COPY})
_CALLS = frozenset({Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL})
_MAJOR = frozenset({Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL})
_RULED_HERE = _MAJOR | {Opcode.DOT, Opcode.TRANSPOSE}
"""Opcodes whose demands are modelled; others that demand something are pinned."""


class _NothingYet:
    """The view of demand rules before any constraint."""

    def __init__(self) -> None:
        self._notes: dict[str, dict[Instruction, bool]] = {}

    def notes(self, subject: str) -> dict[Instruction, bool]:
        return self._notes.setdefault(subject, {})

    def operand_shape(self, instruction: Instruction, number: int) -> Shape | None:
        return None

    def any_forwarded(self, instruction: Instruction, number: int) -> bool:
        return False

    def is_automatic_parameter(self, instruction: Instruction) -> bool:
        return False


@define(eq=False)
class Model:
    """A module's problem, and which variable each of its arrays is.

    Attributes:
        answer: XLA's.
        runs: of each computation, by name.
        reading: of the backend's demands.
        objective: what an edge costs.
        pinned_opcodes: how many instructions of each opcode keep XLA's layouts since their rules are not modelled.
    """

    arrays: Arrays
    backend: Backend
    answer: LaidOut
    runs: Mapping[str, int]
    reading: DemandReading
    objective: Objective
    problem: Problem = field(init=False)
    pinned_opcodes: dict[str, int] = field(factory=dict[str, int], init=False)
    _variables: dict[LogicalBuffer, Variable] = field(factory=dict[LogicalBuffer, Variable], init=False)
    _elements: dict[Instruction, Variable] = field(factory=dict[Instruction, Variable], init=False)
    _channel_users: dict[int, int] = field(factory=dict[int, int], init=False)
    _view: _NothingYet = field(factory=_NothingYet, init=False)

    def __attrs_post_init__(self) -> None:
        if self.backend.otherwise is not None:
            raise UnsupportedError(
                f"joint layout assignment: the {self.backend.name} backend's demands depend on the order of propagation"
            )
        self._count_channels()
        self.problem = Problem([], [])
        self._make_variables()
        for computation in self.arrays.computations:
            for instruction in computation.instructions:
                self._constrain_result(instruction)
        self._offer_answer(self.answer)
        for computation in self.arrays.computations:
            for instruction in computation.instructions:
                self._add_edges(instruction)
        self._add_entry_result()

    def variable(self, instruction: Instruction, index: ShapeIndex) -> Variable:
        """The variable of a part of an instruction's value."""
        while instruction.opcode in _FORWARDS and instruction not in self._elements:
            if instruction.opcode is Opcode.TUPLE:
                if not index:
                    break
                instruction, index = instruction.operand(index[0]), index[1:]
            elif instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
                instruction, index = instruction.operand(0), (instruction.tuple_index, *index)
            else:
                instruction = instruction.operand(0)
        element = self._elements.get(instruction)
        return self._variables[self.arrays.at(instruction, index)] if element is None else element

    def twin(self, module: Module) -> Model:
        """The same model, modes included, of a copy of the module."""
        model = Model(Arrays(module), self.backend, self.answer, self.runs, self.reading, self.objective)
        for ours, theirs in zip(self.problem.variables, model.problem.variables, strict=True):
            theirs.modes = ours.modes
        return model

    def layout(self, variable: Variable, chosen: list[int]) -> Layout:
        """The layout of a variable's arrays in an assignment."""
        return variable.template.with_order(variable.modes[chosen[variable.number]])

    def result_layout(self, instruction: Instruction, index: ShapeIndex, chosen: list[int]) -> Layout:
        """The layout of a part of a result. What is pinned has XLA's, also where it passes on an operand behind its copy."""
        if self._is_free(instruction):
            return self.layout(self.variable(instruction, index), chosen)
        return self.answer.result_layout(instruction, index)

    def assignment_of(self, answer: LaidOut) -> list[int]:
        """An answer of the pass as an assignment; modes that are not allowed here become mode 0."""
        chosen = [0] * len(self.problem.variables)
        for variable, order in self._orders(answer):
            chosen[variable.number] = variable.offer(order) or 0
        return chosen

    def _orders(self, answer: LaidOut) -> Iterator[tuple[Variable, Order]]:
        """The order that an answer of the pass gives each variable."""
        for leader, variable in self._variables.items():
            yield variable, answer.result_layout(leader.instruction, leader.index).minor_to_major
        for element, variable in self._elements.items():
            yield variable, answer.result_layout(element, ()).minor_to_major

    # -- variables -------------------------------------------------------------------------------------------------

    def _make_variables(self) -> None:
        for buffer in self.arrays.buffers():
            leader = self.arrays.leader(buffer)
            shape = array_of(buffer.shape)
            if leader not in self._variables:
                template = self.answer.result_layout(leader.instruction, leader.index)
                number = len(self.problem.variables)
                made = Variable(number, shape.rank, sized_dimensions(shape), template, is_pinned=shape.rank <= 1)
                self._variables[leader] = made
                self.problem.variables.append(made)
        for computation in self.arrays.computations:
            for instruction in computation.instructions:
                self._make_element(instruction)

    def _make_element(self, instruction: Instruction) -> None:
        shape = as_array(instruction.shape)
        if shape is None or shape.rank <= 1 or instruction.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return
        if instruction.operand(0).opcode is Opcode.TUPLE or not self._is_free(instruction):
            return
        template = self.answer.result_layout(instruction, ())
        made = Variable(len(self.problem.variables), shape.rank, sized_dimensions(shape), template)
        self._elements[instruction] = made
        self.problem.variables.append(made)

    def _constrain_result(self, instruction: Instruction) -> None:
        if not self._is_free(instruction):
            if instruction.opcode is not Opcode.PARAMETER and _has_ranked(instruction):
                self.pinned_opcodes[instruction.opcode.value] = self.pinned_opcodes.get(instruction.opcode.value, 0) + 1
            for index, _ in layout_leaves(instruction.shape):
                self.variable(instruction, index).is_pinned = True
            return
        if instruction.opcode in _FORWARDS or as_array(instruction.shape) is None:
            return
        variable = self.variable(instruction, ())
        if self._keeps(instruction):
            for operand in instruction.operands:
                array = as_array(operand.shape)
                if array is not None and array.rank == variable.rank:
                    variable.dimensions |= sized_dimensions(array)
        if instruction.opcode is Opcode.DOT and any(isinstance(d, ResultDemand) for d in self._demands(instruction)):
            variable.fit = dot_result_fit(instruction)
        if instruction.opcode in _MAJOR:
            for demand in self._demands(instruction):
                assert isinstance(demand, ResultDemand), demand
                variable.fit = self._collective_fit(instruction, variable, array_of(demand.shape).minor_to_major)

    def _collective_fit(self, instruction: Instruction, variable: Variable, wanted: Order) -> Follow:
        dimension = instruction.payload_as(CollectivePayload).dimension
        assert dimension is not None, instruction
        if self.reading is DemandReading.NEEDED:
            return major_fit(variable, dimension)
        return lambda order: fixed_fit(variable.dimensions, wanted)(order)

    def _is_free(self, instruction: Instruction) -> bool:
        opcode, computation = instruction.opcode, instruction.parent
        if computation not in self.arrays.controlled or (opcode is Opcode.PARAMETER and computation.is_entry):
            return False
        if opcode in _FORWARDS or opcode in _CALLS:
            return True
        is_array = as_array(instruction.shape) is not None
        if opcode is Opcode.PARAMETER or (opcode in _MOVES and is_array):
            return True
        if is_constrained_collective(instruction) or (opcode not in _RULED_HERE and self._demands(instruction)):
            return False
        if opcode is Opcode.ALL_REDUCE:
            channel = channel_of(instruction)
            is_shared = channel is not None and self._channel_users[channel] > 1
            return self.arrays.module.config.uses_spmd_partitioning or not is_shared
        return is_array and (opcode in _MAKES_ANY or opcode is Opcode.DOT or self.backend.keeps_layout(instruction))

    def _count_channels(self) -> None:
        for computation in self.arrays.computations:
            for instruction in computation.instructions:
                channel = channel_of(instruction)
                if instruction.opcode is Opcode.ALL_REDUCE and channel is not None:
                    self._channel_users[channel] = self._channel_users.get(channel, 0) + 1

    def _keeps(self, instruction: Instruction) -> bool:
        return self.backend.keeps_layout(instruction) and instruction.opcode not in _CALLS

    def _demands(self, instruction: Instruction) -> list[Demand]:
        rule = self.backend.rule_for(instruction.opcode)
        return [] if rule is None else list(rule(instruction, self._view))

    def _offer_answer(self, answer: LaidOut) -> None:
        """Mode 0 of every variable is XLA's; where the rules here refuse it, it is pinned."""
        for variable, order in self._orders(answer):
            if variable.offer(order) is None:
                variable.fit = any_order
                variable.offer(order)
                variable.is_pinned = True

    def offer(self, answer: LaidOut) -> None:
        """Let every variable also have the order that another run of the pass gave it."""
        for buffer in self.arrays.buffers():
            order = answer.result_layout(buffer.instruction, buffer.index).minor_to_major
            self._variables[self.arrays.leader(buffer)].offer(order)
        for element, variable in self._elements.items():
            variable.offer(answer.result_layout(element, ()).minor_to_major)

    # -- edges -----------------------------------------------------------------------------------------------------

    def _add_edges(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        if not self._is_free(instruction):
            self._pin_slots(instruction)
        elif instruction in self._elements:
            self._add(instruction, 0, (instruction.tuple_index,), self._elements[instruction])
        elif opcode in _FORWARDS or opcode in _MAKES_ANY:
            return
        elif opcode is Opcode.WHILE:
            self._pass_on(instruction, 0, instruction)
            self._return(instruction.body, instruction)
        elif opcode is Opcode.CALL:
            for number, parameter in enumerate(instruction.to_apply.parameters):
                self._pass_on(instruction, number, parameter)
            if self.arrays.is_first_call(instruction):
                self._return(instruction.to_apply, instruction)
        elif opcode is Opcode.CONDITIONAL:
            for number, branch in enumerate(instruction.called_computations):
                self._pass_on(instruction, number + 1, branch.parameters[0])
                self._return(branch, instruction)
        elif opcode is Opcode.DOT:
            self._add_dot_edges(instruction)
        elif opcode in _MOVES:
            self._add_moving_edge(instruction)
        else:
            self._add_keeping_edges(instruction)

    def _add(
        self,
        user: Instruction,
        slot: int | None,
        index: ShapeIndex,
        consumer: Variable | None,
        *,
        wanted: Follow | None = None,
        offered: Follow | None = None,
        adapted: Follow | None = None,
        preferred: Layout | None = None,
    ) -> None:
        value = user if slot is None else user.operand(slot)
        array = array_of(subshape(value.shape, index))
        producer = self.variable(value, index)
        if producer is consumer:
            return
        assert user.parent is not None, user
        size, runs = packed_size(array), self.runs.get(user.parent.name, 0)
        cost, tie = size * runs, size * min(1, runs)
        if self.objective is Objective.HELD:
            cost, tie = tie, cost
        edge = Edge(producer, consumer, sized_dimensions(array), cost, tie, user, slot, index, preferred=preferred)
        edge.wanted, edge.offered = wanted or edge.wanted, offered or edge.offered
        edge.adapted = adapted or edge.adapted
        edge.moves_itself = user.opcode in _MOVES and slot is not None and consumer is not None
        self.problem.edges.append(edge)

    def _pass_on(self, user: Instruction, slot: int, taker: Instruction) -> None:
        for index, _ in ranked_leaves(taker.shape):
            self._add(user, slot, index, self.variable(taker, index))

    def _return(self, computation: Computation, taker: Instruction) -> None:
        for index, _ in ranked_leaves(taker.shape):
            self._add(computation.root, None, index, self.variable(taker, index))

    def _add_entry_result(self) -> None:
        entry = self.arrays.module.entry
        for index, leaf in ranked_leaves(entry.root.shape):
            self._add_fixed(entry.root, None, index, leaf, self.answer.root_layout(entry, index))

    def _pin_slots(self, instruction: Instruction) -> None:
        for number, operand in enumerate(instruction.operands):
            is_free = self._is_free(operand)
            for index, leaf in ranked_leaves(operand.shape):
                wanted = self.answer.operand_layout(instruction, number, index)
                if is_free or wanted != self.answer.result_layout(operand, index):
                    self._add_fixed(instruction, number, index, leaf, wanted)

    def _add_fixed(self, user: Instruction, slot: int | None, index: ShapeIndex, leaf: ArrayShape, wanted: Layout) -> None:
        adapted = fixed_fit(sized_dimensions(leaf), wanted.minor_to_major)
        self._add(user, slot, index, None, adapted=adapted, preferred=wanted)

    def _add_dot_edges(self, dot: Instruction) -> None:
        for demand in self._demands(dot):
            if isinstance(demand, OperandDemand) and demand.mandatory:
                adapted, order = dot_operand_fit(dot, demand, any_matrix=self.reading is DemandReading.NEEDED)
                if len(order) > 1:
                    stated = self.variable(dot.operand(demand.number), ()).template.with_order(order)
                    self._add(dot, demand.number, (), None, adapted=adapted, preferred=stated)

    def _add_moving_edge(self, instruction: Instruction) -> None:
        consumer = self.variable(instruction, ())
        source, result = array_of(instruction.operand(0).shape), array_of(instruction.shape)
        if instruction.opcode is Opcode.COPY:
            self._add(instruction, 0, (), consumer)
        elif instruction.opcode is Opcode.TRANSPOSE:
            permutation = dimensions_of(instruction)
            self._add(
                instruction,
                0,
                (),
                consumer,
                wanted=lambda order: transpose_operand_order(order, permutation),
                offered=lambda order: transpose_result_order(order, permutation),
            )
        elif source.element_count:
            self._add(
                instruction,
                0,
                (),
                consumer,
                wanted=lambda order: align(result.dimensions, order, source.dimensions),
                offered=lambda order: align(source.dimensions, order, result.dimensions),
            )

    def _add_keeping_edges(self, instruction: Instruction) -> None:
        for number, operand in enumerate(instruction.operands):
            array = as_array(operand.shape)
            if array is None or array.rank <= 1:
                continue
            index = () if as_array(instruction.shape) is not None else (number,)
            consumer = self.variable(instruction, index)
            if consumer.rank == array.rank:
                self._add(instruction, number, (), consumer)


def _has_ranked(instruction: Instruction) -> bool:
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return any(True for shape in shapes for _ in ranked_leaves(shape))
