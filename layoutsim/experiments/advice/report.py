"""What advice looks like: one change with its measured effect, and all of them in order."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from attrs import evolve, frozen

from layoutsim.experiments.simulate import Simulation
from layoutsim.report.units import count, exact_bytes, signed_bytes

_FOOTER = (
    "Memory is that of the module without fusion, which XLA does later: what a change saves carries over (within 7 % where\n"
    "the real compiler was asked, fixtures/recompile.py), totals do not."
)
_REST = "# and the rest of the code above, unchanged"


@frozen
class Advice:
    """One change that helps, measured by simulating the module with it.

    Attributes:
        audience: ``jax`` for users, ``xla`` for compiler engineers.
        title: the change in a line.
        code: to paste.
        saved_bytes: arguments, outputs, temporaries and constants together, less than now; the order of a report.
        saved_temp_bytes: temporaries less than now.
        saved_peak_bytes: peak less than now.
        saved_copy_bytes: transposing copies less than now, each counted once.
        remaining_copy_bytes: transposing copies that stay.
        warnings: what to check before the change, and releases under which it makes things worse.
        settings: what to give ``layoutsim what-if --set`` to try it; none where that cannot say it.
        preset: the rule set, for ``--preset``; ``""`` for changes of programs.
        as_good: other rule sets with the same effect, narrowest change first.
    """

    audience: str
    title: str
    code: str
    saved_bytes: int
    saved_temp_bytes: int
    saved_peak_bytes: int
    saved_copy_bytes: int
    remaining_copy_bytes: int
    warnings: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    preset: str = ""
    as_good: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "audience": self.audience,
            "title": self.title,
            "code": self.code,
            "saved_bytes": self.saved_bytes,
            "saved_temp_bytes": self.saved_temp_bytes,
            "saved_peak_bytes": self.saved_peak_bytes,
            "saved_copy_bytes": self.saved_copy_bytes,
            "remaining_copy_bytes": self.remaining_copy_bytes,
            "warnings": list(self.warnings),
            "settings": list(self.settings),
            "preset": self.preset,
            "as_good": list(self.as_good),
        }

    def to_text(self, known: Container[str] = ()) -> str:
        """For people; a line stands for the paragraphs of code that are ``known`` and longer than one."""
        effect = (
            f"memory {signed_bytes(-self.saved_bytes)} (temporaries {signed_bytes(-self.saved_temp_bytes)}, "
            f"peak {signed_bytes(-self.saved_peak_bytes)}); "
            f"{_copies(self.saved_copy_bytes, self.remaining_copy_bytes)}"
        )
        shown = [p for p in self.paragraphs if p not in known or "\n" not in p]
        rest = [_REST] if len(shown) < len(self.paragraphs) else []
        code = [f"    {line}".rstrip() for line in "\n\n".join([*shown, *rest]).splitlines()]
        as_good = ["  as good: " + ", ".join(self.as_good)] if self.as_good else []
        notes = [*(f"  careful: {w}" for w in self.warnings), *as_good]
        return "\n".join([f"[{self.audience}] {self.title}", f"  {effect}", *code, *notes])

    @property
    def paragraphs(self) -> list[str]:
        """The code, cut at empty lines."""
        return self.code.split("\n\n")


def merged(rule_sets: Sequence[Advice], tolerance_bytes: int) -> list[Advice]:
    """One piece of advice for rule sets that leave the same copies and save the same memory, within the tolerance."""
    out: list[Advice] = []
    for advice in rule_sets:
        alike = next((i for i, first in enumerate(out) if _are_alike(first, advice, tolerance_bytes)), None)
        if alike is None:
            out.append(advice)
        else:
            out[alike] = evolve(out[alike], as_good=(*out[alike].as_good, advice.preset))
    return out


def not_worse_than_each(all_at_once: Iterable[Advice], alone: Sequence[Advice]) -> list[Advice]:
    """Of changes made all at once, those that no single one of them beats."""
    return [a for a in all_at_once if not any(_beats(b, a) for b in alone)]


def _beats(a: Advice, b: Advice) -> bool:
    return a.saved_bytes > b.saved_bytes and a.remaining_copy_bytes <= b.remaining_copy_bytes


def _are_alike(a: Advice, b: Advice, tolerance_bytes: int) -> bool:
    pairs = (
        (a.saved_bytes, b.saved_bytes),
        (a.saved_temp_bytes, b.saved_temp_bytes),
        (a.saved_peak_bytes, b.saved_peak_bytes),
    )
    return a.remaining_copy_bytes == b.remaining_copy_bytes and all(abs(x - y) <= tolerance_bytes for x, y in pairs)


def _copies(saved_bytes: int, left_bytes: int) -> str:
    if not saved_bytes and not left_bytes:
        return "no transposing copies"
    left = f"{exact_bytes(left_bytes)} left" if left_bytes else "none left"
    return f"transposing copies {signed_bytes(-saved_bytes)}, {left}"


@frozen(eq=False)
class AdviceReport:
    """How things are, and what helps, most first."""

    now: Simulation
    advice: tuple[Advice, ...]

    def to_json(self) -> dict[str, object]:
        return {"now": self.now.to_json(), "advice": [advice.to_json() for advice in self.advice]}

    def to_text(self) -> str:
        now = self.now
        copies = count(len(now.transposing_copies), "transposing copy", "transposing copies")
        head = (
            f"{now.module.name} under {now.preset}: {copies}, {exact_bytes(now.transposing_bytes)}; "
            f"memory {exact_bytes(now.memory.total_bytes)}, of which temporaries {exact_bytes(now.memory.temp_bytes)}"
        )
        if not self.advice:
            return f"{head}\nnothing tried helps"
        known: set[str] = set()
        texts: list[str] = []
        for advice in self.advice:
            texts.append(advice.to_text(known))
            known.update(advice.paragraphs)
        return "\n\n".join([head, *texts, _FOOTER])


def measured(
    now: Simulation,
    then: Simulation,
    *,
    audience: str,
    title: str,
    code: str,
    warnings: tuple[str, ...] = (),
    settings: tuple[str, ...] = (),
    preset: str = "",
) -> Advice:
    """Advice from two simulations, without and with the change."""
    return Advice(
        audience=audience,
        title=title,
        code=code,
        saved_bytes=now.memory.total_bytes - then.memory.total_bytes,
        saved_temp_bytes=now.memory.temp_bytes - then.memory.temp_bytes,
        saved_peak_bytes=now.memory.peak_bytes - then.memory.peak_bytes,
        saved_copy_bytes=now.transposing_bytes - then.transposing_bytes,
        remaining_copy_bytes=then.transposing_bytes,
        warnings=warnings,
        settings=settings,
        preset=preset,
    )
