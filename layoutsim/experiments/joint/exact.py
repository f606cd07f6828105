"""The best assignment and a proof: a mixed-integer programme, solved by HiGHS through scipy.

Minimise ``sum of cost[e] * paid[e]`` over the edges (:mod:`layoutsim.experiments.joint.programme`). Variables that share no
edge that can cost anything are independent; each connected part is a programme of its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from attrs import define, frozen

from layoutsim.experiments.joint.problem import Assignment, Edge, Problem, Variable, is_open
from layoutsim.experiments.joint.programme import UNIT, Found, Programme


@frozen
class Exact:
    """What the solver found.

    Attributes:
        chosen: the best assignment it has.
        bound: no assignment of these modes costs less (bytes).
        is_optimal: ``chosen`` costs as little as can be, proven.
    """

    chosen: tuple[int, ...]
    bound: int
    is_optimal: bool


def solve_exactly(problem: Problem, start: Sequence[int], time_limit: float) -> Exact:
    """Minimise the bytes moved.

    Args:
        problem: its modes must be complete.
        start: an assignment; kept wherever the solver finds nothing better in time.
        time_limit: seconds, for all parts together.

    Raises:
        InputError: scipy is not installed.
    """
    chosen, end = list(start), time.monotonic() + time_limit
    bound, is_optimal = _settled_cost(problem), True
    for part in parts_of(problem):
        before = part.cost(chosen)
        if not before:
            continue
        found = _solve(part, max(0.1, end - time.monotonic()))
        bound += found.bound
        is_optimal = is_optimal and found.is_optimal
        if found.modes is not None:
            trial = list(chosen)
            for variable, mode in zip(part.variables, found.modes, strict=True):
                trial[variable.number] = mode
            if part.cost(trial) < before:
                chosen = trial
    is_optimal = is_optimal and problem.cost(chosen) <= bound + UNIT
    return Exact(tuple(chosen), problem.cost(chosen) if is_optimal else bound, is_optimal)


# -- parts ---------------------------------------------------------------------------------------------------------------


@define(eq=False)
class Part:
    """Variables that depend on each other, and the edges that can cost something."""

    variables: list[Variable]
    edges: list[Edge]

    def cost(self, chosen: Assignment) -> int:
        return self.costs(chosen)[0]

    def costs(self, chosen: Assignment) -> tuple[int, int]:
        """As :meth:`Problem.costs`."""
        return Problem(self.variables, self.edges).costs(chosen)


def _settled_cost(problem: Problem) -> int:
    """What edges between fixed sides cost."""
    zeros = [0] * len(problem.variables)
    settled = (e for e in problem.edges if not is_open(e.producer) and not is_open(e.consumer))
    return sum(edge.cost for edge in settled if not problem.is_satisfied(edge, zeros))


def parts_of(problem: Problem) -> list[Part]:
    """The connected parts, in the order of their first variables."""
    leader = list(range(len(problem.variables)))

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    edges = [e for e in problem.edges if e.cost and (is_open(e.producer) or is_open(e.consumer))]
    for edge in edges:
        if edge.consumer is not None and is_open(edge.producer) and is_open(edge.consumer):
            a, b = sorted((find(edge.producer.number), find(edge.consumer.number)))
            leader[b] = a
    parts: dict[int, Part] = {}
    for variable in problem.variables:
        if is_open(variable):
            parts.setdefault(find(variable.number), Part([], [])).variables.append(variable)
    for edge in edges:
        side = edge.producer if is_open(edge.producer) else edge.consumer
        assert side is not None, edge
        parts[find(side.number)].edges.append(edge)
    return [part for part in parts.values() if part.edges]


def _solve(part: Part, time_limit: float) -> Found:
    programme = Programme(part.variables)
    for edge in part.edges:
        for column in programme.paid(edge):
            programme.charge(column, edge.cost)
    return programme.solve(time_limit)
