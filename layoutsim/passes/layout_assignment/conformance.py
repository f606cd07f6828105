"""Our layout assignment on a module against the compiler's result for the same module.

On CPU the result depends on the order in which XLA *stores* instructions, since that is the order in which the backend states
its demands. HLO text does not hold it: it is printed operands first, while XLA appends what a pass creates at the end. So where
the texts of a pair disagree, the stored order is taken from the pair itself: the instructions that got another layout are
taken to be stored last, and the pass runs once more. What still differs then is a mismatch; which instructions were moved is
part of the result. (The real CPU compiler, given the same texts with layout assignment as its only pass, answers as our first
run does.) GPU demands follow the post-order, which text does hold; there nothing is moved.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from layoutsim.ir import Module
from layoutsim.ir.clone import clone_module
from layoutsim.passes.layout_assignment.backends import VisitOrder
from layoutsim.passes.layout_assignment.compare import (
    LayoutComparison,
    Names,
    compare_layouts,
    instruction_names,
    instructions_laid_out_differently,
)
from layoutsim.passes.layout_assignment.layout_pass import LayoutAssignment


def check_against(before: Module, after: Module, layout_pass: LayoutAssignment) -> LayoutComparison:
    """Run ``layout_pass`` on a copy of ``before`` and compare with ``after``.

    Args:
        before: the module as it entered layout assignment; stays as it is.
        after: what the compiler made of it.
    """
    names = instruction_names(before)
    ours = clone_module(before)
    layout_pass.run(ours)
    found = compare_layouts(names, ours, after)
    if found.agrees or layout_pass.rules().order is not VisitOrder.STORED:
        return found
    return _with_stored_order(before, names, ours, after, layout_pass) or found


def _with_stored_order(
    before: Module, names: Names, first: Module, after: Module, layout_pass: LayoutAssignment
) -> LayoutComparison | None:
    """The comparison with late instructions stored last; ``None`` if that does not bring agreement."""
    late = instructions_laid_out_differently(names, first, after)
    ours = clone_module(before)
    _store_last(ours, late)
    layout_pass.run(ours)
    found = compare_layouts(names, ours, after)
    moved = tuple(f"{computation}/{name}" for computation, late_names in late.items() for name in late_names)
    return evolve(found, stored_last=moved) if found.agrees else None


def _store_last(module: Module, late: Mapping[str, tuple[str, ...]]) -> None:
    for computation in module.computations:
        moved = frozenset(late.get(computation.name, ()))
        computation.reorder(sorted(computation.instructions, key=lambda instruction: instruction.name in moved))
