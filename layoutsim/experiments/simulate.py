"""The main job in one call: layouts, copies, schedule and memory of a module under a rule set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from attrs import evolve, field, frozen

from layoutsim.errors import InputError, PassError
from layoutsim.garbage import no_collection
from layoutsim.ir.clone import clone_module
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.profile import CPU, GPU, GPU_0_6_1, GPU_0_6_2, GPU_NCCL_BUFFERS, MemoryProfile
from layoutsim.memory.summary import MemorySummary, summarize
from layoutsim.passes import Pass, Pipeline, PipelineResult
from layoutsim.passes.copy_insertion_special import CollectiveMemory
from layoutsim.passes.layout_assignment import BackendName, InsertedCopy, LayoutAssignment, LayoutAssignmentResult
from layoutsim.passes.loops.moved_copies import MovedCopies, MovesCopies
from layoutsim.passes.post_scheduling_copies import PostSchedulingCopies
from layoutsim.passes.presets import DEFAULT_PRESET, preset_names, resolve_preset
from layoutsim.passes.sub_byte_size_setter import SubByteSizeSetter
from layoutsim.report.copies import CopyRecord, copy_records
from layoutsim.report.explain import Explanation, Remedy, steps_of
from layoutsim.report.tables import Rows, byte_rows, copy_rows


@frozen(eq=False, slots=False)
class Simulation:
    """What a module becomes under a rule set.

    Attributes:
        preset: name or text of the pipeline that ran.
        module: after the pipeline (a copy of the module given, unless asked otherwise).
        original: the module before, if it was kept; remedies are tried on it.
        pipeline_result: what each pass did.
        copies: the copies that layout assignment inserted, transposing ones first, then by size.
        assignment: where every value is in memory; ``None`` if memory was not asked for.
    """

    preset: str
    module: Module
    original: Module | None = field(repr=False)
    pipeline_result: PipelineResult = field(repr=False)
    layout_result: LayoutAssignmentResult = field(repr=False)
    copies: tuple[CopyRecord, ...] = field(repr=False)
    assignment: BufferAssignment | None = field(repr=False)

    @property
    def transposing_copies(self) -> tuple[CopyRecord, ...]:
        """The copies that move bytes."""
        return tuple(copy for copy in self.copies if copy.transposing)

    @property
    def transposing_bytes(self) -> int:
        """Bytes of the transposing copies, each counted once."""
        return sum(copy.size_bytes for copy in self.transposing_copies)

    @cached_property
    def memory(self) -> MemorySummary:
        """Peak, temporaries, arguments, outputs, lower bound.

        Raises:
            InputError: the simulation was asked not to measure memory.
        """
        if self.assignment is None:
            raise InputError("memory was not measured: simulate(..., measure_memory=True) does it")
        return summarize(self.assignment)

    def explain(self, copy: CopyRecord | str, *, remedies: bool = True) -> Explanation:
        """Why a copy is there.

        Args:
            copy: a record of :attr:`copies`, or the name of one.
            remedies: also try which other rule sets avoid it (each takes a layout assignment).

        Raises:
            InputError: layout assignment inserted no copy of this name.
        """
        record = self._record(copy)
        inserted = self._inserted[record.name]
        return Explanation(
            copy=record,
            wanted=steps_of(inserted.demanded),
            met=() if inserted.source is None else steps_of(inserted.source),
            remedies=self._remedies(record) if remedies and self.original is not None else None,
        )

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {
            "preset": self.preset,
            "copies": [copy.to_json() for copy in self.copies],
            "transposing_copies": {"count": len(self.transposing_copies), "bytes": self.transposing_bytes},
        }
        return out if self.assignment is None else out | self.memory.to_json()

    def rows(self) -> tuple[Rows, ...]:
        """Tables to show: the copies, and the memory."""
        copies = copy_rows(self.copies)
        return (copies,) if self.assignment is None else (copies, memory_rows(self.memory))

    def _repr_html_(self) -> str:
        return f"<div>{self.module.name} under {self.preset}</div>" + "".join(rows.to_html() for rows in self.rows())

    @cached_property
    def _inserted(self) -> dict[str, InsertedCopy]:
        return {inserted.copy.name: inserted for inserted in self.layout_result.copies}

    def _record(self, copy: CopyRecord | str) -> CopyRecord:
        name = copy if isinstance(copy, str) else copy.name
        for record in self.copies:
            if record.name == name:
                return record
        raise InputError(f"no copy named {name!r} under {self.preset}")

    def _remedies(self, record: CopyRecord) -> tuple[Remedy, ...]:
        found: list[Remedy] = []
        for variant, result in self._variants:
            if not any(_same_copy(record, other) for other in result.copies):
                found.append(Remedy(variant, result.transposing_bytes))
        return tuple(sorted(found, key=lambda remedy: remedy.transposing_bytes))

    @cached_property
    def _variants(self) -> list[tuple[str, Simulation]]:
        assert self.original is not None
        tried = [text for text in variants_of(self.preset) if text != self.preset]
        return [(text, simulate(self.original, text, measure_memory=False)) for text in tried]


def _same_copy(a: CopyRecord, b: CopyRecord) -> bool:
    """Whether ``b`` copies the value of ``a`` too, to whatever layout; a copy that moves no bytes matches only another such."""
    return (a.computation, a.source) == (b.computation, b.source) and (b.transposing or not a.transposing)


def variants_of(preset: str) -> list[str]:
    """Rule sets worth trying instead of ``preset``: the other releases of its backend, and the other all-gather rule."""
    releases = releases_of(resolve_preset(preset))
    return [f"{preset}{{all-gather=ignore-degenerate}}" if "{" not in preset else preset, *releases]


def releases_of(pipeline: Pipeline) -> list[str]:
    """The presets of the pipeline's backend, by name."""
    return [name for name in preset_names() if backend_of(resolve_preset(name)) is backend_of(pipeline)]


@no_collection()
def simulate(
    module: Module,
    preset: str | Pipeline = DEFAULT_PRESET,
    *,
    measure_memory: bool = True,
    in_place: bool = False,
    on_pass: Callable[[Pass], None] | None = None,
) -> Simulation:
    """Run a module through layout assignment and, unless told otherwise, on to buffer assignment.

    Args:
        module: as it enters layout assignment; stays as it is unless ``in_place``.
        preset: ``xla-gpu-0.10.2``, a preset with changed rules ``xla-gpu-0.6.1{all-gather=ignore-degenerate}``, a pipeline
            text, or a pipeline. It must contain ``layout-assignment``.
        measure_memory: also insert copies, schedule and assign buffers.
        in_place: change ``module`` itself; saves the time of copying it, but remedies cannot be tried then.
        on_pass: called with each pass before it runs.

    Raises:
        PassError: the preset is unknown or cannot run on this module.
        InputError: the module is scheduled already, so its layouts are assigned.
    """
    if module.schedule is not None:
        raise InputError(
            f"module {module.name} is scheduled, so its layouts are assigned already; take the dump from before layout "
            "assignment, or use `layoutsim memory` for this one"
        )
    pipeline = resolve_preset(preset) if isinstance(preset, str) else preset
    name = preset if isinstance(preset, str) else preset.name or preset.to_text()
    work = module if in_place else clone_module(module)
    result = split_at_layouts(pipeline)[0].run(work, on_pass=on_pass)
    layouts = _layout_result(result)
    # Records are made here, because the passes for memory may rename, move or share what stands around a copy.
    records = copy_records(work, layouts.copies)
    laid_out = Simulation(name, work, None if in_place else module, result, layouts, records, None)
    return with_memory(laid_out, pipeline, on_pass=on_pass) if measure_memory else laid_out


@no_collection()
def with_memory(laid_out: Simulation, pipeline: Pipeline, *, on_pass: Callable[[Pass], None] | None = None) -> Simulation:
    """Go on from a simulation without memory, on its very module: insert copies, schedule and assign buffers.

    Args:
        laid_out: its module is changed.
        pipeline: the one that it was made with.
        on_pass: called with each pass before it runs.
    """
    _, rest = split_at_layouts(pipeline)
    runs = (*laid_out.pipeline_result.runs, *rest.run(laid_out.module, on_pass=on_pass).runs)
    assignment = assign_buffers(laid_out.module, profile_of(pipeline))
    return evolve(laid_out, pipeline_result=PipelineResult(runs), assignment=assignment)


def split_at_layouts(pipeline: Pipeline) -> tuple[Pipeline, Pipeline]:
    """The passes up to layout assignment and those behind it that move its copies or pack what they copy, and the others."""
    names = [p.name for p in pipeline.passes]
    if LayoutAssignment.name not in names:
        raise PassError(f"pipeline {pipeline} has no {LayoutAssignment.name}")
    cut = names.index(LayoutAssignment.name) + 1
    while cut < len(names) and isinstance(pipeline.passes[cut], (MovesCopies, SubByteSizeSetter)):
        cut += 1
    return Pipeline(pipeline.passes[:cut], pipeline.name), Pipeline(pipeline.passes[cut:], pipeline.name)


def _layout_result(result: PipelineResult) -> LayoutAssignmentResult:
    """What layout assignment tells, with its copies where later passes put them."""
    number = next(i for i, run in enumerate(result.runs) if run.ran.name == LayoutAssignment.name)
    layouts = result.runs[number].result
    assert isinstance(layouts, LayoutAssignmentResult), layouts
    for run in result.runs[number + 1 :]:
        if isinstance(run.result, MovedCopies) and run.result.moved:
            moved = run.result.moved
            copies = [now for copy in layouts.copies for now in _where_it_is(copy, moved.get(copy.copy))]
            layouts = evolve(layouts, copies=tuple(copies))
    return layouts


def _where_it_is(inserted: InsertedCopy, moved: tuple[Instruction, ...] | None) -> tuple[InsertedCopy, ...]:
    """The records of what is in the place of a copy: itself if it was not moved."""
    if moved is None:
        return (inserted,)
    found: list[InsertedCopy] = []
    for copy in moved:
        reader, slot = next(copy.uses, (copy, 0))
        found.append(evolve(inserted, copy=copy, value=copy.operand(0), index=(), reader=reader, slot=slot))
    return tuple(found)


def profile_of(pipeline: Pipeline) -> MemoryProfile:
    """The memory side of the backend that the pipeline's layout assignment is for.

    The release is read off the pipeline's name, changed rules or not; a pipeline written out is of the newest.
    """
    if backend_of(pipeline) is BackendName.CPU:
        return CPU
    if any(isinstance(p, PostSchedulingCopies) and p.collective_memory is CollectiveMemory.ALL for p in pipeline.passes):
        return GPU_NCCL_BUFFERS
    return _OLD_GPU_PROFILES.get(pipeline.name.partition("{")[0], GPU)


_OLD_GPU_PROFILES = {"xla-gpu-0.6.1": GPU_0_6_1, "xla-gpu-0.6.2": GPU_0_6_2}


def backend_of(pipeline: Pipeline) -> BackendName:
    """The backend that the pipeline's layout assignment is for."""
    return next(p.backend for p in pipeline.passes if isinstance(p, LayoutAssignment))


def memory_rows(memory: MemorySummary) -> Rows:
    """The figures of memory as a table."""
    named = [
        ("arguments", memory.argument_bytes),
        ("outputs", memory.output_bytes),
        ("of these in donated arguments", memory.aliased_bytes),
        ("temporaries", memory.temp_bytes),
        ("constants", memory.constant_bytes),
        ("peak", memory.peak_bytes),
        ("lower bound", memory.lower_bound_bytes),
        ("fragmentation", memory.fragmentation_bytes),
    ]
    return byte_rows("memory", named)
