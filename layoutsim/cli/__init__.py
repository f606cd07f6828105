"""The command line: ``layoutsim COMMAND ...``. One file for each subcommand; none of them holds logic of its own.

Exit codes: 0 success; 1 the answer is "no" (a difference, a check that failed); 2 wrong options or unreadable input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from layoutsim.cli import advise, check, compare, diff, explain, joint, memory, opt, report, run, sweep, what_if
from layoutsim.cli.common import USAGE_ERROR, OneLineParser
from layoutsim.errors import LayoutsimError

_COMMANDS = (run, compare, explain, advise, what_if, joint, memory, report, diff, sweep, opt, check)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.command(options)
    except LayoutsimError as error:
        print(f"layoutsim: {str(error).splitlines()[0]}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        # The reader (head, less) has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"layoutsim: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return USAGE_ERROR


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="layoutsim",
        description="Which transposing copies does XLA's layout assignment insert, why, and what do they cost in memory?",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=OneLineParser)
    for module in _COMMANDS:
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        sub.set_defaults(command=module.main)
    return parser
