"""Our layout assignment on a module against the compiler's result for the same module.

The result can depend on two orders that HLO text does not hold, since it is printed operands first, while XLA appends what a
pass creates:

1. The order in which instructions are *stored*. On CPU the backend states its demands in it; GPU demands follow the post-order,
   which text does hold.
2. The order of an instruction's *users*: they are told its layout in turn, the last one first.

So where the texts of a pair disagree, these orders are taken from the pair itself. For (1) the instructions that got another
layout are taken to be stored last, and the pass runs again (a few times at most). For (2) users of the first value whose layout
differs, or of its operands, are taken to be registered last, one by one, as long as that leaves fewer differences. What still
differs then is a mismatch; which instructions were moved is part of the result. (The real compilers, given these texts with
layout assignment as their only pass, answer as our first run does.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from attrs import evolve, field, frozen

from layoutsim.ir import Instruction, Module
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
"""By computation, the instructions taken to be the last of some order, in this order."""

MAX_TRIES = 4
MAX_REGISTRATIONS = 64
"""Runs spent on the order of users."""


def check_against(before: Module, after: Module, layout_pass: LayoutAssignment) -> LayoutComparison:
    """Run ``layout_pass`` on a copy of ``before`` and compare with ``after``.

    Args:
        before: the module as it entered layout assignment; stays as it is.
        after: what the compiler made of it.
    """
    pair = _Pair(before, after, instruction_names(before), layout_pass)
    ours, found = pair.run()
    if found.agrees:
        return found
    if layout_pass.rules().order is VisitOrder.STORED:
        stored = _with_stored_order(pair, ours)
        if stored is not None:
            return stored
    return _with_order_of_users(pair, ours, found) or found


@frozen(eq=False)
class _Pair:
    """The module before and after the compiler's pass."""

    before: Module
    after: Module
    names: Names
    layout_pass: LayoutAssignment

    def run(self, stored: Late | None = None, registered: Late | None = None) -> tuple[Module, LayoutComparison]:
        """Our result with some instructions stored or registered last."""
        stored, registered = stored or {}, registered or {}
        ours = clone_module(self.before)
        for computation in ours.computations:
            moved = stored.get(computation.name, {})
            computation.reorder(sorted(computation.instructions, key=lambda instruction: instruction.name in moved))
            for name in registered.get(computation.name, {}):
                computation.find(name).move_last_among_users()
        self.layout_pass.run(ours)
        found = compare_layouts(self.names, ours, self.after)
        return ours, evolve(found, stored_last=_listed(stored), registered_last=_listed(registered))

    def laid_out_differently(self, ours: Module) -> dict[str, tuple[str, ...]]:
        return instructions_laid_out_differently(self.names, ours, self.after)


# -- (1) -----------------------------------------------------------------------------------------------------------------


def _with_stored_order(pair: _Pair, ours: Module) -> LayoutComparison | None:
    late: Late = {}
    for _ in range(MAX_TRIES):
        if not _add(late, pair.laid_out_differently(ours)):
            return None
        ours, found = pair.run(stored=late)
        if found.agrees:
            return found
    return None


def _add(late: Late, more: Mapping[str, tuple[str, ...]]) -> bool:
    """Count ``more`` among the late ones; whether any of them is new."""
    before = len(_listed(late))
    for computation, names in more.items():
        late.setdefault(computation, {}).update(dict.fromkeys(names))
    return len(_listed(late)) > before


def _listed(late: Late) -> tuple[str, ...]:
    return tuple(f"{computation}/{name}" for computation, names in late.items() for name in names)


# -- (2) -----------------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Step:
    """A run, and what was registered last for it."""

    ours: Module
    found: LayoutComparison
    registered: Late = field(factory=Late)


def _with_order_of_users(pair: _Pair, ours: Module, found: LayoutComparison) -> LayoutComparison | None:
    step, left = _Step(ours, found), MAX_REGISTRATIONS
    while not step.found.agrees:
        better = None
        for registered in islice(_later_registrations(pair, step), left):
            left -= 1
            again, compared = pair.run(registered=registered)
            if len(compared.mismatches) < len(step.found.mismatches):
                better = _Step(again, compared, registered)
                break
        if better is None:
            return None
        step = better
    return step.found


def _later_registrations(pair: _Pair, step: _Step) -> Iterator[Late]:
    """What is registered last in this step, and one user more."""
    for computation, names in pair.laid_out_differently(step.ours).items():
        differing = pair.before.find_computation(computation).find(names[0])
        for user in _rivals(differing):
            late = {name: dict(users) for name, users in step.registered.items()}
            others = late.setdefault(computation, {})
            others.pop(user.name, None)
            others[user.name] = None
            yield late


def _rivals(differing: Instruction) -> list[Instruction]:
    """Users of the operands of ``differing``, itself among them, and its own users, where there are several."""
    values = [*differing.operands, differing]
    return list(dict.fromkeys(user for value in values if value.user_count > 1 for user in value.users))
