"""One self-contained HTML page about a simulation: figures, an interactive timeline, the copies and their chains.

The page holds its data and needs nothing from elsewhere. For large modules it stays small: only the largest values are listed
by name (:data:`MOST_SPANS`), while the curve counts all of them.
"""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Sequence
from importlib.resources import files

from layoutsim.report.explain import Explanation
from layoutsim.report.tables import Rows
from layoutsim.report.timeline import Timeline

MOST_SPANS = 4000
"""Values that the timeline can name."""


def render_page(
    title: str,
    preset: str,
    instruction_count: int,
    figures: Sequence[Rows],
    copies: Rows,
    explanations: Sequence[Explanation],
    line: Timeline,
    marked: Collection[str],
) -> str:
    """The page as text.

    Args:
        figures: tables to begin with.
        marked: names of the copies, drawn in colour.
    """
    template = files("layoutsim.report").joinpath("page.html").read_text(encoding="utf-8")
    parts = {
        "__TITLE__": html.escape(title),
        "__PRESET__": html.escape(preset),
        "__COUNT__": f"{instruction_count:,}",
        "__FIGURES__": "\n".join(f'<div class="scroll">{rows.to_html()}</div>' for rows in figures),
        "__COPIES__": f'<div class="scroll">{copies.to_html()}</div>',
        "__CHAINS__": "\n".join(map(_chain, explanations)) or "<p>No transposing copies: nothing to explain.</p>",
        "__DATA__": _data(line, set(marked)),
    }
    for mark, text in parts.items():
        template = template.replace(mark, text)
    return template


def _chain(explanation: Explanation) -> str:
    copy = explanation.copy
    summary = f"<code>{html.escape(copy.name)}</code>: {html.escape(copy.shape)} {copy.from_layout} to {copy.to_layout}"
    return f"<details><summary>{summary}</summary><pre>{html.escape(explanation.to_text())}</pre></details>"


def _data(line: Timeline, marked: set[str]) -> str:
    colored = [0] * (len(line.live_bytes) + 1)
    for span in line.spans:
        if span.name.partition("{")[0] in marked:
            colored[span.start] += span.size_bytes
            colored[span.end] -= span.size_bytes
    total, curve = 0, list[int]()
    for change in colored[:-1]:
        total += change
        curve.append(total)
    largest = sorted(line.spans, key=lambda span: (-span.size_bytes, span.name))[:MOST_SPANS]
    data = {
        "live": line.live_bytes,
        "marked": curve,
        "peak": line.peak_time,
        "spans": [[s.name, s.start, s.end, s.size_bytes, s.shape, s.location or s.opcode] for s in largest],
    }
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
