"""The groups that pictures tell apart, and their colours.

A value belongs to the transposing copies, if it is one that layout assignment inserted; else to the class of what its buffer is
at the peak for (:class:`layoutsim.memory.waste.Waste`); else, not being alive at the peak, to the others. The colours can be
told apart with the common forms of colour blindness, and on dark ground.
"""

from __future__ import annotations

from collections.abc import Collection

from layoutsim.memory.waste import Waste
from layoutsim.report.timeline import Span, Timeline

COPIES, OTHERS = "transposing copies", "other temporaries"
INK, SOFT, MARK = "#1d2733", "#55636f", "#b83a4b"

_COLORS = {
    COPIES: "#d1495b",
    Waste.LAYOUT_COPY.value: "#e8909b",
    Waste.RESTACKED.value: "#8e5bb0",
    Waste.UP_CAST.value: "#c9a227",
    Waste.KEPT_ALIVE.value: "#3f9c74",
    Waste.FUSION_OUTPUTS.value: "#7fc8a9",
    Waste.LOOP_CARRY.value: "#e2873a",
    Waste.PADDING.value: "#7a6a5d",
    Waste.NEEDED.value: "#4f7cac",
    Waste.FRAGMENTATION.value: "#9aa0a6",
    OTHERS: "#b4c3d3",
}


def color_of(group: str) -> str:
    """``#rrggbb``."""
    return _COLORS[group]


def group_of(span: Span, copies: Collection[str]) -> str:
    """The group of a value.

    Args:
        copies: names of the transposing copies.
    """
    return COPIES if span.instruction in copies else span.waste or OTHERS


def groups_in(line: Timeline, copies: Collection[str]) -> list[str]:
    """Groups that occur, in the order of the legend."""
    found = {group_of(span, copies) for span in line.spans}
    return [group for group in _COLORS if group in found]
