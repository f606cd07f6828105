"""``layoutsim explain``: the chain from a copy to the rule and instruction that caused it."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, print_json, progress, read_module
from layoutsim.cli.run import add_best, add_preset, best_json, best_of
from layoutsim.errors import InputError
from layoutsim.experiments.simulate import Simulation, simulate

NAME = "explain"
HELP = "why each copy is there: from the copy back to the rule and instruction that caused it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    parser.add_argument("copy", nargs="?", help="name of one copy (see `layoutsim run`); every transposing copy when absent")
    add_preset(parser)
    parser.add_argument("--all", action="store_true", help="explain copies that move no bytes too")
    parser.add_argument("--no-remedies", action="store_true", help="do not try which other rule sets would avoid the copy")
    add_best(parser)
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    with progress(f"simulating {module.name} under {options.preset}"):
        result = simulate(module, options.preset, measure_memory=False)
        chosen = _chosen(result, options)
        explanations = [result.explain(copy, remedies=not options.no_remedies) for copy in chosen]
    best = best_of(options, module, options.preset)
    if options.json:
        print_json({"preset": result.preset, "copies": [e.to_json() for e in explanations], **best_json(best)})
        return 0
    if not explanations:
        print(f"{result.preset}: no {'' if options.all else 'transposing '}copies")
    else:
        print("\n\n".join(e.to_text() for e in explanations))
    if best is not None:
        print(f"\n{best}")
    return 0


def _chosen(result: Simulation, options: argparse.Namespace) -> list[str]:
    if options.copy is None:
        return [c.name for c in result.copies if options.all or c.transposing]
    if options.copy not in {c.name for c in result.copies}:
        known = ", ".join(c.name for c in result.copies) or "none"
        raise InputError(f"no copy named {options.copy!r} under {result.preset}; copies: {known}")
    return [options.copy]
