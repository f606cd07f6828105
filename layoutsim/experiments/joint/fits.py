"""Which orders a rule takes: functions from an order to the one that is used for it, or ``None`` where it is refused."""

from __future__ import annotations

from layoutsim.experiments.joint.problem import Follow, Variable, restrict
from layoutsim.passes.layout_assignment.layout_math import Order, move_to_major


def any_order(order: Order) -> Order:
    """Takes every order as it is."""
    return order


def fixed_fit(dimensions: frozenset[int], wanted: Order) -> Follow:
    """Takes ``wanted``, and what is the same up to other dimensions than ``dimensions``."""
    key = restrict(wanted, dimensions)
    return lambda order: wanted if restrict(order, dimensions) == key else None


def major_fit(variable: Variable, dimension: int) -> Follow:
    """Takes orders in which a dimension of ``variable`` is the most major of those that are not of size 1."""

    def fit(order: Order) -> Order | None:
        key = restrict(order, variable.dimensions)
        return None if dimension in key and key[-1] != dimension else move_to_major(order, dimension)

    return fit
