"""Why a copy is there: the demand for its layout, the steps it travelled, and the layout that it met.

Every constraint of layout assignment carries its reason; this module only reads those chains and puts them into words.
A copy stands where two chains meet: one leads to the layout that the reader wants, the other to the layout that the copied
value has. Each chain is shown from the demand that started it to the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field, frozen

from layoutsim.analysis.source_lines import source_line
from layoutsim.passes.layout_assignment import Reason
from layoutsim.report.copies import CopyRecord
from layoutsim.report.units import exact_bytes


@frozen
class Step:
    """One link of a chain.

    Attributes:
        place: ``%add.3 operand 1``: the value or operand slot whose layout was set.
        layout: what it was set to.
        because: the rule in words; ``rule`` is its name, ``section`` where the layout specification states it.
        by: the instruction that the rule looked at.
        location: source line of ``by``, ``""`` where metadata has none (the same for ``op_name``).
    """

    place: str
    computation: str
    layout: str
    rule: str
    section: str
    because: str
    by: str
    round: int
    location: str
    op_name: str

    def to_json(self) -> dict[str, object]:
        return {
            "place": self.place,
            "computation": self.computation,
            "layout": self.layout,
            "rule": self.rule,
            "section": self.section,
            "because": self.because,
            "by": self.by,
            "round": self.round,
            "location": self.location,
            "op_name": self.op_name,
        }


@frozen
class Remedy:
    """A rule set under which the copy is not there.

    Attributes:
        preset: as ``--preset`` takes it.
        transposing_bytes: bytes of all transposing copies that remain under it.
    """

    preset: str
    transposing_bytes: int

    def to_json(self) -> dict[str, object]:
        return {"preset": self.preset, "transposing_bytes": self.transposing_bytes}


@frozen
class Explanation:
    """One copy explained.

    Attributes:
        wanted: chain of the layout that the copy makes, from the demand to the copy.
        met: chain of the layout that the copied value has.
        remedies: rule sets that avoid the copy; ``None`` where they were not tried.
    """

    copy: CopyRecord
    wanted: tuple[Step, ...]
    met: tuple[Step, ...]
    remedies: tuple[Remedy, ...] | None = field(default=None)

    @property
    def verdict(self) -> str:
        """Whether the copy moves bytes."""
        if self.copy.transposing:
            return "a real transpose"
        return "avoidable, byte-equal: the two layouts differ in the place of size-1 dimensions only"

    def to_json(self) -> dict[str, object]:
        return {
            **self.copy.to_json(),
            "verdict": self.verdict,
            "moved_bytes": self.copy.moved_bytes,
            "wanted": [step.to_json() for step in self.wanted],
            "met": [step.to_json() for step in self.met],
            "avoided_by": None if self.remedies is None else [r.to_json() for r in self.remedies],
        }

    def to_text(self) -> str:
        copy = self.copy
        lines = [
            f"%{copy.name} = copy(%{copy.source}) of {copy.shape} {copy.from_layout} to {copy.to_layout} "
            f"in %{copy.computation}",
            f"  {exact_bytes(copy.size_bytes)}, {_times(copy.runs)}; {self.verdict}",
        ]
        if copy.op_name or copy.location:
            lines.append(f"  copies {' '.join(filter(None, [copy.op_name, copy.location]))}")
        lines += [f"  {copy.to_layout} is wanted:", *_chain_lines(self.wanted)]
        lines += [f"  {copy.from_layout} is there:", *_chain_lines(self.met)]
        return "\n".join([*lines, *self._remedy_lines()])

    def _remedy_lines(self) -> list[str]:
        if self.remedies is None:
            return []
        if not self.remedies:
            return ["  none of the rule sets tried avoids it"]
        best = ", ".join(f"{r.preset} (leaves {exact_bytes(r.transposing_bytes)} of transposing copies)" for r in self.remedies)
        return [f"  avoided by: {best}"]

    def __str__(self) -> str:
        return self.to_text()


def _times(runs: int | None) -> str:
    return "runs an unknown number of times" if runs is None else f"runs {runs:,} time{'s' * (runs != 1)}"


def _chain_lines(steps: Sequence[Step]) -> list[str]:
    lines: list[str] = []
    computation = ""
    for number, step in enumerate(steps):
        where = f" in %{step.computation}" if step.computation != computation else ""
        computation = step.computation
        source = f" ({step.location})" if step.location else ""
        mark = "└" if number == len(steps) - 1 else "├"
        by = f", by %{step.by}" if step.by not in step.place else ""
        lines.append(f"    {mark} {step.place}{where}: {step.layout}{by}: {step.because} [{step.rule}, {step.section}]{source}")
    return lines


def steps_of(reason: Reason) -> tuple[Step, ...]:
    """The chain of ``reason`` from the demand that started it."""
    return tuple(map(_step, _without_repeats(reversed(reason.chain()))))


def _without_repeats(chain: Iterable[Reason]) -> list[Reason]:
    """Drop links that say again what the one before said of the same place (a constraint carried into the next round)."""
    out: list[Reason] = []
    for reason in chain:
        if out and (out[-1].place, out[-1].rule.name) == (reason.place, reason.rule.name):
            continue
        out.append(reason)
    return out


def _step(reason: Reason) -> Step:
    parent = reason.at.parent
    metadata = reason.by.metadata
    return Step(
        place=reason.place,
        computation=parent.name if parent is not None else "",
        layout=str(reason.layout if reason.layout is not None else reason.wanted),
        rule=reason.rule.name,
        section=reason.rule.section,
        because=reason.rule.text,
        by=reason.by.name,
        round=reason.round,
        location=source_line(reason.by),
        op_name=metadata.op_name,
    )
