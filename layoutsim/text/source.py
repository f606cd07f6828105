"""The text being read, and errors that point into it: line, column, the line itself and a caret."""

from __future__ import annotations

from attrs import frozen

from layoutsim.errors import ParseError


@frozen
class Source:
    """A text with the name of the file it came from; positions are offsets into ``text``."""

    text: str
    path: str = ""

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """1-based line and column of ``offset``."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def error(self, reason: str, offset: int) -> ParseError:
        """A :class:`ParseError` that points at ``offset``."""
        line, column = self.line_and_column(offset)
        start = offset - (column - 1)
        end = self.text.find("\n", start)
        source_line = self.text[start : len(self.text) if end < 0 else end]
        return ParseError(reason, line=line, column=column, source_line=source_line, path=self.path)
