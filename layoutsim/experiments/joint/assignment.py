"""Joint layout assignment: all computations of a module at once (``layoutsim joint``).

XLA lays out one computation after the other, each with what the others have settled already. Here the arrays of the whole
module, with what loops, branches and calls pass, are one optimisation problem: move the fewest bytes, each copy counted as
often as it runs. Mandatory rules are XLA's (:mod:`model` says which); what XLA decides by default, by order or by soft
preference is open.

1. The pipeline in front of layout assignment runs; then XLA's pass, on a copy, and variants of it. Their orders, carried
   across all slots (:func:`close_modes`), are what each array may choose from.
2. The local search improves the best of these answers; the mixed-integer programme improves that, and proves a bound.
3. Answers of equal cost differ in the other objective (bytes moved, bytes held), so that is minimised before, and each part of
   the module takes the best answer. Parts where nothing is gained keep XLA's layouts.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from layoutsim.errors import InputError, LayoutError, PassError
from layoutsim.experiments.joint.apply import apply_assignment
from layoutsim.experiments.joint.arrays import Arrays, LaidOut
from layoutsim.experiments.joint.exact import parts_of, solve_exactly
from layoutsim.experiments.joint.measure import computations_of_unknown_runs, measure, runs_of
from layoutsim.experiments.joint.model import DemandReading, Model, Objective
from layoutsim.experiments.joint.problem import Assignment, Problem, close_modes, offer_every_order
from layoutsim.experiments.joint.result import Change, JointResult
from layoutsim.experiments.joint.search import search
from layoutsim.garbage import no_collection
from layoutsim.ir.clone import clone_module
from layoutsim.ir.module import Module
from layoutsim.ir.shape import index_text, shape_text
from layoutsim.passes import Pipeline
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.prepare import add_protective_copies, check_entry_layout, clone_shared_branches
from layoutsim.passes.presets import DEFAULT_PRESET, resolve_preset, with_rules

VARIANTS = ("loop-invariants=caller", "all-gather=ignore-degenerate", "loop-invariants=caller all-gather=ignore-degenerate")
"""Rules whose answers give orders to choose from."""

DEFAULT_TIME_LIMIT = 120.0


@no_collection()
def assign_jointly(
    module: Module,
    preset: str = DEFAULT_PRESET,
    *,
    time_limit: float = DEFAULT_TIME_LIMIT,
    objective: Objective = Objective.MOVED,
    reading: DemandReading = DemandReading.STATED,
    every_order: bool = True,
    exact: bool = True,
) -> JointResult:
    """Lay out all computations of ``module`` at once, moving as few bytes as can be; it stays as it is.

    Args:
        module: as it enters layout assignment.
        preset: whose rules hold, as ``simulate`` takes it.
        time_limit: seconds for the solvers.
        objective: what is to be small.
        reading: of the backend's demands on collectives and products.
        every_order: offer each array all orders of up to four dimensions, not only those that XLA's rules and their variants
            lead to; the proof then holds for all layouts.
        exact: also solve the mixed-integer programme, which proves a bound.

    Raises:
        InputError: the module is scheduled, so its layouts are assigned; or ``exact`` without scipy.
        UnsupportedError: the backend's rules cannot be stated without an order of propagation (CPU).
        LayoutError: XLA's pass refuses the module.
    """
    if module.schedule is not None:
        raise InputError(f"module {module.name} is scheduled, so its layouts are assigned already")
    base = clone_module(module)
    pipeline = resolve_preset(preset)
    layouts = _prepare(base, pipeline)
    runs, unknown_runs = runs_of(base), computations_of_unknown_runs(base)
    answer = _answer(base, layouts)
    model = Model(Arrays(base), layouts.rules(), answer, runs, reading, objective)
    solution = _solve(model, _variants(base, pipeline), time_limit, exact=exact, every_order=every_order)
    chosen = solution.chosen
    changes = _changes(model, chosen)
    apply_assignment(model, chosen)
    return JointResult(
        base,
        answer.module,
        preset,
        objective,
        measure(answer.module, runs),
        measure(base, runs),
        solution.bound,
        solution.is_optimal,
        solution.covers_all_orders,
        changes,
        model.pinned_opcodes,
        unknown_runs,
    )


def _prepare(base: Module, pipeline: Pipeline) -> LayoutAssignment:
    """Run what comes before layout assignment, and what it does itself before its first round."""
    before, layouts, _ = pipeline.parted_at(LayoutAssignment)
    before.run(base)
    add_protective_copies(base)
    clone_shared_branches(base)
    check_entry_layout(base)
    return layouts


def _answer(base: Module, layouts: LayoutAssignment) -> LaidOut:
    copy = clone_module(base)
    layouts.run(copy)
    return LaidOut(copy)


def _variants(base: Module, pipeline: Pipeline) -> list[LaidOut]:
    found: list[LaidOut] = []
    for options in VARIANTS:
        changed = with_rules(pipeline, options)
        _, layouts, _ = changed.parted_at(LayoutAssignment)
        try:
            found.append(_answer(base, layouts))
        except (LayoutError, PassError):  # a variant may refuse what XLA's own rules take
            continue
    return found


@frozen
class _Solution:
    chosen: Assignment
    bound: int | None
    is_optimal: bool
    covers_all_orders: bool


def _solve(model: Model, variants: Sequence[LaidOut], time_limit: float, *, exact: bool, every_order: bool) -> _Solution:
    problem = model.problem
    for variant in variants:
        model.offer(variant)
    answers = [model.assignment_of(answer) for answer in (model.answer, *variants)]
    covers_all_orders = every_order and offer_every_order(problem)
    close_modes(problem)
    other = _by_other_objective(problem, answers, time_limit / 4, exact)
    start = min([*answers, other], key=problem.costs)
    found = search(problem, start, time_limit / 4)
    bound, is_optimal = None, False
    if exact:
        result = solve_exactly(problem, found, time_limit / 2)
        found, bound, is_optimal = result.chosen, result.bound, result.is_optimal
    chosen = _best_of_parts(problem, [answers[0], other, list(found)])
    return _Solution(chosen, bound, is_optimal, covers_all_orders)


def _by_other_objective(problem: Problem, answers: Sequence[Assignment], time_limit: float, exact: bool) -> Assignment:
    """The best answer by the objective that decides between equals."""
    problem.swap_objectives()
    found = search(problem, min(answers, key=problem.costs), time_limit / 2)
    if exact:
        found = solve_exactly(problem, found, time_limit / 2).chosen
    problem.swap_objectives()
    return list(found)


def _best_of_parts(problem: Problem, candidates: Sequence[Assignment]) -> Assignment:
    """For each part of the problem the cheapest candidate; the first, XLA's, where nothing is gained."""
    out = list(candidates[0])
    for part in parts_of(problem):
        best = min(candidates, key=part.costs)
        for variable in part.variables:
            out[variable.number] = best[variable.number]
    return out


def _changes(model: Model, chosen: Assignment) -> tuple[Change, ...]:
    found: list[Change] = []
    for buffer in model.arrays.buffers():
        instruction, index = buffer.instruction, buffer.index
        assert instruction.parent is not None, instruction
        ours = model.layout(model.variable(instruction, index), chosen)
        theirs = model.answer.result_layout(instruction, index)
        if ours.minor_to_major != theirs.minor_to_major:
            name = instruction.name + (index_text(index) if index else "")
            shape = shape_text(buffer.shape, layouts=False)
            found.append(Change(instruction.parent.name, name, shape, str(theirs), str(ours)))
    return tuple(found)
