"""Our passes against the installed real compiler, asked on the spot: ``layoutsim check FILE --live``."""

from __future__ import annotations

from enum import StrEnum

from layoutsim.errors import InputError
from layoutsim.experiments.conformance import (
    PipelineComparison,
    Stage,
    Verdict,
    compare_behind_layouts,
    compare_buffers,
    compare_layout_assignment,
)
from layoutsim.experiments.simulate import backend_of
from layoutsim.garbage import no_collection
from layoutsim.ir.module import Module
from layoutsim.ir.traverse import post_order
from layoutsim.load import store_as_in_proto
from layoutsim.memory.report_format import parse_assignment_report
from layoutsim.oracle import BARE_PIPELINE, LAYOUT_ASSIGNMENT, Answer, ask
from layoutsim.passes.layout_assignment import BackendName
from layoutsim.passes.presets import NEWEST, resolve_preset
from layoutsim.text import ParseOptions, parse_module


class Backend(StrEnum):
    """Which real compiler to ask."""

    GPU = "gpu"
    CPU = "cpu"


_AS_DUMPED = ParseOptions(keep_module_auto_layouts=True)
"""In XLA's dumps an entry layout that is not there is automatic."""


@no_collection()
def check_live(
    module: Module, backend: Backend = Backend.GPU, stage: Stage = Stage.LAYOUT, preset: str | None = None
) -> Verdict:
    """Ask the installed real compiler what it does with a module, and compare.

    Args:
        module: as it enters layout assignment; stays as it is.
        backend: whose compiler.
        stage: ``layout`` lets the compiler run layout assignment only; the others copy insertion, scheduling and buffer
            assignment too. Layouts are compared in any case.
        preset: the newest of the backend when absent.

    Raises:
        OracleMissingError: jax (or its CUDA plugin) is not installed.
        InputError: the compiler refused the module; the message says why.
    """
    answer = ask(module, backend.value, LAYOUT_ASSIGNMENT if stage is Stage.LAYOUT else BARE_PIPELINE)
    return check_answer(answer, preset or NEWEST[backend], stage)


def check_answer(answer: Answer, preset: str, stage: Stage = Stage.ALL) -> Verdict:
    """Our passes on the module that the compiler says it saw, compared with what it says it did.

    Raises:
        InputError: the compiler did not get as far as the stage; the message says why.
    """
    pipeline = resolve_preset(preset)
    ours = module_before_layout(answer)
    if backend_of(pipeline) is BackendName.GPU:
        _register_as_read(ours)
    if answer.after_layout is None:
        raise InputError(f"the compiler did not get through layout assignment: {answer.note or 'no reason given'}")
    layout = compare_layout_assignment(ours, parse_module(answer.after_layout, options=_AS_DUMPED), pipeline)
    if stage is Stage.LAYOUT:
        return Verdict(preset, layout=layout)
    if answer.final is None or answer.buffer_assignment is None:
        raise InputError(f"the compiler did not get through buffer assignment: {answer.note or 'no reason given'}")
    theirs = parse_assignment_report(answer.buffer_assignment)
    behind = buffers = None
    if stage in (Stage.BUFFERS, Stage.ALL):
        buffers = compare_buffers(parse_module(answer.final), theirs, pipeline)
    if stage in (Stage.PIPELINE, Stage.ALL):
        compared = compare_behind_layouts(ours, theirs, pipeline)
        first = "" if compared.agrees else "buffers" if layout.agrees else "layout"
        behind = PipelineComparison(compared, first)
    return Verdict(preset, layout, buffers, behind)


def module_before_layout(answer: Answer) -> Module:
    """The module that the compiler says it saw, stored as it had it.

    Raises:
        InputError: the compiler did not get as far as layout assignment; the message says why.
    """
    if answer.before_layout is None:
        raise InputError(f"the compiler did not get to layout assignment: {answer.note or 'no reason given'}")
    module = parse_module(answer.before_layout, options=_AS_DUMPED)
    if answer.before_layout_proto is not None:
        store_as_in_proto(module, answer.before_layout_proto)
    return module


def _register_as_read(module: Module) -> None:
    """Bring users into the order of a proto's list: the GPU compiler is asked about one, and registers them as it reads.

    Protos list instructions in post-order, whatever order they are stored in (``HloComputation::ToProto``).
    """
    for computation in module.computations:
        positions = {instruction: number for number, instruction in enumerate(post_order(computation))}
        for instruction in computation.instructions:
            if instruction.user_count > 1:
                instruction.sort_users(positions.__getitem__)
