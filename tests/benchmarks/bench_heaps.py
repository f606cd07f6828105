"""How close our own heap comes to the lower bound, against XLA's, and how long it takes.

    python tests/benchmarks/bench_heaps.py [--seconds S] [--export DIR] [--only modules|files|streams] [FILE.csv | DIR ...]

Three tables, each placement checked by the judge (:func:`~layoutsim.memory.check.check_placement`):

1. *Modules*: the temporary heaps of every recorded ``final`` module that has a buffer assignment, of ``fixtures/xla`` and of
   the shared material if it is there (``LAYOUTSIM_SHARED``). ``--export`` writes them as MiniMalloc's CSV.
2. *Files*: problems in MiniMalloc's CSV, for instance its ``benchmarks/challenging``.
3. *Streams*: generated buffers of very different sizes, 1,000 to 100,000, and the time per buffer as they grow.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import field, frozen

sys.path.insert(0, str(Path(__file__).parents[2]))

from layoutsim.experiments.conformance import preset_of
from layoutsim.experiments.recorded import find_recorded
from layoutsim.experiments.simulate import profile_of
from layoutsim.load import SCHEDULED
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.check import check_placement
from layoutsim.memory.heaps import AnytimeHeap, live_peak, xla_heap
from layoutsim.memory.problem import Problem
from layoutsim.memory.problem_csv import print_problem_csv, read_problem_csv
from layoutsim.passes.presets import resolve_preset
from tests.memory.heaps.instances import stream

FIXTURES = Path(__file__).parents[2] / "fixtures/xla"
SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
STREAMS = ((1_000, 50), (3_000, 50), (10_000, 50), (30_000, 50), (100_000, 50))


@frozen
class Row:
    """One problem packed: sizes in bytes, CPU seconds."""

    name: str
    buffers: int
    bound: int
    xla: int
    ours: int
    seconds: float

    @property
    def above(self) -> float:
        """How far ours is above the bound, in percent."""
        return 100 * (self.ours - self.bound) / self.bound

    def __str__(self) -> str:
        sizes = f"{self.bound:17,} {self.xla:17,} {self.ours:17,}"
        return f"  {self.name:52} {self.buffers:7,} {sizes} {self.above:7.3f} % {self.seconds:7.2f} s"


@frozen
class Table:
    """Rows, printed as they come."""

    title: str
    rows: list[Row] = field(factory=list[Row], init=False)

    def fill(self, problems: Iterable[tuple[str, Problem]], heap: AnytimeHeap) -> None:
        """Packs each problem and prints its row, then the summary."""
        print(f"{self.title}\n  {'':52} {'buffers':>7} {'bound':>17} {'XLA':>17} {'ours':>17} {'above':>9} {'time':>9}")
        for name, problem in problems:
            self.rows.append(measure(name, problem, heap))
            print(self.rows[-1], flush=True)
        if self.rows:
            print(f"  {self.summary}\n")

    @property
    def summary(self) -> str:
        """What the table shows, in one sentence."""
        rows = self.rows
        return (
            f"{len(rows)} problems: {sum(row.ours == row.bound for row in rows)} at the bound,"
            f" {sum(row.above <= 1 for row in rows)} within 1 %, worst {max(row.above for row in rows):.3f} % above it;"
            f" smaller than XLA's {sum(row.ours < row.xla for row in rows)}, larger {sum(row.ours > row.xla for row in rows)};"
            f" longest {max(row.seconds for row in rows):.1f} s"
        )


def measure(name: str, problem: Problem, heap: AnytimeHeap) -> Row:
    """Packs the problem, with XLA's placement as the start, and has the placement judged.

    Raises:
        SystemExit: the placement is wrong.
    """
    xla = xla_heap().pack(problem)
    start = time.process_time()
    placement = heap.pack(problem)
    seconds = time.process_time() - start
    if faults := check_placement(problem, placement):
        raise SystemExit(f"{name}: {faults[0]}")
    return Row(name, len(problem.groups), live_peak(problem), xla.size, placement.size, seconds)


def module_problems(export: Path | None) -> Iterator[tuple[str, Problem]]:
    """The temporary heaps of every recorded module, one for each memory space."""
    reports = sorted([*FIXTURES.glob("*/*/buffer-assignment.txt*"), *SHARED.glob("oracle/*/*/buffer-assignment.txt*")])
    for folder in dict.fromkeys(report.parent for report in reports):
        name = "/".join(folder.parts[-2:])
        recorded = find_recorded(folder)
        assignment = assign_buffers(recorded.module(SCHEDULED), profile_of(resolve_preset(preset_of(recorded))))
        problems = [run.problem for allocation in assignment.allocations for run in allocation.heaps]
        for number, problem in enumerate(problem for problem in problems if problem.intervals):
            label = f"{name}#{number}" if number else name
            if export is not None:
                (export / f"{folder.parts[-4]}.{label.replace('/', '.')}.csv").write_text(print_problem_csv(problem))
            yield label, problem


def file_problems(paths: Iterable[Path]) -> Iterator[tuple[str, Problem]]:
    """Problems in MiniMalloc's CSV."""
    for path in paths:
        for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
            yield file.stem, read_problem_csv(file.read_text()).problem


def print_growth(rows: list[Row]) -> None:
    """The time per buffer of each stream against the first."""
    first = rows[0].seconds / rows[0].buffers
    for row in rows:
        each = row.seconds / row.buffers
        print(f"  {row.buffers:8,} buffers: {each * 1e6:7.0f} us each, {each / first:.2f} times the first")


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, help="a time limit in place of the default number of steps")
    parser.add_argument("--export", type=Path, help="a folder for the problems of the modules")
    parser.add_argument("--only", choices=("modules", "files", "streams"))
    arguments = parser.parse_args()
    heap = AnytimeHeap() if arguments.seconds is None else AnytimeHeap(steps=10**9, seconds=arguments.seconds)
    if arguments.only in (None, "modules"):
        Table("temporaries of recorded modules").fill(module_problems(arguments.export), heap)
    if arguments.only in (None, "files") and arguments.paths:
        Table("files").fill(file_problems(arguments.paths), heap)
    if arguments.only in (None, "streams"):
        table = Table("streams")
        table.fill(((f"{buffers:,} buffers, {live} alive", stream(buffers, live, seed=0)) for buffers, live in STREAMS), heap)
        print_growth(table.rows)


if __name__ == "__main__":
    main()
