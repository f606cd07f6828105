"""``layoutsim joint``: layouts of all computations at once, beside XLA's, and a proof of how few bytes can be moved."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from layoutsim.cli.common import add_json, add_module, print_json, print_rows, progress, read_module
from layoutsim.cli.run import add_preset
from layoutsim.experiments.joint import DemandReading, JointResult, Objective, assign_jointly
from layoutsim.ir import Module

if TYPE_CHECKING:
    from layoutsim.testing.joint_judge import Verdict

NAME = "joint"
HELP = "the layouts that move the fewest bytes, all computations at once, and how far XLA's are from them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    add_preset(parser)
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit (default: %(default)s)")
    parser.add_argument(
        "--local",
        action="store_true",
        help="only the local search, without the programme that proves a bound (no scipy needed)",
    )
    parser.add_argument(
        "--rule-orders",
        action="store_true",
        help="choose among the orders that XLA's rules and variants of them lead to; faster, and so is the proof",
    )
    parser.add_argument(
        "--objective",
        choices=[objective.value for objective in Objective],
        default=Objective.MOVED,
        help="bytes moved, copies times runs; bytes held, each copy once; or the peak of memory (default: %(default)s)",
    )
    parser.add_argument(
        "--demands",
        choices=[reading.value for reading in DemandReading],
        default=DemandReading.STATED,
        help="collectives and products take the order that XLA states, or any order that serves (default: %(default)s)",
    )
    parser.add_argument(
        "--judge",
        action="store_true",
        help="check the mandatory rules, and run the result inside its placement against the module before (small modules)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the laid out module as HLO text")
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    module = read_module(options.file, options.stage)
    with progress(f"laying out {module.name}"):
        result = assign_jointly(
            module,
            options.preset,
            time_limit=options.seconds,
            objective=Objective(options.objective),
            reading=DemandReading(options.demands),
            every_order=not options.rule_orders,
            exact=not options.local,
        )
    if options.output is not None:
        options.output.write_text(result.module.to_text())
    verdict = _judge(module, result) if options.judge else None
    if options.json:
        print_json(result.to_json() | ({"judge": verdict.to_json()} if verdict else {}))
    else:
        print_rows(*result.rows())
        if verdict:
            print(f"judge: {verdict}")
    return 1 if verdict and verdict.faults else 0


def _judge(module: Module, result: JointResult) -> Verdict:
    from layoutsim.testing.joint_judge import judge_joint  # the interpreter, which no other command needs

    return judge_joint(module, result)
