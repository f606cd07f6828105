"""One self-contained HTML page about a simulation: figures, an interactive timeline, the copies and their chains.

The page holds its data (:mod:`layoutsim.report.page_data`) and needs nothing from elsewhere; its parts are in ``web/``. What
has to be readable without a script is written here: figures, what is alive at the peak, and a picture for each kind of copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from attrs import frozen

from layoutsim.ir.shape import shape_text
from layoutsim.memory.waste import WasteReport, WasteRow
from layoutsim.report.colors import color_of
from layoutsim.report.copies import CopyRecord
from layoutsim.report.copy_groups import CopyGroup, copy_groups
from layoutsim.report.explain import Explanation
from layoutsim.report.page_data import copy_data, memory_data
from layoutsim.report.propagation import propagation_picture
from layoutsim.report.svg import STYLE, to_svg
from layoutsim.report.tables import Rows, copy_rows
from layoutsim.report.timeline import Timeline
from layoutsim.report.units import count, exact_bytes, human_bytes

MOST_PICTURES = 50
"""Kinds of copies that get a picture, the largest first."""
_MOST_AT_PEAK = 15
_LARGEST_COLUMNS = ("value", "shape", "#bytes", "class", "because")
_SCRIPTS = ("format.js", "timeline.js", "copies.js", "chains.js")


@frozen(eq=False)
class PageContent:
    """What a page shows.

    Attributes:
        figures: a table to begin with.
        best: a sentence on how far the layouts are from the best ones, or nothing.
        copies: all of them, as the table lists them.
        explanations: of some, usually the transposing ones.
    """

    title: str
    preset: str
    instruction_count: int
    figures: Rows
    best: str
    waste: WasteReport
    copies: Sequence[CopyRecord]
    explanations: Sequence[Explanation]
    line: Timeline


def render_page(content: PageContent) -> str:
    """The page as text."""
    groups = copy_groups(content.explanations)
    names = {copy.name for copy in content.copies if copy.transposing}
    data = memory_data(content.line, names) | copy_data(content.copies, groups)
    static = content.line.static_bytes
    summary = copy_rows(content.copies)
    parts = {
        "TITLE": escape(content.title),
        "PRESET": escape(content.preset),
        "COUNT": f"{content.instruction_count:,}",
        "STYLE": _read("page.css") + STYLE,
        "FIGURES": content.figures.to_html(),
        "STATIC": f"Arguments, outputs and constants ({human_bytes(static)}) are held all the time.",
        "PEAK": _peak(content.waste),
        "COPIES": escape(". ".join(filter(None, [summary.title, summary.note.replace("--all lists them", "bytes: 0")]))),
        "BEST": f"<p>{escape(content.best)}.</p>" if content.best else "",
        "WHY": "\n".join(_why(number, group) for number, group in enumerate(groups)) or "<p>Nothing is transposed.</p>",
        "DATA": json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        "SCRIPT": "\n".join(map(_read, _SCRIPTS)),
    }
    return _fill(_read("page.html"), parts)


def _read(name: str) -> str:
    return files("layoutsim.report").joinpath("web", name).read_text(encoding="utf-8")


def _fill(template: str, parts: dict[str, str]) -> str:
    """Put the parts into the template, which names them ``__NAME__``; what they contain is not looked at again."""
    pieces = template.split("__")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _peak(waste: WasteReport) -> str:
    total = sum(row.size for row in waste.rows)
    classes = [
        [_swatched(name), _number(f"{size:,}"), _number(human_bytes(size)), _number(f"{size / max(total, 1):.1%}")]
        for name, size in waste.bytes_by_class.items()
    ]
    largest = [_largest(row) for row in waste.rows[:_MOST_AT_PEAK]]
    rest = len(waste.rows) - len(largest)
    note = f'<p class="soft">and {count(rest, "smaller one", "smaller ones")}</p>' if rest else ""
    return (
        '<p class="soft">Arguments and constants included. A class names what could be saved; the rest is needed.</p>'
        + f'<div class="columns">{_table(["by class", "#bytes", "#≈", "#part"], classes)}</div>'
        + f'<h3>The largest</h3><div class="largest">{_table(_LARGEST_COLUMNS, largest)}</div>{note}'
    )


def _largest(row: WasteRow) -> list[str]:
    shape = "" if row.value is None else shape_text(row.value.shape)
    return [
        f"<td><code>{escape(row.label)}</code></td>",
        f"<td><code>{escape(shape)}</code></td>",
        _number(f"{row.size:,}"),
        _swatched(row.waste.value),
        f"<td>{escape(row.reason)}</td>",
    ]


def _swatched(group: str) -> str:
    return f'<td><span class="swatch" style="background:{color_of(group)}"></span>{escape(group)}</td>'


def _number(text: str) -> str:
    return f'<td class="number">{text}</td>'


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of finished cells; a column whose name begins with ``#`` holds numbers."""
    head = "".join(
        f'<th scope="col"{" class=number" if name.startswith("#") else ""}>{escape(name.removeprefix("#"))}</th>'
        for name in columns
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _why(number: int, group: CopyGroup) -> str:
    summary = f'<b>{escape(group.title)}</b><br><span class="soft">{escape(group.because)}</span>'
    remedies = group.first.remedies
    advice = ""
    if remedies is not None:
        listed = [f"<code>{escape(r.preset)}</code> (leaves {exact_bytes(r.transposing_bytes)})" for r in remedies]
        advice = f"<p>Avoided by {', '.join(listed)}.</p>" if listed else "<p>None of the rule sets tried avoids it.</p>"
    picture = to_svg(propagation_picture(group.first), standalone=False) if number < MOST_PICTURES else ""
    is_open = " open" if number == 0 else ""
    return (
        f'<details class="why" id="why-{number}"{is_open}><summary>{summary}</summary>{advice}'
        f'<div class="scroll">{picture}</div><div class="steps"></div></details>'
    )
