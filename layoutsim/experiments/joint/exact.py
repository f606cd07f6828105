"""The best assignment and a proof: a mixed-integer programme, solved by HiGHS through scipy.

For every variable ``v`` and mode ``m`` there is a binary ``x[v,m]``, and for every edge ``e`` a number ``y[e]`` in [0, 1]:

1. ``sum over m of x[v,m] = 1``.
2. For each order ``k`` that may pass over ``e``: ``y[e] >= (x of the producer's modes that are k) - (x of the consumer's that
   ask for k)``. So ``y[e]`` is 1 where the two disagree.
3. Edges with one side fixed cost their bytes per mode of the other side.
4. Minimise the bytes: ``sum of cost[e] * y[e]``, plus (3).

Variables that share no edge that can cost anything are independent; each connected part is a programme of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from attrs import define, field, frozen

from layoutsim.errors import InputError
from layoutsim.experiments.joint.problem import Assignment, Edge, Problem, Variable

_UNIT = 1024.0
"""Costs are given to the solver in KiB; with bytes its tolerances would be too fine."""


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
    is_optimal = is_optimal and problem.cost(chosen) <= bound + _UNIT
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


def _is_open(variable: Variable | None) -> bool:
    return variable is not None and len(variable.modes) > 1


def _settled_cost(problem: Problem) -> int:
    """What edges between fixed sides cost."""
    zeros = [0] * len(problem.variables)
    settled = (e for e in problem.edges if not _is_open(e.producer) and not _is_open(e.consumer))
    return sum(edge.cost for edge in settled if not problem.is_satisfied(edge, zeros))


def parts_of(problem: Problem) -> list[Part]:
    """The connected parts, in the order of their first variables."""
    leader = list(range(len(problem.variables)))

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    edges = [e for e in problem.edges if e.cost and (_is_open(e.producer) or _is_open(e.consumer))]
    for edge in edges:
        if edge.consumer is not None and _is_open(edge.producer) and _is_open(edge.consumer):
            a, b = sorted((find(edge.producer.number), find(edge.consumer.number)))
            leader[b] = a
    parts: dict[int, Part] = {}
    for variable in problem.variables:
        if _is_open(variable):
            parts.setdefault(find(variable.number), Part([], [])).variables.append(variable)
    for edge in edges:
        side = edge.producer if _is_open(edge.producer) else edge.consumer
        assert side is not None, edge
        parts[find(side.number)].edges.append(edge)
    return [part for part in parts.values() if part.edges]


# -- the programme -------------------------------------------------------------------------------------------------------


@frozen
class _Found:
    modes: tuple[int, ...] | None
    bound: int
    is_optimal: bool


@define(eq=False)
class _Programme:
    """Columns are the ``x`` of each variable's modes, then the ``y``."""

    part: Part
    first: dict[int, int] = field(factory=dict[int, int], init=False)
    costs: list[float] = field(factory=list[float], init=False)
    rows: list[int] = field(factory=list[int], init=False)
    columns: list[int] = field(factory=list[int], init=False)
    values: list[float] = field(factory=list[float], init=False)
    lower: list[float] = field(factory=list[float], init=False)
    upper: list[float] = field(factory=list[float], init=False)
    integers: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        for variable in self.part.variables:
            self.first[variable.number] = len(self.costs)
            self.costs += [0.0] * len(variable.modes)
        self.integers = len(self.costs)
        for variable in self.part.variables:
            start = self.first[variable.number]
            self._row([(start + mode, 1.0) for mode in range(len(variable.modes))], 1.0, 1.0)
        for edge in self.part.edges:
            self._add(edge)

    def _row(self, entries: Sequence[tuple[int, float]], low: float, high: float) -> None:
        for column, value in entries:
            self.rows.append(len(self.lower))
            self.columns.append(column)
            self.values.append(value)
        self.lower.append(low)
        self.upper.append(high)

    def _add(self, edge: Edge) -> None:
        producer, consumer = edge.producer, edge.consumer
        if consumer is None or not _is_open(consumer):  # (3)
            fixed = None if consumer is None else consumer.modes[0]
            for mode, order in enumerate(producer.modes):
                if not edge.satisfied(order, fixed):
                    self.costs[self.first[producer.number] + mode] += edge.cost / _UNIT
            return
        if not _is_open(producer):
            for mode, order in enumerate(consumer.modes):
                if not edge.satisfied(producer.modes[0], order):
                    self.costs[self.first[consumer.number] + mode] += edge.cost / _UNIT
            return
        given: dict[tuple[int, ...], list[tuple[int, float]]] = {}
        asked: dict[tuple[int, ...] | None, list[tuple[int, float]]] = {}
        for mode, order in enumerate(producer.modes):
            given.setdefault(edge.producer_key(order), []).append((self.first[producer.number] + mode, 1.0))
        for mode, order in enumerate(consumer.modes):
            asked.setdefault(edge.consumer_key(order), []).append((self.first[consumer.number] + mode, -1.0))
        if len(given) == 1 and list(given) == list(asked):
            return
        moved = len(self.costs)
        self.costs.append(edge.cost / _UNIT)
        for key, entries in given.items():  # (2)
            self._row([*entries, *asked.get(key, ()), (moved, -1.0)], -np.inf, 0.0)

    def solve(self, time_limit: float) -> _Found:
        result = _run_milp(self, time_limit)
        modes = None if result.x is None else self._modes(result.x)
        dual = result.mip_dual_bound
        # Rounded down by the solver's tolerance, so that the bound stays one.
        is_known = dual is not None and math.isfinite(dual)
        bound = max(0, math.floor(dual * _UNIT * (1 - 1e-9) - 1e-3)) if dual is not None and is_known else 0
        return _Found(modes, bound, result.status == 0)

    def _modes(self, values: Sequence[float]) -> tuple[int, ...]:
        chosen: list[int] = []
        for variable in self.part.variables:
            start = self.first[variable.number]
            ours = values[start : start + len(variable.modes)]
            chosen.append(max(range(len(ours)), key=lambda mode, ours=ours: (ours[mode], -mode)))
        return tuple(chosen)


class _MilpResult(Protocol):
    """What scipy returns; status 0 is a proven optimum."""

    x: Sequence[float] | None
    status: int
    mip_dual_bound: float | None


def _run_milp(programme: _Programme, time_limit: float) -> _MilpResult:
    try:
        optimize, sparse = import_module("scipy.optimize"), import_module("scipy.sparse")
    except ImportError as error:
        raise InputError("joint layout assignment needs scipy: pip install 'layoutsim[solve]'") from error
    rows, columns = len(programme.lower), len(programme.costs)
    matrix = sparse.csr_array((programme.values, (programme.rows, programme.columns)), shape=(rows, columns))
    return optimize.milp(
        np.asarray(programme.costs),
        integrality=np.arange(columns) < programme.integers,
        bounds=optimize.Bounds(0.0, 1.0),
        constraints=optimize.LinearConstraint(matrix, np.asarray(programme.lower), np.asarray(programme.upper)),
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )


def _solve(part: Part, time_limit: float) -> _Found:
    return _Programme(part).solve(time_limit)
