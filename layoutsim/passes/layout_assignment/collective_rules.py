"""Collectives whose dimension must be most major, on GPU and CPU (layout spec, 6.1, 6.5 and 12.4).

The data of all participants lies one after the other, so the dimension along which they are put together must vary slowest.
XLA asks for it *by position*: ``bf16[1,128,4096]`` gathered along dimension 1 gets ``{2,0,1}``, although ``{2,1,0}`` is the
same in memory. With :attr:`CollectiveRule.IGNORE_DEGENERATE` a layout stays if only dimensions of size 1 are more major.

=====================  ==========================================  =====================================================
collective             dimension                                   GPU kernel refuses
=====================  ==========================================  =====================================================
``all-gather``         ``dimensions``                              operands in which it is not *effectively* most major
``reduce-scatter``     ``dimensions``                              nothing: it trusts layout assignment
``all-to-all``         ``dimensions``; of the tuple form none      operands in which it is not *effectively* most major
``ragged-all-to-all``  0                                           results in which it is not *effectively* most major
=====================  ==========================================  =====================================================

Effectively: up to dimensions of size 1 (``ShapeUtil::IsEffectivelyMostMajorDimension``). The CPU backend demands it of the
first two only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from layoutsim.ir import ArrayShape, Instruction, Layout, Opcode, Shape, default_layout, map_arrays
from layoutsim.ir.payloads import CollectivePayload
from layoutsim.passes.layout_assignment.backends import Demand, DemandRule, ResultDemand, View
from layoutsim.passes.layout_assignment.layout_math import move_to_major
from layoutsim.passes.layout_assignment.options import CollectiveRule
from layoutsim.passes.layout_assignment.reasons import Rule
from layoutsim.passes.layout_assignment.rules import as_array

_NAMES = {
    Opcode.ALL_GATHER: "gathers",
    Opcode.REDUCE_SCATTER: "scatters",
    Opcode.ALL_TO_ALL: "splits",
    Opcode.RAGGED_ALL_TO_ALL: "splits",
}


def major_dimension_rules(choices: Mapping[Opcode, CollectiveRule], section: str) -> dict[Opcode, DemandRule]:
    """The demand rules of several collectives."""
    return {opcode: major_dimension_rule(opcode, choice, section) for opcode, choice in choices.items()}


def major_dimension_rule(opcode: Opcode, choice: CollectiveRule, section: str) -> DemandRule:
    """The demand rule of one collective opcode."""
    rule = Rule(
        opcode.value,
        section if choice is CollectiveRule.POSITIONAL else "12.4",
        f"the {opcode} needs the dimension it {_NAMES[opcode]} along to be most major",
    )

    def demand(instruction: Instruction, _view: View) -> Iterable[Demand]:
        dimension = _dimension(instruction)
        if dimension is not None:
            wanted = map_arrays(instruction.shape, lambda leaf: _major(leaf, dimension, choice))
            yield ResultDemand(wanted, rule)

    return demand


def _dimension(instruction: Instruction) -> int | None:
    """The dimension that must be most major; an all-to-all that returns a tuple has none."""
    if instruction.opcode is Opcode.RAGGED_ALL_TO_ALL:
        return 0
    if instruction.opcode is Opcode.ALL_TO_ALL and as_array(instruction.shape) is None:
        return None
    return instruction.payload_as(CollectivePayload).dimension


def _major(leaf: ArrayShape, dimension: int, choice: CollectiveRule) -> ArrayShape:
    standing = leaf.layout or default_layout(leaf.rank)
    if choice is CollectiveRule.IGNORE_DEGENERATE:
        for candidate in (standing, default_layout(leaf.rank)):
            if _is_most_major(leaf, dimension, candidate):
                return leaf.with_layout(candidate)
    return leaf.with_order(move_to_major(standing.minor_to_major, dimension))


def _is_most_major(leaf: ArrayShape, dimension: int, candidate: Layout) -> bool:
    order = candidate.minor_to_major
    return all(leaf.dimensions[d] == 1 for d in order[order.index(dimension) + 1 :])


def with_default(shape: Shape) -> Shape:
    """``shape`` with its dimensions in default order; tiles, element sizes and memory spaces stay."""
    return map_arrays(shape, in_default_order)


def in_default_order(leaf: ArrayShape) -> ArrayShape:
    """:func:`with_default` for one array."""
    plain = default_layout(leaf.rank)
    return leaf.with_layout(plain if leaf.layout is None else evolve(leaf.layout, minor_to_major=plain.minor_to_major))


def with_plain_default(shape: Shape) -> Shape:
    """``shape`` with default layouts that say nothing but the order."""
    return map_arrays(shape, lambda leaf: leaf.with_layout(default_layout(leaf.rank)))
