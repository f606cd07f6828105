"""Tokens of HLO text, one at a time (text spec, sections 1.1 to 1.3; ``xla/hlo/parser/hlo_lexer.h``).

1. Blanks (space, tab, CR, LF), ``/* */`` and ``//`` comments separate tokens and mean nothing else.
2. An identifier glued to ``:`` is a *name* (the colon is swallowed), glued to ``=`` an *attribute name*; ``%x`` is a name.
3. Element types and keywords are reserved for bare identifiers only.
4. At a digit or ``-`` the order is decimal, dim labels, ``2x3``, padding, integer, ``-inf``, ``-nan``.

The lexer holds one current token: :attr:`Lexer.kind`, :attr:`Lexer.value` (its text without decoration) and
:attr:`Lexer.start`; ``previous_end`` is where the token before it ended. Punctuation and keywords are their own kind.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NoReturn

from layoutsim.ir import ElementType
from layoutsim.text.quoting import EscapeError, unescape
from layoutsim.text.source import Source

MAX_DEPTH = 200
"""Nesting of operands, shapes, literals and inline computations that is still read."""


class Kind(StrEnum):
    """Kinds of tokens that are neither punctuation nor keywords."""

    NAME = "name"
    ATTRIBUTE = "attribute name"
    PRIMITIVE = "element type"
    IDENTIFIER = "identifier"
    DIM_LABELS = "dimension labels"
    DXD = "sizes like 2x3"
    PAD = "padding like 0_1"
    DECIMAL = "decimal number"
    INT = "integer"
    STRING = "string"
    END = "end of the text"


KEYWORDS = frozenset(
    [
        "HloModule",
        "ENTRY",
        "ROOT",
        "FileNames",
        "FunctionNames",
        "FileLocations",
        "StackFrames",
        "true",
        "false",
        "inf",
        "maximal",
        "replicated",
        "manual",
        "unknown",
        "unreduced",
        "last_tile_dim_replicate",
        "shard_as",
        "shard_like",
    ]
)
PRIMITIVES = frozenset({str(element_type) for element_type in ElementType} | {"token", "opaque"})
RESERVED = KEYWORDS | PRIMITIVES | {"nan"}
"""Identifiers that cannot stand for a name without ``%``."""

_SKIP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*+"
_PAD = r"-?[0-9]++_-?[0-9]++(?:_[0-9]++)?"
_TOKEN = re.compile(
    r"(?P<dim_labels>[0-9bf?]{2,}+_[0-9io?]{2,}+->[0-9bf?]{2,}+)"
    rf"|(?P<identifier>{_NAME})(?P<glued>[:=]?)"
    rf"|%(?P<name>{_NAME})"
    r"|(?P<punctuation>->|<=|\.\.\.|[=,:*#+~\[\]{}()])"
    r"|(?P<decimal>-?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)[eE][+-]?[0-9]++|-?(?:[0-9]++\.[0-9]*+|\.[0-9]++)|-nan)"
    r"|(?P<dxd>[0-9]++(?:x[0-9]++)+)"
    rf"|(?P<pad>{_PAD}(?:x{_PAD})*)"
    r"|(?P<int>-?[0-9]++)"
    r"|(?P<minus_inf>-inf)"
    r"|(?P<question>\?)"
    r"""|(?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')"""
)
_NAN_PAYLOAD = re.compile(r"\(0x([0-9a-fA-F]+)\)")
_JSON_STEP = re.compile(r'[^"{}]*+(?:"(?:[^"\\]|\\.)*+"|([{}]))')
_KIND_OF_GROUP = {"dim_labels": Kind.DIM_LABELS, "name": Kind.NAME, "decimal": Kind.DECIMAL, "dxd": Kind.DXD, "pad": Kind.PAD}

NAN_PAYLOAD_LIMIT = 1 << 52
INT64_MIN = -(2**63)
UINT64_LIMIT = 2**64


class Lexer:
    """The current token of a text and the means to go on."""

    __slots__ = ("depth", "end", "kind", "payload", "previous_end", "source", "start", "text", "value")

    def __init__(self, source: Source, offset: int = 0) -> None:
        self.source = source
        self.text = source.text
        self.kind: str = Kind.END
        self.value = ""
        self.start = self.end = self.previous_end = offset
        self.payload = 0
        self.depth = 0
        self.advance()

    # -- moving ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Make the next token the current one.

        Raises:
            ParseError: no token starts there.
        """
        self.previous_end = self.end
        skipped = _SKIP.match(self.text, self.end)
        self.start = self.end if skipped is None else skipped.end()
        match = _TOKEN.match(self.text, self.start)
        if match is None:
            self._no_token()
            return
        self.end = match.end()
        group = match.lastgroup
        if group == "glued" or group == "identifier":
            self._identifier(match)
        elif group == "punctuation":
            self.kind = self.value = match.group()
        elif group == "int":
            self._integer(match.group())
        elif group == "string":
            self.kind, self.value = Kind.STRING, match.group()[1:-1]
        elif group == "minus_inf" or group == "question":
            self.kind = self.value = match.group()
        else:
            assert group is not None
            self.kind, self.value = _KIND_OF_GROUP[group], match.group(group)
            if self.value == "-nan":
                self._nan_payload()

    def jump(self, offset: int) -> None:
        """Go on with the token at or behind ``offset``."""
        self.end = offset
        self.advance()

    def _identifier(self, match: re.Match[str]) -> None:
        self.value = word = match.group("identifier")
        glued = match.group("glued")
        if glued:
            self.kind = Kind.NAME if glued == ":" else Kind.ATTRIBUTE
        elif word in PRIMITIVES:
            self.kind = Kind.PRIMITIVE
        elif word == "nan":
            self.kind = Kind.DECIMAL
            self._nan_payload()
        else:
            self.kind = word if word in KEYWORDS else Kind.IDENTIFIER

    def _nan_payload(self) -> None:
        self.payload = 0
        if not self.text.startswith("(", self.end):
            return
        match = _NAN_PAYLOAD.match(self.text, self.end)
        digits = match.group(1).lstrip("0") if match else ""
        if match is None or not digits or len(digits) > 16 or int(digits, 16) >= NAN_PAYLOAD_LIMIT:
            raise self.source.error("expected a NaN payload like (0x7fc01) between 0x1 and 52 bits", self.end)
        self.payload = int(digits, 16)
        self.end = match.end()

    def _integer(self, digits: str) -> None:
        if len(digits.lstrip("-0")) > 20 or not INT64_MIN <= int(digits) < UINT64_LIMIT:
            raise self.source.error(f"integer {digits[:40]} does not fit 64 bits", self.start)
        self.kind, self.value = Kind.INT, digits

    def _no_token(self) -> None:
        if self.start >= len(self.text):
            self.kind, self.value, self.end = Kind.END, "", self.start
            return
        rest = self.text[self.start : self.start + 2]
        if rest == "/*":
            raise self.source.error("unterminated comment", self.start)
        if rest[0] in "\"'":
            raise self.source.error("unterminated string", self.start)
        if rest[0] == "%":
            raise self.source.error("expected a name that starts with a letter or _ behind %", self.start)
        raise self.source.error(f"unexpected character {rest[0]!r}", self.start)

    # -- asking ----------------------------------------------------------------------------------------------------

    def following_kind(self) -> str:
        """Kind of the token behind the current one; only its first character matters to the callers."""
        skipped = _SKIP.match(self.text, self.end)
        match = _TOKEN.match(self.text, self.end if skipped is None else skipped.end())
        if match is None:
            return Kind.END
        if match.lastgroup == "punctuation":
            return match.group()
        return Kind.INT if match.lastgroup == "int" else Kind.IDENTIFIER

    def at_word(self, word: str) -> bool:
        """Whether the current token is this plain identifier."""
        return self.kind == Kind.IDENTIFIER and self.value == word

    def described(self) -> str:
        """The current token, for messages."""
        if self.kind == Kind.END:
            return "the end of the text"
        shown = self.text[self.start : self.end]
        return repr(shown if len(shown) <= 40 else shown[:37] + "...")

    # -- taking ----------------------------------------------------------------------------------------------------

    def fail(self, expected: str) -> NoReturn:
        """Stop at the current token.

        Raises:
            ParseError: always.
        """
        raise self.source.error(f"expected {expected}, got {self.described()}", self.start)

    def expect(self, kind: str, what: str = "") -> str:
        """Take a token of this kind and return its value."""
        if self.kind != kind:
            self.fail(what or (kind if isinstance(kind, Kind) else repr(kind)))
        value = self.value
        self.advance()
        return value

    def eat(self, kind: str) -> bool:
        """Take the token if it is of this kind."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def integer(self, what: str = "an integer") -> int:
        """Take an integer; values from 2**63 on are stored as int64, as XLA does."""
        value = int(self.expect(Kind.INT, what))
        return value if value < 2**63 else value - UINT64_LIMIT

    def boolean(self) -> bool:
        if self.kind not in ("true", "false"):
            self.fail("true or false")
        value = self.kind == "true"
        self.advance()
        return value

    def string(self, what: str = "a string") -> str:
        """Take a string and return its value, escapes undone."""
        start = self.start
        body = self.expect(Kind.STRING, what)
        try:
            return unescape(body)
        except EscapeError as error:
            raise self.source.error("unknown escape in a string", start + 1 + error.offset) from error

    def name(self, what: str = "a name") -> str:
        """Take a name, with or without ``%``."""
        if self.kind != Kind.NAME and self.kind != Kind.IDENTIFIER:
            self.fail(what)
        value = self.value
        self.advance()
        return value

    def json(self) -> str:
        """Take everything from the current ``{`` to the brace that closes it; braces in double quotes do not count."""
        start = self.start
        offset, depth = start, 0
        while match := _JSON_STEP.match(self.text, offset):
            offset = match.end()
            brace = match.group(1)
            if brace is not None:
                depth += 1 if brace == "{" else -1
            if depth == 0:
                self.jump(offset)
                return self.text[start:offset]
        raise self.source.error("expected } that closes this {, got the end of the text", start)

    def deeper(self) -> None:
        """Enter one more level of nesting; pair with ``depth -= 1``.

        Raises:
            ParseError: there are more than :data:`MAX_DEPTH` levels.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.source.error(f"maximum recursion depth of {MAX_DEPTH} exceeded", self.start)
