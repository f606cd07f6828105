"""The order of computations behind a report of XLA's: what a dump's text does not say, but its value ids do.

Value ids follow an order of computations that XLA keeps while it compiles (memory spec, section 1.3). Ids break ties of the
heap and sort printed values, so a comparison with a report begins by taking the order from it:

1. computations with reported values stand in the order of their ids;
2. the others (fusion bodies, mostly) stand in front of the first of those that calls them.
"""

from __future__ import annotations

from layoutsim.ir.computation import Computation
from layoutsim.ir.module import Module
from layoutsim.memory.report_format import AssignmentReport


def numbering_of(report: AssignmentReport, module: Module) -> list[Computation]:
    """Computations in the order in which ``report``'s value ids were given out."""
    first_ids = _first_ids(report, module)
    order: dict[Computation, None] = {}
    for computation in sorted(first_ids, key=lambda c: first_ids[c]):
        _add_callees(computation, first_ids, order)
        order.setdefault(computation)
    for computation in module.computations:
        if computation not in order:
            _add_callees(computation, first_ids, order)
            order.setdefault(computation)
    return list(order)


def _first_ids(report: AssignmentReport, module: Module) -> dict[Computation, int]:
    """Smallest reported id of each computation; phis, which are numbered last, do not count."""
    home = {i.name: computation for computation in module.computations for i in computation.instructions}
    found: dict[Computation, int] = {}
    for allocation in report.allocations:
        for reported in allocation.values:
            computation = home.get(reported.value.name)
            if computation is not None and not reported.value.is_phi:
                found[computation] = min(reported.value.id, found.get(computation, reported.value.id))
    return found


def _add_callees(computation: Computation, known: dict[Computation, int], order: dict[Computation, None]) -> None:
    """Rule (2)."""
    for instruction in computation.instructions:
        for callee in instruction.called_computations:
            if callee not in known and callee not in order:
                _add_callees(callee, known, order)
                order.setdefault(callee)
