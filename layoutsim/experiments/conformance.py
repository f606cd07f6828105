"""Our passes against what the real compiler did with the same module: the stages of ``layoutsim check``.

A folder holds some of ``before_layout``, ``after_layout``, ``final`` and ``buffer-assignment`` (``.hlo``, ``.txt``, ``.gz``):

* *layout*: layout assignment on the first, compared with the second, instruction by instruction;
* *buffers*: buffer assignment on ``final``, compared with ``buffer-assignment``, value by value;
* *pipeline*: everything from ``before_layout`` on, compared with ``buffer-assignment`` by allocations, since names of inserted
  instructions differ. This is meant for folders where the compiler ran layout assignment and copy insertion only.
"""

from __future__ import annotations

import gzip
from enum import StrEnum
from pathlib import Path

from attrs import frozen

from layoutsim.errors import InputError
from layoutsim.experiments.simulate import profile_of
from layoutsim.garbage import no_collection
from layoutsim.ir.module import Module
from layoutsim.load import AFTER_LAYOUT, BEFORE_LAYOUT, SCHEDULED, load
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.reference import numbering_of
from layoutsim.memory.report_format import AssignmentReport, parse_assignment_report
from layoutsim.memory.reported import assignment_report
from layoutsim.passes import Pipeline
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.compare import LayoutComparison, compare_layouts, instruction_names
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.passes.presets import DEFAULT_PRESET, preset_names, resolve_preset
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
    chosen = preset or preset_of_folder(folder)
    pipeline = resolve_preset(chosen)
    wanted = _stages(folder, stage)
    return Verdict(
        preset=chosen,
        layout=check_layout(folder, pipeline) if Stage.LAYOUT in wanted else None,
        buffers=check_buffers(folder, pipeline) if Stage.BUFFERS in wanted else None,
        pipeline=check_pipeline(folder, pipeline) if Stage.PIPELINE in wanted else None,
    )


def preset_of_folder(folder: Path) -> str:
    """``xla-gpu-0.6.1`` for a folder called ``gpu-0.6.1`` or ``gpu-0.6.1-bare``; the default preset otherwise."""
    name = f"xla-{folder.resolve().name.removesuffix('-bare')}"
    return name if name in preset_names() else DEFAULT_PRESET


def _stages(folder: Path, stage: Stage) -> list[Stage]:
    if stage is not Stage.ALL:
        return [stage]
    has = {name: _find(folder, name) is not None for name in ("before_layout", "after_layout", "final", "buffer-assignment")}
    bare = folder.resolve().name.endswith("-bare")
    offered = [
        (Stage.LAYOUT, has["before_layout"] and has["after_layout"]),
        (Stage.BUFFERS, has["final"] and has["buffer-assignment"]),
        (Stage.PIPELINE, bare and has["before_layout"] and has["buffer-assignment"]),
    ]
    found = [candidate for candidate, possible in offered if possible]
    if not found:
        raise InputError(f"{folder} holds no pair of files to check (before_layout + after_layout, final + buffer-assignment)")
    return found


def check_layout(folder: Path, pipeline: Pipeline) -> LayoutComparison:
    """The preset's layout assignment, alone, on ``before_layout``; compared with ``after_layout``."""
    return check_against(_module(folder, BEFORE_LAYOUT), _module(folder, AFTER_LAYOUT), _layout_assignment(pipeline))


def compare_layout_assignment(module: Module, theirs: Module, pipeline: Pipeline) -> LayoutComparison:
    """Run the pipeline's layout assignment on ``module``, in place, and compare with the compiler's result."""
    names = instruction_names(module)
    _layout_assignment(pipeline).run(module)
    return compare_layouts(names, module, theirs)


def check_buffers(folder: Path, pipeline: Pipeline) -> BufferComparison:
    """Buffer assignment on ``final``, compared with the report."""
    return compare_buffers(_module(folder, SCHEDULED), _report(folder), pipeline)


def compare_buffers(scheduled: Module, theirs: AssignmentReport, pipeline: Pipeline) -> BufferComparison:
    """Assign the buffers of a scheduled module as the pipeline's backend does, and compare with the compiler's report."""
    assignment = assign_buffers(scheduled, profile_of(pipeline), numbering=numbering_of(theirs, scheduled))
    return compare_assignments(assignment_report(assignment), theirs)


def check_pipeline(folder: Path, pipeline: Pipeline) -> PipelineComparison:
    """Layout assignment and everything behind it on ``before_layout``; allocations compared with the report."""
    module = _module(folder, BEFORE_LAYOUT)
    _layout_assignment(pipeline).run(module)
    buffers = compare_behind_layouts(module, _report(folder), _as_recorded(pipeline))
    return PipelineComparison(buffers, "" if buffers.agrees else _first_difference(folder, pipeline))


def _as_recorded(pipeline: Pipeline) -> Pipeline:
    """Without what bare compilations leave out: in the recorded ones, elements smaller than a byte are not packed."""
    return Pipeline(tuple(p for p in pipeline.passes if not isinstance(p, SubByteSizeSetter)), pipeline.name)


def compare_behind_layouts(module: Module, theirs: AssignmentReport, pipeline: Pipeline) -> BufferComparison:
    """Run the passes behind layout assignment, in place, assign buffers, and compare allocations with the compiler's."""
    position = [p.name for p in pipeline.passes].index(LayoutAssignment.name)
    Pipeline(pipeline.passes[position + 1 :]).run(module)
    return compare_assignments(assignment_report(assign_buffers(module, profile_of(pipeline))), theirs, names=False)


def _first_difference(folder: Path, pipeline: Pipeline) -> str:
    if _find(folder, "after_layout") is not None and not check_layout(folder, pipeline).agrees:
        return "layout"
    if _find(folder, "final") is not None and check_buffers(folder, pipeline).agrees:
        return "copies or schedule"
    return "buffers"


def _layout_assignment(pipeline: Pipeline) -> LayoutAssignment:
    return next(p for p in pipeline.passes if isinstance(p, LayoutAssignment))


def _module(folder: Path, stage: str) -> Module:
    name = "final" if stage == SCHEDULED else stage
    found = _find(folder, name)
    if found is None:
        raise InputError(f"{folder} holds no {name} (.hlo, .txt, .gz)")
    return load(found)


def _report(folder: Path) -> AssignmentReport:
    found = _find(folder, "buffer-assignment")
    if found is None:
        raise InputError(f"{folder} holds no buffer-assignment (.txt, .gz)")
    return read_assignment_report(found)


def read_assignment_report(path: Path) -> AssignmentReport:
    """Parse XLA's ``buffer-assignment.txt``, packed or not."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return parse_assignment_report(text.decode(errors="replace"), str(path))


def _find(folder: Path, name: str) -> Path | None:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    return next((p for p in sorted(folder.iterdir()) if p.name == name or p.name.startswith(f"{name}.")), None)
