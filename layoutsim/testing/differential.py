"""Run random modules through the real compiler and through layoutsim, compare, and reduce what differs.

    python -m layoutsim.testing.differential --backend gpu --count 1000 [--first SEED] [--stage all] [--out DIR]

Each seed makes one module (:func:`~layoutsim.testing.modules.random_module`). The real compiler runs layout assignment alone
(:mod:`layoutsim.oracle`); our pass, with the rules of that release, runs on the module that the compiler says it saw; every
layout, copy and root must agree. With ``--stage all`` copy insertion, scheduling and buffer assignment run too: allocations
must agree from layout assignment on, and all offsets on the compiler's own scheduled module.
Of each module that differs, a reduced one goes to ``DIR`` as ``BACKEND-SEED.hlo`` (before), with the compiler's answers
(``BACKEND-SEED.after.hlo`` and so on), which is how fixtures come to be.
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

from attrs import define, field, frozen

from layoutsim.errors import LayoutsimError
from layoutsim.experiments.conformance import Stage
from layoutsim.experiments.live import check_answer, module_before_layout
from layoutsim.ir import Module
from layoutsim.oracle import BARE_PIPELINE, LAYOUT_ASSIGNMENT, Answer, Backend, Oracle
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.presets import preset
from layoutsim.testing.modules import in_post_order, random_module
from layoutsim.testing.reduce import reduce_module
from layoutsim.testing.scope import Limits

DEVICES = 4
SECONDS_A_MODULE = 10.0
"""XLA's layout assignment does not end on some modules with aliases between automatic and fixed entry layouts."""


class Verdict(StrEnum):
    """What a comparison came to."""

    AGREES = "agrees"
    BOTH_REFUSE = "both refuse"
    NOT_ASKED = "compiler refuses the module before layout assignment"
    NO_MEMORY = "agrees, and the compiler refuses the module behind layout assignment"
    COMPILER_DOES_NOT_END = "the compiler does not end"
    ONLY_WE_REFUSE = "only we refuse"
    WE_CRASH = "we crash"
    ONLY_COMPILER_REFUSES = "only the compiler refuses"
    DIFFERS = "differs"
    MEMORY_DIFFERS = "differs behind layout assignment"


@frozen
class Comparison:
    """One module's outcome, with the differences or refusals in words."""

    verdict: Verdict
    details: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        return self.verdict in _FAILURES


_FAILURES = (Verdict.DIFFERS, Verdict.MEMORY_DIFFERS, Verdict.ONLY_WE_REFUSE, Verdict.WE_CRASH, Verdict.ONLY_COMPILER_REFUSES)


def compare_with_compiler(module: Module, oracle: Oracle, stage: Stage = Stage.LAYOUT) -> tuple[Comparison, Answer]:
    """Our layout assignment, and with :attr:`Stage.ALL` what follows it, against the compiler's."""
    answer = oracle.ask(module)
    return compare_with_answer(answer, oracle.backend, stage), answer


def compare_with_answer(answer: Answer, backend: Backend, stage: Stage = Stage.LAYOUT) -> Comparison:
    """Our passes against an answer of the compiler."""
    if answer.before_layout is None:
        return Comparison(Verdict.NOT_ASKED, (answer.note[:300],))
    preset_name = f"xla-{backend}-{answer.release}"
    if answer.after_layout is None and answer.timed_out:
        return Comparison(Verdict.COMPILER_DOES_NOT_END)
    if answer.after_layout is None:
        return _compare_refusals(answer, preset_name)
    reaches = Stage.LAYOUT if answer.buffer_assignment is None else stage
    try:
        found = check_answer(answer, preset_name, reaches)
    except LayoutsimError as error:
        return Comparison(Verdict.ONLY_WE_REFUSE, (f"{type(error).__name__}: {error}",))
    except Exception as error:  # a slip of ours is a finding like others, and the run goes on
        return Comparison(Verdict.WE_CRASH, (f"{type(error).__name__}: {error}",))
    if found.layout is not None and not found.layout.agrees:
        return Comparison(Verdict.DIFFERS, tuple(map(str, found.layout.mismatches)))
    if reaches is not stage:
        return Comparison(Verdict.NO_MEMORY, (answer.note[:300],))
    compared = [found.buffers, found.pipeline and found.pipeline.buffers]
    differences = [difference for buffers in compared if buffers is not None for difference in buffers.differences]
    return Comparison(Verdict.MEMORY_DIFFERS, tuple(map(str, differences))) if differences else Comparison(Verdict.AGREES)


def _compare_refusals(answer: Answer, preset_name: str) -> Comparison:
    theirs = answer.note[:300] or "no message"
    _, layout_pass, _ = preset(preset_name).parted_at(LayoutAssignment)
    try:
        layout_pass.run(module_before_layout(answer))
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
    stage: Stage = Stage.LAYOUT,
    report: Callable[[int, Comparison], None] = lambda seed, comparison: None,
) -> Run:
    """Compare the modules of these seeds; ``report`` hears of each failure when it is found."""
    limits = limits or Limits(devices=oracle.devices, backend=oracle.backend, release=oracle.start())
    run, start = Run(), time.monotonic()
    for seed in seeds:
        comparison, _ = compare_with_compiler(random_module(seed, limits), oracle, stage)
        run.verdicts[comparison.verdict] += 1
        if comparison.is_failure:
            run.failures[seed] = comparison
            report(seed, comparison)
    run.seconds = time.monotonic() - start
    return run


def reduce_failure(
    module: Module, oracle: Oracle, verdict: Verdict, stage: Stage = Stage.LAYOUT, *, max_tries: int = 400
) -> tuple[Module, Answer]:
    """The smallest module found that fails with the same verdict, and the compiler's answer for it."""

    def fails(candidate: Module) -> bool:
        return compare_with_compiler(in_post_order(candidate), oracle, stage)[0].verdict is verdict

    reduced = reduce_module(module, fails, max_tries=max_tries)
    return reduced, compare_with_compiler(reduced, oracle, stage)[1]


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code, 1 where something differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--count", type=int, default=100, help="modules to compare")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--stage", choices=("layout", "all"), default="layout", help="how far to compare (default: layout)")
    parser.add_argument("--steps", type=int, default=Limits().steps, help="at most so many steps in the entry")
    parser.add_argument("--out", type=Path, help="folder for reduced modules that differ")
    parser.add_argument("--reduce", type=int, default=10, help="reduce at most so many")
    options = parser.parse_args(arguments)
    backend, stage = cast("Backend", options.backend), Stage(options.stage)
    passes = LAYOUT_ASSIGNMENT if stage is Stage.LAYOUT else BARE_PIPELINE
    seeds = range(options.first, options.first + options.count)
    with Oracle(backend, passes, DEVICES, timeout=SECONDS_A_MODULE) as oracle:
        limits = Limits(devices=DEVICES, backend=backend, release=oracle.start(), steps=options.steps, shuffled=True)
        run = run_differential(seeds, oracle, limits=limits, stage=stage, report=_print_failure)
        print(f"{backend} {oracle.release}: seeds {seeds.start}..{seeds.stop - 1}, {run}")
        for seed, comparison in list(run.failures.items())[: options.reduce if options.out else 0]:
            reduced, answer = reduce_failure(random_module(seed, limits), oracle, comparison.verdict, stage)
            _save(options.out, f"{backend}-{seed}", reduced, answer, compare_with_answer(answer, backend, stage))
    return 1 if run.failures else 0


def _print_failure(seed: int, comparison: Comparison) -> None:
    print(f"seed {seed} {comparison.verdict}: {'; '.join(comparison.details)[:500]}", flush=True)


def _save(folder: Path, stem: str, module: Module, answer: Answer, comparison: Comparison) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.hlo").write_text(answer.before_layout or module.to_text())
    texts = {"after.hlo": answer.after_layout, "final.hlo": answer.final, "buffer-assignment.txt": answer.buffer_assignment}
    for ending, text in texts.items():
        if text is not None:
            (folder / f"{stem}.{ending}").write_text(text)
    (folder / f"{stem}.txt").write_text("\n".join([comparison.verdict, *comparison.details, ""]))


if __name__ == "__main__":
    sys.exit(main())
