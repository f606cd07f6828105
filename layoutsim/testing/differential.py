"""Run random modules through the real compiler and through layoutsim, compare, and reduce what differs.

    python -m layoutsim.testing.differential --backend gpu --count 1000 [--first SEED] [--out DIR]

Each seed makes one module (:func:`~layoutsim.testing.modules.random_module`). The real compiler runs layout assignment alone
(:mod:`layoutsim.oracle`); our pass, with the rules of that release, runs on the module that the compiler says it saw; every
layout, copy and root must agree.
Of each module that differs, a reduced one goes to ``DIR`` as ``BACKEND-SEED.hlo`` (before) and ``BACKEND-SEED.after.hlo``
(the compiler's answer), which is how fixtures come to be.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import cast

from attrs import define, evolve, field, frozen

from layoutsim.errors import LayoutsimError
from layoutsim.ir import Module
from layoutsim.oracle import Answer, Backend, Oracle
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.passes.presets import preset
from layoutsim.testing.modules import in_post_order, random_module
from layoutsim.testing.reduce import reduce_module
from layoutsim.testing.scope import Limits
from layoutsim.text import ParseOptions, parse_module

DEVICES = 4
SECONDS_A_MODULE = 10.0
"""XLA's layout assignment does not end on some modules with aliases between automatic and fixed entry layouts."""

_AS_DUMPED = ParseOptions(keep_module_auto_layouts=True)


class Verdict(StrEnum):
    """What a comparison came to."""

    AGREES = "agrees"
    AGREES_AS_PRINTED = "agrees once stored as printed"
    BOTH_REFUSE = "both refuse"
    NOT_ASKED = "compiler refuses the module before layout assignment"
    COMPILER_DOES_NOT_END = "the compiler does not end"
    ONLY_WE_REFUSE = "only we refuse"
    WE_CRASH = "we crash"
    ONLY_COMPILER_REFUSES = "only the compiler refuses"
    DIFFERS = "differs"


@frozen
class Comparison:
    """One module's outcome, with the differences or refusals in words."""

    verdict: Verdict
    details: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        return self.verdict in _FAILURES


_FAILURES = (Verdict.DIFFERS, Verdict.ONLY_WE_REFUSE, Verdict.WE_CRASH, Verdict.ONLY_COMPILER_REFUSES)


def compare_with_compiler(module: Module, oracle: Oracle) -> tuple[Comparison, Answer]:
    """Our layout assignment against the compiler's.

    Results depend on the order in which the compiler stores instructions, which its dumps do not show, and the way into the
    CPU compiler changes it. So a module that differs is asked about once more, now stored as it was printed.
    """
    answer = oracle.ask(module)
    first = compare_with_answer(answer, oracle.backend)
    if first.verdict is not Verdict.DIFFERS or answer.before_layout is None:
        return first, answer
    answer = oracle.ask(answer.before_layout)
    second = compare_with_answer(answer, oracle.backend)
    return (evolve(first, verdict=Verdict.AGREES_AS_PRINTED) if second.verdict is Verdict.AGREES else second), answer


def compare_with_answer(answer: Answer, backend: Backend) -> Comparison:
    """Our layout assignment against an answer of the compiler."""
    if answer.before_layout is None:
        return Comparison(Verdict.NOT_ASKED, (answer.note[:300],))
    layout_pass = _rules_of(answer.release, backend)
    before = parse_module(answer.before_layout, options=_AS_DUMPED)
    if answer.after_layout is None and answer.timed_out:
        return Comparison(Verdict.COMPILER_DOES_NOT_END)
    if answer.after_layout is None:
        return _compare_refusals(before, layout_pass, answer)
    after = parse_module(answer.after_layout, options=_AS_DUMPED)
    try:
        found = check_against(before, after, layout_pass)
    except LayoutsimError as error:
        return Comparison(Verdict.ONLY_WE_REFUSE, (f"{type(error).__name__}: {error}",))
    except Exception as error:  # a slip of ours is a finding like others, and the run goes on
        return Comparison(Verdict.WE_CRASH, (f"{type(error).__name__}: {error}",))
    if not found.agrees or found.stored_last:
        return Comparison(Verdict.DIFFERS, tuple(map(str, found.mismatches)) or found.stored_last)
    return Comparison(Verdict.AGREES)


def _rules_of(release: str, backend: Backend) -> LayoutAssignment:
    """Layout assignment as that release of jax has it."""
    pipeline = preset(f"xla-{backend}-{release}")
    return next(p for p in pipeline.passes if isinstance(p, LayoutAssignment))


def _compare_refusals(before: Module, layout_pass: LayoutAssignment, answer: Answer) -> Comparison:
    theirs = answer.note[:300] or "no message"
    try:
        layout_pass.run(before)
    except LayoutsimError as error:
        return Comparison(Verdict.BOTH_REFUSE, (theirs, str(error)))
    return Comparison(Verdict.ONLY_COMPILER_REFUSES, (theirs,))


@define
class Run:
    """Counts of a differential run."""

    verdicts: Counter[Verdict] = field(factory=Counter[Verdict])
    failures: dict[int, Comparison] = field(factory=dict[int, Comparison])
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return self.verdicts.total()

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.verdicts.items()))
        return f"{self.count} modules in {self.seconds:.0f} s: {counts}"


def run_differential(
    seeds: Iterable[int],
    oracle: Oracle,
    *,
    limits: Limits | None = None,
    report: Callable[[int, Comparison], None] = lambda seed, comparison: None,
) -> Run:
    """Compare the modules of these seeds; ``report`` hears of each failure when it is found."""
    limits = limits or Limits(devices=oracle.devices, backend=oracle.backend, release=oracle.start())
    run, start = Run(), time.monotonic()
    for seed in seeds:
        comparison, _ = compare_with_compiler(random_module(seed, limits), oracle)
        run.verdicts[comparison.verdict] += 1
        if comparison.is_failure:
            run.failures[seed] = comparison
            report(seed, comparison)
    run.seconds = time.monotonic() - start
    return run


def reduce_failure(module: Module, oracle: Oracle, verdict: Verdict, *, max_tries: int = 400) -> tuple[Module, Answer]:
    """The smallest module found that fails with the same verdict, and the compiler's answer for it."""

    def fails(candidate: Module) -> bool:
        return compare_with_compiler(in_post_order(candidate), oracle)[0].verdict is verdict

    reduced = reduce_module(module, fails, max_tries=max_tries)
    return reduced, compare_with_compiler(reduced, oracle)[1]


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code, 1 where something differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--count", type=int, default=100, help="modules to compare")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--steps", type=int, default=Limits().steps, help="at most so many steps in the entry")
    parser.add_argument("--out", type=Path, help="folder for reduced modules that differ")
    parser.add_argument("--reduce", type=int, default=10, help="reduce at most so many")
    options = parser.parse_args(arguments)
    backend = cast("Backend", options.backend)
    seeds = range(options.first, options.first + options.count)
    with Oracle(backend, devices=DEVICES, timeout=SECONDS_A_MODULE) as oracle:
        limits = Limits(devices=DEVICES, backend=backend, release=oracle.start(), steps=options.steps)
        run = run_differential(seeds, oracle, limits=limits, report=_print_failure)
        print(f"{backend} {oracle.release}: seeds {seeds.start}..{seeds.stop - 1}, {run}")
        for seed, comparison in list(run.failures.items())[: options.reduce if options.out else 0]:
            reduced, answer = reduce_failure(random_module(seed, limits), oracle, comparison.verdict)
            _save(options.out, f"{backend}-{seed}", reduced, answer, backend)
    return 1 if run.failures else 0


def _print_failure(seed: int, comparison: Comparison) -> None:
    print(f"seed {seed} {comparison.verdict}: {'; '.join(comparison.details)[:500]}", flush=True)


def _save(folder: Path, stem: str, module: Module, answer: Answer, backend: Backend) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.hlo").write_text(answer.before_layout or module.to_text())
    if answer.after_layout is not None:
        (folder / f"{stem}.after.hlo").write_text(answer.after_layout)
    comparison = compare_with_answer(answer, backend)
    (folder / f"{stem}.txt").write_text("\n".join([comparison.verdict, *comparison.details, ""]))


if __name__ == "__main__":
    sys.exit(main())
