"""The errors of layoutsim: one root, :class:`LayoutsimError`, and what a user should do about each kind.

An error names who, what was expected, what was found and where. Internal slips are ``assert``; what a user can cause is
one of these.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen


class LayoutsimError(Exception):
    """Root of every error that a user's input can cause. Catch this to catch them all."""


class ParseError(LayoutsimError):
    """The text (or binary proto) is not valid HLO; the message shows line, column, the line and a caret.

    Attributes:
        line: 1-based line, or 0 where the input has no lines (binary protos).
        column: 1-based column.
        reason: what was expected and what stood there, without the position.
    """

    def __init__(self, reason: str, *, line: int = 0, column: int = 0, source_line: str = "", path: str = "") -> None:
        self.reason = reason
        self.line = line
        self.column = column
        self.source_line = source_line
        self.path = path
        super().__init__(self._render())

    def _render(self) -> str:
        where = f"{self.path or '<text>'}:{self.line}:{self.column}: " if self.line else ""
        text = f"{where}{self.reason}"
        if self.line:
            shown, caret = _window(self.source_line, self.column)
            text += f"\n  {shown}\n  {' ' * caret}^"
        return text


def _window(source_line: str, column: int, width: int = 120) -> tuple[str, int]:
    """The part of a (possibly 77 KB long) line around ``column``, and where the caret goes in it."""
    line = source_line.replace("\t", " ").rstrip("\r\n")
    start = max(0, column - 1 - width // 2) if len(line) > width else 0
    return line[start : start + width], column - 1 - start


class ShapeError(LayoutsimError):
    """A shape cannot be built or inferred: wrong rank, sizes or element types."""


class LayoutError(LayoutsimError):
    """A layout does not fit its shape, or layout assignment met what XLA refuses too (layout spec, section 14)."""


class UnsupportedError(LayoutsimError):
    """Valid HLO that layoutsim does not model; the message names the opcode (or option) and the place."""


class PassError(LayoutsimError):
    """A pass cannot run on this module, or a pass name or option is unknown."""


class InputError(LayoutsimError):
    """A file, option or argument given by the user is wrong; the command line prints it and exits with code 2."""


@frozen
class Diagnostic:
    """One finding of a verifier: who, what was expected, what was found.

    Attributes:
        where: instruction or computation name (``computation/instruction`` for instructions).
        invariant: number or short name of the rule that does not hold.
        message: the whole finding in one line.
    """

    where: str
    invariant: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.invariant}]"


class VerificationError(LayoutsimError):
    """A module breaks invariants; ``diagnostics`` holds every finding, not only the first."""

    def __init__(self, diagnostics: Iterable[Diagnostic], *, after: str = "") -> None:
        self.diagnostics = tuple(diagnostics)
        head = f"module is not valid{f' after {after}' if after else ''} ({len(self.diagnostics)} findings)"
        super().__init__("\n  ".join([head, *map(str, self.diagnostics)]))
