"""``layoutsim advise``: what to change, ranked by the memory it saves."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, print_json, progress, read_module
from layoutsim.cli.run import add_best, add_preset, best_json, best_of
from layoutsim.experiments.advice import advise

NAME = "advise"
HELP = "what to change in the program or in the compiler's rules, ranked by the memory it saves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    add_preset(parser)
    add_best(parser)
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    best = best_of(options, module, options.preset)
    with progress(f"trying variants of {module.name}") as show:
        report = advise(module, options.preset, show)
    if options.json:
        print_json(report.to_json() | best_json(best))
        return 0
    print(report.to_text())
    if best is not None:
        print(f"\n{best}")
    return 0
