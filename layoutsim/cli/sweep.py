"""``layoutsim sweep``: many dumps under many rule sets, into a CSV file."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from layoutsim.errors import InputError
from layoutsim.experiments.sweep import Submits, find_dumps, sweep
from layoutsim.passes.presets import preset_names
from layoutsim.passes.registry import split_outside_braces

NAME = "sweep"
HELP = "every module below a folder under several presets, into a CSV file; goes on where it stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="searched for before_layout files, else for any module")
    parser.add_argument(
        "--presets", default=",".join(preset_names()), metavar="A,B,...", help="presets to try (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", required=True, metavar="TABLE.csv", help="file to write or to continue")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one for each processor)")
    parser.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster to run on")


def main(options: argparse.Namespace) -> int:
    folder = Path(options.folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    files, presets = find_dumps(folder), split_outside_braces(options.presets, ",")
    cluster = _dask(options.dask) if options.dask else None
    with _progress(len(files) * len(presets)) as bar:
        errors: list[str] = []

        def note(row: object) -> None:
            bar.advance(bar.task_ids[0])
            if error := getattr(row, "error", ""):
                errors.append(error)

        written = sweep(files, presets, Path(options.output), workers=options.workers, cluster=cluster, on_row=note)
    skipped = len(files) * len(presets) - written
    print(f"{written} rows written to {options.output}, {skipped} were there already, {len(errors)} with errors")
    return 0


@contextmanager
def _progress(total: int) -> Generator[Progress]:
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        bar.add_task("sweep", total=total)
        yield bar


def _dask(address: str) -> Submits:
    try:
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise InputError("--dask needs Dask: pip install distributed") from error
    return distributed.Client(address)
