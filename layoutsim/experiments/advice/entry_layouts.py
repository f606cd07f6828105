"""Layouts in which the caller passes arguments and takes results: the compiler's own choice for what is copied, as code.

1. An argument is tried if the layout that a transposing copy meets is the one the caller gave it; together with the result that
   has its memory if it is donated.
2. A result is tried if the layout that a transposing copy makes is the one the caller wants, unless it has the memory of an
   argument.

What is tried is left to the compiler (automatic), and what the compiler makes of it is simulated again, as given, and advised.
Every advised layout is also tried under the other releases, since what is right for one can create the copy in another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from layoutsim.errors import LayoutsimError
from layoutsim.experiments.advice.change import most_alone
from layoutsim.experiments.advice.jax_arguments import layout_code, leaf_name
from layoutsim.experiments.advice.report import Advice, measured, not_worse_than_each
from layoutsim.experiments.advice.trials import Trials
from layoutsim.experiments.simulate import Simulation, releases_of, simulate, with_memory
from layoutsim.experiments.what_if import EntryLayoutSetting, ResultLayoutSetting, Setting, apply_settings
from layoutsim.ir.layout import Layout
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape, Shape, ShapeIndex, index_text, subshape
from layoutsim.passes.presets import PROPOSED, resolve_preset
from layoutsim.report.units import exact_bytes

K = TypeVar("K")

_MOST_NAMED = 5
"""Arguments or results in a title."""

_INDEX = re.compile(r"\{([\d,]+)\}$")


def advise_entry_layouts(trials: Trials) -> list[Advice]:
    """Advice for all parameters that are copied, together, and for each alone if that saves memory; and for all results."""
    module = trials.module
    parameters, results = _blamed_parameters(module, trials.now), _blamed_results(module, trials.now)
    found = [_automatic(trials, [], results)] if results else []
    alone = [_automatic(trials, [n]) for n in parameters[: most_alone(module)]] if len(parameters) > 1 else []
    worthwhile = [advice for advice in alone if advice is not None and advice.saved_bytes > 0]
    if parameters and (best := _automatic(trials, parameters)) is not None:
        found += [*not_worse_than_each([best], worthwhile), *worthwhile]
    return [advice for advice in found if advice is not None]


def _blamed_parameters(module: Module, now: Simulation) -> list[int]:
    """Numbers of the entry parameters whose given layout is where the copied layouts come from."""
    numbers = {p.name: p.parameter_number for p in module.entry.parameters if isinstance(p.shape, ArrayShape)}
    blamed: dict[int, None] = {}
    for copy in now.transposing_copies:
        steps = now.explain(copy, remedies=False).met
        if steps and steps[0].by in numbers:
            blamed[numbers[steps[0].by]] = None
    return list(blamed)


def _blamed_results(module: Module, now: Simulation) -> list[ShapeIndex]:
    """Results whose wanted layout is why copies are made; rule (2)."""
    shared = {alias.output_index for alias in module.input_output_aliases}
    blamed: dict[ShapeIndex, None] = {}
    for copy in now.transposing_copies:
        steps = now.explain(copy, remedies=False).wanted
        if steps and steps[0].rule == "entry-result":
            found = _INDEX.search(steps[0].place)
            index = tuple(int(part) for part in found[1].split(",")) if found else ()
            if index not in shared:
                blamed[index] = None
    return list(blamed)


def _automatic(trials: Trials, group: Sequence[int], results: Sequence[ShapeIndex] = ()) -> Advice | None:
    """Advice to use the layouts that the compiler would choose for these; ``None`` if that removes no copy.

    Args:
        group: parameters; the results that have their memory come along.
    """
    module, now = trials.module, trials.now
    shared = {a.parameter_number: a.output_index for a in module.input_output_aliases}
    results = [*results, *(shared[n] for n in group if n in shared)]
    free: list[Setting] = [*(EntryLayoutSetting(str(n), None) for n in group), *(ResultLayoutSetting(i, None) for i in results)]
    changed, pipeline = apply_settings(module, free, trials.pipeline)
    given, chosen = module.entry_layout, simulate(changed, pipeline, measure_memory=False, in_place=True).module.entry_layout
    assert given is not None and chosen is not None, module
    parameters = _changed({n: (given.parameters[n], chosen.parameters[n]) for n in group})
    outputs = _changed({i: (subshape(given.result, i), subshape(chosen.result, i)) for i in results})
    settings = _settings(parameters, outputs)
    changed, pipeline = apply_settings(module, settings, trials.pipeline)
    laid_out = simulate(changed, pipeline, measure_memory=False, in_place=True)
    if laid_out.transposing_bytes >= now.transposing_bytes:
        return None
    names = {p.parameter_number: leaf_name(p) for p in module.entry.parameters}
    passed = _listed([f"{names[n]} as {parameters[n]}" for n in sorted(parameters)])
    returned = _listed([f"result {index_text(i)} as {outputs[i]}" if i else f"result as {outputs[i]}" for i in outputs])
    title = "; ".join(f"{verb} {what}" for verb, what in (("pass", passed), ("return", returned)) if what)
    return measured(
        now,
        with_memory(laid_out, pipeline),
        audience="jax",
        title=title,
        code=layout_code(module, parameters, outputs, now.preset),
        warnings=tuple(_worse_elsewhere(trials, settings)),
        settings=tuple(setting.to_text() for setting in settings),
    )


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return ", ".join(texts[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _changed(layouts: Mapping[K, tuple[Shape, Shape]]) -> dict[K, Layout]:
    """The layouts that differ from the given ones."""
    pairs = {key: (old, new.layout) for key, (old, new) in layouts.items() if isinstance(new, ArrayShape)}
    return {key: layout for key, (old, layout) in pairs.items() if layout is not None and layout != _layout_of(old)}


def _layout_of(shape: Shape) -> Layout | None:
    return shape.layout if isinstance(shape, ArrayShape) else None


def _settings(parameters: Mapping[int, Layout], outputs: Mapping[ShapeIndex, Layout]) -> list[Setting]:
    inputs = [EntryLayoutSetting(str(n), layout) for n, layout in parameters.items()]
    return [*inputs, *(ResultLayoutSetting(i, layout) for i, layout in outputs.items())]


def _worse_elsewhere(trials: Trials, settings: Sequence[Setting]) -> list[str]:
    """Releases of the same backend under which the settings add copies."""
    warnings: list[str] = []
    for name in releases_of(trials.pipeline):
        if name in (trials.now.preset, PROPOSED):
            continue
        release = resolve_preset(name)
        changed, pipeline = apply_settings(trials.module, settings, release)
        try:
            before = trials.transposing_bytes(release)
            after = simulate(changed, pipeline, measure_memory=False, in_place=True).transposing_bytes
        except LayoutsimError as error:
            warnings.append(f"{name} could not be tried: {error}")
            continue
        if after > before:
            warnings.append(f"under {name} it adds {exact_bytes(after - before)} of transposing copies")
    return warnings
