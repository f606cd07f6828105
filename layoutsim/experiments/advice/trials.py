"""What the pieces of advice on one module share: the simulation of the module as it is, and copies under other rules."""

from __future__ import annotations

from attrs import define, field

from layoutsim.experiments.simulate import Simulation, simulate, split_at_layouts, with_memory
from layoutsim.ir.clone import clone_module
from layoutsim.ir.module import Module
from layoutsim.passes import Pass, Pipeline
from layoutsim.passes.presets import resolve_preset


@define(eq=False)
class Trials:
    """Simulations of one module.

    Attributes:
        module: as it enters layout assignment; stays as it is.
        pipeline: the rules that are advised about.
        now: the simulation under them, with memory.
        laid_out: a copy of the module as the passes up to layout assignment left it; stays as it is.
    """

    module: Module
    pipeline: Pipeline
    now: Simulation
    laid_out: Module
    _copied: dict[tuple[Pass, ...], int] = field(factory=dict[tuple[Pass, ...], int])
    _last: tuple[tuple[Pass, ...], Simulation] | None = None

    @staticmethod
    def start(module: Module, preset: str) -> Trials:
        """Simulate the module as it is."""
        pipeline = resolve_preset(preset)
        laid_out = simulate(module, preset, measure_memory=False)
        kept = clone_module(laid_out.module)
        return Trials(module, pipeline, with_memory(laid_out, pipeline), kept)

    def transposing_bytes(self, pipeline: Pipeline) -> int:
        """Bytes of the transposing copies under other rules."""
        passes = _up_to_layouts(pipeline)
        if passes not in self._copied:
            # The module is large, so only the last one is kept.
            self._last = (passes, self.lay_out(pipeline))
        return self._copied[passes]

    def lay_out(self, pipeline: Pipeline) -> Simulation:
        """The module under other rules, without memory; the caller's own, to go on with."""
        passes = _up_to_layouts(pipeline)
        if self._last is not None and self._last[0] == passes:
            (_, result), self._last = self._last, None
            return result
        result = simulate(self.module, pipeline, measure_memory=False)
        self._copied[passes] = result.transposing_bytes
        return result


def _up_to_layouts(pipeline: Pipeline) -> tuple[Pass, ...]:
    return split_at_layouts(pipeline)[0].passes
