"""Every computation gets one caller (``xla/hlo/transforms/simplifiers/flatten_call_graph.h``).

Layouts are assigned per computation, so two callers of one computation would have to agree. Each caller after the first gets a
clone of its own, and of everything below; a first caller that names the computation several times gets clones, too. Async
updates and ends name what their start calls.

``flatten-call-graph``::

      f {
        x = f32[4] parameter(0)
        ROOT n = f32[4] negate(x)
      }
    + f.clone {
    +   x.1 = f32[4] parameter(0)
    +   ROOT n.1 = f32[4] negate(x.1)
    + }
      ENTRY e {
        p = f32[4] parameter(0)
        a = f32[4] call(p), to_apply=f
    -   ROOT b = f32[4] call(a), to_apply=f
    +   ROOT b = f32[4] call(a), to_apply=f.clone
      }
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.analysis.call_graph import async_start_of, called_computations
from layoutsim.ir import Computation, Instruction, Module
from layoutsim.ir.clone import clone_computation
from layoutsim.ir.schedule import Schedule
from layoutsim.ir.traverse import computations_post_order
from layoutsim.passes.base import Pass, PassResult, Remark


@frozen
class FlattenCallGraph(Pass):
    """Clone computations that several instructions call."""

    name: ClassVar[str] = "flatten-call-graph"

    def run(self, module: Module) -> PassResult:
        remarks: list[Remark] = []
        for computation, callers in _callers(module).items():
            for number, caller in enumerate(callers):
                if number == 0 and caller.called_computations.count(computation) <= 1:
                    continue
                clones = _give_clones(module, caller, computation)
                remarks += [Remark(caller.name, f"calls {clone.name}, a clone of {computation.name}") for clone in clones]
        if remarks:
            _repair_async_chains(module)
        return PassResult(bool(remarks), tuple(remarks))


def _callers(module: Module) -> dict[Computation, list[Instruction]]:
    """Who calls each computation, each caller once and in stored order; callees come first."""
    found: dict[Computation, dict[Instruction, None]] = {c: {} for c in computations_post_order(module)}
    for computation in module.computations:
        for instruction in computation.instructions:
            for callee in called_computations(instruction):
                found[callee][instruction] = None
    return {computation: list(callers) for computation, callers in found.items()}


def _give_clones(module: Module, caller: Instruction, computation: Computation) -> list[Computation]:
    """Let ``caller`` call fresh clones of ``computation``, and the clones fresh clones of what they call."""
    made: list[Computation] = []
    called = tuple(_cloned(module, c, caller, made) if c is computation else c for c in caller.called_computations)
    caller.called_computations = called
    pending = list(made)
    while pending:
        for instruction in pending.pop().instructions:
            if called_computations(instruction):
                below: list[Computation] = []
                instruction.called_computations = tuple(
                    _cloned(module, c, instruction, below) for c in instruction.called_computations
                )
                pending += below
    return made


def _cloned(module: Module, computation: Computation, caller: Instruction, made: list[Computation]) -> Computation:
    assert caller.parent is not None, caller
    clone = clone_in_module(module, computation, before=caller.parent)
    made.append(clone)
    return clone


def clone_in_module(module: Module, computation: Computation, *, before: Computation) -> Computation:
    """A clone of ``computation`` in the same module, stored in front of ``before``; what it calls is shared.

    Instructions keep the stems of their names.
    """
    clone, made = clone_computation(computation, module.unique_name(f"{computation.name}.clone"), {})
    for instruction in made.values():
        instruction.name = module.unique_name(instruction.name)
    module.add_computation(clone, before=before)
    if module.schedule is not None and computation in module.schedule.sequences:
        order = [made[i] for i in module.schedule.sequences[computation]]
        module.schedule = Schedule({**module.schedule.sequences, clone: order})
    return clone


def _repair_async_chains(module: Module) -> None:
    """Async updates and ends name the computation that their start calls now."""
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.called_computations and not called_computations(instruction):
                instruction.called_computations = async_start_of(instruction).called_computations
