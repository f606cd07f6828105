"""Layouts in which the caller passes arguments: the compiler's own choice for those that are copied, as code.

An argument is tried if the layout that a transposing copy meets is the one the caller gave it. It is left to the compiler
(automatic), together with the result that has its memory if it is donated; what comes out is the advice. Every advised layout
is also tried under the other releases, since what is right for one can create the copy in another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from layoutsim.errors import LayoutsimError
from layoutsim.experiments.advice.jax_arguments import layout_code, leaf_name
from layoutsim.experiments.advice.report import Advice, measured
from layoutsim.experiments.simulate import Simulation, simulate, variants_of
from layoutsim.experiments.what_if import EntryLayoutSetting, ResultLayoutSetting, Setting, apply_settings
from layoutsim.ir.layout import Layout
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape, Shape, ShapeIndex, subshape
from layoutsim.passes.presets import preset_names, resolve_preset
from layoutsim.report.units import exact_bytes

K = TypeVar("K")


def advise_entry_layouts(module: Module, now: Simulation) -> list[Advice]:
    """Advice for all parameters that are copied together, and for each alone."""
    blamed = _blamed_parameters(module, now)
    groups = [blamed, *([number] for number in blamed)] if len(blamed) > 1 else [blamed] if blamed else []
    return [advice for group in groups if (advice := _automatic(module, now, group)) is not None]


def _blamed_parameters(module: Module, now: Simulation) -> list[int]:
    """Numbers of the entry parameters whose given layout is where the copied layouts come from."""
    numbers = {p.name: p.parameter_number for p in module.entry.parameters if isinstance(p.shape, ArrayShape)}
    blamed: dict[int, None] = {}
    for copy in now.transposing_copies:
        steps = now.explain(copy, remedies=False).met
        if steps and steps[0].by in numbers:
            blamed[numbers[steps[0].by]] = None
    return list(blamed)


def _automatic(module: Module, now: Simulation, group: Sequence[int]) -> Advice | None:
    """Advice to pass ``group`` in the layouts that the compiler would choose; ``None`` if that removes no copy."""
    results = [alias.output_index for alias in module.input_output_aliases if alias.parameter_number in group]
    free: list[Setting] = [*(EntryLayoutSetting(str(n), None) for n in group), *(ResultLayoutSetting(i, None) for i in results)]
    changed, pipeline = apply_settings(module, free, resolve_preset(now.preset))
    given, chosen = module.entry_layout, simulate(changed, pipeline, measure_memory=False, in_place=True).module.entry_layout
    assert given is not None and chosen is not None, module
    parameters = _changed({n: (given.parameters[n], chosen.parameters[n]) for n in group})
    outputs = _changed({i: (subshape(given.result, i), subshape(chosen.result, i)) for i in results})
    settings = _settings(parameters, outputs)
    changed, pipeline = apply_settings(module, settings, resolve_preset(now.preset))
    result = simulate(changed, pipeline, in_place=True)
    if result.transposing_bytes >= now.transposing_bytes:
        return None
    names = {p.parameter_number: leaf_name(p) for p in module.entry.parameters}
    return measured(
        now,
        result,
        audience="jax",
        title="pass " + ", ".join(f"{names[n]} as {parameters[n]}" for n in sorted(parameters)),
        code=layout_code(module, parameters, outputs, now.preset),
        warnings=tuple(_worse_elsewhere(module, now.preset, settings)),
        settings=tuple(setting.to_text() for setting in settings),
    )


def _changed(layouts: Mapping[K, tuple[Shape, Shape]]) -> dict[K, Layout]:
    """The layouts that differ from the given ones."""
    pairs = {key: (old, new.layout) for key, (old, new) in layouts.items() if isinstance(new, ArrayShape)}
    return {key: layout for key, (old, layout) in pairs.items() if layout is not None and layout != _layout_of(old)}


def _layout_of(shape: Shape) -> Layout | None:
    return shape.layout if isinstance(shape, ArrayShape) else None


def _settings(parameters: Mapping[int, Layout], outputs: Mapping[ShapeIndex, Layout]) -> list[Setting]:
    inputs = [EntryLayoutSetting(str(n), layout) for n, layout in parameters.items()]
    return [*inputs, *(ResultLayoutSetting(i, layout) for i, layout in outputs.items())]


def _worse_elsewhere(module: Module, preset: str, settings: Sequence[Setting]) -> list[str]:
    """Releases of the same backend under which the settings add copies."""
    warnings: list[str] = []
    for name in variants_of(preset):
        if name == preset or name not in preset_names():
            continue
        changed, pipeline = apply_settings(module, settings, resolve_preset(name))
        try:
            before = simulate(module, name, measure_memory=False).transposing_bytes
            after = simulate(changed, pipeline, measure_memory=False, in_place=True).transposing_bytes
        except LayoutsimError as error:
            warnings.append(f"{name} could not be tried: {error}")
            continue
        if after > before:
            warnings.append(f"under {name} it adds {exact_bytes(after - before)} of transposing copies")
    return warnings
