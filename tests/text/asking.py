"""Short ways to ask the reader, shared by the tests of HLO text."""

from __future__ import annotations

import pytest

from layoutsim.errors import ParseError
from layoutsim.ir import Instruction, Module
from layoutsim.ir.equality import module_differences
from layoutsim.text import ParseOptions, parse_module

SLOW = ParseOptions(fast=False)


def parse_both(text: str) -> Module:
    """The module, after checking that the fast and the slow path agree on it."""
    module = parse_module(text)
    assert module_differences(module, parse_module(text, options=SLOW)) == []
    return module


def in_entry(body: str) -> Module:
    """A module whose entry has these lines."""
    return parse_both(f"HloModule m\n\nENTRY e {{\n{body}\n}}\n")


def root_of(body: str) -> Instruction:
    """The root of an entry with these lines."""
    return in_entry(body).entry.root


def printed(line: str, *before: str) -> str:
    """The line that the printer writes for ``line``, which stands last, without percent signs."""
    body = "\n".join(f"  {each}" for each in (*before, line))
    text = in_entry(body).to_text().replace("%", "")
    return text.removesuffix("\n}\n").splitlines()[-1].strip().removeprefix("ROOT ")


def refused(text: str, options: ParseOptions | None = None) -> ParseError:
    """The error for ``text``, which must be the same on both paths."""
    with pytest.raises(ParseError) as slow:
        parse_module(text, options=options or SLOW)
    if options is None:
        with pytest.raises(ParseError) as fast:
            parse_module(text)
        assert str(fast.value) == str(slow.value)
    return slow.value


def complaint(text: str) -> tuple[int, int, str]:
    """Line, column and reason of the error for ``text``."""
    error = refused(text)
    return error.line, error.column, error.reason


def body_complaint(*lines: str) -> tuple[int, int, str]:
    """As :func:`complaint` for the lines of an entry, the first of which is line 1; columns count without indentation."""
    line, column, reason = complaint("HloModule m\nENTRY e {\n" + "\n".join(f"  {each}" for each in lines) + "\n}\n")
    return line - 2, column - 2, reason
