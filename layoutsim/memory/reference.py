"""The orders behind a report of XLA's: what a dump's text does not say, but its value ids do.

Value ids follow an order of computations that XLA keeps while it compiles, and in each of them the order in which its
instructions are stored (memory spec, section 1.3). Ids break ties of the heap and sort printed values, so a comparison with a
report begins by taking both orders from it: :mod:`~layoutsim.memory.stored_order` has that of instructions. That of
computations:

1. Computations with reported values begin at a known id: their smallest one, less the rank of their first reported value.
2. The others (fusion bodies, mostly) fill the gaps between those, to the last id, each in front of what calls it: as many of
   them as possible in the gap right in front of their caller, the rest in earlier ones. Which of them is where cannot be told,
   and makes no difference to any reported value.
3. Where the gaps cannot be filled exactly, they all stand right in front of what calls them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from layoutsim.analysis.call_graph import CallGraph
from layoutsim.analysis.definitions import defined_indices, parameters_define
from layoutsim.analysis.numbering import Numbering
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ShapeIndex, subshapes
from layoutsim.memory.report_format import AssignmentReport
from layoutsim.memory.stored_order import stored_order


def numbering_of(report: AssignmentReport, module: Module) -> Numbering:
    """Computations and their instructions in the order in which ``report``'s value ids were given out."""
    orders = _instruction_orders(report, module)
    return {computation: orders[computation] for computation in _computations(report, module, orders)}


def _instruction_orders(report: AssignmentReport, module: Module) -> Numbering:
    ids: dict[str, int] = {}
    for value in (reported.value for allocation in report.allocations for reported in allocation.values):
        if not value.is_phi:
            ids[value.name] = min(value.id, ids.get(value.name, value.id))
    return {computation: stored_order(computation, ids) for computation in module.computations}


def _computations(report: AssignmentReport, module: Module, orders: Numbering) -> list[Computation]:
    values = _values_of_computations(module, orders)
    starts = _first_ids(report, values)
    known = sorted(starts, key=lambda c: starts[c])
    sizes = {computation: len(ranks) for computation, ranks in values.items()}
    gaps = _gap_sizes(known, starts, sizes)
    units = _units(module, known, sizes)
    fillings = _fill(gaps, units) or [[unit for unit in units if unit.limit == gap] for gap in range(len(gaps))]
    order: dict[Computation, None] = {}
    for computation, filling in zip(known, fillings, strict=True):
        order |= dict.fromkeys(member for unit in filling for member in unit.members)
        order.setdefault(computation)
    return [*order, *(c for c in module.computations if c not in order)]


# -- what is known -----------------------------------------------------------------------------------------------------


def _values_of_computations(module: Module, orders: Numbering) -> dict[Computation, dict[tuple[str, ShapeIndex], int]]:
    """For each computation the rank of each value that it defines, phis left out."""
    graph = CallGraph(module)
    found: dict[Computation, dict[tuple[str, ShapeIndex], int]] = {}
    for computation in module.computations:
        own_parameters = parameters_define(graph[computation])
        ranks = found[computation] = {}
        for instruction in orders[computation]:
            for index in _defined(instruction, own_parameters):
                ranks[instruction.name, index] = len(ranks)
    return found


def _defined(instruction: Instruction, own_parameters: bool) -> list[ShapeIndex]:
    if instruction.opcode is Opcode.PARAMETER:
        return [index for index, _ in subshapes(instruction.shape)] if own_parameters else []
    return [index for _, index in defined_indices(instruction)]


def _first_ids(
    report: AssignmentReport, values: Mapping[Computation, Mapping[tuple[str, ShapeIndex], int]]
) -> dict[Computation, int]:
    """Rule (1)."""
    home = {value: (computation, rank) for computation, ranks in values.items() for value, rank in ranks.items()}
    first: dict[Computation, tuple[int, int]] = {}
    for allocation in report.allocations:
        for reported in allocation.values:
            place = home.get((reported.value.name, reported.value.index or ()))
            if place is not None and not reported.value.is_phi:
                computation, rank = place
                known = first.get(computation, (reported.value.id, rank))
                first[computation] = (min(reported.value.id, known[0]), min(rank, known[1]))
    return {computation: first_id - rank for computation, (first_id, rank) in first.items()}


def _gap_sizes(known: Sequence[Computation], starts: Mapping[Computation, int], sizes: Mapping[Computation, int]) -> list[int]:
    """Ids that are missing in front of each known computation."""
    ends = [0, *(starts[computation] + sizes[computation] for computation in known)]
    return [starts[computation] - end for computation, end in zip(known, ends, strict=False)]


# -- what fills the gaps -----------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Unit:
    """A computation of unknown place with the unknown ones that only it calls, callees first.

    Attributes:
        size: number of values.
        limit: the last gap it may be in.
    """

    members: tuple[Computation, ...]
    size: int
    limit: int


def _units(module: Module, known: Sequence[Computation], sizes: Mapping[Computation, int]) -> list[_Unit]:
    """Everything that is not known but reached from what is, in stored order."""
    gap_of = {computation: gap for gap, computation in enumerate(known)}
    members: dict[Computation, dict[Computation, None]] = {}
    limits: dict[Computation, int] = {}
    for caller in known:
        for callee in _unknown_callees(caller, gap_of):
            limits[callee] = min(gap_of[caller], limits.get(callee, len(known)))
            members.setdefault(callee, _with_callees(callee, gap_of))
    seen: set[Computation] = set()
    units: list[_Unit] = []
    for computation in (c for c in module.computations if c in limits):
        own = tuple(member for member in members[computation] if member not in seen)
        seen.update(own)
        units.append(_Unit(own, sum(sizes[member] for member in own), limits[computation]))
    return units


def _unknown_callees(caller: Computation, known: Mapping[Computation, int]) -> list[Computation]:
    called = dict.fromkeys(callee for i in caller.instructions for callee in i.called_computations)
    return [callee for callee in called if callee not in known]


def _with_callees(computation: Computation, known: Mapping[Computation, int]) -> dict[Computation, None]:
    found: dict[Computation, None] = {}
    for callee in _unknown_callees(computation, known):
        found |= _with_callees(callee, known)
    found.setdefault(computation)
    return found


def _fill(gaps: Sequence[int], units: Sequence[_Unit]) -> list[list[_Unit]] | None:
    """Rule (2), from the last gap to the first; ``None`` if it does not work out."""
    by_limit: dict[int, list[_Unit]] = {}
    for unit in units:
        by_limit.setdefault(unit.limit, []).append(unit)
    fillings: list[list[_Unit]] = []
    waiting: list[_Unit] = []
    for gap in range(len(gaps) - 1, -1, -1):
        waiting = by_limit.get(gap, []) + waiting
        chosen = _subset(waiting, gaps[gap])
        if chosen is None:
            return None
        fillings.append([unit for unit in units if unit in chosen] if chosen else [])
        waiting = [unit for unit in waiting if unit not in chosen]
    return None if waiting else fillings[::-1]


def _subset(units: Sequence[_Unit], total: int) -> frozenset[_Unit] | None:
    """Units, early ones rather than late ones, with ``total`` values; ``None`` if there is no such choice.

    Bit ``n`` of ``reachable[k]`` says that some of the units from ``k`` on have ``n`` values.
    """
    if total < 0:
        return None
    if sum(unit.size for unit in units) == total:
        return frozenset(units)
    mask = (1 << (total + 1)) - 1
    reachable = [1]
    for unit in reversed(units):
        reachable.append((reachable[-1] | reachable[-1] << unit.size) & mask)
    reachable.reverse()
    if not reachable[0] >> total & 1:
        return None
    chosen: list[_Unit] = []
    for unit, rest in zip(units, reachable[1:], strict=True):
        if unit.size <= total and rest >> (total - unit.size) & 1:
            chosen.append(unit)
            total -= unit.size
    return frozenset(chosen)
