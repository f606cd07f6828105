"""Joint layout assignment: all computations of a module at once (``layoutsim joint``).

XLA lays out one computation after the other, each with what the others have settled already. Here the arrays of the whole
module, with what loops, branches and calls pass, are one optimisation problem: move the fewest bytes, each copy counted as
often as it runs. Mandatory rules are XLA's (:mod:`model` says which); what XLA decides by default, by order or by soft
preference is open.

The pipeline in front of layout assignment runs; then XLA's pass, on a copy, and variants of it. Their orders, carried across
all slots, are what each array may choose from; :mod:`solve` chooses.
"""

from __future__ import annotations

from attrs import evolve

from layoutsim.errors import InputError, LayoutError, PassError
from layoutsim.experiments.joint.apply import apply_assignment
from layoutsim.experiments.joint.arrays import Arrays, LaidOut
from layoutsim.experiments.joint.measure import computations_of_unknown_runs, measure, runs_of
from layoutsim.experiments.joint.model import Model
from layoutsim.experiments.joint.objective import DemandReading, Objective
from layoutsim.experiments.joint.problem import Assignment
from layoutsim.experiments.joint.result import Change, JointResult
from layoutsim.experiments.joint.solve import Settings, solve
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
    settings = Settings(pipeline, time_limit, exact=exact, every_order=every_order)
    solution = solve(model, _variants(base, pipeline), settings)
    chosen = solution.chosen
    changes = _changes(model, chosen)
    apply_assignment(model, chosen)
    result = JointResult(
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
    if objective is not Objective.PEAK or result.saved > 0:
        return result
    # The same layouts with copies in other places can have another peak, so XLA's answer is kept as it is.
    return evolve(result, module=answer.module, joint=result.xla, changes=())


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
