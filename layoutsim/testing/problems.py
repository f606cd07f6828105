"""Random packing problems and schedules: inputs for heap algorithms and schedulers, from a seed or drawn by Hypothesis."""

from __future__ import annotations

from layoutsim.ir import Computation, Instruction, Module, Schedule
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.memory.problem import EventRecorder, Problem
from layoutsim.testing.chooser import Chooser, SeededChooser, chance

_SIZES = (1, 2, 3, 4, 8, 16, 100, 255, 256, 257, 1000, 4096, 0)
_ALIGNMENTS = (1, 1, 4, 256)


def random_problem(chooser: Chooser | int, max_intervals: int = 24) -> Problem:
    """A problem of events as a schedule makes them: allocations, sharings and freeings in any order that makes sense.

    Args:
        chooser: or the seed of one.
        max_intervals: at most so many values; a few of them share, and a few take no bytes.
    """
    source = SeededChooser(chooser) if isinstance(chooser, int) else chooser
    recorder = EventRecorder()
    alive: list[int] = []
    needing: list[int] = []
    for number in range(source.integer(1, max_intervals)):
        size = source.pick(_SIZES) * source.pick((1, 1, 3))
        if needing and size and chance(source, 20):
            recorder.share_with(number, source.pick(needing), size, name=f"v{number}")
        else:
            recorder.alloc(number, size, name=f"v{number}")
            needing += [number] if size else []
        alive.append(number)
        while alive and chance(source, 45):
            recorder.free(alive.pop(source.integer(0, len(alive) - 1)))
    return recorder.finish(source.pick(_ALIGNMENTS))


def random_schedule(chooser: Chooser | int, module: Module) -> Schedule:
    """Any order that respects operands and control edges, for every computation but the bodies of fusions."""
    source = SeededChooser(chooser) if isinstance(chooser, int) else chooser
    bodies = fusion_bodies(module)
    return Schedule({c: _random_order(source, c) for c in module.computations if c not in bodies})


def _random_order(chooser: Chooser, computation: Computation) -> list[Instruction]:
    waits = {i: len({*i.operands, *i.control_predecessors}) for i in computation.instructions}
    ready = [i for i, count in waits.items() if not count]
    order: list[Instruction] = []
    while ready:
        chosen = ready.pop(chooser.integer(0, len(ready) - 1))
        order.append(chosen)
        for after in dict.fromkeys((*chosen.users, *chosen.control_successors)):
            waits[after] -= 1
            if not waits[after]:
                ready.append(after)
    assert len(order) == computation.instruction_count, f"{computation.name} has a cycle"
    return order
