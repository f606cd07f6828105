"""``layoutsim report``: one self-contained HTML page about a module."""

from __future__ import annotations

import argparse
from pathlib import Path

from layoutsim.cli.common import add_module, progress, read_module
from layoutsim.cli.run import add_best, add_preset, best_of
from layoutsim.errors import InputError
from layoutsim.experiments.page import report_page
from layoutsim.experiments.simulate import simulate

NAME = "report"
HELP = "an HTML page with the copies, their causes and memory over time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    add_preset(parser)
    parser.add_argument("-o", "--output", required=True, metavar="REPORT.html", help="file to write")
    parser.add_argument("--no-remedies", action="store_true", help="do not try which other rule sets would avoid the copies")
    add_best(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    best = best_of(options, module, options.preset)
    with progress(f"simulating {module.name} under {options.preset}"):
        result = simulate(module, options.preset, in_place=options.no_remedies)
        page = report_page(result, remedies=not options.no_remedies, best=best)
    try:
        Path(options.output).write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {options.output}: {error.strerror}") from error
    print(f"{options.output}: {len(page):,} bytes, {len(result.transposing_copies)} transposing copies")
    return 0
