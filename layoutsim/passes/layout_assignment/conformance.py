"""Our layout assignment on a module against the compiler's result for the same module.

On CPU the result depends on the order in which XLA *stores* instructions, since that is the order in which the backend states
its demands. HLO text does not hold it: it is printed operands first, while XLA appends what a pass creates at the end. So where
the texts of a pair disagree, the stored order is taken from the pair itself: the instructions that got another layout are taken
to be stored last, and the pass runs again (a few times at most). What still differs then is a mismatch; which instructions were
moved is part of the result. (The real CPU compiler, given these texts with layout assignment as its only pass, answers as our
first run does.) GPU demands follow the post-order, which text does hold; there nothing is moved.
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

Late = dict[str, dict[str, None]]
"""By computation, the instructions taken to be stored last."""

MAX_TRIES = 4


def check_against(before: Module, after: Module, layout_pass: LayoutAssignment) -> LayoutComparison:
    """Run ``layout_pass`` on a copy of ``before`` and compare with ``after``.

    Args:
        before: the module as it entered layout assignment; stays as it is.
        after: what the compiler made of it.
    """
    names = instruction_names(before)
    ours, found = _run(before, after, names, {}, layout_pass)
    if found.agrees or layout_pass.rules().order is not VisitOrder.STORED:
        return found
    late: Late = {}
    for _ in range(MAX_TRIES):
        more = instructions_laid_out_differently(names, ours, after)
        if not _add(late, more):
            break
        ours, again = _run(before, after, names, late, layout_pass)
        if again.agrees:
            return evolve(again, stored_last=tuple(f"{c}/{name}" for c, moved in late.items() for name in moved))
    return found


def _run(
    before: Module, after: Module, names: Names, late: Late, layout_pass: LayoutAssignment
) -> tuple[Module, LayoutComparison]:
    """Our result with the instructions in ``late`` stored last."""
    ours = clone_module(before)
    for computation in ours.computations:
        moved = late.get(computation.name, {})
        computation.reorder(sorted(computation.instructions, key=lambda instruction: instruction.name in moved))
    layout_pass.run(ours)
    return ours, compare_layouts(names, ours, after)


def _add(late: Late, more: Mapping[str, tuple[str, ...]]) -> bool:
    """Count ``more`` among the late ones; whether any of them is new."""
    before = sum(map(len, late.values()))
    for computation, names in more.items():
        late.setdefault(computation, {}).update(dict.fromkeys(names))
    return sum(map(len, late.values())) > before
