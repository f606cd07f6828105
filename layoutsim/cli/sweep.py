"""``layoutsim sweep``: many dumps under many rule sets, into a CSV file."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from layoutsim.cli.run import add_best
from layoutsim.errors import InputError
from layoutsim.experiments.sweep import Submits, SweepRow, find_dumps, pairs_left, sweep
from layoutsim.passes.presets import preset_names
from layoutsim.passes.registry import split_outside_braces

NAME = "sweep"
HELP = "every module below a folder under several presets, into a CSV file; goes on where it stopped"

_INTERRUPTED = 130

_COLUMNS = """
columns: file, preset; instructions; transposing_copies, transposing_bytes (each copy once), moved_bytes (times the trips of its
loops; empty if unknown); temp_bytes, peak_bytes, lower_bound_bytes (no packing needs less); over_best_bytes (moved
beyond the best layouts found; empty if not looked for), best_proven; seconds; error (why the others are
empty). Rows with an error are not tried again: delete them to do so.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _COLUMNS
    parser.add_argument("folder", metavar="DIR", help="searched for modules before layout assignment, else for any module")
    parser.add_argument(
        "--presets", default=",".join(preset_names()), metavar="A,B,...", help="presets to try (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", required=True, metavar="TABLE.csv", help="file to write or to continue")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each processor)")
    add_best(parser)
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on a Dask cluster: its scheduler, or 'local' to start one here (extra: dask)"
    )


def main(options: argparse.Namespace) -> int:
    folder, output = Path(options.folder), Path(options.output)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    files, presets = find_dumps(folder), split_outside_braces(options.presets, ",")
    total, left = len(files) * len(presets), len(pairs_left(files, presets, output))
    rows: list[SweepRow] = []
    try:
        with _progress(total, total - left) as bar, _cluster(options.dask, options.workers) as cluster:

            def note(row: SweepRow) -> None:
                rows.append(row)
                bar.advance(bar.task_ids[0])

            sweep(files, presets, output, workers=options.workers, cluster=cluster, effort=options.best, on_row=note)
    except KeyboardInterrupt:
        print(f"stopped after {len(rows)} rows, {left - len(rows)} are missing; the same command goes on", file=sys.stderr)
        return _INTERRUPTED
    errors = sum(row.error != "" for row in rows)
    print(f"{len(rows)} rows written to {output}, {total - left} were there already, {errors} with errors")
    return 0


@contextmanager
def _progress(total: int, done: int) -> Generator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        bar.add_task("sweep", total=total, completed=done)
        yield bar


@contextmanager
def _cluster(address: str | None, workers: int | None) -> Generator[Submits | None]:
    if address is None:
        yield None
        return
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise InputError("--dask needs Dask: pip install 'layoutsim[dask]'") from error
    here = (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        if address == "local"
        else None
    )
    with here or nullcontext(address) as scheduler, distributed.Client(scheduler) as client:
        yield client
