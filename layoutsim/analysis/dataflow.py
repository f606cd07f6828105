"""Dataflow: which values may stand at each position (``xla/hlo/analysis/hlo_dataflow_analysis.h``; memory spec, section 2).

The analysis is in SSA form, and a bitcast defines no value. It runs in three steps:

1. Define: every computation in :func:`~layoutsim.analysis.numbering.numbering_order`, every instruction in post-order,
   every index it defines in pre-order gets a value; ids are consecutive.
2. Propagate: an instruction whose values come from elsewhere recomputes its value sets whenever a source changes; of those
   that wait, the earliest in the order of execution goes first. Where two values meet at a loop, a branch or a conditional
   there is a phi; phis get the next ids in the order in which they are needed.
3. Reduce the phis (:mod:`layoutsim.analysis.phi_graph`). Ids of phis that go away stay unused.

Value sets of an instruction are kept as one list over the indices of its shape in pre-order, so that tuples and their
elements are slices of each other.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from layoutsim.analysis.call_graph import CallGraph, async_start_of, called_computations
from layoutsim.analysis.definitions import defined_indices, parameters_define
from layoutsim.analysis.numbering import Numbering, execution_order, numbering_from_text
from layoutsim.analysis.phi_graph import PhiGraph
from layoutsim.analysis.transfer import TRANSFER, Sets, phi_sources
from layoutsim.analysis.values import Position, UserTable, Value, ValueSet, flat_size, rank_of, value_id
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ShapeIndex, TupleShape, subshapes


class Dataflow:
    """Values of a module as it stands; it does not follow later changes.

    Args:
        module: flattened, i.e. no loop body or branch is called from two places.
        numbering: computations, callees first, and their instructions in the order in which values are numbered; by default
            what the module's text tells of it.

    Attributes:
        values: by id.

    Raises:
        UnsupportedError: a computation is called both by control flow and by a fusion, reducer or the like.
    """

    def __init__(self, module: Module, *, numbering: Numbering | None = None) -> None:
        self.module = module
        self.call_graph = CallGraph(module)
        self._users = UserTable()
        self._sets: Sets = {}
        self._next_id = 0
        self.values: list[Value] = []
        self._moving: list[Instruction] = []
        self._parameters: dict[Computation, Sequence[Instruction]] = {}
        self._orders = numbering_from_text(module) if numbering is None else numbering
        self._define()
        phis = _Propagation(self).run()
        self._reduce(phis)
        self._set_positions()

    # -- asking ----------------------------------------------------------------------------------------------------

    def value_sets(self, instruction: Instruction) -> Sequence[ValueSet]:
        """The value sets at all indices of the instruction's shape, in pre-order."""
        return self._sets[instruction]

    def value_set(self, instruction: Instruction, index: ShapeIndex = ()) -> ValueSet:
        """The values that may stand at a position, by id."""
        return self._sets[instruction][rank_of(instruction.shape, index)]

    def value_at(self, instruction: Instruction, index: ShapeIndex = ()) -> Value:
        """The one value that stands at a position."""
        values = self.value_set(instruction, index)
        assert len(values) == 1, f"{instruction.name} at {index}: expected one value, got {values}"
        return values[0]

    def is_defined_at(self, instruction: Instruction, index: ShapeIndex = ()) -> bool:
        """Whether the position holds exactly one value, which the instruction defines."""
        values = self.value_set(instruction, index)
        return len(values) == 1 and values[0].instruction is instruction

    def post_order(self, computation: Computation) -> Sequence[Instruction]:
        """The post-order of a computation's instructions, computed once."""
        return self._orders[computation]

    def parameters(self, computation: Computation) -> Sequence[Instruction]:
        """The parameters of a computation, looked for once."""
        found = self._parameters.get(computation)
        if found is None:
            found = self._parameters[computation] = computation.parameters
        return found

    @property
    def computations(self) -> Sequence[Computation]:
        """In the order in which their values are numbered, callees first."""
        return tuple(self._orders)

    # -- running ---------------------------------------------------------------------------------------------------

    def new_value(self, instruction: Instruction, index: ShapeIndex, *, is_phi: bool = False) -> Value:
        """A value with the next id."""
        value = Value(self._next_id, instruction, index, self._users, is_phi=is_phi)
        self._next_id += 1
        self.values.append(value)
        return value

    def _define(self) -> None:
        for computation, order in self._orders.items():
            own_parameters = parameters_define(self.call_graph[computation])
            for instruction in order:
                if instruction.opcode is Opcode.PARAMETER:
                    self._define_parameter(instruction, own_parameters)
                else:
                    self._define_instruction(instruction)

    def _define_parameter(self, parameter: Instruction, is_own: bool) -> None:
        parts = subshapes(parameter.shape)
        if is_own:
            self._sets[parameter] = [(self.new_value(parameter, index),) for index, _ in parts]
        else:
            self._sets[parameter] = [()] * len(parts)
            self._moving.append(parameter)

    def _define_instruction(self, instruction: Instruction) -> None:
        if instruction.opcode not in TRANSFER and not isinstance(instruction.shape, TupleShape):
            self._sets[instruction] = [(self.new_value(instruction, ()),)]
            return
        sets: list[ValueSet] = [()] * flat_size(instruction.shape)
        for rank, index in defined_indices(instruction):
            sets[rank] = (self.new_value(instruction, index),)
        self._sets[instruction] = sets
        if instruction.opcode in TRANSFER and not all(sets):
            self._moving.append(instruction)

    @property
    def sets(self) -> Sets:
        """All value sets, for the propagation."""
        return self._sets

    @property
    def moving(self) -> Sequence[Instruction]:
        """Instructions with value sets that come from elsewhere."""
        return self._moving

    def _reduce(self, phis: _Phis) -> None:
        phis.graph.optimize()
        gone = set(phis.deleted)
        for instruction in self._moving:
            old = self._sets[instruction]
            if any(value.is_phi for values in old for value in values):
                self._sets[instruction] = [phis.reduced(values, gone) for values in old]
        self.values = [value for value in self.values if value not in gone]

    def _set_positions(self) -> None:
        for computation in self.module.computations:
            for instruction in computation.instructions:
                sets = self._sets[instruction]
                if len(sets) == 1:
                    for value in sets[0]:
                        if value.instruction is not instruction:
                            value.other_positions.append(Position(instruction, ()))
                else:
                    self._set_positions_of(instruction, sets)

    @staticmethod
    def _set_positions_of(instruction: Instruction, sets: Sequence[ValueSet]) -> None:
        for values, (index, _) in zip(sets, subshapes(instruction.shape), strict=True):
            for value in values:
                if value.instruction is not instruction:
                    value.other_positions.append(Position(instruction, index))


class _Phis:
    """The phis made so far."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._inputs_changed = False
        self.graph = PhiGraph()
        self.deleted: list[Value] = []

    def merge(self, instruction: Instruction, sources: Sequence[Sequence[ValueSet]]) -> bool:
        """Recompute the value sets of an instruction at which values meet (memory spec, section 2.4)."""
        old = self._flow.sets[instruction]
        new = [
            self._merge_at(Position(instruction, index), old[rank], [value for source in sources for value in source[rank]])
            for rank, (index, _) in enumerate(subshapes(instruction.shape))
        ]
        self._flow.sets[instruction] = new
        changed = self._inputs_changed or new != old
        self._inputs_changed = False
        return changed

    def _merge_at(self, position: Position, old: ValueSet, inputs: list[Value]) -> ValueSet:
        if not inputs:
            assert not old, f"{position} lost its value"
            return ()
        current = old[0] if old else None
        is_own = current is not None and current.definition == position
        if len(inputs) == 1:
            if current is not None and is_own and current is not inputs[0]:
                self.deleted.append(current)
            return (inputs[0],)
        if current is None or not is_own or not current.is_phi:
            current = self._flow.new_value(position.instruction, position.index, is_phi=True)
            self.graph.register(current, inputs)
        elif not self.graph.has_inputs(current, inputs):
            self.graph.register(current, inputs)
            self._inputs_changed = True
        return (current,)

    def reduced(self, values: ValueSet, gone: set[Value]) -> ValueSet:
        """The values after the reduction of phis; those that were replaced are added to ``gone``."""
        if not any(value.is_phi for value in values):
            return values
        new = {self.graph.resolved(value) if value.is_phi else value for value in values}
        gone.update(value for value in values if value not in new)
        return tuple(sorted(new, key=value_id))


class _Propagation:
    """Step (2): a worklist of instructions, the earliest in the order of execution first."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._graph = flow.call_graph
        self._phis = _Phis(flow)
        self._by_ordinal: list[Instruction] = list(execution_order(flow.module, flow.moving, flow.post_order))
        self._ordinals = {instruction: ordinal for ordinal, instruction in enumerate(self._by_ordinal)}
        self._waiting = list(range(len(self._by_ordinal)))
        self._is_waiting = [True] * len(self._by_ordinal)

    def run(self) -> _Phis:
        while self._waiting:
            ordinal = heapq.heappop(self._waiting)
            self._is_waiting[ordinal] = False
            instruction = self._by_ordinal[ordinal]
            if self._update(instruction):
                self._wake_readers(instruction)
        return self._phis

    def _update(self, instruction: Instruction) -> bool:
        sources = phi_sources(instruction, self._flow.sets, self._graph)
        if sources is not None:
            return self._phis.merge(instruction, sources)
        sets = self._flow.sets
        new = TRANSFER[instruction.opcode](instruction, sets, self._graph)
        if new == sets[instruction]:
            return False
        sets[instruction] = new
        return True

    def _wake(self, instruction: Instruction) -> None:
        ordinal = self._ordinals.get(instruction)
        if ordinal is not None and not self._is_waiting[ordinal]:
            self._is_waiting[ordinal] = True
            heapq.heappush(self._waiting, ordinal)

    def _wake_readers(self, instruction: Instruction) -> None:
        for user in instruction.users:
            self._wake(user)
            for parameter in self._parameters_fed(instruction, user):
                self._wake(parameter)
        if instruction.is_root:
            self._wake_callers(instruction)

    def _parameters_fed(self, instruction: Instruction, user: Instruction) -> list[Instruction]:
        """Parameters of the computations called by ``user`` which read ``instruction``."""
        if user.opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
            return list(self._flow.parameters(async_start_of(user).to_apply))
        if not (called := called_computations(user)):
            return []
        slots = [number for number, operand in enumerate(user.operands) if operand is instruction]
        match user.opcode:
            case Opcode.CONDITIONAL:
                return [self._flow.parameters(called[slot - 1])[0] for slot in slots if slot]
            case Opcode.WHILE:
                return [self._flow.parameters(computation)[0] for computation in called]
            case Opcode.CALL | Opcode.ASYNC_START:
                parameters = self._flow.parameters(called[0])
                return [parameters[slot] for slot in slots]
            case _:
                return []

    def _wake_callers(self, root: Instruction) -> None:
        assert root.parent is not None
        for site in self._graph[root.parent].caller_sites:
            self._wake(site.instruction)
            if site.instruction.opcode is Opcode.WHILE:
                for computation in site.called:
                    self._wake(self._flow.parameters(computation)[0])
