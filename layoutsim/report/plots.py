"""Pictures of memory over time (extra ``plot``: matplotlib)."""

# pyright: reportUnknownMemberType=false
# (matplotlib leaves its keyword arguments untyped)

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from layoutsim.errors import InputError
from layoutsim.report.timeline import Span, Timeline
from layoutsim.report.units import human_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REST, _MARKED, _PEAK = "#8fa9c4", "#d1495b", "#333333"
_UNIT = 1 << 20


def plot_timelines(timelines: Mapping[str, Timeline], *, marked: Mapping[str, Collection[str]] | None = None) -> Figure:
    """Live temporaries over logical time, one panel for each timeline, on a common scale.

    Args:
        timelines: by title.
        marked: for some titles, names of instructions whose values are drawn in colour (the transposing copies, say).
    """
    figure, axes = _panels(len(timelines))
    for axis, (title, line) in zip(axes, timelines.items(), strict=True):
        _draw_timeline(axis, title, line, set((marked or {}).get(title, ())))
    axes[0].set_ylabel("live temporaries [MiB]")
    axes[0].legend(loc="upper left", frameon=False)
    return figure


def plot_address_map(line: Timeline, *, marked: Collection[str] = ()) -> Figure:
    """Every packed value as a rectangle: logical time across, offset in its allocation upwards."""
    from matplotlib.patches import Rectangle

    figure, (axis,) = _panels(1)
    chosen = set(marked)
    for span in line.spans:
        color = _MARKED if _base(span) in chosen else _REST
        corner = (span.start, span.offset / _UNIT)
        axis.add_patch(
            Rectangle(corner, span.end - span.start, span.size_bytes / _UNIT, facecolor=color, edgecolor="white", linewidth=0.4)
        )
    axis.autoscale_view()
    axis.set_title(line.name)
    axis.set_xlabel("logical time")
    axis.set_ylabel("offset [MiB]")
    return figure


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    try:
        from matplotlib.figure import Figure as MatplotlibFigure
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install 'layoutsim[plot]'") from error
    figure = MatplotlibFigure(figsize=(max(5.0, 3.6 * count), 3.2), layout="constrained")
    grid = figure.subplots(1, count, sharey=True, squeeze=False)
    return figure, list(grid[0])


def _draw_timeline(axis: Axes, title: str, line: Timeline, marked: Collection[str]) -> None:
    times = range(len(line.live_bytes))
    colored = [0] * len(line.live_bytes)
    for span in line.spans:
        if _base(span) in marked:
            for time in range(span.start, span.end):
                colored[time] += span.size_bytes
    rest = [(live - part) / _UNIT for live, part in zip(line.live_bytes, colored, strict=True)]
    total = [live / _UNIT for live in line.live_bytes]
    axis.fill_between(times, rest, step="post", color=_REST, label="other temporaries", linewidth=0)
    if any(colored):
        axis.fill_between(times, rest, total, step="post", color=_MARKED, label="transposing copies", linewidth=0)
    peak = line.peak_time
    axis.plot([peak], [total[peak]], marker="v", color=_PEAK, markersize=4)
    axis.annotate(
        human_bytes(line.live_bytes[peak]), (peak, total[peak]), (0, 5), textcoords="offset points", ha="center", size=8
    )
    axis.set_title(title, size=10)
    axis.set_xlabel("logical time")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0, y=0.15)
    axis.set_ylim(bottom=0)


def _base(span: Span) -> str:
    return span.name.partition("{")[0]
