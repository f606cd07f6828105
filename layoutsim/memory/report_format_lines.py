"""Reading XLA's reports line by line, and the small syntax they have in common."""

from __future__ import annotations

import re

from layoutsim.errors import ParseError

Index = tuple[int, ...]

_ENDLESS_NUMBER = re.compile(r"(?:\d ?){1000}")


class Lines:
    """The lines of a report with a cursor; what does not fit is a :class:`ParseError` with its line."""

    def __init__(self, text: str, path: str = "") -> None:
        if text and not text.endswith("\n"):
            last = text.rsplit("\n", 1)[-1]
            raise ParseError(
                "the last line has no end; is the file whole?", line=text.count("\n") + 1, source_line=last, path=path
            )
        self._lines = text.split("\n")[:-1]
        self._next = 0
        self._path = path
        if (endless := _ENDLESS_NUMBER.search(text)) is not None:  # int() refuses those with an error of its own
            self._next = text.count("\n", 0, endless.start())
            raise self.error("expected numbers of less than 1,000 digits")

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._lines)

    def starts_with(self, prefix: str) -> bool:
        """Whether there is a next line and it starts with ``prefix``."""
        return not self.at_end and self._lines[self._next].startswith(prefix)

    def take(self) -> str:
        """The next line.

        Raises:
            ParseError: there is none.
        """
        if self.at_end:
            raise self.error("expected another line, got the end of the file")
        self._next += 1
        return self._lines[self._next - 1]

    def expect(self, line: str) -> None:
        """Takes the next line, which must be exactly ``line``."""
        if self.at_end or self._lines[self._next] != line:
            raise self.error(f"expected {line!r}")
        self._next += 1

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Takes the next line, which must match as a whole."""
        match = None if self.at_end else pattern.fullmatch(self._lines[self._next])
        if match is None:
            raise self.error(f"expected {what}")
        self._next += 1
        return match

    def error(self, reason: str, *, back: int = 0) -> ParseError:
        """An error at the next line, or ``back`` lines before it."""
        number = self._next - back
        line = self._lines[number] if number < len(self._lines) else ""
        return ParseError(reason, line=number + 1, column=1, source_line=line, path=self._path)


def parse_index(text: str) -> Index:
    """``{1,0}`` as ``(1, 0)``."""
    return tuple(int(part) for part in text[1:-1].split(",") if part)


def print_index(index: Index) -> str:
    """``(1, 0)`` as ``{1,0}``."""
    return f"{{{','.join(map(str, index))}}}"
