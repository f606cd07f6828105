"""The command line: ``layoutsim COMMAND ...``. One file for each subcommand; none of them holds logic of its own.

Exit codes: 0 success; 1 the answer is "no" (a difference, a check that failed); 2 wrong options or unreadable input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from layoutsim.cli import advise, check, compare, diff, explain, joint, memory, opt, report, run, sweep, what_if
from layoutsim.cli.common import USAGE_ERROR, OneLineParser
from layoutsim.errors import LayoutsimError, ParseError

_COMMANDS = (run, compare, explain, advise, what_if, joint, memory, report, diff, sweep, opt, check)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")  # the subcommand's, which has the help to see
    try:
        return options.command(options)
    except LayoutsimError as error:
        print(f"layoutsim: {_first_line(error)}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        # The reader (head, less) has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"layoutsim: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return USAGE_ERROR


def _first_line(error: LayoutsimError) -> str:
    line = str(error).splitlines()[0]
    is_no_hlo = isinstance(error, ParseError) and (error.line, error.column) == (1, 1)
    return f"{line}; is this HLO? XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_as_text" if is_no_hlo else line


def _parser() -> OneLineParser:
    parser = OneLineParser(
        prog="layoutsim",
        description="Which transposing copies does XLA's layout assignment insert, why, and what do they cost in memory?",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=OneLineParser)
    for module in _COMMANDS:
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        sub.set_defaults(command=module.main, parser=sub)
    return parser
