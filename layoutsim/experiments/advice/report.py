"""What advice looks like: one change with its measured effect, and all of them in order."""

from __future__ import annotations

from collections.abc import Container

from attrs import frozen

from layoutsim.experiments.simulate import Simulation
from layoutsim.report.units import count, exact_bytes, signed_bytes

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
        remaining_copy_bytes: transposing copies that stay.
        warnings: what to check before the change, and releases under which it makes things worse.
        settings: what to give ``layoutsim what-if --set`` to try it; none where that cannot say it.
    """

    audience: str
    title: str
    code: str
    saved_bytes: int
    saved_temp_bytes: int
    saved_peak_bytes: int
    remaining_copy_bytes: int
    warnings: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "audience": self.audience,
            "title": self.title,
            "code": self.code,
            "saved_bytes": self.saved_bytes,
            "saved_temp_bytes": self.saved_temp_bytes,
            "saved_peak_bytes": self.saved_peak_bytes,
            "remaining_copy_bytes": self.remaining_copy_bytes,
            "warnings": list(self.warnings),
            "settings": list(self.settings),
        }

    def to_text(self, known: Container[str] = ()) -> str:
        """For people; a line stands for the paragraphs of code that are ``known`` and longer than one."""
        effect = (
            f"memory {signed_bytes(-self.saved_bytes)} (temporaries {signed_bytes(-self.saved_temp_bytes)}, "
            f"peak {signed_bytes(-self.saved_peak_bytes)}); {_copies_left(self.remaining_copy_bytes)}"
        )
        shown = [p for p in self.paragraphs if p not in known or "\n" not in p]
        rest = [_REST] if len(shown) < len(self.paragraphs) else []
        code = [f"    {line}".rstrip() for line in "\n\n".join([*shown, *rest]).splitlines()]
        return "\n".join([f"[{self.audience}] {self.title}", f"  {effect}", *code, *(f"  careful: {w}" for w in self.warnings)])

    @property
    def paragraphs(self) -> list[str]:
        """The code, cut at empty lines."""
        return self.code.split("\n\n")


def _copies_left(size_bytes: int) -> str:
    return f"{exact_bytes(size_bytes)} of transposing copies stay" if size_bytes else "no transposing copy stays"


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
        return "\n\n".join([head, *texts])


def measured(
    now: Simulation,
    then: Simulation,
    *,
    audience: str,
    title: str,
    code: str,
    warnings: tuple[str, ...] = (),
    settings: tuple[str, ...] = (),
) -> Advice:
    """Advice from two simulations, without and with the change."""
    return Advice(
        audience=audience,
        title=title,
        code=code,
        saved_bytes=now.memory.total_bytes - then.memory.total_bytes,
        saved_temp_bytes=now.memory.temp_bytes - then.memory.temp_bytes,
        saved_peak_bytes=now.memory.peak_bytes - then.memory.peak_bytes,
        remaining_copy_bytes=then.transposing_bytes,
        warnings=warnings,
        settings=settings,
    )
