"""How layout assignment goes about it, as far as variants may choose: everything that is no backend's rule.

The default is XLA's way. ``priorities`` says how much the *wishes* of a kind of constraint count. A wish is what passes a
layout on without being able to insist; of two wishes for one array the one of higher priority wins, and of equal ones the
first. XLA gives all of a round the same priority (and lowers some by one)::

    g = f32[8,16]{0,1} all-gather(n), dimensions={1}             g = f32[8,16]{0,1} all-gather(n), dimensions={1}
    s = f32[8,4]{0,1} sine(n)                                    s = f32[8,4]{0,1} sine(n)
    r = f32[8,4]{0,1} reshape(s)                           =>    r = f32[8,4]{1,0} reshape(s)
    copy = f32[8,4]{1,0} copy(r)                                 ROOT t = (...) tuple(..., r)
    ROOT t = (...) tuple(..., copy)

``n`` must be ``{0,1}`` and ``r`` is to be returned as ``{1,0}``; with ``priorities=use-to-definition:1`` that wish replaces the
one that came through the reshape. It saves the copy, but the reshape moves the elements instead.

1. A name is that of a step in :mod:`~layoutsim.passes.layout_assignment.reasons`; the number is added to the round's.
2. What is passed on from there has that priority too, until an instruction insists.
3. With priorities set, no wish replaces what was demanded, and no demand gives way to a wish, so that every mandatory rule
   holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from layoutsim.errors import PassError
from layoutsim.passes.layout_assignment import reasons
from layoutsim.passes.layout_assignment.options import ComputationOrder, CopyComparison, LoopInvariants, WorkList

WISHES = tuple(
    rule.name
    for rule in (
        reasons.USE_TO_DEFINITION,
        reasons.DEFINITION_TO_USE,
        reasons.BITCAST_OPERAND,
        reasons.BITCAST_RESULT,
        reasons.REDUCE_OPERAND,
        reasons.BACK_EDGE,
    )
)
"""Steps that wish, at least sometimes; a ``bitcast-result`` of a transpose insists."""


@frozen
class Procedure:
    """One way to go about it.

    Attributes:
        order: in which computations are laid out.
        work_list: in which order constraints are followed.
        copies: when two layouts differ so that a copy is needed.
        loop_invariants: who chooses the layout of what a loop only reads.
        priorities: of wishes, relative to the round, by the name of the step.
    """

    order: ComputationOrder = ComputationOrder.FORWARD
    work_list: WorkList = WorkList.XLA
    copies: CopyComparison = CopyComparison.EXACT
    loop_invariants: LoopInvariants = LoopInvariants.BODY
    priorities: Mapping[str, int] = field(factory=dict[str, int])


def parse_priorities(words: tuple[str, ...]) -> Mapping[str, int]:
    """Priorities from words like ``reduce-operand:-1``.

    Raises:
        PassError: a word is not of this form, or names no wish.
    """
    found: dict[str, int] = {}
    for word in words:
        name, _, number = word.partition(":")
        if name not in WISHES or not number.removeprefix("-").isdecimal():
            raise PassError(
                f"layout-assignment: priorities: expected STEP:NUMBER with a step of {', '.join(WISHES)}, got {word!r}"
            )
        found[name] = int(number)
    return found
