"""``layoutsim run``: the main job. Copies that layout assignment inserts, and what the module needs in memory."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, console, print_json, progress, read_module
from layoutsim.experiments.simulate import simulate
from layoutsim.passes.presets import DEFAULT_PRESET
from layoutsim.report.tables import copy_table, memory_table

NAME = "run"
HELP = "the copies that layout assignment inserts, and the memory the module needs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    add_preset(parser)
    parser.add_argument(
        "--all", action="store_true", help="list copies that move no bytes too (they differ in size-1 dimensions)"
    )
    add_json(parser)


def add_preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default=DEFAULT_PRESET,
        metavar="P",
        help="a preset, PRESET{key=value ...} with changed layout rules, or a pass pipeline (default: %(default)s)",
    )


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    with progress(f"simulating {module.name} under {options.preset}"):
        result = simulate(module, options.preset, in_place=True)
    if options.json:
        print_json(result.to_json())
        return 0
    out = console()
    out.print(copy_table(result.copies, include_free=options.all))
    out.print()
    out.print(memory_table(result.memory))
    return 0
