"""Tables for terminals, and the same rows as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from attrs import frozen
from rich.console import Group
from rich.table import Table
from rich.text import Text

from layoutsim.report.copies import CopyRecord
from layoutsim.report.units import count, exact_bytes, human_bytes


@frozen
class Rows:
    """A table without a form: a title, columns, rows, and which columns hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[str] = frozenset()
    note: str = ""

    def to_rich(self) -> Group:
        """For a terminal."""
        out = Table(box=None, pad_edge=False, header_style="bold")
        for column in self.columns:
            out.add_column(column, justify="right" if column in self.numbers else "left", overflow="fold")
        for row in self.rows:
            out.add_row(*map(Text, row))
        parts = [Text(self.title, style="bold"), *([out] if self.rows else []), *([Text(self.note)] if self.note else [])]
        return Group(*parts)

    def to_html(self) -> str:
        """For a notebook."""
        head = self._html_cells("th", self.columns)
        body = "".join(f"<tr>{self._html_cells('td', row)}</tr>" for row in self.rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        note = f"<div>{html.escape(self.note)}</div>" if self.note else ""
        return f"<div><b>{html.escape(self.title)}</b></div>{table}{note}"

    def _html_cells(self, tag: str, row: Sequence[str]) -> str:
        aligned = zip(self.columns, row, strict=True)
        return "".join(
            f'<{tag} style="text-align:{"right" if column in self.numbers else "left"}">{html.escape(cell)}</{tag}>'
            for column, cell in aligned
        )


def copy_rows(copies: Sequence[CopyRecord], *, include_free: bool = False) -> Rows:
    """One row for each copy; copies that move no bytes are counted in the note unless ``include_free``."""
    real = [c for c in copies if c.transposing]
    free = [c for c in copies if not c.transposing]
    shown = [*real, *free] if include_free else real
    total = sum(c.size_bytes for c in real)
    title = f"{count(len(real), 'transposing copy', 'transposing copies')}, {exact_bytes(total)}"
    note = ""
    if free and not include_free:
        copies_word = count(len(free), "more copy differs", "more copies differ")
        note = f"{copies_word} in size-1 dimensions only and moves no bytes (--all lists them)"
    columns = ("copy", "of", "computation", "shape", "from", "to", "bytes", "runs")
    return Rows(title, columns, tuple(map(_copy_row, shown)), frozenset({"bytes", "runs"}), note)


def _copy_row(copy: CopyRecord) -> tuple[str, ...]:
    runs = "?" if copy.runs is None else f"{copy.runs:,}"
    size = f"{copy.size_bytes:,}" if copy.transposing else f"({copy.size_bytes:,})"
    return (copy.name, copy.source, copy.computation, copy.shape, copy.from_layout, copy.to_layout, size, runs)


def byte_rows(title: str, sizes: Iterable[tuple[str, int]]) -> Rows:
    """Named sizes, exact and as people read them."""
    rows = tuple((name, f"{size:,}", human_bytes(size)) for name, size in sizes)
    return Rows(title, ("", "bytes", "≈"), rows, frozenset({"bytes", "≈"}))
