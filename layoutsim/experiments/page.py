"""The HTML report of a module: simulate, explain, draw."""

from __future__ import annotations

from layoutsim.errors import InputError
from layoutsim.experiments.joint import Distance, NotKnown
from layoutsim.experiments.simulate import Simulation, memory_rows
from layoutsim.memory.waste import waste_report
from layoutsim.report.page import PageContent, render_page
from layoutsim.report.timeline import timeline

MOST_CHAINS = 2000
"""Copies whose chains are written out, the largest first."""


def report_page(result: Simulation, *, remedies: bool = True, best: Distance | NotKnown | None = None) -> str:
    """A self-contained page about a simulation.

    Args:
        remedies: also try which rule sets avoid each copy (takes a layout assignment for each rule set).
        best: how far the layouts are from the best ones; the page says nothing of that without it.

    Raises:
        InputError: memory was not measured.
    """
    if result.assignment is None:
        raise InputError("the report needs memory: simulate(..., measure_memory=True)")
    waste = waste_report(result.assignment)
    chosen = result.transposing_copies[:MOST_CHAINS]
    content = PageContent(
        title=result.module.name,
        preset=result.preset,
        instruction_count=result.module.instruction_count,
        figures=memory_rows(result.memory),
        best="" if best is None else str(best),
        waste=waste,
        copies=result.copies,
        explanations=[result.explain(copy, remedies=remedies) for copy in chosen],
        line=timeline(result.assignment, waste),
    )
    return render_page(content)
