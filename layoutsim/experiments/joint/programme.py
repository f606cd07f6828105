"""Layout assignment as a mixed-integer programme, to be given an objective; HiGHS solves it, through scipy.

For every variable ``v`` and mode ``m`` there is a binary column ``x[v,m]``, and for every edge ``e`` whose sides are both open
a column ``y[e]`` in [0, 1]:

1. ``sum over m of x[v,m] = 1``.
2. For each order ``k`` that may pass over ``e``: ``y[e] >= (x of the producer's modes that are k) - (x of the consumer's that
   ask for k)``. So ``y[e]`` is 1 where the two disagree.
3. An edge with one side fixed is paid for where the other side has a mode that disagrees: the sum of those ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from attrs import define, field, frozen

from layoutsim.errors import InputError
from layoutsim.experiments.joint.problem import Edge, Variable, is_open

UNIT = 1024.0
"""Bytes are given to the solver in KiB; with bytes its tolerances would be too fine."""

Entry = tuple[int, float]
"""Column and coefficient."""


@frozen
class Found:
    """What the solver says.

    Attributes:
        modes: of the variables, in their order; ``None`` if it found none in time.
        bound: no choice has fewer bytes.
        is_optimal: ``modes`` are proven to be the best.
    """

    modes: tuple[int, ...] | None
    bound: int
    is_optimal: bool


@define(eq=False)
class Programme:
    """Columns, rows and costs, as they are added."""

    variables: Sequence[Variable]
    _first: dict[int, int] = field(factory=dict[int, int], init=False)
    _costs: list[float] = field(factory=list[float], init=False)
    _tops: list[float] = field(factory=list[float], init=False)
    _integers: int = field(init=False)
    _rows: list[int] = field(factory=list[int], init=False)
    _columns: list[int] = field(factory=list[int], init=False)
    _values: list[float] = field(factory=list[float], init=False)
    _lower: list[float] = field(factory=list[float], init=False)
    _upper: list[float] = field(factory=list[float], init=False)

    def __attrs_post_init__(self) -> None:
        for variable in self.variables:
            self._first[variable.number] = len(self._costs)
            for _ in variable.modes:
                self.column()
        self._integers = len(self._costs)
        for variable in self.variables:  # (1)
            self.row([(column, 1.0) for column in self._modes_of(variable)], 1.0, 1.0)

    def column(self, top: float = 1.0) -> int:
        """A new column from 0 to ``top``."""
        self._costs.append(0.0)
        self._tops.append(top)
        return len(self._costs) - 1

    def row(self, entries: Iterable[Entry], low: float, high: float) -> None:
        """Keep the weighted sum of some columns between two bounds."""
        for column, value in entries:
            self._rows.append(len(self._lower))
            self._columns.append(column)
            self._values.append(value)
        self._lower.append(low)
        self._upper.append(high)

    def charge(self, column: int, bytes_: float) -> None:
        """Let a column cost so many bytes more."""
        self._costs[column] += bytes_ / UNIT

    def paid(self, edge: Edge) -> list[int]:
        """Columns whose sum is 1 where ``edge`` is not satisfied, else 0; one of its sides must be open."""
        producer, consumer = edge.producer, edge.consumer
        if consumer is None or not is_open(consumer):  # (3)
            fixed = None if consumer is None else consumer.modes[0]
            columns = zip(self._modes_of(producer), producer.modes, strict=True)
            return [column for column, order in columns if not edge.satisfied(order, fixed)]
        if not is_open(producer):
            columns = zip(self._modes_of(consumer), consumer.modes, strict=True)
            return [column for column, order in columns if not edge.satisfied(producer.modes[0], order)]
        return self._disagreement(edge, producer, consumer)

    def _disagreement(self, edge: Edge, producer: Variable, consumer: Variable) -> list[int]:
        given: dict[tuple[int, ...], list[Entry]] = {}
        asked: dict[tuple[int, ...] | None, list[Entry]] = {}
        for column, order in zip(self._modes_of(producer), producer.modes, strict=True):
            given.setdefault(edge.producer_key(order), []).append((column, 1.0))
        for column, order in zip(self._modes_of(consumer), consumer.modes, strict=True):
            asked.setdefault(edge.consumer_key(order), []).append((column, -1.0))
        if len(given) == 1 and list(given) == list(asked):
            return []
        paid = self.column()
        for key, entries in given.items():  # (2)
            self.row([*entries, *asked.get(key, ()), (paid, -1.0)], -np.inf, 0.0)
        return [paid]

    def _modes_of(self, variable: Variable) -> range:
        start = self._first[variable.number]
        return range(start, start + len(variable.modes))

    def solve(self, time_limit: float) -> Found:
        """Minimise the cost.

        Args:
            time_limit: seconds.

        Raises:
            InputError: scipy is not installed.
        """
        result = self._run(time_limit)
        modes = None if result.x is None else self._chosen(result.x)
        # Without anything to choose it is a linear programme, whose optimum is its own bound.
        dual = result.fun if result.status == 0 and not self._integers else result.mip_dual_bound
        # Rounded down by the solver's tolerance, so that the bound stays one.
        is_known = dual is not None and math.isfinite(dual)
        bound = max(0, math.floor(dual * UNIT * (1 - 1e-9) - 1e-3)) if dual is not None and is_known else 0
        return Found(modes, bound, result.status == 0)

    def _chosen(self, values: Sequence[float]) -> tuple[int, ...]:
        chosen: list[int] = []
        for variable in self.variables:
            columns = self._modes_of(variable)
            best = max(columns, key=lambda column: (values[column], -column))
            chosen.append(best - columns.start)
        return tuple(chosen)

    def _run(self, time_limit: float) -> _MilpResult:
        try:
            optimize, sparse = import_module("scipy.optimize"), import_module("scipy.sparse")
        except ImportError as error:
            raise InputError("joint layout assignment needs scipy: pip install 'layoutsim[solve]'") from error
        shape = (len(self._lower), len(self._costs))
        matrix = sparse.csr_array((self._values, (self._rows, self._columns)), shape=shape)
        return optimize.milp(
            np.asarray(self._costs),
            integrality=np.arange(len(self._costs)) < self._integers,
            bounds=optimize.Bounds(0.0, np.asarray(self._tops)),
            constraints=optimize.LinearConstraint(matrix, np.asarray(self._lower), np.asarray(self._upper)),
            options={"time_limit": time_limit, "mip_rel_gap": 0.0},
        )


class _MilpResult(Protocol):
    """What scipy returns; status 0 is a proven optimum."""

    x: Sequence[float] | None
    fun: float | None
    status: int
    mip_dual_bound: float | None
