"""``layoutsim memory``: buffer assignment of a scheduled module."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.experiments.memory import MemoryView, view_memory
from layoutsim.experiments.recorded import read_assignment_report
from layoutsim.memory.report_format import print_assignment_report
from layoutsim.memory.report_format_usage import print_memory_usage_report
from layoutsim.passes.presets import DEFAULT_PRESET

NAME = "memory"
HELP = "where every value of a scheduled module is in memory, what is alive at the peak, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    parser.add_argument("--preset", default=DEFAULT_PRESET, metavar="P", help="whose rules apply (default: %(default)s)")
    parser.add_argument(
        "--reference",
        metavar="BUFFER_ASSIGNMENT",
        help="XLA's buffer-assignment.txt to compare with; exit code 1 if it differs",
    )
    parser.add_argument("--report", action="store_true", help="print the memory usage report in XLA's format")
    parser.add_argument("--allocations", action="store_true", help="print the allocations in XLA's buffer-assignment format")
    parser.add_argument(
        "--why", nargs=2, metavar=("A", "B"), help="whether two values share memory, and if not, what keeps them apart"
    )
    parser.add_argument(
        "--donations", action="store_true", help="what became of each donated argument; exit code 1 if one is not usable"
    )
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage or "scheduled" if Path(options.file).is_dir() else options.stage)
    reference = read_assignment_report(Path(options.reference)) if options.reference else None
    with progress(f"assigning buffers of {module.name}"):
        view = view_memory(module, options.preset, reference)
    if options.why:
        verdict = view.why(*options.why)
        print_json(verdict.to_json()) if options.json else print(verdict.to_text())
    elif options.donations:
        return _donations(view, as_json=options.json)
    elif options.json:
        print_json(view.to_json())
    elif options.report:
        sys.stdout.write(print_memory_usage_report(view.report))
    elif options.allocations:
        sys.stdout.write(print_assignment_report(view.report))
    else:
        _print(view)
    return 1 if view.comparison is not None and not view.comparison.agrees else 0


def _donations(view: MemoryView, *, as_json: bool) -> int:
    if as_json:
        print_json({"donations": [donation.to_json() for donation in view.donations.donations]})
    else:
        print_rows(view.donation_rows())
    return 0 if view.donations.all_usable else 1


def _print(view: MemoryView) -> None:
    print_rows(*view.rows())
    if view.comparison is not None:
        print(f"\n{len(view.comparison.differences)} differences from the reference")
        for difference in view.comparison.differences:
            print(f"  {difference}")
