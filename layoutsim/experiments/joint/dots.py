"""In which orders a product takes its operands and writes its result, dimensions of size 1 aside (layout spec, 6.3)."""

from __future__ import annotations

from itertools import permutations

from layoutsim.experiments.joint.arrays import sized_dimensions
from layoutsim.experiments.joint.problem import Follow, restrict
from layoutsim.ir import Instruction
from layoutsim.passes.layout_assignment import OperandDemand
from layoutsim.passes.layout_assignment.gpu_dot import MATRIX_OPERAND, sides
from layoutsim.passes.layout_assignment.layout_math import Order, Sizes, is_matrix
from layoutsim.passes.layout_assignment.rules import array_of

Groups = tuple[Sizes, Sizes, Sizes]
"""Batch dimensions, rows and columns."""


def dot_result_fit(dot: Instruction) -> Follow:
    """Orders in which the product can write its result."""
    left, right = sides(dot)
    batch, rows = len(left.batch), len(left.batch) + len(left.free)
    numbers = tuple(range(rows + len(right.free)))
    dimensions = sized_dimensions(array_of(dot.shape))
    groups = (numbers[:batch], numbers[batch:rows], numbers[rows:])
    return lambda order: _as_matrix(order, groups, dimensions)


def dot_operand_fit(dot: Instruction, demand: OperandDemand, *, any_matrix: bool) -> tuple[Follow, Order]:
    """Orders in which the product takes an operand, and the one that XLA asks for (the only one unless ``any_matrix``)."""
    wanted = array_of(demand.shape)
    dimensions, order = sized_dimensions(wanted), wanted.minor_to_major
    key = restrict(order, dimensions)
    side = sides(dot)[demand.number]
    groups = (side.batch, side.contracting, side.free)

    def adapted(offered: Order) -> Order | None:
        is_free = any_matrix and demand.rule is MATRIX_OPERAND
        matrix = _as_matrix(offered, groups, dimensions) if is_free else None
        # Where XLA makes an order to fit, that is taken even if it is no matrix by the letter.
        return order if matrix is None and restrict(offered, dimensions) == key else matrix

    return adapted, order


def _as_matrix(order: Order, groups: Groups, dimensions: frozenset[int]) -> Order | None:
    """``order`` as a batch of matrices, with dimensions of size 1 moved next to their groups; ``None`` if bytes would move."""
    if is_matrix(order, *groups):
        return order
    key = restrict(order, dimensions)
    for minor_to_major in permutations(groups):
        candidate = tuple(d for group in minor_to_major for d in reversed(group))
        if restrict(candidate, dimensions) == key and is_matrix(candidate, *groups):
            return candidate
    return None
