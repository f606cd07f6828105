"""The HTML report of a module: simulate, explain, draw."""

from __future__ import annotations

from layoutsim.errors import InputError
from layoutsim.experiments.simulate import Simulation, memory_rows
from layoutsim.report.copies import CopyRecord
from layoutsim.report.page import render_page
from layoutsim.report.tables import copy_rows
from layoutsim.report.timeline import timeline

MOST_CHAINS = 200
"""Copies whose chains are written out, the largest first."""


def report_page(result: Simulation, *, remedies: bool = True) -> str:
    """A self-contained page about a simulation.

    Args:
        remedies: also try which rule sets avoid each copy (takes a layout assignment for each rule set).

    Raises:
        InputError: memory was not measured.
    """
    if result.assignment is None:
        raise InputError("the report needs memory: simulate(..., measure_memory=True)")
    chosen: tuple[CopyRecord, ...] = result.transposing_copies[:MOST_CHAINS]
    return render_page(
        title=result.module.name,
        preset=result.preset,
        instruction_count=result.module.instruction_count,
        figures=[memory_rows(result.memory)],
        copies=copy_rows(result.copies, include_free=True),
        explanations=[result.explain(copy, remedies=remedies) for copy in chosen],
        line=timeline(result.assignment),
        marked=[copy.name for copy in result.transposing_copies],
    )
