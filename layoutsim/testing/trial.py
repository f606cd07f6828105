"""One run of a pass or pipeline on one module, and what must be true of it.

A *claim* is a function that takes a :class:`Trial` and yields what is wrong. :data:`CLAIMS` lists all:

* ``valid``: the verifier has no findings after any pass. After a layout assignment it is strict about layouts,
  but not inside fusions, where the pass leaves arrays without; it is not asked where one computation is two branches of a
  conditional (nor are layouts), which XLA's layout assignment cannot handle either.
* ``honest``: a pass that says it changed nothing left the module's text as it was.
* ``repeatable``: the same module gives the same text and the same ``changed`` again.
* ``prints``: the result is read back from its text, as an equal module that prints the same.
* ``same results``: the interpreter computes the same before and after, on every simulated device (of valid modules).
* ``layouts``: what :mod:`~layoutsim.testing.layout_judge` demands, after a layout assignment.
* ``schedule``: sequences hold each instruction once, operands and control predecessors first.
* ``memory``: in a scheduled module, every heap that buffer assignment packs is judged valid and at least the lower bound, and
  the module computes the same inside the memory it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from attrs import evolve, field, frozen

from layoutsim.analysis.call_graph import CallGraph
from layoutsim.errors import Diagnostic, LayoutsimError, ParseError, UnsupportedError
from layoutsim.interp.heap_machine import run_in_memory
from layoutsim.interp.places import Places
from layoutsim.interp.values import EvaluationError, Value, fits
from layoutsim.ir import Module, Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.check import check_placement
from layoutsim.memory.heaps import HeapAlgorithm, live_peak
from layoutsim.memory.problem import Placement, Problem
from layoutsim.memory.profile import CPU, GPU, MemoryProfile
from layoutsim.passes import Pass, PassResult
from layoutsim.passes.layout_assignment import CopyComparison, LayoutAssignmentResult
from layoutsim.testing.execution import Inputs, first_difference, inputs_for, run, why_not_comparable
from layoutsim.testing.layout_judge import layout_faults
from layoutsim.text import ParseOptions, parse_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, VerifyOptions, verify


class SkippedError(Exception):
    """A claim cannot be decided on this module; the text says why."""


class NotApplicableError(SkippedError):
    """The claim says nothing about such modules."""


@frozen(eq=False)
class Step:
    """One pass of a trial, with the module's text and a copy of the module as it left them."""

    ran: Pass
    result: PassResult
    text_before: str
    text: str
    module: Module


@frozen(eq=False, slots=False)
class Trial:
    """A module, and what each pass made of it.

    Attributes:
        original: as it was given; never changed.
        steps: by pass.
        backend: whose demands on layouts hold: ``gpu``, ``cpu`` or ``generic``.
        seed: of the inputs it is run on.
    """

    passes: tuple[Pass, ...]
    original: Module
    steps: tuple[Step, ...]
    backend: str
    seed: int

    @property
    def final(self) -> Module:
        return self.steps[-1].module if self.steps else self.original

    @cached_property
    def layout_step(self) -> int | None:
        """Which pass assigned layouts last."""
        assigned = [i for i, step in enumerate(self.steps) if isinstance(step.result, LayoutAssignmentResult)]
        return assigned[-1] if assigned else None

    def module_before(self, number: int) -> Module:
        """The module that pass ``number`` was given."""
        return self.steps[number - 1].module if number else self.original


def run_trial(passes: tuple[Pass, ...], module: Module, *, backend: str | None = None, seed: int = 0) -> Trial:
    """Run passes on a copy of ``module``.

    Raises:
        LayoutsimError: a pass refuses the module.
    """
    work = clone_module(module)
    steps: list[Step] = []
    before = work.to_text()
    for current in passes:
        result = current.run(work)
        after = work.to_text()
        steps.append(Step(current, result, before, after, clone_module(work)))
        before = after
    return Trial(passes, module, tuple(steps), backend or _backend_of(passes), seed)


def _backend_of(passes: tuple[Pass, ...]) -> str:
    """The backend that a layout assignment among the passes states."""
    found = [str(backend) for p in passes if (backend := getattr(p, "backend", None)) is not None]
    return found[0] if found else "generic"


Claim = Callable[[Trial], Iterator[str]]


# -- claims on the module itself -------------------------------------------------------------------------------------------


def _needs_flat_branches(trial: Trial) -> None:
    """Nobody answers for a layout assignment where one ``conditional`` runs a computation for two of its branches.

    XLA's wraps the shared branch once for each, and leaves it invalid (ours does the same); its pipelines flatten the call
    graph before.
    """
    if trial.layout_step is None:
        return
    for computation in trial.module_before(trial.layout_step).computations:
        for instruction in computation.instructions:
            called = instruction.called_computations
            if instruction.opcode is Opcode.CONDITIONAL and len(dict.fromkeys(called)) < len(called):
                raise SkippedError("one computation is two branches of a conditional; run flatten-call-graph before layouts")


def _valid(trial: Trial) -> Iterator[str]:
    _needs_flat_branches(trial)
    for number, step in enumerate(trial.steps):
        laid_out = trial.layout_step is not None and number >= trial.layout_step
        for finding in findings_of(step.module, AFTER_LAYOUT_ASSIGNMENT if laid_out else VerifyOptions()):
            yield f"after {step.ran.name}: {finding}"


def findings_of(module: Module, options: VerifyOptions) -> list[Diagnostic]:
    """What the verifier finds, but for layouts inside fusions, where layout assignment leaves arrays without."""
    inside = tuple(f"{body.name}/" for body in fusion_bodies(module))
    found = verify(module, options)
    return [finding for finding in found if not (finding.invariant.startswith("L") and finding.where.startswith(inside))]


def _honest(trial: Trial) -> Iterator[str]:
    for step in trial.steps:
        if step.text != step.text_before and not step.result.changed:
            yield f"{step.ran.name} says that it changed nothing, but {_first_changed_line(step.text_before, step.text)}"


def _first_changed_line(before: str, after: str) -> str:
    pairs = zip(before.split("\n"), after.split("\n"), strict=False)
    old, new = next(((b, a) for b, a in pairs if b != a), ("the last line", "more lines"))
    return f"{old.strip()!r} became {new.strip()!r}"


def _repeatable(trial: Trial) -> Iterator[str]:
    again = run_trial(trial.passes, trial.original, backend=trial.backend)
    for first, second in zip(trial.steps, again.steps, strict=True):
        if first.text != second.text:
            yield f"{first.ran.name} gives another module each time: {_first_changed_line(first.text, second.text)}"
            return
        if first.result.changed != second.result.changed:
            yield f"{first.ran.name} says changed={first.result.changed} and changed={second.result.changed} of one module"


_AS_PRINTED = ParseOptions(keep_module_auto_layouts=True, fill_missing_layouts=False)


def _prints(trial: Trial) -> Iterator[str]:
    text = trial.final.to_text()
    try:
        again = parse_module(text, options=_AS_PRINTED)
    except ParseError as error:
        yield f"the result's text is not read: {error}"
        return
    if (printed := again.to_text()) != text:
        yield f"the result is read back as another module: {_first_changed_line(text, printed)}"


def _schedule(trial: Trial) -> Iterator[str]:
    schedule = trial.final.schedule
    if schedule is None:
        raise NotApplicableError("no schedule")
    bodies = fusion_bodies(trial.final)
    for computation in trial.final.computations:
        if computation in bodies or computation not in schedule:
            continue
        order = schedule.sequence(computation)
        place = {instruction: i for i, instruction in enumerate(order)}
        if len(place) != len(order) or place.keys() != set(computation.instructions):
            yield f"the sequence of {computation.name} does not hold every instruction once"
            return
        for instruction in order:
            for first in (*instruction.operands, *instruction.control_predecessors):
                if place[first] > place[instruction]:
                    yield f"{computation.name}: {instruction.name} runs before {first.name}, which it needs"


# -- results ---------------------------------------------------------------------------------------------------------------


def _reference(trial: Trial) -> tuple[Inputs, tuple[Value, ...]]:
    """The inputs, and what the original module computes."""
    if reason := why_not_comparable(trial.original):
        raise SkippedError(reason)
    try:
        inputs = inputs_for(trial.original, trial.seed)
        return inputs, run(trial.original, inputs)
    except (EvaluationError, UnsupportedError) as error:
        raise SkippedError(f"the interpreter refuses: {error}") from error


def _same_results(trial: Trial) -> Iterator[str]:
    inputs, expected = _reference(trial)
    fault = _result_fault(trial.final, inputs, expected)
    if not fault:
        return
    for step in trial.steps:  # whose fault is it?
        if earlier := _result_fault(step.module, inputs, expected):
            yield f"after {step.ran.name}: {earlier}"
            return


def _result_fault(module: Module, inputs: Inputs, expected: tuple[Value, ...]) -> str:
    if reason := why_not_comparable(module):
        raise SkippedError(reason)
    if findings := verify(module):
        raise SkippedError(f"the module is not valid any more: {findings[0].invariant}")
    shape = module.entry.root.shape
    if not all(fits(value, shape) for value in expected):
        return f"the result has another shape than before, {shape}"
    try:
        actual = run(module, inputs)
    except LayoutsimError as error:
        return f"the module cannot be run any more: {error}"
    found = first_difference(actual, expected, shape)
    if found is None:
        return ""
    device, difference = found
    return f"the result{f' on device {device}' if len(expected) > 1 else ''} differs: {difference}"


# -- layouts ---------------------------------------------------------------------------------------------------------------


def _layouts(trial: Trial) -> Iterator[str]:
    number = trial.layout_step
    if number is None:
        raise NotApplicableError("no layout assignment")
    _needs_flat_branches(trial)
    step = trial.steps[number]
    free = () if getattr(step.ran, "constrain_ragged_dot", True) else (Opcode.RAGGED_DOT,)  # XLA before 0.7
    bitcasts = getattr(step.ran, "copies", CopyComparison.EXACT) is CopyComparison.MODULO_DEGENERATE
    yield from layout_faults(
        trial.module_before(number), step.module, trial.backend, exempt=frozenset(free), allow_bitcasts=bitcasts
    )
    assert isinstance(step.result, LayoutAssignmentResult)
    yield from _copies_are_reported(trial.module_before(number), step.module, step.result)


def _copies_are_reported(before: Module, after: Module, result: LayoutAssignmentResult) -> Iterator[str]:
    known = {(c.name, i.name) for c in before.computations for i in c.instructions}
    old = {c.name for c in before.computations}
    new = {
        i.name
        for c in after.computations
        for i in c.instructions
        if c.name in old and (c.name, i.name) not in known and i.opcode.value == "copy"
    }
    reported = {copy.copy.name for copy in result.copies}
    for name in sorted(new - reported):
        yield f"copy {name} is new, but not among the reported copies"
    for copy in result.copies:
        if copy.copy.parent is not None and not copy.demanded.chain():
            yield f"copy {copy.copy.name} has no reason"


# -- memory ----------------------------------------------------------------------------------------------------------------


@frozen
class JudgedHeap:
    """A heap algorithm whose every placement is judged; what is wrong is collected in ``faults``."""

    inner: HeapAlgorithm
    faults: list[str] = field(factory=list[str], eq=False)

    @property
    def name(self) -> str:
        return self.inner.name

    def pack(self, problem: Problem) -> Placement:
        placement = self.inner.pack(problem)
        self.faults.extend(placement_faults(problem, placement, self.name))
        return placement


def placement_faults(problem: Problem, placement: Placement, name: str) -> list[str]:
    """What is wrong with a placement: what the judge says, and a size below the lower bound."""
    faults = [f"{name}: {finding}" for finding in check_placement(problem, placement)]
    bound = live_peak(problem)
    if not faults and len(placement.heaps) == 1 and placement.size < bound:
        faults.append(f"{name}: {placement.size} bytes, but {bound} are alive at once")
    return faults


def _memory(trial: Trial) -> Iterator[str]:
    module = trial.final
    if module.schedule is None:
        raise NotApplicableError("no schedule")
    if not CallGraph(module).is_flattened:
        raise SkippedError("the call graph is not flat")
    profile = _profile(trial)
    heap = JudgedHeap(profile.heap)
    try:
        assignment = assign_buffers(module, evolve(profile, heap=heap))
    except LayoutsimError as error:
        yield f"buffers cannot be assigned: {error}"
        return
    yield from heap.faults
    yield from _run_in_memory(trial, assignment)


def _run_in_memory(trial: Trial, assignment: BufferAssignment) -> Iterator[str]:
    """The heap machine: what is read must be what was written, and the results must be the original's."""
    inputs, expected = _reference(trial)
    try:
        ran = run_in_memory(Places.of_assignment(assignment), inputs.arguments, options=inputs.options)
    except UnsupportedError as error:
        raise SkippedError(f"the heap machine refuses: {error}") from error
    for finding in ran.findings:
        yield f"in its assigned memory: {finding}"
    if found := first_difference(ran.results, expected, trial.final.entry.root.shape):
        yield f"in its assigned memory the result on device {found[0]} differs: {found[1]}"


def _profile(trial: Trial) -> MemoryProfile:
    return CPU if trial.backend == "cpu" else GPU


CLAIMS: Mapping[str, Claim] = {
    "valid": _valid,
    "honest": _honest,
    "repeatable": _repeatable,
    "prints": _prints,
    "same results": _same_results,
    "layouts": _layouts,
    "schedule": _schedule,
    "memory": _memory,
}
"""Every claim by name, in the order they are checked."""
