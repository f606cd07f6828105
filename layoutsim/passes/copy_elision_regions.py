"""Region analysis: whether two chains of values can share memory though their live ranges are interleaved (memory spec, 12.4).

A chain's *region* is, per computation, the instructions that define or use its values; each use knows the instruction that
defined what it uses.

1. *Order* of an instruction relative to another is a set of {same, before, after}; both of the last two means not known, unless
   the instructions can be ordered by a control edge. An instruction that only uses what the other defines counts as before
   or after it, not as the same. Exclusive branches have no order at all.
2. An instruction *can modify* the other region's buffer if it defines a value there (parameters, tuples, tuple elements, loops,
   calls and conditionals do not; nor does a copy from that region of the same shape), or overwrites an operand from there.
3. It *intercepts* a use if it can modify and comes between the definition and the use, or may; also if the use is the root
   and the definition the parameter; also if it is a tuple-shaped instruction of a branch and the definition itself. What is in
   the body of the loop that defines or uses the value does not intercept. Asynchronous operations and collective-permutes
   always do.
4. For one instruction, its known orders to the whole other region are united. If that leaves exactly before or exactly after,
   the other instructions of the same computation are put in the same order by control edges, where (a) the one in front is
   no root and (b) the one behind is no copy of what the one in front overwrites; else its order is not known.
5. The regions *overlap*, seen from one side, if some instruction's order contains before and after.
6. Both sides overlap: they interfere. One side: they interfere if that side intercepts, or if the other does and the chain is
   not merged where that is harmless. Neither: they do not.
7. The control edges must be possible: with a schedule they are not.

Source: ``ComputeRelativeLocation`` and ``CopyRemover::ValuesInterfere`` in ``xla/service/copy_removal.cc``.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, frozen

from layoutsim.analysis.alias_rules import Sharing
from layoutsim.analysis.call_graph import CallGraph
from layoutsim.analysis.ordering import Constraint, Ordering
from layoutsim.ir import Computation, Instruction, Opcode, TupleShape
from layoutsim.ir.opcode import ASYNC_DONES, ASYNC_STARTS
from layoutsim.passes.copy_chains import ChainNode, Merge
from layoutsim.passes.dependency_order import ChosenDependencyOrder

_NONE, _SAME, _BEFORE, _AFTER = 0, 1, 2, 4
_UNKNOWN = _BEFORE | _AFTER
_REVERSED = {_BEFORE: _AFTER, _AFTER: _BEFORE, _BEFORE | _SAME: _AFTER | _SAME, _AFTER | _SAME: _BEFORE | _SAME}

_ORDERS = {
    Constraint.SAME: _SAME,
    Constraint.BEFORE_END: _BEFORE | _SAME,
    Constraint.BEFORE_START: _BEFORE,
    Constraint.AFTER: _AFTER,
    Constraint.EXCLUSIVE_BEFORE: _NONE,
    Constraint.EXCLUSIVE_AFTER: _NONE,
}
_ALWAYS_INTERCEPT = ASYNC_STARTS | ASYNC_DONES | {
    Opcode.SEND,
    Opcode.RECV,
    Opcode.SEND_DONE,
    Opcode.RECV_DONE,
    Opcode.COLLECTIVE_PERMUTE,
}  # fmt: skip
_NEVER_MODIFY = frozenset(
    {
        Opcode.PARAMETER,
        Opcode.TUPLE,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.WHILE,
        Opcode.CALL,
        Opcode.CONDITIONAL,
    }
)


@define(eq=False)
class _Entry:
    """An instruction of a region."""

    instruction: Instruction
    defines: bool = False
    definition: Instruction | None = None


_Region = dict[Computation, dict[Instruction, _Entry]]


@frozen
class _Relation:
    """How one region lies relative to another: the orders of its instructions, and whether some intercepts."""

    orders: tuple[int, ...] = ()
    intercepts: bool = False

    @property
    def overlaps(self) -> bool:
        return any(order >= _UNKNOWN for order in self.orders)

    def and_from_another(self, order: int, intercepts: bool) -> _Relation:
        """With the order of one more instruction; an order that contains another takes its place."""
        orders = list(self.orders)
        for i, known in enumerate(orders):
            if known | order in (known, order):
                orders[i] = known | order
                break
        else:
            orders.append(order)
        return _Relation(tuple(orders), self.intercepts or intercepts)


class RegionAnalysis:
    """Rules (1) to (7). Called with the source and destination of a copy, and how their chains would be merged."""

    def __init__(self, graph: CallGraph, sharing: Sharing, ordering: Ordering) -> None:
        self._graph = graph
        self._sharing = sharing
        self._ordering = ordering

    def __call__(self, source: ChainNode, destination: ChainNode, merge: Merge) -> bool:
        """Whether the chains interfere; if not, the control edges that keep them apart are added."""
        ours, theirs = _region(source), _region(destination)
        location = _Locations(self._graph, self._sharing, self._ordering)
        of_destination = location.of(theirs, relative_to=ours)
        of_source = location.of(ours, relative_to=theirs)
        if _interfere(of_destination, of_source, merge):  # (6)
            return True
        return not location.add_control_edges()  # (7)


def _interfere(of_destination: _Relation, of_source: _Relation, merge: Merge) -> bool:  # (6)
    if of_destination.overlaps and of_source.overlaps:
        return True
    if of_destination.overlaps:
        other = merge is not Merge.DESTINATION_INTO_SOURCE and of_source.intercepts
        return of_destination.intercepts or other
    if of_source.overlaps:
        other = merge is not Merge.SOURCE_INTO_DESTINATION and of_destination.intercepts
        return of_source.intercepts or other
    return False


def _around(node: ChainNode) -> Iterator[ChainNode]:
    """The whole chain, from ``node`` to its end and then from its beginning."""
    yield from node.forward()
    for other in node.head.forward():
        if other is node:
            return
        yield other


def _region(node: ChainNode) -> _Region:
    region: _Region = {}
    for current in _around(node):
        definition = current.value.instruction
        _entry(region, definition).defines = True
        for use in current.uses:
            _entry(region, use.instruction).definition = definition
    return {computation: _in_list_order(computation, entries) for computation, entries in region.items()}


def _entry(region: _Region, instruction: Instruction) -> _Entry:
    assert instruction.parent is not None, instruction
    entries = region.setdefault(instruction.parent, {})
    return entries.setdefault(instruction, _Entry(instruction))


def _in_list_order(computation: Computation, entries: dict[Instruction, _Entry]) -> dict[Instruction, _Entry]:
    if len(entries) == 1:
        return entries
    return {i: entries[i] for i in computation.instructions if i in entries}


class _Locations:
    """Orders between the instructions of two regions, with the control edges they rely on."""

    def __init__(self, graph: CallGraph, sharing: Sharing, ordering: Ordering) -> None:
        self._graph = graph
        self._sharing = sharing
        self._ordering = ordering
        self._saved: dict[tuple[Instruction, Instruction], int] = {}
        self._edges: dict[Instruction, list[Instruction]] = {}

    def of(self, region: _Region, *, relative_to: _Region) -> _Relation:
        """Where the instructions of ``region`` lie relative to the other region."""
        relation = _Relation()
        for home, others in relative_to.items():
            for computation, entries in region.items():
                if not self._graph.dominates(home, computation):
                    continue
                for entry in entries.values():
                    united = self._unite(entry, others, relative_to)
                    if united is not None:
                        relation = relation.and_from_another(*united)
        return relation

    def _unite(self, entry: _Entry, others: dict[Instruction, _Entry], region: _Region) -> tuple[int, bool] | None:  # (4)
        can_modify = self._can_modify(entry, region)
        known: int | None = None
        intercepts = unknown_intercepts = False
        unknown: list[_Entry] = []
        for other in others.values():
            order, caught = self._relate(entry, other, can_modify)
            if order == _UNKNOWN:
                unknown.append(other)
                unknown_intercepts |= caught
            else:
                known = order if known is None else known | order
                intercepts |= caught
        if unknown and not self._force(unknown, entry, _NONE if known is None else known):
            return _UNKNOWN | (known or 0), intercepts or unknown_intercepts
        return None if known is None else (known, intercepts)

    # -- (2) -------------------------------------------------------------------------------------------------------

    def _can_modify(self, entry: _Entry, region: _Region) -> bool:
        instruction = entry.instruction
        if not entry.defines:
            pairs = self._sharing.pairs(instruction)
            return any(_contains(region, instruction.operand(pair.operand_number)) for pair in pairs)
        if instruction.opcode is not Opcode.COPY:
            return instruction.opcode not in _NEVER_MODIFY
        operand = instruction.operand(0)
        source = operand.operand(0) if operand.opcode is Opcode.GET_TUPLE_ELEMENT else operand
        return not (_contains(region, source) and instruction.shape == operand.shape)

    # -- (1), (3) --------------------------------------------------------------------------------------------------

    def _relate(self, entry: _Entry, other: _Entry, can_modify: bool) -> tuple[int, bool]:
        """Order of ``entry`` relative to ``other``, and whether it intercepts the value that ``other`` uses."""
        instruction, use, definition = entry.instruction, other.instruction, other.definition
        order = self._order(instruction, use)
        if order == _SAME and entry.defines != other.defines:
            order = _BEFORE if other.defines else _AFTER
        always = instruction.opcode in _ALWAYS_INTERCEPT
        if definition is None or not can_modify:
            return order, always
        if definition.opcode is Opcode.PARAMETER and use.is_root:
            return order, True
        is_same_home = use.parent is definition.parent
        if is_same_home and self._is_in_body_of(definition, instruction) and self._order(use, instruction) == _AFTER:
            return order, False
        if is_same_home and self._is_in_body_of(use, instruction) and self._order(definition, instruction) == _BEFORE:
            return order, False
        if is_same_home and definition is instruction and self._has_many_results_in_branch(definition):
            return order, True
        between = order in (_BEFORE, _UNKNOWN) and self._order(instruction, definition) in (_AFTER, _UNKNOWN)
        return order, always or between

    def _is_in_body_of(self, loop: Instruction, instruction: Instruction) -> bool:
        return loop.opcode is Opcode.WHILE and instruction.parent is loop.body

    def _has_many_results_in_branch(self, instruction: Instruction) -> bool:
        assert instruction.parent is not None, instruction
        callers = self._graph[instruction.parent].caller_sites
        is_branch = any(site.instruction.opcode is Opcode.CONDITIONAL for site in callers)
        return is_branch and isinstance(instruction.shape, TupleShape)

    def _order(self, a: Instruction, b: Instruction) -> int:
        """Order of ``a`` relative to ``b``, control edges to be added included."""
        known = self._known(a, b)
        if known is not None:
            return known
        constraint = self._ordering.constraint(a, b)
        if constraint is Constraint.UNORDERED:
            return self._order_by_new_edges(a, b)
        self._saved[a, b] = _ORDERS[constraint]
        return _ORDERS[constraint]

    def _known(self, a: Instruction, b: Instruction) -> int | None:
        order = self._saved.get((a, b))
        if order is None and (reverse := self._saved.get((b, a))) is not None:
            return _REVERSED.get(reverse, reverse)
        return order

    def _order_by_new_edges(self, a: Instruction, b: Instruction) -> int:
        if a.parent is b.parent:
            if any(self._is_up_to(a, before) for before in self._edges.get(b, ())):
                self._saved[a, b] = _BEFORE
                return _BEFORE
            if any(self._is_up_to(b, before) for before in self._edges.get(a, ())):
                self._saved[a, b] = _AFTER
                return _AFTER
        return _UNKNOWN

    def _is_up_to(self, a: Instruction, b: Instruction) -> bool:
        return self._order(a, b) in (_BEFORE, _SAME, _BEFORE | _SAME)

    # -- control edges ---------------------------------------------------------------------------------------------

    def _force(self, others: list[_Entry], entry: _Entry, order: int) -> bool:
        """Put ``entry`` before, or after, all of ``others``; ``False`` if that cannot be."""
        if order not in (_BEFORE, _AFTER):
            return False
        for other in others:
            first, second = (entry, other) if order == _BEFORE else (other, entry)
            if not self._can_force(first.instruction, second.instruction):
                return False
        for other in others:
            self._saved[entry.instruction, other.instruction] = order
            first, second = (entry, other) if order == _BEFORE else (other, entry)
            self._remember_edge(first.instruction, second.instruction)
        return True

    def _can_force(self, first: Instruction, second: Instruction) -> bool:
        if first.parent is not second.parent or first.is_root:
            return False
        if second.opcode is not Opcode.COPY:
            return True
        overwritten = [first.operand(pair.operand_number) for pair in self._sharing.pairs(first)]
        return not any(operand is second.operand(0) for operand in overwritten)

    def _remember_edge(self, first: Instruction, second: Instruction) -> None:
        """Add an edge, unless one from something that is ordered with ``first`` does as well."""
        edges = self._edges.setdefault(second, [])
        for i, other in enumerate(edges):
            order = self._known(first, other)
            if order is not None:
                if order == _AFTER:
                    edges[i] = first
                return
        edges.append(first)

    def add_control_edges(self) -> bool:
        """Add what was remembered to the graph and to the order; ``False`` if the order is that of a schedule."""
        if not self._edges:
            return True
        order = self._ordering.order
        if not isinstance(order, ChosenDependencyOrder):
            return False
        for second, befores in self._edges.items():
            for first in befores:
                second.add_control_predecessor(first)
                order.add_edge(first, second)
        return True


def _contains(region: _Region, instruction: Instruction) -> bool:
    assert instruction.parent is not None, instruction
    return instruction in region.get(instruction.parent, {})
