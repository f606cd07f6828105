"""Orders that number computations and instructions for the dataflow analysis (memory spec, sections 1.3 and 2.4).

1. *Numbering order*: computations, callees before callers. XLA keeps an incremental topological order in which a module
   read from text stands as it is written; that is the default here. Where the stored order has a callee behind its
   caller, a depth-first order takes its place.
2. *Visiting order* of the call graph: depth first along calls in the order in which a computation stores its instructions. A
   dump prints instructions in another order (as scheduled), but computations in this one.
3. *Instruction order*: post-order, beginning from what nobody uses in stored order. Where instructions stand just as they are
   scheduled, as in a dump, unused parameters are taken to have been stored first, by number, and the root last but for the
   ``-done`` of asynchronous operations, which passes make late.
4. *Execution order*: instructions as they would run one after the other. Instructions of the entry in post-order; in front of
   a ``call``, ``async-start`` or ``conditional`` what it calls, in front of a ``while`` its condition, then its body.
   Instructions of embedded computations stand in front of all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from layoutsim.analysis.call_graph import CallGraph
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import ASYNC_DONES, Opcode
from layoutsim.ir.traverse import computations_post_order, post_order

_CALLS_IN_ORDER = frozenset({Opcode.CALL, Opcode.ASYNC_START, Opcode.CONDITIONAL})


Numbering = Mapping[Computation, Sequence[Instruction]]
"""Computations in the order that numbers values, each with its instructions in that order."""


def numbering_from_text(module: Module) -> Numbering:
    """Orders (1) and (3), which are all that the text of a module tells."""
    return {computation: instruction_order(computation) for computation in numbering_order(module)}


def numbering_order(module: Module) -> list[Computation]:
    """Order (1)."""
    stored = list(module.computations)
    return stored if _callees_come_first(stored) else computations_post_order(module)


def visiting_order(graph: CallGraph) -> list[Computation]:
    """Order (2), callees first, over what the entry reaches."""
    visited = graph.post_order()
    reached = set(visited)
    stored = [computation for computation in graph.module.computations if computation in reached]
    return stored if _callees_come_first(stored) else visited


def _callees_come_first(order: Sequence[Computation]) -> bool:
    seen: set[Computation] = set()
    for computation in order:
        if any(callee not in seen for i in computation.instructions for callee in i.called_computations):
            return False
        seen.add(computation)
    return True


def instruction_order(computation: Computation) -> list[Instruction]:
    """Order (3)."""
    if not _stands_as_scheduled(computation):
        return post_order(computation)
    seeds = [i for i in computation.instructions if not i.user_count]
    return post_order(computation, sorted(seeds, key=_stored_rank)) if len(seeds) > 1 else post_order(computation)


def _stands_as_scheduled(computation: Computation) -> bool:
    """Whether stored order is only that of the schedule, as it is in what was read from text."""
    schedule = computation.parent.schedule if computation.parent is not None else None
    return schedule is not None and tuple(schedule.sequences.get(computation, ())) == computation.instructions


def _stored_rank(unused: Instruction) -> tuple[int, int]:
    """Where an instruction without users is taken to have been stored, among others of its computation."""
    if unused.is_root:
        return (2, 0)
    if unused.opcode in ASYNC_DONES:
        return (3, 0)
    return (0, unused.parameter_number) if unused.opcode is Opcode.PARAMETER else (1, 0)


def execution_order(
    module: Module, chosen: Collection[Instruction], order_of: Callable[[Computation], Sequence[Instruction]]
) -> list[Instruction]:
    """The ``chosen`` instructions in order (4)."""
    wanted = set(chosen)
    ordered = {i: None for i in _executed(module.entry, order_of, set()) if i in wanted}
    embedded = [i for i in chosen if i not in ordered]
    return [*embedded, *ordered]


def _executed(
    computation: Computation, order_of: Callable[[Computation], Sequence[Instruction]], done: set[Computation]
) -> Iterator[Instruction]:
    if computation in done:
        return
    done.add(computation)
    for instruction in order_of(computation):
        if instruction.opcode in _CALLS_IN_ORDER:
            for callee in instruction.called_computations:
                yield from _executed(callee, order_of, done)
        elif instruction.opcode is Opcode.WHILE:
            yield from _executed(instruction.condition, order_of, done)
            yield from _executed(instruction.body, order_of, done)
        yield instruction
