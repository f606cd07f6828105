"""``layoutsim run``: the main job. Copies that layout assignment inserts, and what the module needs in memory."""

from __future__ import annotations

import argparse
import math

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.experiments.joint import Distance, Effort, NotKnown, distance_for_report
from layoutsim.experiments.joint.distance import UNASKED
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
        type=_effort,
        const=Effort(),
        default=UNASKED,
        metavar="SECONDS",
        help="how long to look for the best layouts, to say how far these are from them (extra: solve); by itself "
        f"{UNASKED.seconds:.0f} s in modules of up to {UNASKED.most_instructions:,} instructions, with --best alone "
        f"{Effort().seconds:.0f} s in any",
    )
    parser.add_argument("--no-best", dest="best", action="store_const", const=None, help="do not look for the best layouts")


def _effort(text: str) -> Effort:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, got {text!r}")
    return Effort(seconds)


def best_of(options: argparse.Namespace, module: Module, preset: str) -> Distance | NotKnown | None:
    """The distance to the best layouts; ``None`` with ``--no-best``."""
    if options.best is None:
        return None
    with progress(f"looking for the best layouts of {module.name} under {preset}"):
        return distance_for_report(module, preset, options.best)


def best_json(best: Distance | NotKnown | None) -> dict[str, object]:
    """What the distance adds to a report, by name."""
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
