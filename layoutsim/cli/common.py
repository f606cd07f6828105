"""What the subcommands share: one-line errors, tables that fit a terminal or a pipe, JSON, progress on terminals only."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from layoutsim.ir.module import Module
from layoutsim.load import load

USAGE_ERROR = 2

_PIPE_WIDTH = 200


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message} (see {self.prog} --help)\n")


def console() -> Console:
    """A console on standard output; in a pipe it is wide enough for names."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=_PIPE_WIDTH, no_color=True)


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=1)
    sys.stdout.write("\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> Table:
    """A plain table; the columns named in ``right`` hold numbers."""
    numbers = set(right)
    out = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        out.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        out.add_row(*row)
    return out


@contextmanager
def progress(message: str) -> Generator[None]:
    """A spinner on standard error while work goes on, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(message):
        yield


def read_module(path: str, stage: str | None = None) -> Module:
    """Load ``path``; errors reach the user through ``main``."""
    with progress(f"reading {path}"):
        return load(path, stage)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON with stable keys instead of tables")


def add_module(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="HLO text or proto (.hlo .txt .pb, .gz of them), an XLA dump folder or a .tgz of one")
    parser.add_argument("--stage", help="which dump to take from a folder: before_layout, after_layout, scheduled")
