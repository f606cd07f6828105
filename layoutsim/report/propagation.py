"""How a layout travelled to one copy, as a picture: which boxes and arrows, and where.

1. The two chains of an :class:`~layoutsim.report.explain.Explanation` stand side by side and run from top to bottom, from the
   rule that demanded a layout to the copy below both: left the layout that is wanted, right the one that it meets.
2. One box for each instruction, with the layouts that it takes on and hands on. A layout that it changes is marked.
3. A run of more than two instructions that only pass a layout on within one computation is one box.
4. Boxes of one computation lie on one band.

Coordinates are pixels, y downwards; text is measured as if all characters had one width, with room for every font.
:func:`layoutsim.report.svg.to_svg` and :func:`layoutsim.report.plots.plot_propagation` draw what is described here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import groupby

from attrs import frozen

from layoutsim.report.explain import Explanation, Step
from layoutsim.report.units import exact_bytes

COLUMN, GAP, MARGIN = 430.0, 36.0, 10.0
LINE, PADDING = 16.0, 8.0
_BAND_PADDING, _BAND_TITLE, _BETWEEN = 8.0, 18.0, 14.0
_TITLE_CHARACTERS, _TEXT_CHARACTERS = 52, 58


class BoxKind(Enum):
    """What a box stands for."""

    DEMAND = "demand"
    STEP = "step"
    FOLDED = "folded"
    COPY = "copy"


@frozen
class Box:
    """A box: a title in a monospaced font on the left, layouts on the right, lines of text below.

    Attributes:
        changes: whether the layout that it hands on is not the one it got.
    """

    x: float
    y: float
    width: float
    height: float
    title: str
    layout: str
    lines: tuple[str, ...]
    kind: BoxKind
    changes: bool


@frozen
class Band:
    """The part of a column that is in one computation."""

    x: float
    y: float
    width: float
    height: float
    title: str


@frozen
class Arrow:
    """From the lower edge of one box to the upper edge of the next."""

    x1: float
    y1: float
    x2: float
    y2: float


@frozen
class Heading:
    """A line of text above a column."""

    x: float
    y: float
    text: str


@frozen
class PropagationPicture:
    """Everything to draw, in the order in which it has to be drawn."""

    title: str
    width: float
    height: float
    headings: tuple[Heading, ...]
    bands: tuple[Band, ...]
    arrows: tuple[Arrow, ...]
    boxes: tuple[Box, ...]


@frozen
class _Stop:
    """One box of a column, not placed yet."""

    computation: str
    title: str
    layouts: tuple[str, ...]
    lines: tuple[str, ...]
    kind: BoxKind

    @property
    def height(self) -> float:
        return 2 * PADDING + LINE * (1 + len(self.lines) + (self._layout_line != ""))

    @property
    def _layout_line(self) -> str:
        """The layouts where they do not fit beside the title."""
        return self.layout_text if len(self.title) + len(self.layout_text) > _TITLE_CHARACTERS else ""

    @property
    def layout_text(self) -> str:
        return " → ".join(self.layouts)

    def at(self, x: float, y: float, width: float = COLUMN) -> Box:
        title = textwrap.shorten(self.title, _TITLE_CHARACTERS, placeholder="…")
        own_line = self._layout_line
        lines = (own_line, *self.lines) if own_line else self.lines
        layout = "" if own_line else self.layout_text
        return Box(x, y, width, self.height, title, layout, lines, self.kind, len(self.layouts) > 1)


@frozen
class _Column:
    bands: tuple[Band, ...]
    boxes: tuple[Box, ...]
    height: float


def propagation_picture(explanation: Explanation) -> PropagationPicture:
    """The picture of one copy."""
    copy = explanation.copy
    chains = (explanation.wanted, explanation.met)
    stops = [_stops(chain) for chain in chains]
    heights = [_column(column, 0, 0).height for column in stops]
    top, tallest = MARGIN + LINE + PADDING, max(heights)
    lefts = (MARGIN, MARGIN + COLUMN + GAP)
    # Columns end together, just above the copy.
    columns = [_column(column, x, top + tallest - height) for column, x, height in zip(stops, lefts, heights, strict=True)]
    end = _copy_stop(explanation).at(MARGIN + (COLUMN + GAP) / 2, top + tallest + 2 * _BETWEEN)
    headings = [
        Heading(x, column.boxes[0].y - _BAND_TITLE - LINE, text)
        for x, column, text in zip(lefts, columns, (f"{copy.to_layout} is wanted", f"{copy.from_layout} is there"), strict=True)
        if column.boxes
    ]
    return PropagationPicture(
        title=f"How the layouts of copy {copy.name} came about",
        width=2 * MARGIN + 2 * COLUMN + GAP,
        height=end.y + end.height + MARGIN,
        headings=tuple(headings),
        bands=tuple(band for column in columns for band in column.bands),
        arrows=tuple(arrow for column in columns for arrow in _arrows(column.boxes, end)),
        boxes=(*(box for column in columns for box in column.boxes), end),
    )


def _stops(chain: Sequence[Step]) -> list[_Stop]:
    """Rules (2) and (3)."""
    visits = [list(steps) for _, steps in groupby(chain, key=lambda step: (step.computation, _instruction(step)))]
    layouts = _layouts(visits)
    runs: list[_Stop] = []
    for (computation, folds), numbers in groupby(
        range(len(visits)), key=lambda n: (visits[n][0].computation, _folds(n, visits, layouts))
    ):
        members = list(numbers)
        if folds and len(members) > 2:
            runs.append(_folded(computation, [_instruction(visits[n][0]) for n in members], layouts[members[0]]))
        else:
            runs += [_stop(visits[n], layouts[n], is_first=n == 0) for n in members]
    return runs


def _instruction(step: Step) -> str:
    return step.place.split(" ")[0]


def _layouts(visits: Iterable[Sequence[Step]]) -> list[tuple[str, ...]]:
    """For each instruction the layout it is reached with, and others it takes on."""
    found: list[tuple[str, ...]] = []
    current = ""
    for steps in visits:
        here = [current] if current else []
        here += [step.layout for step in steps]
        found.append(tuple(layout for layout, _ in groupby(here)))
        current = here[-1]
    return found


def _folds(number: int, visits: Sequence[Sequence[Step]], layouts: Sequence[tuple[str, ...]]) -> bool:
    """Whether an instruction only passes the layout on, and so do those beside it."""
    is_inside = 0 < number < len(visits) - 1
    return is_inside and len(layouts[number]) == 1 and visits[number - 1][0].computation == visits[number][0].computation


def _folded(computation: str, names: Sequence[str], layouts: tuple[str, ...]) -> _Stop:
    text = f"hand it on: {', '.join(names[:2])}, … {names[-1]}" if len(names) > 3 else f"hand it on: {', '.join(names)}"
    return _Stop(
        computation, f"{len(names)} instructions", layouts, tuple(textwrap.wrap(text, _TEXT_CHARACTERS)), BoxKind.FOLDED
    )


def _stop(steps: Sequence[Step], layouts: tuple[str, ...], *, is_first: bool) -> _Stop:
    reason = steps[0] if is_first else steps[-1]
    lines = textwrap.wrap(reason.because, _TEXT_CHARACTERS)
    location = next((step.location for step in steps if step.location), "")
    title = steps[0].place if len(steps) == 1 else _instruction(steps[0])
    kind = BoxKind.DEMAND if is_first else BoxKind.STEP
    return _Stop(steps[0].computation, title, layouts, (*lines, *([location] if location else [])), kind)


def _copy_stop(explanation: Explanation) -> _Stop:
    copy = explanation.copy
    size = f"{copy.shape}, {exact_bytes(copy.size_bytes)}"
    lines = (f"of %{copy.source}", size, *textwrap.wrap(explanation.verdict, _TEXT_CHARACTERS))
    located = (*lines, copy.location) if copy.location else lines
    return _Stop(copy.computation, f"%{copy.name}", (copy.from_layout, copy.to_layout), located, BoxKind.COPY)


def _column(stops: Sequence[_Stop], x: float, y: float) -> _Column:
    """Boxes below each other from ``y`` on, on bands."""
    boxes, bands = list[Box](), list[Band]()
    top = y
    for computation, members in groupby(stops, key=lambda stop: stop.computation):
        begin = top
        top += _BAND_TITLE
        for stop in members:
            boxes.append(stop.at(x + _BAND_PADDING, top, COLUMN - 2 * _BAND_PADDING))
            top += stop.height + _BETWEEN
        top += _BAND_PADDING - _BETWEEN
        bands.append(Band(x, begin, COLUMN, top - begin, f"in %{computation}" if computation else "not in the module any more"))
        top += _BETWEEN
    return _Column(tuple(bands), tuple(boxes), top - y)


def _arrows(boxes: Sequence[Box], end: Box) -> Iterable[Arrow]:
    for above, below in zip(boxes, [*boxes[1:], None], strict=True):
        x1, y1 = above.x + above.width / 2, above.y + above.height
        if below is not None:
            yield Arrow(x1, y1, below.x + below.width / 2, below.y)
        else:
            # Straight down where the copy is below, so that the arrow does not cross its text.
            part = 0.25 if x1 < end.x + end.width / 2 else 0.75
            yield Arrow(x1, y1, end.x + part * end.width, end.y)
