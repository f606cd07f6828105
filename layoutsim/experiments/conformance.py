"""Our passes against what the real compiler did with the same module: the stages of ``layoutsim check``.

A folder (:mod:`layoutsim.experiments.recorded`) holds some of ``before_layout``, ``after_layout``, ``final`` and
``buffer-assignment``:

* *layout*: layout assignment on the first, compared with the second, instruction by instruction;
* *buffers*: buffer assignment on ``final``, compared with ``buffer-assignment``, value by value;
* *pipeline*: everything from ``before_layout`` on, compared with ``buffer-assignment`` by allocations, since names of inserted
  instructions differ. This is meant for folders where the compiler ran layout assignment and copy insertion only.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from attrs import frozen

from layoutsim.errors import InputError
from layoutsim.experiments.recorded import BUFFER_ASSIGNMENT, Recorded, find_recorded
from layoutsim.experiments.simulate import profile_of
from layoutsim.garbage import no_collection
from layoutsim.ir.module import Module
from layoutsim.load import AFTER_LAYOUT, BEFORE_LAYOUT, SCHEDULED
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.reference import numbering_of
from layoutsim.memory.report_format import AssignmentReport
from layoutsim.memory.reported import assignment_report
from layoutsim.passes import Pipeline
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.compare import LayoutComparison, compare_layouts, instruction_names
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.passes.presets import DEFAULT_PRESET, NEWEST, preset_names, resolve_preset
from layoutsim.passes.sub_byte_size_setter import SubByteSizeSetter
from layoutsim.report.buffer_diff import BufferComparison, compare_assignments


class Stage(StrEnum):
    """What to check."""

    LAYOUT = "layout"
    BUFFERS = "buffers"
    PIPELINE = "pipeline"
    ALL = "all"


@frozen
class PipelineComparison:
    """The whole pipeline against the compiler's.

    Attributes:
        first_difference: the first stage that differs: ``layout``, ``buffers``, or ``""``.
    """

    buffers: BufferComparison
    first_difference: str

    @property
    def agrees(self) -> bool:
        return self.buffers.agrees

    def to_json(self) -> dict[str, object]:
        return {**self.buffers.to_json(), "first_difference": self.first_difference}


@frozen
class Verdict:
    """The stages that were checked; ``None`` for those that were not."""

    preset: str
    layout: LayoutComparison | None = None
    buffers: BufferComparison | None = None
    pipeline: PipelineComparison | None = None

    @property
    def agrees(self) -> bool:
        return all(stage is None or stage.agrees for stage in (self.layout, self.buffers, self.pipeline))

    def to_json(self) -> dict[str, object]:
        stages = {"layout": self.layout, "buffers": self.buffers, "pipeline": self.pipeline}
        checked = {name: stage.to_json() for name, stage in stages.items() if stage is not None}
        return {"preset": self.preset, "agrees": self.agrees, **checked}


@no_collection()
def check_folder(folder: Path, stage: Stage = Stage.ALL, preset: str | None = None) -> Verdict:
    """Check a folder.

    Args:
        folder: holds the files.
        stage: ``all`` checks every stage that the folder has files for; the pipeline stage is part of it only in folders whose
            name ends in ``-bare``, where the compiler ran nothing else.
        preset: chosen by the folder's name (``gpu-0.6.1``, ``cpu-0.10.2``) when absent.

    Raises:
        InputError: files that the stage needs are missing.
    """
    recorded = find_recorded(folder)
    chosen = preset or preset_of(recorded)
    pipeline = resolve_preset(chosen)
    wanted = _stages(recorded, stage)
    return Verdict(
        preset=chosen,
        layout=check_layout(recorded, pipeline) if Stage.LAYOUT in wanted else None,
        buffers=check_buffers(recorded, pipeline) if Stage.BUFFERS in wanted else None,
        pipeline=check_pipeline(recorded, pipeline) if Stage.PIPELINE in wanted else None,
    )


def preset_of(recorded: Recorded) -> str:
    """The CPU's for its own dumps; ``xla-gpu-0.6.1`` for a folder ``gpu-0.6.1`` or ``gpu-0.6.1-bare``; else the newest."""
    if recorded.is_for_cpu:
        return NEWEST["cpu"]
    name = f"xla-{recorded.folder.resolve().name.removesuffix('-bare')}"
    return name if name in preset_names() else DEFAULT_PRESET


def _stages(recorded: Recorded, stage: Stage) -> list[Stage]:
    if stage is not Stage.ALL:
        return [stage]
    offered = [
        (Stage.LAYOUT, recorded.has(BEFORE_LAYOUT, AFTER_LAYOUT)),
        (Stage.BUFFERS, recorded.has(SCHEDULED, BUFFER_ASSIGNMENT)),
        (Stage.PIPELINE, recorded.is_bare and recorded.has(BEFORE_LAYOUT, BUFFER_ASSIGNMENT)),
    ]
    found = [candidate for candidate, possible in offered if possible]
    if not found:
        pairs = "before_layout + after_layout, final + buffer-assignment"
        hint = "XLA dumps the first pair with --xla_dump_hlo_pass_re=layout-assignment"
        raise InputError(f"{recorded.folder} holds no pair of files to check ({pairs}); {hint}")
    return found


def check_layout(recorded: Recorded, pipeline: Pipeline) -> LayoutComparison:
    """The preset's layout assignment, alone, on ``before_layout``; compared with ``after_layout``."""
    return check_against(recorded.module(BEFORE_LAYOUT), recorded.module(AFTER_LAYOUT), _layout_assignment(pipeline))


def compare_layout_assignment(module: Module, theirs: Module, pipeline: Pipeline) -> LayoutComparison:
    """Run the pipeline's layout assignment on ``module``, in place, and compare with the compiler's result."""
    names = instruction_names(module)
    _layout_assignment(pipeline).run(module)
    return compare_layouts(names, module, theirs)


def check_buffers(recorded: Recorded, pipeline: Pipeline) -> BufferComparison:
    """Buffer assignment on ``final``, compared with the report."""
    return compare_buffers(recorded.module(SCHEDULED), recorded.report(), pipeline)


def compare_buffers(scheduled: Module, theirs: AssignmentReport, pipeline: Pipeline) -> BufferComparison:
    """Assign the buffers of a scheduled module as the pipeline's backend does, and compare with the compiler's report."""
    assignment = assign_buffers(scheduled, profile_of(pipeline), numbering=numbering_of(theirs, scheduled))
    return compare_assignments(assignment_report(assignment), theirs)


def check_pipeline(recorded: Recorded, pipeline: Pipeline) -> PipelineComparison:
    """Layout assignment and everything behind it on ``before_layout``; allocations compared with the report."""
    module = recorded.module(BEFORE_LAYOUT)
    _layout_assignment(pipeline).run(module)
    buffers = compare_behind_layouts(
        module,
        recorded.report(),
        pipeline.without(SubByteSizeSetter.name),  # recorded bare compilations leave it out
    )
    return PipelineComparison(buffers, "" if buffers.agrees else _first_difference(recorded, pipeline))


def compare_behind_layouts(module: Module, theirs: AssignmentReport, pipeline: Pipeline) -> BufferComparison:
    """Run the passes behind layout assignment, in place, assign buffers, and compare allocations with the compiler's."""
    pipeline.parted_at(LayoutAssignment)[2].run(module)
    return compare_assignments(assignment_report(assign_buffers(module, profile_of(pipeline))), theirs, names=False)


def _first_difference(recorded: Recorded, pipeline: Pipeline) -> str:
    if recorded.has(AFTER_LAYOUT) and not check_layout(recorded, pipeline).agrees:
        return "layout"
    if recorded.has(SCHEDULED) and check_buffers(recorded, pipeline).agrees:
        return "copies or schedule"
    return "buffers"


def _layout_assignment(pipeline: Pipeline) -> LayoutAssignment:
    return pipeline.parted_at(LayoutAssignment)[1]
