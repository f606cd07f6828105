"""``layoutsim run``: the main job. Copies that layout assignment inserts, and what the module needs in memory."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.experiments.joint import Distance, distance_to_best
from layoutsim.experiments.joint.distance import DEFAULT_SECONDS
from layoutsim.experiments.simulate import memory_rows, simulate
from layoutsim.ir import Module
from layoutsim.passes.presets import DEFAULT_PRESET
from layoutsim.report.tables import copy_rows

NAME = "run"
HELP = "the copies that layout assignment inserts, and the memory the module needs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    add_preset(parser)
    parser.add_argument(
        "--all", action="store_true", help="list copies that move no bytes too (they differ in size-1 dimensions)"
    )
    add_best(parser)
    add_json(parser)


def add_preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default=DEFAULT_PRESET,
        metavar="P",
        help="a preset, PRESET{key=value ...} with changed layout rules, or a pass pipeline (default: %(default)s)",
    )


def add_best(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--best",
        nargs="?",
        type=float,
        const=DEFAULT_SECONDS,
        metavar="SECONDS",
        help="also say how far these layouts are from the best ones that joint assignment finds in this time "
        f"(default: {DEFAULT_SECONDS:.0f}; extra: solve)",
    )


def best_of(options: argparse.Namespace, module: Module, preset: str) -> Distance | None:
    """The distance to the best layouts, if ``--best`` asks for it."""
    if options.best is None:
        return None
    with progress(f"looking for the best layouts of {module.name} under {preset}"):
        return distance_to_best(module, preset, options.best)


def best_json(best: Distance | None) -> dict[str, object]:
    """What ``--best`` adds to a report, by name."""
    return {} if best is None else {"best": best.to_json()}


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    best = best_of(options, module, options.preset)
    with progress(f"simulating {module.name} under {options.preset}"):
        result = simulate(module, options.preset, in_place=True)
    if options.json:
        print_json(result.to_json() | best_json(best))
        return 0
    print_rows(copy_rows(result.copies, include_free=options.all), memory_rows(result.memory))
    if best is not None:
        print(f"\n{best}")
    return 0
