"""``layoutsim what-if``: copies and peak if an entry layout, a rule or a donation were different."""

from __future__ import annotations

import argparse

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.cli.run import add_preset
from layoutsim.errors import InputError
from layoutsim.experiments.what_if import Donate, Setting, Undonate, parse_setting, what_if

NAME = "what-if"
HELP = "copies, temporaries and peak if an entry layout, a rule or a donation were different"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    add_preset(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SETTING",
        help="entry-layout:PARAMETER={2,0,1} or =auto, result-layout:NUMBER={1,0} or =auto, rule:KEY=VALUE of layout "
        "assignment or of the pass that has KEY, pass:NAME=off, =before or =after (layout assignment); may be repeated",
    )
    parser.add_argument(
        "--donate", action="append", default=[], metavar="PARAMETER", help="let a result have its memory; may be repeated"
    )
    parser.add_argument(
        "--undonate", action="append", default=[], metavar="PARAMETER", help="do not donate it; may be repeated"
    )
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    settings: list[Setting] = [*map(parse_setting, options.set), *map(Undonate, options.undonate), *map(Donate, options.donate)]
    if not settings:
        raise InputError("what-if: nothing to change: give --set, --donate or --undonate")
    module = read_module(options.file, options.stage)
    with progress(f"simulating {module.name}"):
        result = what_if(module, settings, options.preset)
    if options.json:
        print_json(result.to_json())
    else:
        print_rows(result.rows())
    return 0
