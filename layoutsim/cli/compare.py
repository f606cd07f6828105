"""``layoutsim compare``: one row for each preset, differences to the first shown."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.experiments.compare import compare
from layoutsim.passes.presets import preset_names
from layoutsim.passes.registry import split_outside_braces

NAME = "compare"
HELP = "the same module under several presets, one row each"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    parser.add_argument(
        "--presets", default=",".join(preset_names()), metavar="A,B,...", help="presets to compare (default: %(default)s)"
    )
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    with progress(f"simulating {module.name}"):
        result = compare(module, split_outside_braces(options.presets, ","))
    if options.json:
        print_json(result.to_json())
    else:
        print_rows(result.rows())
    return 0
