r"""Strings of HLO text: C escapes, read strictly and written in one canonical way.

Escapes stand for *bytes* of UTF-8 (``\303\251`` is ``é``). Reading takes the escapes of ``absl::CUnescape``; writing quotes
``\n \r \t \" \' \\`` by letter and every other byte outside printable ASCII as three octal digits, as ``absl::CEscape`` does.
"""

from __future__ import annotations

import re

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, "'": 39, '"': 34}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?'\"])|([0-3][0-7]{2}|[0-7]{1,2})|[xX]0*([0-9a-fA-F]{1,2})(?![0-9a-fA-F])|u([0-9a-fA-F]{4})"
    r"|U([0-9a-fA-F]{8}))|\\",
    re.ASCII,
)
_PLAIN = re.compile(r"[ !#-&(-\[\]-~]*", re.ASCII)
_LETTERS = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


class EscapeError(ValueError):
    """An escape that C does not know; ``offset`` is where its backslash stands in the text."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"unknown escape at {offset}")
        self.offset = offset


def unescape(body: str) -> str:
    """The value of a string whose text between the quotes is ``body``.

    Raises:
        EscapeError: an unknown or unfinished escape.
    """
    if "\\" not in body:
        return body
    out = bytearray()
    end = 0
    for match in _ESCAPE.finditer(body):
        out += _encode(body[end : match.start()], match.start())
        out += _escaped_bytes(match)
        end = match.end()
    out += _encode(body[end:], end)
    return out.decode("utf-8", "surrogateescape")


def _encode(part: str, offset: int) -> bytes:
    try:
        return part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise EscapeError(offset) from error


def _escaped_bytes(match: re.Match[str]) -> bytes:
    letter, octal, hexadecimal, short, long = match.groups()
    if letter:
        return bytes([_SIMPLE[letter]])
    if octal:
        return bytes([int(octal, 8)])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if short or long:
        code = int(short or long, 16)
        if code <= 0x10FFFF and not 0xD800 <= code < 0xE000:
            return chr(code).encode()
    raise EscapeError(match.start())


def escape(value: str) -> str:
    """``value`` as it stands between double quotes in canonical text."""
    if _PLAIN.fullmatch(value):
        return value
    data = value.encode("utf-8", "surrogateescape")
    return "".join(_LETTERS.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in data)


def quote(value: str) -> str:
    """``value`` with quotes and escapes."""
    return f'"{escape(value)}"'
