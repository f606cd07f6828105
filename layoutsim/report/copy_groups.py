"""Copies that are there for one and the same reason, together.

A model that repeats a layer has the same copy many times. Copies belong together if they take the same shape from one layout to
another, and the rules that demanded the two layouts are the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from layoutsim.report.explain import Explanation
from layoutsim.report.units import count, exact_bytes


@frozen
class CopyGroup:
    """Copies of one kind, in the order in which they were given; the first stands for all in pictures."""

    members: tuple[Explanation, ...]

    @property
    def first(self) -> Explanation:
        return self.members[0]

    @property
    def size_bytes(self) -> int:
        """Of all members, each counted once."""
        return sum(member.copy.size_bytes for member in self.members)

    @property
    def title(self) -> str:
        """``3 copies of f32[8,4] {1,0} to {0,1}, 384 B``."""
        copy = self.first.copy
        number = count(len(self.members), "copy", "copies")
        return f"{number} of {copy.shape} {copy.from_layout} to {copy.to_layout}, {exact_bytes(self.size_bytes)}"

    @property
    def because(self) -> str:
        """The rules at the beginning of both chains, in words."""
        copy, ends = self.first.copy, (self.first.wanted, self.first.met)
        halves = zip((copy.to_layout, copy.from_layout), ends, strict=True)
        return "; ".join(f"{layout}: {chain[0].because}" for layout, chain in halves if chain)


def copy_groups(explanations: Iterable[Explanation]) -> tuple[CopyGroup, ...]:
    """Groups, that of the most bytes first."""
    found: dict[tuple[str, ...], list[Explanation]] = {}
    for explanation in explanations:
        copy = explanation.copy
        rules = [chain[0].rule if chain else "" for chain in (explanation.wanted, explanation.met)]
        found.setdefault((copy.shape, copy.from_layout, copy.to_layout, *rules), []).append(explanation)
    groups = (CopyGroup(tuple(members)) for members in found.values())
    return tuple(sorted(groups, key=lambda group: (-group.size_bytes, group.title)))
