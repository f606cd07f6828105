"""Why a layout is what it is: rules, and the chain of reasons that every constraint carries.

A :class:`Reason` says which rule set a constraint, where, to what, in which round, and which earlier constraint it followed
from. ``reason.chain()`` leads from a constraint back to the demand that started it: the last element has no cause, and its
``rule`` and ``by`` are the rule and the instruction that demanded the layout in the first place. The chain crosses rounds
and computations: a loop parameter's layout in round 1 follows from the body's root in round 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field, frozen

from layoutsim.ir import ArrayShape, Instruction, Layout, Shape, ShapeIndex, index_text, subshape


@frozen
class Rule:
    """One rule of layout assignment.

    Attributes:
        name: short and stable, ``all-gather``.
        section: of the layout specification.
        text: what it says, to follow "because".
        is_demand: it starts a chain; otherwise it passes on a layout that came from elsewhere.
    """

    name: str
    section: str
    text: str
    is_demand: bool = True

    def __str__(self) -> str:
        return f"{self.text} [{self.name}, {self.section}]"


def _step(name: str, section: str, text: str) -> Rule:
    return Rule(name, section, text, is_demand=False)


# Demands that hold for every backend.
INFEED = Rule("infeed", "5.1", "an infeed delivers the layout it was created with")
OUTFEED = Rule("outfeed", "5.1", "an outfeed takes the layout it was created with")
ENTRY_PARAMETER = Rule("entry-parameter", "5.1", "the caller passes the parameter in this layout")
ENTRY_RESULT = Rule("entry-result", "5.3", "the caller expects the result in this layout")
CONSTRAINED_COLLECTIVE = Rule("constrained-collective", "5.1", "the collective has constrain_layout=true")
CHANNEL = Rule("channel", "5.1", "another all-reduce on the same channel has this layout")
CUSTOM_CALL = Rule("custom-call", "5.4", "the custom call fixes the layouts of its operands and result")
DEFAULT = Rule("default", "8", "nothing constrains the array, so it gets the default layout")
LITERAL = Rule("literal", "8", "nothing constrains the constant, so it keeps the layout of its literal")
GIVEN = Rule("given", "4.5", "the computation's layout was given or is the default, and nothing changed it")

# Layouts of computations that calls, loops and branches share.
PARAMETER = _step("parameter", "5.1", "the computation was found to take this layout in the round before")
RESULT = _step("result", "5.3", "the computation was found to return this layout in the round before")
CALL = _step("call", "5.2", "a call has the layouts of the computation it calls")
WHILE = _step("while", "5.2", "a loop carries the layout that its body returns")
CONDITIONAL = _step("conditional", "5.2", "a conditional has the layout of its largest branch")
BRANCH_MISMATCH = _step("branch-mismatch", "5.3", "every branch must return the layout of the largest one")
BRANCH_OPERAND = _step("branch-operand", "5.2", "the branch's parameter was found to have this layout")
ALIAS = _step("input-output-alias", "4.7", "an input and the output that aliases it must have one layout")

# Steps of propagation.
USE_TO_DEFINITION = _step("use-to-definition", "7.4", "its user wants this layout")
DEFINITION_TO_USE = _step("definition-to-use", "7.4", "its operand has this layout")
RESULT_TO_OPERAND = _step("result-to-operand", "7.4", "result and operand must have the same layout")
BROADCAST_OPERAND = _step("broadcast-operand", "7.4", "the operand of a broadcast is laid out as its part of the result")
BITCAST_OPERAND = _step("bitcast-operand", "7.3", "this operand layout makes the operation a bitcast")
REDUCE_OPERAND = _step("reduce-operand", "7.3", "this operand layout makes the reduction run along the most minor dimensions")
SIBLING = _step("sibling-operand", "7.4", "all operands must have the same layout")
OPERAND_TO_RESULT = _step("operand-to-result", "7.4", "result and operand must have the same layout")
BITCAST_RESULT = _step("bitcast-result", "7.3", "this result layout makes the operation a bitcast")
OUTPUT_OPERAND_ALIAS = _step("output-operand-alias", "3.2", "the output shares its buffer with this operand")
BACK_EDGE = _step("loop-back-edge", "7.4", "the next iteration gets what this one returns")


@define(eq=False, repr=False)
class Reason:
    """One link of the chain.

    Attributes:
        rule: what set the constraint.
        at: the instruction whose buffer or operand slot is constrained (a computation's root for its result).
        slot: operand number, or ``None`` if the constraint is on a buffer that ``at`` makes (or on a result).
        index: shape index in the operand or result.
        wanted: the layout asked for; a whole shape where the constraint covers a tuple.
        cause: the constraint it follows from; ``None`` for a demand.
        by: the instruction that demanded, where that is not ``at``.
        round: 0 or 1 (more with input-output aliases).
        leaf_causes: for tuples, the cause of each leaf.
    """

    rule: Rule
    at: Instruction
    slot: int | None
    index: ShapeIndex
    wanted: Layout | Shape
    cause: Reason | None
    round: int
    _by: Instruction | None = None
    leaf_causes: Mapping[ShapeIndex, Reason] | None = field(default=None)

    @property
    def by(self) -> Instruction:
        """The instruction that demanded the layout: the one a rule looked at, or the one the layout came from."""
        if self._by is not None:
            return self._by
        return self.at if self.cause is None else self.cause.at

    @property
    def layout(self) -> Layout | None:
        """The layout asked for, if the constraint is on one array."""
        if isinstance(self.wanted, Layout):
            return self.wanted
        return self.wanted.layout if isinstance(self.wanted, ArrayShape) else None

    def for_leaf(self, index: ShapeIndex) -> Reason:
        """The reason of one leaf of a constraint on a tuple."""
        if isinstance(self.wanted, Layout) or (not index and self.leaf_causes is None):
            return self
        cause = self.leaf_causes.get(index, self.cause) if self.leaf_causes is not None else self.cause
        leaf = subshape(self.wanted, index)
        wanted = leaf.layout if isinstance(leaf, ArrayShape) and leaf.layout is not None else leaf
        return Reason(self.rule, self.at, self.slot, (*self.index, *index), wanted, cause, self.round, self._by)

    def chain(self) -> list[Reason]:
        """This reason, its cause, and so on to the demand that started it."""
        out: list[Reason] = [self]
        while (cause := out[-1].cause) is not None:
            out.append(cause)
        return out

    @property
    def origin(self) -> Reason:
        """The demand at the far end of the chain."""
        reason = self
        while reason.cause is not None:
            reason = reason.cause
        return reason

    @property
    def place(self) -> str:
        """``%add.3 operand 1`` or ``%while.2 {0,1}``."""
        part = "" if self.slot is None else f" operand {self.slot}"
        return f"%{self.at.name}{part}{f' {index_text(self.index)}' if self.index else ''}"

    def __str__(self) -> str:
        return f"{self.place}: {self.wanted}, because {self.rule}"

    def __repr__(self) -> str:
        return f"<reason {self}>"
