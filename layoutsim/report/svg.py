"""A propagation picture as SVG: text to put into a page, or a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from layoutsim.report.propagation import LINE, PADDING, Arrow, Band, Box, Heading, PropagationPicture

STYLE = """
.chain text { font: 12px system-ui, sans-serif; fill: var(--ink, #1d2733); }
.chain .mono { font-family: ui-monospace, monospace; font-weight: 600; }
.chain .layout { text-anchor: end; font-family: ui-monospace, monospace; }
.chain .changes .layout { fill: var(--mark, #b83a4b); font-weight: 700; }
.chain .soft, .chain .band text { fill: var(--soft, #55636f); }
.chain .band rect { fill: var(--band, #eef2f6); }
.chain .box rect { fill: var(--bg, #ffffff); stroke: var(--edge, #8c9aa8); }
.chain .demand rect { stroke: var(--accent, #2f6fab); stroke-width: 2; }
.chain .copy rect { stroke: var(--mark, #b83a4b); stroke-width: 2; }
.chain .folded rect { stroke-dasharray: 4 3; }
.chain line { stroke: var(--soft, #55636f); stroke-width: 1.5; }
.chain .tip { fill: var(--soft, #55636f); }
.chain .heading { font-weight: 700; font-size: 13px; }
"""
"""How the parts look; the colours of a page that defines ``--ink`` and so on take effect inside it."""


def to_svg(picture: PropagationPicture, *, standalone: bool = True) -> str:
    """The picture as an ``<svg>`` element.

    Args:
        standalone: with its own style; a page that has :data:`STYLE` once needs none in each picture.
    """
    style = f"<style>{STYLE}</style>" if standalone else ""
    kind = 'class="chain" xmlns="http://www.w3.org/2000/svg"' if standalone else 'class="chain"'
    size = f'width="{picture.width:g}" height="{picture.height:g}" viewBox="0 0 {picture.width:g} {picture.height:g}"'
    parts = [
        *(part for band in picture.bands for part in _band(band)),
        *(part for arrow in picture.arrows for part in _arrow(arrow)),
        *(part for box in picture.boxes for part in _box(box)),
        *map(_heading, picture.headings),
    ]
    named = f'role="img" aria-label="{escape(picture.title, quote=True)}"'
    return f"<svg {kind} {named} {size}>{style}{''.join(parts)}</svg>"


def _band(band: Band) -> Iterator[str]:
    yield f'<g class="band"><rect {_frame(band)} rx="6"/>'
    yield f'<text x="{band.x + PADDING:g}" y="{band.y + 13:g}">{escape(band.title)}</text></g>'


def _arrow(arrow: Arrow) -> Iterator[str]:
    x, y = arrow.x2, arrow.y2
    yield f'<line x1="{arrow.x1:g}" y1="{arrow.y1:g}" x2="{x:g}" y2="{y - 6:g}"/>'
    yield f'<path class="tip" d="M{x:g} {y:g}l-4 -7h8z"/>'


def _box(box: Box) -> Iterator[str]:
    yield f'<g class="box {box.kind.value}{" changes" if box.changes else ""}"><rect {_frame(box)} rx="4"/>'
    y = box.y + PADDING + 11
    yield f'<text class="mono" x="{box.x + PADDING:g}" y="{y:g}">{escape(box.title)}</text>'
    if box.layout:
        yield f'<text class="layout" x="{box.x + box.width - PADDING:g}" y="{y:g}">{escape(box.layout)}</text>'
    for number, line in enumerate(box.lines, start=1):
        yield f'<text class="soft" x="{box.x + PADDING:g}" y="{y + number * LINE:g}">{escape(line)}</text>'
    yield "</g>"


def _heading(heading: Heading) -> str:
    return f'<text class="heading" x="{heading.x:g}" y="{heading.y:g}">{escape(heading.text)}</text>'


def _frame(part: Band | Box) -> str:
    return f'x="{part.x:g}" y="{part.y:g}" width="{part.width:g}" height="{part.height:g}"'
