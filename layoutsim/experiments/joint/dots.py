"""In which orders a product takes its operands and writes its result, dimensions of size 1 aside (layout spec, 6.3)."""

from __future__ import annotations

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


def dot_operand_fit(dot: Instruction, demand: OperandDemand) -> tuple[Follow, Order]:
    """Orders in which the product takes an operand, and the one that XLA asks for."""
    wanted = array_of(demand.shape)
    dimensions, order = sized_dimensions(wanted), wanted.minor_to_major
    if demand.rule is MATRIX_OPERAND:
        side = sides(dot)[demand.number]
        groups = (side.batch, side.contracting, side.free)
        return lambda offered: _as_matrix(offered, groups, dimensions), order
    key = restrict(order, dimensions)
    return lambda offered: order if restrict(offered, dimensions) == key else None, order


def _as_matrix(order: Order, groups: Groups, dimensions: frozenset[int]) -> Order | None:
    """``order`` as a batch of matrices, with dimensions of size 1 moved next to their groups; ``None`` if bytes would move."""
    batch, rows, columns = groups
    if is_matrix(order, batch, rows, columns):
        return order
    key = restrict(order, dimensions)
    places = {d: place for place, d in enumerate(key)}
    by_place = sorted((g for g in groups if g), key=lambda g: min((places[d] for d in g if d in places), default=len(key)))
    candidate = tuple(d for group in by_place for d in reversed(group))
    fits = restrict(candidate, dimensions) == key and is_matrix(candidate, batch, rows, columns)
    return candidate if fits else None
