"""What to change: tries variants of a module and of the rules, and ranks what helps, in bytes.

For JAX users: arguments whose layout should be left to the compiler or set by hand, as code to paste. For XLA engineers: rule
sets under which the copies are not there. Every piece of advice is a simulation, not a guess; and every advised layout is also
tried under the other releases, since what is right for one can create the doubling in another.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from layoutsim.errors import LayoutsimError
from layoutsim.experiments.simulate import Simulation, simulate, variants_of
from layoutsim.experiments.what_if import EntryLayoutSetting, apply_settings
from layoutsim.garbage import no_collection
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape
from layoutsim.passes.presets import DEFAULT_PRESET, preset_names, resolve_preset
from layoutsim.report.units import count, exact_bytes, signed_bytes

_WORTHWHILE = 0.01
"""Savings below this part of the temporaries are gaps that fell differently, not advice."""


@frozen
class Advice:
    """One change that helps.

    Attributes:
        audience: ``jax`` for users, ``xla`` for compiler engineers.
        title: the change in a line.
        code: to paste; ``""`` for rule sets.
        saved_temp_bytes: temporaries less than now.
        saved_peak_bytes: peak less than now.
        remaining_copy_bytes: transposing copies that stay.
        warnings: releases under which the change makes things worse.
    """

    audience: str
    title: str
    code: str
    saved_temp_bytes: int
    saved_peak_bytes: int
    remaining_copy_bytes: int
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "audience": self.audience,
            "title": self.title,
            "code": self.code,
            "saved_temp_bytes": self.saved_temp_bytes,
            "saved_peak_bytes": self.saved_peak_bytes,
            "remaining_copy_bytes": self.remaining_copy_bytes,
            "warnings": list(self.warnings),
        }

    def to_text(self) -> str:
        lines = [
            f"[{self.audience}] {self.title}",
            f"  temporaries {signed_bytes(-self.saved_temp_bytes)}, peak {signed_bytes(-self.saved_peak_bytes)}; "
            f"{exact_bytes(self.remaining_copy_bytes)} of transposing copies stay",
            *(f"    {line}" for line in self.code.splitlines()),
            *(f"  careful: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


@frozen(eq=False)
class AdviceReport:
    """How things are, and what helps, most first."""

    now: Simulation
    advice: tuple[Advice, ...]

    def to_json(self) -> dict[str, object]:
        return {"now": self.now.to_json(), "advice": [a.to_json() for a in self.advice]}

    def to_text(self) -> str:
        now = self.now
        copies = count(len(now.transposing_copies), "transposing copy", "transposing copies")
        head = (
            f"{now.module.name} under {now.preset}: {copies}, "
            f"{exact_bytes(now.transposing_bytes)}; temporaries {exact_bytes(now.memory.temp_bytes)}"
        )
        return "\n\n".join([head, *(a.to_text() for a in self.advice)]) if self.advice else f"{head}\nnothing tried helps"


@no_collection()
def advise(module: Module, preset: str = DEFAULT_PRESET) -> AdviceReport:
    """Try variants and rank what lowers temporaries or copies; ``module`` stays as it is."""
    now = simulate(module, preset)
    found = [*_entry_layouts(module, now), *_rule_sets(module, now)]
    worthwhile = now.memory.temp_bytes * _WORTHWHILE
    helpful = [a for a in found if a.saved_temp_bytes > worthwhile or a.remaining_copy_bytes < now.transposing_bytes]
    ranked = sorted(helpful, key=lambda a: (-a.saved_temp_bytes, a.remaining_copy_bytes, a.audience, a.title))
    return AdviceReport(now, tuple(ranked))


def _entry_layouts(module: Module, now: Simulation) -> list[Advice]:
    """Leave the layouts of the parameters that are copied to the compiler, all together and each alone."""
    blamed = _blamed_parameters(module, now)
    groups = [blamed, *([name] for name in blamed)] if len(blamed) > 1 else [blamed] if blamed else []
    return [advice for group in groups if (advice := _automatic(module, now, group)) is not None]


def _blamed_parameters(module: Module, now: Simulation) -> list[str]:
    """Entry parameters whose given layout is where the copied layouts come from."""
    names = {p.name: None for p in module.entry.parameters if isinstance(p.shape, ArrayShape)}
    blamed: dict[str, None] = {}
    for copy in now.transposing_copies:
        steps = now.explain(copy, remedies=False).met
        if steps and steps[0].by in names:
            blamed[steps[0].by] = None
    return list(blamed)


def _automatic(module: Module, now: Simulation, group: Sequence[str]) -> Advice | None:
    settings = [EntryLayoutSetting(name, None) for name in group]
    changed, pipeline = apply_settings(module, settings, resolve_preset(now.preset))
    result = simulate(changed, pipeline, in_place=True)
    assert result.module.entry_layout is not None
    chosen: list[EntryLayoutSetting] = []
    for name in group:
        shape = result.module.entry_layout.parameters[_number(module, name)]
        assert isinstance(shape, ArrayShape)
        chosen.append(EntryLayoutSetting(name, shape.layout))
    if result.transposing_bytes >= now.transposing_bytes:
        return None
    texts = ", ".join(f"{s.parameter} {s.layout}" for s in chosen)
    return Advice(
        audience="jax",
        title=f"pass {texts}",
        code="\n".join(_jax_layout(module, setting) for setting in chosen),
        saved_temp_bytes=now.memory.temp_bytes - result.memory.temp_bytes,
        saved_peak_bytes=now.memory.peak_bytes - result.memory.peak_bytes,
        remaining_copy_bytes=result.transposing_bytes,
        warnings=tuple(_worse_elsewhere(module, now.preset, chosen)),
    )


def _number(module: Module, name: str) -> int:
    return next(p.parameter_number for p in module.entry.parameters if p.name == name)


def _jax_layout(module: Module, setting: EntryLayoutSetting) -> str:
    """``Format(Layout(major_to_minor=...), sharding)`` for an argument; jax counts from the major end."""
    assert setting.layout is not None
    number = _number(module, setting.parameter)
    label = next(p for p in module.entry.parameters if p.parameter_number == number).metadata.op_name
    comment = f"  # {label}" if label else ""
    order = ", ".join(map(str, setting.layout.major_to_minor))
    return f"in_shardings[{number}] = Format(Layout(major_to_minor=({order})), in_shardings[{number}]){comment}"


def _worse_elsewhere(module: Module, preset: str, chosen: Sequence[EntryLayoutSetting]) -> list[str]:
    """Releases of the same backend under which the chosen layouts add copies."""
    warnings: list[str] = []
    for name in variants_of(preset):
        if name == preset or name not in preset_names():
            continue
        changed, pipeline = apply_settings(module, chosen, resolve_preset(name))
        try:
            before = simulate(module, name, measure_memory=False).transposing_bytes
            after = simulate(changed, pipeline, measure_memory=False, in_place=True).transposing_bytes
        except LayoutsimError as error:
            warnings.append(f"{name} could not be tried: {error}")
            continue
        if after > before:
            warnings.append(f"under {name} it adds {exact_bytes(after - before)} of transposing copies")
    return warnings


def _rule_sets(module: Module, now: Simulation) -> list[Advice]:
    found: list[Advice] = []
    for text in variants_of(now.preset):
        if text == now.preset:
            continue
        result = simulate(module, text)
        found.append(
            Advice(
                audience="xla",
                title=f"rules of {text}",
                code="",
                saved_temp_bytes=now.memory.temp_bytes - result.memory.temp_bytes,
                saved_peak_bytes=now.memory.peak_bytes - result.memory.peak_bytes,
                remaining_copy_bytes=result.transposing_bytes,
            )
        )
    return found
