"""Attributes that any instruction may carry: metadata, sharding, frontend attributes, backend config (text spec, 1.8).

They are kept as the text between the ``=`` and the next attribute, checked when read and taken apart when asked for: a dump
of 40,000 instructions carries as many metadata blocks, and most runs look at a handful of them.
"""

from __future__ import annotations

import re

from attrs import field, frozen


@frozen(cache_hash=True)
class Metadata:
    """Where an instruction came from. Empty strings and zeros mean "not recorded"."""

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    deduplicated_name: str = ""
    scheduling_name: str = ""
    stack_frame_id: int = 0

    @property
    def location(self) -> str:
        """``file.py:12``, or an empty string."""
        return f"{self.source_file}:{self.source_line}" if self.source_file else ""


NO_METADATA = Metadata()

_METADATA_FIELD = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|(-?\d+))')
_NUMBERS = {"source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"}
_STRINGS = {"op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name"}
_SIMPLE_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def parse_metadata(text: str) -> Metadata:
    """Take apart a ``{...}`` text that the parser has checked already; fields without a use here are passed over."""
    found: dict[str, str | int] = {}
    for name, double, single, number in _METADATA_FIELD.findall(text):
        if name in _NUMBERS and number:
            found[name] = int(number)
        elif name in _STRINGS:
            found[name] = unescape(double or single)
    return Metadata(**found)  # pyright: ignore[reportArgumentType]


def unescape(text: str) -> str:
    """Undo the C escapes that HLO text uses; octal and hexadecimal ones stand for bytes of UTF-8."""
    if "\\" not in text:
        return text
    data = text.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescape_one, data).decode("utf-8", "surrogateescape")


_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL)


def _unescape_one(match: re.Match[bytes]) -> bytes:
    body = match.group(1)
    if body[:1] == b"u" and len(body) > 1:
        return chr(int(body[1:], 16)).encode("utf-8", "surrogatepass")
    if body[:1] == b"x" and len(body) > 1:
        return bytes([int(body[1:], 16)])
    if body[:1].isdigit():
        return bytes([int(body, 8) & 0xFF])
    return _SIMPLE_ESCAPES.get(body, body)


@frozen(cache_hash=True)
class Attributes:
    """The texts of the common attributes, ``""`` where absent; braces and quotes as the canonical printer writes them.

    Attributes:
        sharding: canonical sharding text (text spec, 1.11).
        frontend_attributes: ``{key="value",...}``.
        backend_config: a JSON object, or the unescaped string.
        extra: attributes kept by a lenient reader, ``name=raw text`` joined by ``, ``.
    """

    metadata_text: str = ""
    sharding: str = ""
    frontend_attributes: str = ""
    backend_config: str = ""
    statistics: str = ""
    parameter_replication: str = ""
    result_accuracy: str = ""
    origin: str = ""
    extra: str = ""
    _metadata: Metadata | None = field(default=None, init=False, eq=False, repr=False)

    @property
    def metadata(self) -> Metadata:
        if self._metadata is None:
            parsed = parse_metadata(self.metadata_text) if self.metadata_text else NO_METADATA
            object.__setattr__(self, "_metadata", parsed)
            return parsed
        return self._metadata


NO_ATTRIBUTES = Attributes()
