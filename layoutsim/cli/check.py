"""``layoutsim check``: does layoutsim agree with the real compiler on this module?"""

from __future__ import annotations

import argparse
from pathlib import Path

from layoutsim.cli.common import add_json, print_json, progress, read_module
from layoutsim.experiments.conformance import Stage, Verdict, check_folder
from layoutsim.experiments.live import Backend, check_live

NAME = "check"
HELP = "hold layoutsim against what the real compiler did; exit code 1 on any difference"

_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="DIR",
        help="XLA dump folder, or one with before_layout, after_layout, final, buffer-assignment; with --live any module",
    )
    parser.add_argument("--stage", choices=[stage.value for stage in Stage], default="all", help="what to check (default: all)")
    parser.add_argument("--preset", metavar="P", help="rules to check (default: by the folder's name)")
    parser.add_argument("--live", action="store_true", help="ask the installed compiler (extra: oracle) what it does with DIR")
    parser.add_argument("--backend", choices=[b.value for b in Backend], default="gpu", help="compiler for --live")
    add_json(parser)


def main(options: argparse.Namespace) -> int:
    verdict = _check(options)
    if options.json:
        print_json(verdict.to_json())
    else:
        _print(verdict)
    return 0 if verdict.agrees else 1


def _check(options: argparse.Namespace) -> Verdict:
    if not options.live:
        with progress(f"checking {options.path}"):
            return check_folder(Path(options.path), Stage(options.stage), options.preset)
    module = read_module(options.path)
    with progress(f"asking the {options.backend} compiler about {module.name}"):
        return check_live(module, Backend(options.backend), Stage(options.stage), options.preset)


def _print(verdict: Verdict) -> None:
    if (layout := verdict.layout) is not None:
        copies = f"{layout.copies_ours} copies inserted, by the compiler {layout.copies_theirs}"
        print(f"layout: {layout.instructions:,} instructions, {len(layout.mismatches)} differences; {copies}")
        _print_some(layout.mismatches)
    for name, buffers in [("buffers", verdict.buffers), ("pipeline", verdict.pipeline and verdict.pipeline.buffers)]:
        if buffers is not None:
            total = f"total {buffers.ours_total_bytes:,} B, the compiler's {buffers.theirs_total_bytes:,} B"
            temp = f"temporaries {buffers.ours_temp_bytes:,} B and {buffers.theirs_temp_bytes:,} B"
            print(f"{name}: {len(buffers.differences)} differences; {total}; {temp}")
            _print_some(buffers.differences)
    if verdict.pipeline is not None and verdict.pipeline.first_difference:
        print(f"pipeline: the first stage that differs is {verdict.pipeline.first_difference}")


def _print_some(items: tuple[object, ...]) -> None:
    for item in items[:_SHOWN]:
        print(f"  {item}")
    if len(items) > _SHOWN:
        print(f"  and {len(items) - _SHOWN:,} more (--json lists all)")
