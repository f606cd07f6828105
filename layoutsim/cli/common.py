"""What the subcommands share: one-line errors, tables that fit a terminal or a pipe, JSON, progress on terminals only."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console

from layoutsim.ir.module import Module
from layoutsim.load import STAGES, load
from layoutsim.report.tables import Rows

USAGE_ERROR = 2

_PIPE_WIDTH = 200


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message} (see {self.prog} --help)\n")


def print_rows(*tables: Rows) -> None:
    """Print tables on standard output, an empty line between them; in a pipe they are wide enough for names."""
    terminal = sys.stdout.isatty()
    out = Console(highlight=False) if terminal else Console(highlight=False, width=_PIPE_WIDTH, no_color=True)
    for number, rows in enumerate(tables):
        out.print(*([""] if number else []), rows.to_rich(), sep="\n")


def print_json(value: object) -> None:
    """Print JSON on standard output."""
    json.dump(value, sys.stdout, indent=1)
    sys.stdout.write("\n")


@contextmanager
def progress(message: str) -> Generator[Callable[[str], None]]:
    """A spinner on standard error while work goes on, if that is a terminal; what it yields adds what is going on."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status(message) as status:
        yield lambda step: status.update(f"{message}: {step}")


def read_module(path: str, stage: str | None = None) -> Module:
    """Load ``path``; errors reach the user through ``main``."""
    with progress(f"reading {path}"):
        return load(path, stage)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON with stable keys instead of tables")


def add_module(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="HLO text or proto (.hlo .txt .pb, .gz of them), an XLA dump folder or a .tgz of one")
    parser.add_argument("--stage", help=f"which dump to take from a folder: {', '.join(STAGES)}")
