"""``layoutsim opt``: run passes on a module and print the HLO."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layoutsim.cli.common import add_module, progress, read_module
from layoutsim.errors import InputError
from layoutsim.passes import Pass, parse_pipeline, pass_names
from layoutsim.passes.presets import preset_names, resolve_preset

NAME = "opt"
HELP = "run passes on a module and print the HLO that comes out"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_module(parser)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--passes", metavar='"NAME{KEY=VALUE},..."', help=f"passes to run; known: {', '.join(pass_names())}")
    chosen.add_argument("--preset", metavar="P", help=f"run the pipeline of a preset: {', '.join(preset_names())}")
    parser.add_argument("-o", "--output", metavar="OUT", help="file to write; standard output when absent")
    parser.add_argument("--remarks", action="store_true", help="print what each pass decided on standard error")
    parser.add_argument("--verify", action="store_true", help="check the module after every pass")


def main(options: argparse.Namespace) -> int:
    pipeline = parse_pipeline(options.passes) if options.passes is not None else resolve_preset(options.preset)
    module = read_module(options.file, options.stage)
    with progress("running passes"):
        result = pipeline.run(module, verify=options.verify)
    if options.remarks:
        for run in result:
            _print_remarks(run.ran, [str(remark) for remark in run.result.remarks])
    _write(module.to_text(), options.output)
    return 0


def _print_remarks(ran: Pass, remarks: list[str]) -> None:
    for remark in remarks:
        print(f"{ran.name}: {remark}", file=sys.stderr)


def _write(text: str, output: str | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from error
