"""How layout assignment goes about it, as far as variants may choose: everything that is no backend's rule.

The default is XLA's way. ``priorities`` says how much the *wishes* of a kind of constraint count. A wish is what passes a
layout on without being able to insist; of two wishes for one array the one of higher priority wins, and of equal ones the
first. XLA gives all of a round the same priority (and lowers some by one). Below, lines with ``-`` are XLA's.
``layout-assignment{backend=gpu priorities=use-to-definition:1}``::

      p = f32[8,4,1]{2,1,0} parameter(0)
      copy = f32[8,4,1]{2,0,1} copy(p)
      n = f32[8,4]{0,1} reshape(copy)
      g = f32[8,16]{0,1} all-gather(n), replica_groups={{0,1,2,3}}, dimensions={1}
      s = f32[8,4]{0,1} sine(n)
    - r = f32[8,4]{0,1} reshape(s)
    - t = (f32[8,16]{0,1}, f32[8,4]{0,1}) tuple(g, r)
    + r = f32[8,4]{1,0} reshape(s)
    + t = (f32[8,16]{0,1}, f32[8,4]{1,0}) tuple(g, r)
      get-tuple-element = f32[8,16]{0,1} get-tuple-element(t), index=0
      copy.1 = f32[8,16]{1,0} copy(get-tuple-element)
    - get-tuple-element.1 = f32[8,4]{0,1} get-tuple-element(t), index=1
    - copy.2 = f32[8,4]{1,0} copy(get-tuple-element.1)
    - ROOT tuple = (f32[8,16]{1,0}, f32[8,4]{1,0}) tuple(copy.1, copy.2)
    + get-tuple-element.1 = f32[8,4]{1,0} get-tuple-element(t), index=1
    + ROOT tuple = (f32[8,16]{1,0}, f32[8,4]{1,0}) tuple(copy.1, get-tuple-element.1)

``n`` must be ``{0,1}`` and ``r`` is to be returned as ``{1,0}``; here that wish replaces the
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
