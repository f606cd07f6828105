"""Check a pass of yours on random modules: :func:`check_pass`; check a heap algorithm: :func:`check_heap`.

    check_pass(MyPass(), examples=200)

1. Modules come from seeds ``seed``, ``seed + 1``, ...; every second one runs on several simulated devices.
2. On each module every claim of :mod:`layoutsim.testing.trial` is checked. A pass may refuse a module with a
   :class:`~layoutsim.errors.LayoutsimError`; any other exception is a failure, and so is refusing all of them.
3. A few modules are run once more in another process under another ``PYTHONHASHSEED``; the texts must be equal.
4. The first failure is made small, and raised as :class:`CheckFailedError`. Its text is the report.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import evolve, field, frozen

from layoutsim.errors import InputError, LayoutsimError
from layoutsim.ir import Module
from layoutsim.ir.clone import clone_module
from layoutsim.memory.heaps import HeapAlgorithm
from layoutsim.memory.problem import Problem
from layoutsim.memory.problem_csv import print_problem_csv
from layoutsim.passes import Pass, Pipeline, parse_pipeline
from layoutsim.passes.presets import preset_names, resolve_preset
from layoutsim.testing.modules import random_module
from layoutsim.testing.other_process import difference_in_other_process
from layoutsim.testing.problems import random_problem
from layoutsim.testing.reduce import reduce_module
from layoutsim.testing.scope import Limits
from layoutsim.testing.trial import CLAIMS, NotApplicableError, SkippedError, Trial, placement_faults, run_trial
from layoutsim.verify import verify

RUNS = "runs"
ACROSS_PROCESSES = "same in another process"
ALL_CLAIMS = (RUNS, *CLAIMS, ACROSS_PROCESSES)
"""Names of everything that :func:`check_pass` checks."""

_DEVICES = Limits(devices=4, executable=True)
_SENT_TO_OTHER_PROCESS = 10
_REDUCTIONS = 1500


@frozen
class Failure:
    """A claim that does not hold.

    Attributes:
        claim: one of :data:`ALL_CLAIMS`.
        message: what was found.
        seed: of the module it was found on; ``None`` if that was not a random one.
        found_instructions: how many it had.
        before: text of the smallest module found, as the pass gets it (or the problem, as CSV).
        after: its text afterwards; empty if the pass did not come to an end.
        also: other claims that do not hold on the same module.
    """

    claim: str
    message: str
    seed: int | None
    found_instructions: int
    before: str
    after: str = ""
    also: tuple[str, ...] = ()


@frozen
class CheckReport:
    """What a check did.

    Attributes:
        subject: text of the pass or pipeline.
        examples: modules that were tried.
        refused: modules that the pass refused, by message.
        skipped: claims that could not be decided, by claim and reason.
        failure: the first one.
    """

    subject: str
    examples: int
    refused: Counter[str] = field(factory=Counter[str])
    skipped: Counter[str] = field(factory=Counter[str])
    failure: Failure | None = None

    def __str__(self) -> str:
        return "\n".join(_report_lines(self))


class CheckFailedError(LayoutsimError, AssertionError):
    """A checked pass or heap algorithm breaks a claim; the text is the whole report."""

    def __init__(self, report: CheckReport) -> None:
        self.report = report
        super().__init__(str(report))


def check_pass(
    subject: Pass | Pipeline | str,
    *,
    examples: int = 100,
    seed: int = 0,
    after: Pipeline | str = "",
    modules: Iterable[Module] | None = None,
    limits: Limits = _DEVICES,
    backend: str | None = None,
    claims: Sequence[str] = ALL_CLAIMS,
) -> CheckReport:
    """Check that a pass or pipeline keeps modules valid, keeps what they compute, and is honest.

    Args:
        subject: a pass, a pipeline, or the text of one (a preset's name too).
        examples: how many random modules.
        seed: of the first one; the same seed gives the same modules on every machine.
        after: passes that run first, because ``subject`` needs what they do; they are not checked.
        modules: to check on instead of random ones.
        limits: of random modules; those with an even seed are for one device.
        backend: whose demands layouts must meet, ``gpu``, ``cpu`` or ``generic``; by default that of the layout assignment.
        claims: names of what to check, all of :data:`ALL_CLAIMS` by default.

    Raises:
        CheckFailedError: something does not hold.
        InputError: a claim is unknown.
    """
    check = _Check(_passes(subject), _passes(after), backend, tuple(claims))
    given = _random_modules(examples, seed, limits) if modules is None else ((None, module) for module in modules)
    report = check.run(given)
    if report.failure is not None:
        raise CheckFailedError(report)
    return report


def _passes(subject: Pass | Pipeline | str) -> tuple[Pass, ...]:
    if isinstance(subject, Pass):
        return (subject,)
    if isinstance(subject, Pipeline):
        return subject.passes
    names_a_preset = subject.partition("{")[0].strip() in preset_names()
    return (resolve_preset(subject) if names_a_preset else parse_pipeline(subject)).passes


def _random_modules(examples: int, seed: int, limits: Limits) -> Iterator[tuple[int, Module]]:
    for number in range(seed, seed + examples):
        yield number, random_module(number, limits if number % 2 else evolve(limits, devices=1))


@frozen
class _Check:
    """What is checked."""

    passes: tuple[Pass, ...]
    first: tuple[Pass, ...]
    backend: str | None
    claims: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        for claim in self.claims:
            if claim not in ALL_CLAIMS:
                raise InputError(f"unknown claim {claim!r}; known: {', '.join(ALL_CLAIMS)}")

    def run(self, modules: Iterable[tuple[int | None, Module]]) -> CheckReport:
        subject = ",".join(p.to_text() for p in self.passes)
        report = CheckReport(subject, 0)
        sent: list[str] = []
        for seed, module in modules:
            prepared = self._prepared(module)
            if prepared is None:
                report.skipped["every claim: the module cannot be prepared"] += 1
                continue
            report = evolve(report, examples=report.examples + 1)
            found = self._first_fault(prepared, seed or 0, report)
            if found is not None:
                return evolve(report, failure=self._reduced(module, seed, *found))
            if len(sent) < _SENT_TO_OTHER_PROCESS:
                sent.append(prepared.to_text())
        return evolve(report, failure=self._refusal(report) or self._other_process(sent, report))

    def _prepared(self, module: Module) -> Module | None:
        """The module as the pass gets it; ``None`` if it is not valid or the passes before refuse it."""
        if verify(module):
            return None
        work = clone_module(module)
        try:
            for current in self.first:
                current.run(work)
        except LayoutsimError:
            return None
        return work

    # -- one module ----------------------------------------------------------------------------------------------------

    def _first_fault(self, module: Module, seed: int, report: CheckReport | None) -> tuple[str, str] | None:
        """The first claim that does not hold, and what was found."""
        try:
            trial = run_trial(self.passes, module, backend=self.backend, seed=seed)
        except LayoutsimError as error:
            if report is not None:
                report.refused[f"{type(error).__name__}: {error}".split("\n")[0]] += 1
            return None
        except Exception as error:  # a pass under test may raise anything; that is a finding, not an accident
            return (RUNS, _crash(error)) if RUNS in self.claims else None
        faults = (_fault(claim, trial, report) for claim in self.claims if claim in CLAIMS)
        return next((fault for fault in faults if fault is not None), None)

    def _refusal(self, report: CheckReport) -> Failure | None:
        if RUNS not in self.claims or not report.examples or report.refused.total() < report.examples:
            return None
        message = f"every module is refused, most with: {report.refused.most_common(1)[0][0]}"
        return Failure(RUNS, message, None, 0, "")

    def _other_process(self, texts: list[str], report: CheckReport) -> Failure | None:
        if ACROSS_PROCESSES not in self.claims or not texts:
            return None
        try:
            found = difference_in_other_process(self.passes, texts)
        except SkippedError as reason:
            report.skipped[f"{ACROSS_PROCESSES}: {reason}"] += 1
            return None
        return None if found is None else Failure(ACROSS_PROCESSES, found.message, None, 0, found.before, found.after)

    # -- making it small -----------------------------------------------------------------------------------------------

    def _reduced(self, module: Module, seed: int | None, claim: str, message: str) -> Failure:
        only = evolve(self, claims=(claim,))
        numbers = seed or 0

        def fails(candidate: Module) -> bool:
            prepared = only._prepared(candidate)
            return prepared is not None and only._first_fault(prepared, numbers, None) is not None

        plain = _without_metadata(module)
        small = only._prepared(reduce_module(plain if fails(plain) else module, fails, max_tries=_REDUCTIONS))
        assert small is not None, "the reduced module fails, so it can be prepared"
        found = only._first_fault(small, numbers, None)
        after, also = self._outcome(small, numbers, claim)
        return Failure(claim, found[1] if found else message, seed, module.instruction_count, small.to_text(), after, also)

    def _outcome(self, module: Module, seed: int, claim: str) -> tuple[str, tuple[str, ...]]:
        """The module afterwards, and the other claims it breaks."""
        if claim == RUNS:
            return "", ()
        trial = run_trial(self.passes, module, backend=self.backend, seed=seed)
        others = [name for name in self.claims if name in CLAIMS and name != claim]
        return trial.final.to_text(), tuple(name for name in others if _fault(name, trial, None) is not None)


def _without_metadata(module: Module) -> Module:
    """The module without source lines, which only make the report long."""
    plain = clone_module(module)
    plain.config = evolve(plain.config, stack_frames="", frontend_attributes="")
    for computation in plain.computations:
        for instruction in computation.instructions:
            instruction.attributes = evolve(instruction.attributes, metadata_text="")
    return plain


def _fault(claim: str, trial: Trial, report: CheckReport | None) -> tuple[str, str] | None:
    try:
        found = next(CLAIMS[claim](trial), None)
    except SkippedError as reason:
        if report is not None and not isinstance(reason, NotApplicableError):
            report.skipped[f"{claim}: {reason}"] += 1
        return None
    return None if found is None else (claim, found)


def _crash(error: Exception) -> str:
    """The exception and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (raised by {frame.name}, line {frame.lineno}: {frame.line})"


# -- heap algorithms -------------------------------------------------------------------------------------------------------


def check_heap(algorithm: HeapAlgorithm, *, examples: int = 200, seed: int = 0) -> CheckReport:
    """Check that every placement of a heap algorithm is valid, at least the lower bound, and the same again.

    Raises:
        CheckFailedError: one is not; the report shows a small problem as CSV.
    """
    report = CheckReport(algorithm.name, examples)
    for number in range(seed, seed + examples):
        problem = random_problem(number)
        if _heap_fault(algorithm, problem):
            small = _fewer_intervals(problem, lambda candidate: bool(_heap_fault(algorithm, candidate)))
            text = print_problem_csv(small)
            fault = _heap_fault(algorithm, small)
            raise CheckFailedError(evolve(report, failure=Failure("placements", fault, number, len(problem.intervals), text)))
    return report


def _heap_fault(algorithm: HeapAlgorithm, problem: Problem) -> str:
    try:
        placement = algorithm.pack(problem)
        again = algorithm.pack(problem)
    except Exception as error:  # an algorithm under test may raise anything
        return _crash(error)
    faults = placement_faults(problem, placement, algorithm.name)
    if not faults and again != placement:
        faults = [f"{algorithm.name} places the same problem in another way each time"]
    return faults[0] if faults else ""


def _fewer_intervals(problem: Problem, fails: Callable[[Problem], bool]) -> Problem:
    """Leave out groups of intervals as long as the rest still fails."""
    while (smaller := next(filter(fails, _without_a_group(problem)), None)) is not None:
        problem = smaller
    return problem


def _without_a_group(problem: Problem) -> Iterator[Problem]:
    for group in problem.groups:
        rest = tuple(interval for interval in problem.intervals if interval not in group.members)
        if rest:
            yield Problem(rest, problem.alignment)


# -- the report ------------------------------------------------------------------------------------------------------------


def _report_lines(report: CheckReport) -> Iterator[str]:
    failure = report.failure
    if failure is None:
        yield f"{report.subject}: every claim holds on {report.examples} examples"
        yield from _counted("refused", report.refused)
        yield from _counted("not decided", report.skipped)
        return
    yield f'{report.subject}: "{failure.claim}" does not hold'
    yield f"  {failure.message}"
    if failure.also:
        yield f"  on the same module these do not hold either: {', '.join(failure.also)}"
    if failure.before:
        origin = "" if failure.seed is None else f" (seed {failure.seed}, made small from {failure.found_instructions})"
        yield f"\nbefore{origin}:\n\n{_indented(failure.before)}"
    if failure.after and failure.after != failure.before:
        yield f"\nafter:\n\n{_indented(failure.after)}"
    if failure.seed is not None:
        yield f"\nto see it again: seed={failure.seed}, examples=1"


def _counted(what: str, counts: Counter[str]) -> Iterator[str]:
    for reason, count in counts.most_common():
        yield f"  {what} {count} times: {reason}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.rstrip("\n").split("\n"))


__all__ = ["ALL_CLAIMS", "CheckFailedError", "CheckReport", "Failure", "check_heap", "check_pass"]
