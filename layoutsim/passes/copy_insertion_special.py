"""Last phase of copy insertion: copies that have nothing to do with live ranges (memory spec, 12.5).

Places to copy are collected on one alias analysis, then each instruction is deep copied once for all its places and its users
(and the root) read the copy.

1. *Read-only storage is not written*: a constant or a parameter that is not donated, in one buffer with other values, is
   copied where it is defined.
2. *In place only where allowed*: where an instruction uses one value of a buffer and defines another, and may not overwrite
   that operand, the operand is copied. (Elision can lead here.)
3. *A root holds one buffer at each index*; the entry's root holds each buffer once. Where a buffer comes again at an index
   that is itself donated, the earlier index is copied in its stead.
4. *Nothing read-only is returned* from the entry.
5. *Collective memory stays inside* (GPU, after scheduling): an entry parameter or constant whose buffer is to be in collective
   memory is copied where it is defined; what the entry returns from such a buffer is copied at the root, unless the root is a
   copy.

What is in an asynchronous computation, and buffers, are never copied.

Source: ``AddSpecialCaseCopies`` in ``xla/service/copy_insertion.cc``, ``GpuCollectiveBufferAnalysis`` in ``gpu_compiler.cc``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.call_graph import Context, is_async
from layoutsim.analysis.collective_memory import COLLECTIVE_SPACE, space_of_definition, space_of_use
from layoutsim.analysis.values import Value
from layoutsim.ir import BufferShape, Instruction, Module, Opcode, ShapeIndex, subshape, subshapes
from layoutsim.ir.payloads import CustomCallPayload
from layoutsim.passes.deep_copy import deep_copy, replace_uses_by


class CollectiveMemory(Enum):
    """Which instructions need collective memory: none (XLA up to 0.6.2), those that say so, or all collectives too.

    All, if the compiler's flags ask for NCCL user buffers or symmetric buffers.
    """

    NEVER = "never"
    ASKED_FOR = "asked-for"
    ALL = "all"


Places = dict[Instruction, dict[ShapeIndex, str]]
"""Where to copy, and why."""


class SpecialCopies:
    """The places to copy in a module, and the copies made."""

    def __init__(self, aliases: Aliases, collective_memory: CollectiveMemory = CollectiveMemory.NEVER) -> None:
        """Find nothing yet.

        Args:
            collective_memory: which instructions need it; rule (5).
        """
        self._collective_memory = collective_memory
        self._module = aliases.module
        self._aliases = aliases
        self._places: Places = {}
        self.reasons: dict[Instruction, str] = {}

    def add(self) -> None:
        """Apply rules (1) to (4), and (5) if asked, to the whole module."""
        self._find_in_buffers()
        for node in self._aliases.dataflow.call_graph.nodes:
            if node.context is not Context.EMBEDDED:
                self._find_at_root(node.computation.root)
        if self._collective_memory is not CollectiveMemory.NEVER:
            for buffer in self._aliases.buffers:
                self._find_in_collective_memory(buffer, all_collectives=self._collective_memory is CollectiveMemory.ALL)
        self._copy()

    # -- finding ---------------------------------------------------------------------------------------------------

    def _find_in_buffers(self) -> None:
        for buffer in self._aliases.buffers:
            if len(buffer.values) == 1:
                continue
            for value in buffer.values:
                if self._is_read_only(value):  # (1)
                    self._mark(value.instruction, value.index, f"{_kind(value)} shares its buffer with what is written")
            self._find_overwritten(buffer)

    def _find_overwritten(self, buffer: AliasedValues) -> None:  # (2)
        defined: dict[Instruction, list[Value]] = {}
        for value in buffer.values:
            defined.setdefault(value.instruction, []).append(value)
        for value in buffer.values:
            for user, number, index in value.uses:
                for result in defined.get(user, ()):
                    if result is value or _pins(user):
                        continue
                    if not self._aliases.sharing.can_share(user.operand(number), index, user, result.index):
                        self._mark(user.operand(number), index, f"{user.name} may not overwrite it")

    def _find_at_root(self, root: Instruction) -> None:  # (3), (4)
        seen: dict[AliasedValues, ShapeIndex] = {}
        is_entry = root.parent is self._module.entry
        for index, _ in subshapes(root.shape):
            buffers = self._aliases.buffers_at(root, index)
            again = is_entry and any(buffer in seen for buffer in buffers)
            earlier = seen.get(buffers[0]) if len(buffers) == 1 else None
            for buffer in buffers:
                seen.setdefault(buffer, index)
            if again and earlier is not None and index in self._aliases.donations.parameter_of_output:
                self._mark(root, earlier, "the same buffer is returned where a parameter is donated to it")
            elif again:
                self._mark(root, index, "the same buffer is returned twice")
            elif len(buffers) > 1:
                self._mark(root, index, "it may be in one of several buffers")
        if is_entry:
            self._find_returned(root)

    def _find_returned(self, root: Instruction) -> None:  # (4)
        for (index, _), values in zip(subshapes(root.shape), self._aliases.dataflow.value_sets(root), strict=True):
            for value in values:
                if self._is_read_only(value):
                    self._mark(root, index, f"{_kind(value)} is returned")

    def _find_in_collective_memory(self, buffer: AliasedValues, *, all_collectives: bool) -> None:  # (5)
        if not any(_is_collective(value, all_collectives) for value in buffer.values):
            return
        for value in buffer.values:
            instruction = value.instruction
            is_parameter = instruction.opcode is Opcode.PARAMETER and instruction.parent is self._module.entry
            if is_parameter or instruction.opcode is Opcode.CONSTANT:
                self._mark(instruction, value.index, f"{_kind(value)} is not in collective memory")
            for position in value.positions:
                root = position.instruction
                if root is self._module.entry.root and root.opcode is not Opcode.COPY:
                    self._mark(root, position.index, "results are not in collective memory")

    def _mark(self, instruction: Instruction, index: ShapeIndex, reason: str) -> None:
        if isinstance(subshape(instruction.shape, index), BufferShape):
            return
        assert instruction.parent is not None, instruction
        if is_async(self._aliases.dataflow.call_graph[instruction.parent]):
            return
        self._places.setdefault(instruction, {}).setdefault(index, reason)

    def _is_read_only(self, value: Value) -> bool:
        instruction = value.instruction
        if instruction.opcode is Opcode.CONSTANT:
            return True
        if instruction.opcode is not Opcode.PARAMETER or instruction.parent is not self._module.entry:
            return False
        return (instruction.parameter_number, value.index) not in self._aliases.donations.given

    # -- copying ---------------------------------------------------------------------------------------------------

    def _copy(self) -> None:
        for instruction in _in_stored_order(self._module, self._places):
            places = self._places[instruction]
            users = instruction.users
            copied = deep_copy(instruction, places)
            replace_uses_by(instruction, users, copied.result)
            computation = instruction.parent
            assert computation is not None
            if computation.root is instruction:
                computation.root = copied.result
            for index, made in copied.copies.items():
                self.reasons[made] = places[index]


def _is_collective(value: Value, all_collectives: bool) -> bool:
    """Whether what makes or reads the value wants it in collective memory."""
    asked = [space_of_definition(value, all_collectives=all_collectives)]
    asked += [space_of_use(value, use, all_collectives=all_collectives) for use in value.uses]
    return COLLECTIVE_SPACE in asked


def _kind(value: Value) -> str:
    return f"{'constant' if value.instruction.opcode is Opcode.CONSTANT else 'parameter'} {value.instruction.name}"


def _pins(user: Instruction) -> bool:
    return isinstance(user.payload, CustomCallPayload) and user.payload.custom_call_target == "Pin"


def _in_stored_order(module: Module, wanted: Iterable[Instruction]) -> list[Instruction]:
    """``wanted`` in the order of the module's computations and their instructions, which is that of XLA's ids."""
    chosen = set(wanted)
    homes = {i.parent for i in chosen}
    return [i for c in module.computations if c in homes for i in c.instructions if i in chosen]
