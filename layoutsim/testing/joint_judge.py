"""The judge of joint layout assignment: is its answer one that XLA's own pass might have given?

1. Every mandatory rule holds on the laid out module (:mod:`layout_judge`), and it is valid. What is wrong with XLA's answer
   too is not held against it: where two demands meet at one array, XLA keeps one of them.
2. It moves no more bytes than XLA's answer, by the objective asked for.
3. The rest of the preset's passes run on it (copy insertion, schedule), and buffers are assigned.
4. On seeded inputs that module, run by the heap machine inside its own placement, gives what the interpreter gives for the
   module before, and reads nothing that was overwritten.
"""

from __future__ import annotations

from attrs import evolve, frozen

from layoutsim.errors import UnsupportedError
from layoutsim.experiments.joint import JointResult
from layoutsim.experiments.simulate import backend_of, profile_of
from layoutsim.interp import Elided
from layoutsim.interp.heap_machine import run_in_memory
from layoutsim.interp.places import Places
from layoutsim.ir import Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.ir.module import Module
from layoutsim.memory.assignment import assign_buffers
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.presets import resolve_preset
from layoutsim.testing.execution import first_difference, inputs_for, run, why_not_comparable
from layoutsim.testing.layout_judge import layout_faults
from layoutsim.testing.trial import findings_of
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT


@frozen
class Verdict:
    """What the judge found.

    Attributes:
        faults: everything wrong; empty if the answer stands.
        not_executed: why values were not compared (4), or an empty string.
    """

    faults: tuple[str, ...]
    not_executed: str = ""

    def to_json(self) -> dict[str, object]:
        return {"faults": list(self.faults), "not_executed": self.not_executed}

    def __str__(self) -> str:
        if self.faults:
            return "refused: " + "; ".join(self.faults)
        if self.not_executed:
            return f"every layout rule holds; not executed: {self.not_executed}"
        return "every layout rule holds, and inside its placement it computes the same"


def judge_joint(before: Module, result: JointResult, seed: int = 0) -> Verdict:
    """Judge ``result``, the joint answer for ``before``; neither is changed.

    Raises:
        EvaluationError: ``before`` cannot be executed.
    """
    faults = (*_rules(before, result), *_costs(result))
    if faults:
        return Verdict(faults)
    if reason := why_not_comparable(before):
        return Verdict((), reason)
    try:
        return Verdict(_values(before, result, seed))
    except UnsupportedError as error:
        return Verdict((), str(error))


def _rules(before: Module, result: JointResult) -> tuple[str, ...]:  # (1)
    pipeline, prepared = resolve_preset(result.preset), clone_module(before)
    front, layouts, _ = pipeline.parted_at(LayoutAssignment)
    front.run(prepared)
    xla = clone_module(prepared)
    layouts.run(xla)
    tuples = frozenset({Opcode.TUPLE})  # a converted tuple is made anew, of converted elements

    def faults(module: Module) -> list[str]:
        found = layout_faults(prepared, module, str(backend_of(pipeline)), allow_bitcasts=True, may_go=tuples)
        return [*found, *map(str, findings_of(module, AFTER_LAYOUT_ASSIGNMENT))]

    found = faults(result.module)
    theirs = frozenset(faults(xla)) if found else frozenset[str]()
    return tuple(fault for fault in found if fault not in theirs)


def _costs(result: JointResult) -> tuple[str, ...]:  # (2)
    xla, joint = result.costs
    return (f"{joint} bytes {result.objective}, XLA {xla}",) if joint > xla else ()


def _values(before: Module, result: JointResult, seed: int) -> tuple[str, ...]:  # (3) and (4)
    pipeline, after = resolve_preset(result.preset), clone_module(result.module)
    pipeline.parted_at(LayoutAssignment)[2].run(after)
    inputs = inputs_for(before, seed)
    inputs = evolve(inputs, options=evolve(inputs.options, elided_constants=Elided.SEEDED))
    expected = run(before, inputs)
    places = Places.of_assignment(assign_buffers(after, profile_of(pipeline)))
    ran = run_in_memory(places, inputs.arguments, options=inputs.options, watched=[0])
    found = first_difference(ran.results, expected, before.entry.root.shape)
    differs = (f"on device {found[0]} the result differs: {found[1]}",) if found else ()
    return (*(str(finding) for finding in ran.findings), *differs)
