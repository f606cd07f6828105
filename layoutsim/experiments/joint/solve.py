"""Choosing among the orders: which assignment of a model is the answer.

1. The local search improves the best answer of XLA's pass and its variants; the mixed-integer programme improves that, and
   proves a bound.
2. Answers of equal cost differ in the other objective (bytes moved, bytes held), so that is minimised too, and each part of the
   module takes the best answer. Parts where nothing is gained keep XLA's layouts.
3. For the peak, a programme of its own minimises a sum that stands for it (:mod:`peak`). Its answer, those by bytes moved and
   held, and XLA's are then run through the rest of the passes, and the lowest real peak wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from layoutsim.experiments.joint.apply import apply_assignment
from layoutsim.experiments.joint.arrays import LaidOut
from layoutsim.experiments.joint.exact import Exact, parts_of, solve_exactly
from layoutsim.experiments.joint.lowest_peak import solve_for_peak
from layoutsim.experiments.joint.model import Model
from layoutsim.experiments.joint.objective import Objective
from layoutsim.experiments.joint.peak import memory_after, peak_model
from layoutsim.experiments.joint.problem import Assignment, Problem, close_modes, offer_every_order
from layoutsim.experiments.joint.search import search
from layoutsim.ir.clone import clone_module
from layoutsim.passes import Pipeline


@frozen
class Settings:
    """How to choose.

    Attributes:
        pipeline: whose rules hold, and whose later passes decide the peak.
        time_limit: seconds for the solvers.
        exact: also solve the mixed-integer programme.
        every_order: offer every array all orders of its dimensions.
    """

    pipeline: Pipeline
    time_limit: float
    exact: bool
    every_order: bool


@frozen
class Solution:
    """The assignment chosen, and what is proven of it (:class:`layoutsim.experiments.joint.JointResult` says what)."""

    chosen: Assignment
    bound: int | None
    is_optimal: bool
    covers_all_orders: bool


def solve(model: Model, variants: Sequence[LaidOut], settings: Settings) -> Solution:
    """Choose an order for every variable.

    Args:
        model: gets the orders of the variants, and more.
        variants: answers of XLA's pass under other rules.

    Raises:
        InputError: ``exact`` without scipy.
    """
    problem = model.problem
    for variant in variants:
        model.offer(variant)
    answers = [model.assignment_of(answer) for answer in (model.answer, *variants)]
    covers_all_orders = settings.every_order and offer_every_order(problem)
    close_modes(problem)
    other = _by_other_objective(problem, answers, settings)
    found = _by_objective(problem, [*answers, other], settings)
    chosen = _best_of_parts(problem, [answers[0], other, list(found.chosen)])
    if model.objective is not Objective.PEAK:
        return Solution(chosen, found.bound if settings.exact else None, found.is_optimal, covers_all_orders)
    candidates, bound, is_optimal = [answers[0], chosen, other], None, False
    if settings.exact:
        lowest = solve_for_peak(problem, peak_model(model, settings.pipeline), chosen, settings.time_limit)
        candidates.append(list(lowest.chosen))
        bound, is_optimal = lowest.bound, lowest.is_optimal
    return Solution(_lowest(model, candidates, settings.pipeline), bound, is_optimal, covers_all_orders)


def _by_objective(problem: Problem, answers: Sequence[Assignment], settings: Settings) -> Exact:  # (1)
    start = min(answers, key=problem.costs)
    found = search(problem, start, settings.time_limit / 4)
    if not settings.exact:
        return Exact(found, 0, is_optimal=False)
    return solve_exactly(problem, found, settings.time_limit / 2)


def _by_other_objective(problem: Problem, answers: Sequence[Assignment], settings: Settings) -> Assignment:
    """The best answer by the objective that decides between equals."""
    limit = settings.time_limit / 8
    problem.swap_objectives()
    found = search(problem, min(answers, key=problem.costs), limit)
    if settings.exact:
        found = solve_exactly(problem, found, limit).chosen
    problem.swap_objectives()
    return list(found)


def _best_of_parts(problem: Problem, candidates: Sequence[Assignment]) -> Assignment:  # (2)
    """For each part of the problem the cheapest candidate; the first, XLA's, where nothing is gained."""
    out = list(candidates[0])
    for part in parts_of(problem):
        best = min(candidates, key=part.costs)
        for variable in part.variables:
            out[variable.number] = best[variable.number]
    return out


def _lowest(model: Model, candidates: Sequence[Assignment], pipeline: Pipeline) -> Assignment:  # (3)
    """The candidate with the lowest peak; the first, XLA's, where nothing is gained."""
    ranked: dict[tuple[int, ...], tuple[int, tuple[int, int]]] = {}
    for candidate in candidates:
        if tuple(candidate) not in ranked:
            twin = model.twin(clone_module(model.arrays.module))
            apply_assignment(twin, candidate)
            peak = memory_after(twin.arrays.module, pipeline).peak_bytes
            ranked[tuple(candidate)] = (peak, model.problem.costs(candidate))
    return list(min(ranked, key=lambda candidate: ranked[candidate]))
