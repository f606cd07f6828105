"""Buffers: the values that must be in the same memory (``xla/hlo/analysis/hlo_alias_analysis.h``; memory spec, section 4).

Values are united where

1. an output of the entry is aliased with a parameter: with the parameter's value;
2. a loop carries them: its initial values, its computations' parameters and its body's root with the value of the ``while``;
3. a branch returns them: with the value of the ``conditional``;
4. an instruction works in place: operand and output of a pair (:mod:`layoutsim.analysis.in_place`).

Numbering: each value begins with a slot of its own, in order of ids. The values are gone through by id; everything united with
one moves to the slot of the largest class (at a tie: the one with the smallest value by which it was reached). Buffers are
the slots that are not empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from attrs import define, frozen

from layoutsim.analysis.alias_rules import AliasRules, Sharing
from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.values import Value, value_id
from layoutsim.errors import UnsupportedError
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ShapeIndex


@define(eq=False, repr=False)
class AliasedValues:
    """A buffer: values that share one place in memory.

    Attributes:
        id: rank of its slot.
        values: by id.
    """

    id: int
    values: tuple[Value, ...]

    def __repr__(self) -> str:
        return f"<buffer {self.id} {list(self.values)}>"


@frozen
class DonationTable:
    """Which parts of parameters are given to which parts of the result."""

    parameter_of_output: dict[ShapeIndex, tuple[int, ShapeIndex]]
    given: frozenset[tuple[int, ShapeIndex]]

    @staticmethod
    def of(module: Module) -> DonationTable:
        pairs = {a.output_index: (a.parameter_number, a.parameter_index) for a in module.input_output_aliases}
        return DonationTable(pairs, frozenset(pairs.values()))


class Aliases:
    """The buffers of a module as it stands; it does not follow later changes.

    Attributes:
        dataflow: the values.
        sharing: what must and may share, by the backend's rules.
        buffers: by id.
        donations: input/output aliases of the module.
    """

    def __init__(self, dataflow: Dataflow, rules: AliasRules) -> None:
        self.dataflow = dataflow
        self.sharing = Sharing(dataflow, rules)
        self.donations = DonationTable.of(dataflow.module)
        self._united: dict[Value, set[Value]] = defaultdict(set)
        self._unite_donations()
        self._unite_control_flow()
        self._unite_in_place()
        self.buffers = self._merge()
        self._buffer_of = {value: buffer for buffer in self.buffers for value in buffer.values}

    @staticmethod
    def run(module: Module, rules: AliasRules) -> Aliases:
        """Dataflow and buffers of ``module``."""
        return Aliases(Dataflow(module), rules)

    @property
    def module(self) -> Module:
        return self.dataflow.module

    def buffer_of(self, value: Value) -> AliasedValues:
        return self._buffer_of[value]

    def buffers_at(self, instruction: Instruction, index: ShapeIndex = ()) -> list[AliasedValues]:
        """The buffers that may stand at a position, each once, by id."""
        found = {self._buffer_of[value] for value in self.dataflow.value_set(instruction, index)}
        return sorted(found, key=lambda buffer: buffer.id)

    def buffer_at(self, instruction: Instruction, index: ShapeIndex = ()) -> AliasedValues:
        """The one buffer that stands at a position."""
        buffers = self.buffers_at(instruction, index)
        assert len(buffers) == 1, f"{instruction.name} at {index}: expected one buffer, got {buffers}"
        return buffers[0]

    @cached_property
    def live_out(self) -> frozenset[AliasedValues]:
        """Buffers at any index of the entry's root."""
        sets = self.dataflow.value_sets(self.module.entry.root)
        return frozenset(self._buffer_of[value] for values in sets for value in values)

    def lives_out(self, value: Value) -> bool:
        """Whether the value's buffer is at the entry's root; the value itself need not be."""
        return self._buffer_of[value] in self.live_out

    # -- uniting ---------------------------------------------------------------------------------------------------

    def _add(self, value: Value, other: Value) -> None:
        if value is not other:
            self._united[value].add(other)

    def _unite_donations(self) -> None:
        """Rule (1)."""
        entry = self.module.entry
        for output, (number, index) in self.donations.parameter_of_output.items():
            source = self.dataflow.value_at(self.dataflow.parameters(entry)[number], index)
            for value in self.dataflow.value_set(entry.root, output):
                self._add(value, source)

    def _unite_control_flow(self) -> None:
        """Rules (2) and (3), for every instruction that calls a loop or branches."""
        for node in self.dataflow.call_graph.nodes:
            for site in node.call_sites:
                if site.instruction.opcode is Opcode.WHILE:
                    self._unite_loop(site.instruction)
                elif site.instruction.opcode is Opcode.CONDITIONAL:
                    self._require_unique(site.instruction)
                    for branch in site.called:
                        self._unite_with(site.instruction, branch.root)

    def _unite_loop(self, loop: Instruction) -> None:
        self._require_unique(loop)
        self._unite_with(loop, loop.operand(0))
        self._unite_with(loop, loop.body.root)
        for computation in (loop.body, loop.condition):
            parameter = self.dataflow.parameters(computation)[0]
            self._unite_with(loop, parameter, only_own=True)

    def _unite_with(self, instruction: Instruction, source: Instruction, *, only_own: bool = False) -> None:
        """Unite the values at ``source`` with the instruction's value at the same index."""
        result, sources = self.dataflow.value_sets(instruction), self.dataflow.value_sets(source)
        for target, values in zip(result, sources, strict=True):
            for value in values:
                if not only_own or value.instruction is source:
                    self._add(value, *target)

    def _require_unique(self, caller: Instruction) -> None:
        for callee in caller.called_computations:
            if len(self.dataflow.call_graph[callee].caller_sites) != 1:
                raise UnsupportedError(f"{callee.name} is called by {caller.name} and others; flatten the call graph first")

    def _unite_in_place(self) -> None:
        """Rule (4)."""
        for instruction in self._instructions():
            for pair in self.sharing.pairs(instruction):
                output = self.dataflow.value_at(instruction, pair.output_index)
                operand = self.dataflow.value_at(instruction.operand(pair.operand_number), pair.operand_index)
                self._add(output, operand)
                self._add(operand, output)

    def _instructions(self) -> list[Instruction]:
        return [i for computation in self.dataflow.computations for i in self.dataflow.post_order(computation)]

    # -- merging ---------------------------------------------------------------------------------------------------

    def _merge(self) -> Sequence[AliasedValues]:
        values = self.dataflow.values
        slot_of = {value: slot for slot, value in enumerate(values)}
        slots: list[list[Value]] = [[value] for value in values]
        for value in values:
            others = self._united.get(value)
            if not others:
                continue
            reached = [value, *others]
            target = slot_of[max(reached, key=lambda v: (len(slots[slot_of[v]]), -v.id))]
            for source in {slot_of[v] for v in reached} - {target}:
                slots[target] += slots[source]
                for moved in slots[source]:
                    slot_of[moved] = target
                slots[source] = []
        full = [slot for slot in slots if slot]
        return [AliasedValues(number, tuple(sorted(slot, key=value_id))) for number, slot in enumerate(full)]
