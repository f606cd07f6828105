"""``layoutsim compare``: one row for each preset, differences to the first shown."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.cli.run import add_best, best_of
from layoutsim.experiments.compare import compare
from layoutsim.experiments.joint import Distance, NotKnown
from layoutsim.passes.presets import preset_names
from layoutsim.passes.registry import split_outside_braces

NAME = "compare"
HELP = "the same module under several presets, one row each"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    parser.add_argument(
        "--presets", default=",".join(preset_names()), metavar="A,B,...", help="presets to compare (default: %(default)s)"
    )
    add_best(parser)
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    presets = split_outside_braces(options.presets, ",")
    with progress(f"simulating {module.name}"):
        result = compare(module, presets)
    best = {preset: found for preset in presets if (found := best_of(options, module, preset)) is not None}
    if options.json:
        print_json(result.to_json() | ({"best": {name: found.to_json() for name, found in best.items()}} if best else {}))
        return 0
    print_rows(result.rows())
    for text, names in _by_text(best).items():
        print(f"{', '.join(names)}: {text}")
    return 0


def _by_text(best: dict[str, Distance | NotKnown]) -> dict[str, list[str]]:
    """Presets with the same to say, in the order of the first."""
    found: dict[str, list[str]] = {}
    for name, one in best.items():
        found.setdefault(str(one), []).append(name)
    return found
