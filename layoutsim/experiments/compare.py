"""The same module under several rule sets, one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from layoutsim.experiments.simulate import Simulation, simulate
from layoutsim.ir.module import Module
from layoutsim.passes import Pipeline
from layoutsim.passes.presets import preset_names
from layoutsim.report.tables import Rows
from layoutsim.report.units import human_bytes, signed_bytes


@frozen(eq=False)
class Comparison:
    """Simulations of one module; differences are to the first."""

    module: Module
    results: tuple[Simulation, ...]

    def __getitem__(self, preset: str) -> Simulation:
        """The simulation under ``preset``.

        Raises:
            KeyError: it was not compared.
        """
        for result in self.results:
            if result.preset == preset:
                return result
        raise KeyError(f"{preset} was not compared; compared: {', '.join(r.preset for r in self.results)}")

    def to_json(self) -> dict[str, object]:
        return {"module": self.module.name, "presets": [result.to_json() for result in self.results]}

    def rows(self) -> Rows:
        """One row for each rule set; what differs from the first row is shown as a difference too."""
        base = self.results[0]
        columns = ("preset", "transposing copies", "bytes", "±", "temporaries", "± ", "peak", "±  ")
        rows = tuple(_row(result, base) for result in self.results)
        return Rows(self.module.name, columns, rows, frozenset(columns[1:]))

    def _repr_html_(self) -> str:
        return self.rows().to_html()


def _row(result: Simulation, base: Simulation) -> tuple[str, ...]:
    memory, before = result.memory, base.memory
    return (
        result.preset,
        str(len(result.transposing_copies)),
        human_bytes(result.transposing_bytes),
        signed_bytes(result.transposing_bytes - base.transposing_bytes),
        human_bytes(memory.temp_bytes),
        signed_bytes(memory.temp_bytes - before.temp_bytes),
        human_bytes(memory.peak_bytes),
        signed_bytes(memory.peak_bytes - before.peak_bytes),
    )


def compare(
    module: Module,
    presets: Sequence[str | Pipeline] = (),
    *,
    on_preset: Callable[[str | Pipeline], None] | None = None,
) -> Comparison:
    """Simulate ``module`` under each preset (all of them when none are given).

    Raises:
        PassError: a preset is unknown or cannot run on this module.
        InputError: the module is scheduled already.
    """
    results: list[Simulation] = []
    for chosen in presets or preset_names():
        if on_preset is not None:
            on_preset(chosen)
        results.append(simulate(module, chosen))
    return Comparison(module, tuple(results))
