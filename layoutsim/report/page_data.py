"""The data that a page carries, small and quick to read: columns of numbers, every text once.

* ``spans``: parallel arrays of all packed values; ``order`` lists them by group, as the map draws them.
* ``copies``: the cells of the table, the group among the explanations (-1: none), and where both chains end in ``steps``.
* ``steps``: all chains of reasons as one forest. A step names the one before it (-1: none), so that what many copies have in
  common is there once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import define, field

from layoutsim.report.colors import color_of, group_of, groups_in
from layoutsim.report.copies import CopyRecord
from layoutsim.report.copy_groups import CopyGroup
from layoutsim.report.explain import Explanation, Step
from layoutsim.report.timeline import Timeline

_COLUMNS = (
    ("copy", "11%", False),
    ("of", "14%", False),
    ("in", "12%", False),
    ("shape", "13%", False),
    ("from", "8%", False),
    ("to", "8%", False),
    ("bytes", "13%", True),
    ("runs", "6%", True),
    ("source", "15%", False),
)


@define(eq=False)
class _Texts:
    """Texts by number, in the order in which they come."""

    numbers: dict[str, int] = field(factory=dict[str, int])

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def listed(self) -> list[str]:
        return list(self.numbers)


def memory_data(line: Timeline, copies: Collection[str]) -> dict[str, object]:
    """Values in memory.

    Args:
        copies: names of the transposing copies.
    """
    groups = groups_in(line, copies)
    shapes, sources, bases = _Texts(), _Texts(), line.bases
    spans = line.spans
    group_numbers = [groups.index(group_of(span, copies)) for span in spans]
    return {
        "times": len(line.live_bytes),
        "peak": line.peak_time,
        "allocated": sum(line.allocation_bytes.values()),
        "groups": [{"name": name, "color": color_of(name)} for name in groups],
        "spans": {
            "name": [span.name for span in spans],
            "start": [span.start for span in spans],
            "end": [span.end for span in spans],
            "offset": [bases[span.allocation] + span.offset for span in spans],
            "size": [span.size_bytes for span in spans],
            "group": group_numbers,
            "shape": [shapes.number(span.shape) for span in spans],
            "source": [sources.number(span.location or span.opcode) for span in spans],
        },
        "order": sorted(range(len(spans)), key=lambda number: -group_numbers[number]),
        "shapes": shapes.listed(),
        "sources": sources.listed(),
    }


def copy_data(copies: Sequence[CopyRecord], groups: Sequence[CopyGroup]) -> dict[str, object]:
    """The table of copies, and the chains of those that are explained."""
    forest = _Forest()
    explained = {member.copy.name: (number, member) for number, group in enumerate(groups) for member in group.members}
    return {
        "columns": [{"name": name, "width": width, "number": number} for name, width, number in _COLUMNS],
        "copies": [{"cells": _cells(copy), **forest.chains(explained.get(copy.name))} for copy in copies],
        "steps": forest.steps,
        "rules": list(forest.rules),
        "texts": forest.texts.listed(),
    }


def _cells(copy: CopyRecord) -> list[str | int | None]:
    names: list[str | int | None] = [copy.name, copy.source, copy.computation, copy.shape, copy.from_layout, copy.to_layout]
    moved = copy.size_bytes if copy.transposing else 0
    return [*names, moved, copy.runs, copy.location or copy.op_name]


@define(eq=False)
class _Forest:
    """Chains that share their beginnings."""

    steps: list[tuple[int, ...]] = field(factory=list[tuple[int, ...]])
    rules: dict[tuple[str, str, str], int] = field(factory=dict[tuple[str, str, str], int])
    texts: _Texts = field(factory=_Texts)
    _numbers: dict[tuple[int, ...], int] = field(factory=dict[tuple[int, ...], int])

    def chains(self, explained: tuple[int, Explanation] | None) -> Mapping[str, int]:
        """Group and ends of both chains of one copy."""
        if explained is None:
            return {"group": -1, "wanted": -1, "met": -1}
        group, explanation = explained
        return {"group": group, "wanted": self._leaf(explanation.wanted), "met": self._leaf(explanation.met)}

    def _leaf(self, chain: Sequence[Step]) -> int:
        last = -1
        for step in chain:
            rule = self.rules.setdefault((step.rule, step.section, step.because), len(self.rules))
            by = step.by if step.by not in step.place else ""
            texts = [self.texts.number(text) for text in (step.place, step.computation, step.layout)]
            entry = (last, *texts, rule, self.texts.number(by), self.texts.number(step.location))
            last = self._numbers.setdefault(entry, len(self._numbers))
            if last == len(self.steps):
                self.steps.append(entry)
        return last
