"""Pictures of memory over time and of the way of a layout (extra ``plot``: matplotlib).

Colours say the same everywhere, also in the HTML report (:mod:`layoutsim.report.colors`): red for transposing copies, one
for each class of what is alive at the peak, a pale one for what is not.
"""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves its keyword arguments untyped)

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from layoutsim.errors import InputError
from layoutsim.report.colors import COPIES, INK, MARK, OTHERS, SOFT, color_of, group_of, groups_in
from layoutsim.report.explain import Explanation
from layoutsim.report.propagation import LINE, PADDING, Box, BoxKind, propagation_picture
from layoutsim.report.timeline import Span, Timeline
from layoutsim.report.units import human_bytes, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PIXELS_PER_INCH = 96
_POINTS_PER_PIXEL = 72 / _PIXELS_PER_INCH
_BAND, _EDGE, _ACCENT = "#eef2f6", "#8c9aa8", "#2f6fab"


def plot_timeline(line: Timeline, *, marked: Collection[str] = ()) -> Figure:
    """Live temporaries over logical time, the peak marked, and what is alive at the peak by its class.

    Args:
        marked: names of instructions whose values are drawn as transposing copies.
    """
    figure, (axis,) = _panels(1, width=8.0)
    _draw_timeline(axis, line, lambda span: group_of(span, marked), unit_of(max(line.live_bytes)))
    axis.set_title(line.name, size=10)
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, title="at the peak", alignment="left")
    return figure


def plot_timelines(timelines: Mapping[str, Timeline], *, marked: Mapping[str, Collection[str]] | None = None) -> Figure:
    """Live temporaries over logical time, one panel for each timeline, on a common scale.

    Args:
        timelines: by title.
        marked: for some titles, names of instructions whose values are drawn in colour (the transposing copies, say).
    """
    figure, axes = _panels(len(timelines))
    unit = unit_of(max(max(line.live_bytes) for line in timelines.values()))
    for axis, (title, line) in zip(axes, timelines.items(), strict=True):
        chosen = set((marked or {}).get(title, ()))
        _draw_timeline(axis, line, lambda span, chosen=chosen: COPIES if span.instruction in chosen else OTHERS, unit)
        axis.set_title(title, size=10)
        if axis is not axes[0]:
            axis.set_ylabel("")
    labels = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(labels.values(), labels, loc="outside lower center", ncols=2, frameon=False)
    return figure


def plot_address_map(line: Timeline, *, marked: Collection[str] = ()) -> Figure:
    """Every packed value as a rectangle: logical time across, offset upwards, allocations on top of each other.

    Args:
        marked: names of instructions whose values are drawn as transposing copies.
    """
    from matplotlib.collections import PolyCollection

    figure, (axis,) = _panels(1, width=8.0)
    bases = line.bases
    name, scale = unit_of(sum(line.allocation_bytes.values()))
    for group in groups_in(line, marked):
        corners = [_corners(span, bases[span.allocation], scale) for span in line.spans if group_of(span, marked) == group]
        axis.add_collection(PolyCollection(corners, facecolor=color_of(group), edgecolor="white", linewidth=0.3, label=group))
    axis.axvline(line.peak_time, color=INK, linewidth=0.8, linestyle=":")
    axis.autoscale_view()
    axis.margins(x=0)
    axis.set_ylim(bottom=0)
    axis.set_title(line.name, size=10)
    axis.set_xlabel("logical time (dotted: the peak)")
    axis.set_ylabel(f"offset [{name}]")
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, title="at the peak", alignment="left")
    return figure


def plot_propagation(explanation: Explanation) -> Figure:
    """How the two layouts that meet at a copy came there, from the rules that demanded them."""
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    picture = propagation_picture(explanation)
    figure = _figure(picture.width / _PIXELS_PER_INCH, picture.height / _PIXELS_PER_INCH)
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axis.set_axis_off()
    for band in picture.bands:
        axis.add_patch(FancyBboxPatch((band.x, band.y), band.width, band.height, "square,pad=0", fc=_BAND, ec="none"))
        _text(axis, band.x + PADDING, band.y + 10, band.title, color=SOFT)
    for arrow in picture.arrows:
        ends = ((arrow.x1, arrow.y1), (arrow.x2, arrow.y2))
        axis.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=SOFT, shrinkA=0, shrinkB=0))
    for box in picture.boxes:
        _draw_box(axis, box)
    for heading in picture.headings:
        _text(axis, heading.x, heading.y - 5, heading.text, weight="bold")
    return figure


def _draw_box(axis: Axes, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    edge = {BoxKind.DEMAND: _ACCENT, BoxKind.COPY: MARK}.get(box.kind, _EDGE)
    style = "--" if box.kind is BoxKind.FOLDED else "-"
    width = 1.6 if box.kind in (BoxKind.DEMAND, BoxKind.COPY) else 0.8
    axis.add_patch(
        FancyBboxPatch((box.x, box.y), box.width, box.height, "square,pad=0", fc="white", ec=edge, lw=width, ls=style)
    )
    x, y = box.x + PADDING, box.y + PADDING + LINE / 2
    _text(axis, x, y, box.title, family="monospace", weight="bold")
    color = MARK if box.changes else INK
    _text(axis, box.x + box.width - PADDING, y, box.layout, family="monospace", ha="right", color=color)
    for number, line in enumerate(box.lines, start=1):
        _text(axis, x, y + number * LINE, line, color=SOFT)


def _text(axis: Axes, x: float, y: float, text: str, *, color: str = INK, **font: str) -> None:
    axis.text(x, y, text, font, color=color, va="center", size=11 * _POINTS_PER_PIXEL)


def _corners(span: Span, base: int, scale: int) -> list[tuple[float, float]]:
    left, right = span.start, span.end
    bottom, top = (base + span.offset) / scale, (base + span.offset + span.size_bytes) / scale
    return [(left, bottom), (left, top), (right, top), (right, bottom)]


def _draw_timeline(axis: Axes, line: Timeline, group: Callable[[Span], str], unit: tuple[str, int]) -> None:
    name, scale = unit
    curves = _curves(line, group)
    times = range(len(line.live_bytes) + 1)
    bottom = [0.0] * len(times)
    for label, curve in curves.items():
        top = [low + size / scale for low, size in zip(bottom, [*curve, curve[-1]], strict=True)]
        axis.fill_between(times, bottom, top, step="post", color=color_of(label), label=label, linewidth=0)
        bottom = top
    peak, most = line.peak_time, line.live_bytes[line.peak_time]
    axis.plot([peak + 0.5], [most / scale], marker="v", color=INK, markersize=4)
    axis.annotate(human_bytes(most), (peak, most / scale), (0, 5), textcoords="offset points", ha="center", size=8)
    axis.set_xlabel("logical time")
    axis.set_ylabel(f"live temporaries [{name}]")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0, y=0.15)
    axis.set_ylim(bottom=0)


def _curves(line: Timeline, group: Callable[[Span], str]) -> dict[str, list[int]]:
    """Live bytes over time of each group; the pale ones on top."""
    changes: dict[str, list[int]] = {}
    for span in line.spans:
        change = changes.setdefault(group(span), [0] * (len(line.live_bytes) + 1))
        change[span.start] += span.size_bytes
        change[span.end] -= span.size_bytes
    at_peak = {name: sum(change[: line.peak_time + 1]) for name, change in changes.items()}
    ordered = sorted(changes, key=lambda name: (name == OTHERS, name != COPIES, -at_peak[name], name))
    return {name: list(accumulate(changes[name][:-1])) for name in ordered}


def _panels(count: int, width: float = 0.0) -> tuple[Figure, Sequence[Axes]]:
    figure = _figure(width or max(5.0, 3.6 * count), 3.4)
    figure.set_layout_engine("constrained")
    grid = figure.subplots(1, count, sharey=True, squeeze=False)
    return figure, list(grid[0])


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure as MatplotlibFigure
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install 'layoutsim[plot]'") from error
    return MatplotlibFigure(figsize=(width, height))
