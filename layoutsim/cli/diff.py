"""``layoutsim diff``: two dumps held against each other."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, print_json, print_rows, progress, read_module
from layoutsim.cli.run import add_preset
from layoutsim.experiments.diff import diff_modules

NAME = "diff"
HELP = "copies, layouts and buffers at the peak of two dumps, the largest difference first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="A", help="a module or dump")
    parser.add_argument("after", metavar="B", help="another one")
    parser.add_argument("--stage", help="which dump to take from folders: before_layout, after_layout, scheduled")
    add_preset(parser)
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    before, after = (read_module(path, options.stage) for path in (options.before, options.after))
    with progress("comparing"):
        report = diff_modules(before, after, options.preset)
    if options.json:
        print_json(report.to_json())
    else:
        print_rows(*report.rows())
    return 0
