"""Which copies can go without two live values meeting in one buffer (``xla/service/copy_removal.cc``; memory spec, 12.2, 12.3).

Every buffer is a *chain*: its values in the order in which they are defined. A copy leads from a value ``s_x`` of the chain
``s_0 .. s_n`` to a value ``d_y`` of the chain ``d_0 .. d_m``. Eliding it drops ``d_y`` and merges the chains:

0. A copy that changes the shape, layout or memory space, or whose source is one of several values, stays.
1. ``d_y`` right behind ``s_x`` in one chain: nothing is in between, the copy goes.
2. ``y = 0``: merged to ``s_0 .. s_x, d_1 .. d_m, s_(x+1) .. s_n``. Needs every ``s_i`` up to ``s_x`` to be over before every
   ``d_j`` from ``d_1``, and every ``d_i`` before every ``s_j`` from ``s_(x+1)``. A variadic scatter that defines ``d_1`` and
   reads ``s_x`` too forbids it.
3. ``x = n``: merged to ``d_0 .. d_(y-1), s_0 .. s_n, d_(y+1) .. d_m``, with the like conditions.
4. Otherwise it stays: a value from the middle of one chain cannot go to the middle of another.

Where the order test of (2) or (3) fails, region analysis may still allow the merge (``copy_elision_regions``), if it is on.

*Over before*: a value without uses is over once defined; a value at the root of the computation that defines the other is
never over; otherwise all its uses must precede the other's definition. Passes call this on a graph that changes under their
hands: the order, positions and uses are those at the start, except that uses of an elided copy move to its source.
"""

from __future__ import annotations

from attrs import define, frozen

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.ordering import SequentialOrder, ValueOrdering
from layoutsim.analysis.values import Value
from layoutsim.ir import Instruction, Module, Opcode, TupleShape
from layoutsim.passes.copy_chains import ChainNode, Merge, copies_of, global_numbers, link_chain, splice_behind
from layoutsim.passes.copy_elision_regions import RegionAnalysis
from layoutsim.passes.dependency_order import ChosenDependencyOrder

_CALLS = frozenset({Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.ASYNC_START})


@define(eq=False)
class CopyEnds:
    """The two values that a copy connects."""

    source: ChainNode
    destination: ChainNode


@frozen(eq=False)
class Verdict:
    """Whether a copy goes, and why; ``before`` and ``after`` are values that clash, where two do."""

    elided: bool
    reason: str
    before: Value | None = None
    after: Value | None = None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            return self.reason
        return f"{self.reason}: {self.before.short_text} is not over before {self.after.short_text} is defined"


_SAME_BUFFER = Verdict(True, "source and copy share a buffer already")
_NOTHING_BETWEEN = Verdict(True, "live ranges do not meet")
_REGIONS_APART = Verdict(True, "live ranges do not meet in any region")
_UNKNOWN_SOURCE = Verdict(False, "its source is one of several values")
_SHAPE = Verdict(False, "it changes layout, memory space or type")
_MIDDLE = Verdict(False, "it leads from the middle of one buffer's life to the middle of another's")
_SCATTER = Verdict(False, "a variadic scatter reads its source already")


class CopyRemover:
    """The chains of a module and the copies between them."""

    def __init__(
        self,
        module: Module,
        aliases: Aliases,
        *,
        region_analysis: bool = False,
        last_first: frozenset[Instruction] = frozenset(),
    ) -> None:
        """Make the chains of every buffer that a copy reads or defines.

        Args:
            aliases: of the module as it stands.
            region_analysis: let live ranges be interleaved where that is safe.
            last_first: conditionals whose branches are in order from the last to the first.
        """
        self._dataflow = dataflow = aliases.dataflow
        ends = self._ends(module)
        buffers = dict.fromkeys(aliases.buffer_of(value) for pair in ends.values() for value in pair)
        chained = [value for buffer in buffers for value in buffer.values]
        schedule = module.schedule
        order = ChosenDependencyOrder(_asked_about(module, chained)) if schedule is None else SequentialOrder(schedule)
        self._ordering = ValueOrdering(dataflow, aliases.sharing, order, last_first)
        instructions = self._ordering.instructions
        self._regions = RegionAnalysis(dataflow.call_graph, aliases.sharing, instructions) if region_analysis else None
        numbers = global_numbers(module, last_first) if len(chained) > len(buffers) else {}
        chains = (link_chain(buffer.values, self._ordering, numbers) for buffer in buffers)
        nodes = {node.value: node for chain in chains for node in chain}
        self._copies = {copy: CopyEnds(nodes[source], nodes[made]) for copy, (source, made) in ends.items()}

    def try_elide(self, copy: Instruction) -> Verdict:
        """Merge the chains that ``copy`` connects if that is safe; the graph itself is the caller's to change."""
        ends = self._copies.get(copy)
        if ends is None:
            return _UNKNOWN_SOURCE
        if copy.shape != copy.operand(0).shape:  # (0)
            return _SHAPE
        source, destination = ends.source, ends.destination
        if source.next is destination:  # (1)
            verdict = _SAME_BUFFER
        elif destination.previous is None:
            verdict = self._merge_destination(copy, source, destination)
        elif source.next is None:
            verdict = self._merge_source(copy, source, destination)
        else:
            return _MIDDLE  # (4)
        if verdict.elided:
            self._drop(copy, source, destination)
        return verdict

    # -- rules -----------------------------------------------------------------------------------------------------

    def _merge_destination(self, copy: Instruction, source: ChainNode, destination: ChainNode) -> Verdict:  # (2)
        if destination.next is not None and _scatter_reads(destination.next, source):
            return _SCATTER
        clash = self._first_clash(source, destination.next) or self._first_clash(destination.tail, source.next)
        verdict = self._with_regions(clash, copy, source, destination, Merge.DESTINATION_INTO_SOURCE)
        if verdict.elided:
            assert source.head is not destination, f"{destination.value} and {source.value} are in one chain already"
            splice_behind(source, destination, destination.tail)
        return verdict

    def _merge_source(self, copy: Instruction, source: ChainNode, destination: ChainNode) -> Verdict:  # (3)
        before, head = destination.previous, source.head
        clash = self._first_clash(before, head) or self._first_clash(source, destination.next)
        verdict = self._with_regions(clash, copy, source, destination, Merge.SOURCE_INTO_DESTINATION)
        if verdict.elided:
            assert before is not None
            splice_behind(before, head, source)
        return verdict

    def _with_regions(
        self,
        clash: tuple[Value, Value] | None,
        copy: Instruction,
        source: ChainNode,
        destination: ChainNode,
        merge: Merge,
    ) -> Verdict:
        if clash is None:
            return _NOTHING_BETWEEN
        # A copy of a broadcast is cheap, and goes when the broadcast is duplicated.
        is_worth_it = copy.operand(0).opcode is not Opcode.BROADCAST
        if self._regions is not None and is_worth_it and not self._regions(source, destination, merge):
            return _REGIONS_APART
        return Verdict(False, "live ranges meet", *clash)

    def _first_clash(self, last: ChainNode | None, first: ChainNode | None) -> tuple[Value, Value] | None:
        """A value up to ``last`` that is not over before a value from ``first`` on, with that value."""
        if last is None or first is None:
            return None
        for after in first.forward():
            before: ChainNode | None = last
            while before is not None:
                if not self._is_over_before(before, after.value):
                    return before.value, after.value
                before = self._next_in_question(before, after).previous
        return None

    def _next_in_question(self, node: ChainNode, after: ChainNode) -> ChainNode:
        """Given that ``node`` is over before ``after``: the first of the nodes up to it that must be so too.

        Inside one computation the relation is transitive, so a run of values that are over one before the other needs one
        check. Across computations it is not: of values in exclusive branches, each is over before the other.
        """
        if not _are_together(node, after):
            return node
        first = node.settled or node
        while (before := first.previous) is not None:
            if not (_are_together(before, first) and self._is_over_before(before, first.value)):
                break
            first = before.settled or before
        node.settled = first
        return first

    def _is_over_before(self, node: ChainNode, value: Value) -> bool:
        if not node.uses:
            return self._ordering.is_defined_before(node.value, value)
        home = value.instruction.parent
        assert home is not None
        if any(instruction is home.root for instruction, _ in node.value.positions):
            return False
        return self._ordering.uses_are_before(node.uses, value)

    # -- chains ----------------------------------------------------------------------------------------------------

    def _ends(self, module: Module) -> dict[Instruction, tuple[Value, Value]]:
        """Source and result of every copy whose source is one value."""
        ends: dict[Instruction, tuple[Value, Value]] = {}
        for copy in copies_of(module):
            sources = self._dataflow.value_set(copy.operand(0))
            if len(sources) == 1:
                ends[copy] = sources[0], self._dataflow.value_at(copy)
        return ends

    def _drop(self, copy: Instruction, source: ChainNode, destination: ChainNode) -> None:
        """Take the copy's value, right behind its source by now, out of the chain; its uses become the source's."""
        assert destination.previous is source, f"{destination.value} is not behind {source.value}"
        source.next = destination.next
        if destination.next is not None:
            destination.next.previous = source
        source.uses.remove(next(use for use in source.uses if use.instruction is copy))
        source.uses += destination.uses
        for use in destination.uses:
            reading = self._copies.get(use.instruction)
            if reading is not None:
                reading.source = source
        del self._copies[copy]
        self._unsettle(copy, source)

    def _unsettle(self, copy: Instruction, source: ChainNode) -> None:
        """Forget what may no longer be true: of everything behind ``source``, and if a root goes, of everything."""
        behind = source.next.forward() if source.next is not None else ()
        everything = (node for ends in self._copies.values() for node in ends.source.head.forward())
        for node in everything if copy.is_root else behind:
            node.settled = None


def _are_together(node: ChainNode, after: ChainNode) -> bool:
    """Whether both values are computed, and the first is used, in one computation."""
    home = after.value.instruction.parent
    if node.value.instruction.parent is not home or Opcode.PARAMETER in (
        node.value.instruction.opcode,
        after.value.instruction.opcode,
    ):
        return False
    return all(use.instruction.parent is home for use in node.uses)


def _scatter_reads(node: ChainNode, source: ChainNode) -> bool:
    """Whether a scatter of several results (or a fusion of one) defines ``node`` and reads ``source``."""
    definer = node.value.instruction
    scatter = definer.to_apply.root if definer.opcode is Opcode.FUSION else definer
    if scatter.opcode is not Opcode.SCATTER or not isinstance(scatter.shape, TupleShape):
        return False
    return any(use.instruction is definer for use in source.uses)


def _asked_about(module: Module, values: list[Value]) -> dict[Instruction, None]:
    """What order is asked about: definitions and uses of ``values``, and all calls, to which both are lifted."""
    chosen = {value.instruction: None for value in values}
    chosen |= {use.instruction: None for value in values for use in value.uses}
    callers = (i for c in module.computations for i in c.instructions if i.opcode in _CALLS)
    return chosen | dict.fromkeys(callers)
