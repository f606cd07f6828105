"""Buffer assignment: every value of a scheduled module gets a place in memory (``xla/service/buffer_assignment.cc``).

Steps (memory spec, section 9.1):

1. Analyze: values, buffers, live ranges, colours.
2. Global computations: their buffers, largest first, get allocations of their own or join others (:mod:`.reuse`); what is
   temporary waits.
3. The temporaries that wait are packed by a heap algorithm, colour by colour.
4. Thread-local computations other than fusion bodies: each buffer gets an allocation of its own.
5. Allocations of buffers that the result holds are live-out.
6. Temporaries of one colour are joined into one allocation (:mod:`.combine`).

The order in step 2 is: size, larger first; live-out first; earliest defining instruction; buffer id (or, as an option of XLA's
pass that no backend uses, the instruction first). Instructions are numbered in post-order over the computations of the group,
callers first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.analysis.numbering import Numbering, visiting_order
from layoutsim.analysis.ordering import DependencyOrder, ValueOrdering
from layoutsim.analysis.values import Value
from layoutsim.errors import UnsupportedError
from layoutsim.garbage import no_collection
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import TupleShape
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.memory.buffers import Allocation, BufferAssignment, EntryParameter
from layoutsim.memory.combine import combine_temps
from layoutsim.memory.cross_color import place_in_other_colors, sorted_colors
from layoutsim.memory.peak import peak_values_of
from layoutsim.memory.profile import BufferOrder, MemoryProfile
from layoutsim.memory.reach import Reach, split_computations
from layoutsim.memory.reuse import Reuse, Tenancy, TenancyByDependency, TenancyByRanges
from layoutsim.memory.simulator import buffer_size, simulate_heap


class OrderingKind(Enum):
    """What orders the instructions of a computation."""

    SCHEDULE = "schedule"
    DEPENDENCY = "dependency"


def assign_buffers(
    module: Module,
    profile: MemoryProfile,
    *,
    ordering: OrderingKind = OrderingKind.SCHEDULE,
    numbering: Numbering | None = None,
) -> BufferAssignment:
    """XLA's buffer assignment.

    Args:
        module: with a flattened call graph.
        profile: the backend.
        ordering: what decides which values are live together. XLA orders by schedule, except where commands may run
            concurrently. Without a schedule nothing is packed; temporaries only join allocations that are free for them.
        numbering: computations and instructions in the order that numbers values; ties of the heap depend on it. See
            :func:`~layoutsim.analysis.numbering.numbering_from_text` for the default.

    Raises:
        UnsupportedError: a computation that needs one has no schedule, or the call graph is not flattened.
    """
    with no_collection():
        return _assign(module, profile, ordering, numbering)


def _assign(module: Module, profile: MemoryProfile, ordering: OrderingKind, numbering: Numbering | None) -> BufferAssignment:
    aliases = Aliases(Dataflow(module, numbering=numbering), profile.rules)
    reach = split_computations(module)
    if ordering is OrderingKind.DEPENDENCY:
        return _Assigner(profile, aliases, None, reach).run()
    missing = [c.name for c in reach.global_ if module.schedule is None or c not in module.schedule]
    if missing:
        raise UnsupportedError(f"computation {missing[0]} is not scheduled")
    return _Assigner(profile, aliases, LiveRanges(aliases), reach).run()


class _Assigner:
    """The allocations made so far."""

    def __init__(self, profile: MemoryProfile, aliases: Aliases, ranges: LiveRanges | None, reach: Reach) -> None:
        self._profile = profile
        self._aliases = aliases
        self._dataflow = aliases.dataflow
        self._ranges = ranges
        self._reach = reach
        self._colors = profile.colors(aliases)
        self._reuse = Reuse(aliases, self._colors, profile, self._tenancy())
        self._allocations: list[Allocation] = []
        self._allocation_of: dict[Value, Allocation] = {}
        self._waiting: list[AliasedValues] = []
        self._sizes = {buffer: buffer_size(buffer, profile.size) for buffer in aliases.buffers}
        self._temp_fragmentation = 0

    def run(self) -> BufferAssignment:
        for buffer in self._sorted_buffers(self._reach.global_):
            self._assign_global(buffer)
        self._assign_temps()
        bodies = fusion_bodies(self._aliases.module)
        for buffer in self._sorted_buffers([c for c in self._reach.thread_local if c not in bodies]):
            self._assign_special(buffer, is_thread_local=True)
        self._mark_live_out()
        allocations = combine_temps(self._allocations, self._profile.alignment, self._profile.temp_limit_bytes)
        return BufferAssignment(
            self._profile, self._aliases, self._ranges, self._colors, tuple(allocations), self._temp_fragmentation
        )

    def _tenancy(self) -> Tenancy:
        if self._ranges is not None:
            return TenancyByRanges(self._aliases, self._ranges)
        order = DependencyOrder(self._aliases.module)
        return TenancyByDependency(ValueOrdering(self._dataflow, self._aliases.sharing, order))

    # -- order -----------------------------------------------------------------------------------------------------

    def _sorted_buffers(self, computations: Sequence[Computation]) -> list[AliasedValues]:
        chosen = frozenset(computations)
        places = self._places(chosen)
        buffers = [buffer for buffer in self._aliases.buffers if buffer.values[0].instruction.parent in chosen]
        live_out = self._aliases.live_out

        is_topological = self._profile.order is BufferOrder.TOPOLOGICAL

        def key(buffer: AliasedValues) -> tuple[int, int, bool, int, int]:
            place = min(places[value.instruction] for value in buffer.values)
            return (place if is_topological else 0, -self._sizes[buffer], buffer not in live_out, place, buffer.id)

        return sorted(buffers, key=key)

    def _places(self, chosen: frozenset[Computation]) -> Mapping[Instruction, int]:
        order = [c for c in reversed(visiting_order(self._dataflow.call_graph)) if c in chosen]
        instructions = (i for computation in order for i in self._dataflow.post_order(computation))
        return {instruction: place for place, instruction in enumerate(instructions)}

    # -- one buffer ------------------------------------------------------------------------------------------------

    def _assign_global(self, buffer: AliasedValues) -> None:
        if self._assign_special(buffer, is_thread_local=False) or self._join(buffer):
            return
        if buffer in self._aliases.live_out or self._ranges is None:
            self._reuse.open(self._allocate(buffer))
        else:
            self._waiting.append(buffer)

    def _assign_special(self, buffer: AliasedValues, *, is_thread_local: bool) -> bool:
        """Constants, entry parameters, thread-local values and tuples; the first kind that a value has."""
        for value in buffer.values:
            if value.instruction.opcode is Opcode.CONSTANT:
                if self._profile.allocate_constants:
                    self._allocate(buffer).is_constant = True
                return True
            if value.instruction.opcode is Opcode.PARAMETER and value.instruction.parent is self._aliases.module.entry:
                self._allocate_parameter(buffer, value)
                return True
        if is_thread_local:
            self._allocate(buffer).is_thread_local = True
        elif any(isinstance(value.shape, TupleShape) for value in buffer.values):
            self._allocate(buffer).is_tuple = True
        else:
            return False
        return True

    def _allocate_parameter(self, buffer: AliasedValues, value: Value) -> None:
        number = value.instruction.parameter_number
        is_donated = (number, value.index) in self._aliases.donations.given
        allocation = self._allocate(buffer)
        allocation.parameter = EntryParameter(number, value.index, is_donated)
        if is_donated:
            self._reuse.open(allocation)

    def _join(self, buffer: AliasedValues) -> bool:
        """Join an operand's allocation, or the last made of those that are open."""
        allocation = self._reuse.find(buffer, self._sizes[buffer], self._operand_allocations(buffer))
        if allocation is None:
            return False
        self._place(buffer, allocation)
        return True

    def _operand_allocations(self, buffer: AliasedValues) -> list[Allocation]:
        found: list[Allocation] = []
        for value in buffer.values:
            if value.index or isinstance(value.shape, TupleShape):
                continue
            for operand in value.instruction.operands:
                allocations = (self._allocation_of.get(v) for v in self._dataflow.value_sets(operand)[0])
                found += sorted({a for a in allocations if a is not None}, key=lambda a: a.index)
        return found

    def _allocate(self, buffer: AliasedValues) -> Allocation:
        allocation = self._new_allocation(self._sizes[buffer], self._colors[buffer.values[0]])
        self._place(buffer, allocation)
        allocation.peak_values.append(buffer.values[0])
        return allocation

    def _new_allocation(self, size: int, color: int) -> Allocation:
        allocation = Allocation(len(self._allocations), size, color)
        self._allocations.append(allocation)
        return allocation

    def _place(self, buffer: AliasedValues, allocation: Allocation) -> None:
        allocation.is_live_out |= buffer in self._aliases.live_out
        for value in buffer.values:
            self._place_value(value, allocation, 0, self._sizes[buffer])

    def _place_value(self, value: Value, allocation: Allocation, offset: int, size: int) -> None:
        assert value not in self._allocation_of, f"{value} is placed twice"
        assert offset + size <= allocation.size, f"{value} does not fit into {allocation}"
        allocation.places[value] = (offset, size)
        self._allocation_of[value] = allocation
        self._reuse.add(allocation, value)

    # -- temporaries -----------------------------------------------------------------------------------------------

    def _assign_temps(self) -> None:
        by_color: dict[int, list[AliasedValues]] = {}
        for buffer in self._waiting:
            by_color.setdefault(self._colors[buffer.values[0]], []).append(buffer)
        for color in sorted_colors(by_color, self._profile.may_use):
            left = self._place_across_colors(by_color[color], color)
            if left:
                self._pack([value for buffer in left for value in buffer.values], color)

    def _place_across_colors(self, buffers: list[AliasedValues], color: int) -> list[AliasedValues]:
        targets = [a for a in self._allocations if a.is_temp and a.color != color and self._profile.may_use(color, a.color)]
        if not targets or self._ranges is None:
            return buffers
        placed = place_in_other_colors(buffers, self._sizes, targets, self._aliases, self._ranges, self._profile.alignment)
        for buffer, (allocation, offset) in placed.items():
            for value in buffer.values:
                self._place_value(value, allocation, offset, self._sizes[buffer])
                allocation.cross_color.append(value)
        return [buffer for buffer in buffers if buffer not in placed]

    def _pack(self, values: list[Value], color: int) -> None:
        """Step (3) for one colour."""
        assert self._ranges is not None, "only scheduled temporaries are packed"
        profile = self._profile
        run = simulate_heap(
            self._aliases,
            self._ranges,
            profile.size,
            chosen=values,
            with_constants=profile.allocate_constants,
            alignment=profile.alignment,
        )
        placement = profile.heap.pack(run.problem)
        self._temp_fragmentation += placement.size - run.peak_bytes
        by_id = {value.id: value for value in values}
        for heap in placement.heaps:
            allocation = self._new_allocation(heap.size, color)
            for number, chunk in sorted(heap.chunks.items()):
                self._place_value(by_id[number], allocation, chunk.offset, chunk.size)
            allocation.heaps.append(run)
            allocation.peak_values = peak_values_of(run.events, {v: size for v, (_, size) in allocation.places.items()})

    def _mark_live_out(self) -> None:
        """Step (5)."""
        for buffer in self._aliases.live_out:
            allocation = self._allocation_of.get(buffer.values[0])
            if allocation is not None:
                allocation.is_live_out = True
