"""Rule sets worth trying instead of the compiler's, for its engineers: other releases, single options, single passes.

1. :data:`OPTIONS`: each option there is tried with each of its other values. Options of layout assignment and copy insertion
   that are not there are facts of a release or device and stand in :data:`NOT_TRIED`; a test holds that every option is in one
   of the two.
2. :data:`~layoutsim.passes.presets.SWITCHES`: each pass there is put in, with each choice of its options, or left out if it is
   in (:data:`PASSES`).
3. Every preset of the same backend.

Of these, :func:`rule_sets` lists what is about opcodes of the module. Advice leaves out what cannot help: an option that no
instruction comes out differently with; whatever is about layouts, where no copy moves anything; a pass that changes nothing
where it would run; what XLA's whole pipeline does anyway. It measures memory only where less is copied than now, or where the
difference is behind layout assignment, and never twice for the same module.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import Enum

from attrs import frozen

from layoutsim.build import array_of
from layoutsim.experiments.advice.report import Advice, measured
from layoutsim.experiments.advice.trials import Trials
from layoutsim.experiments.simulate import Simulation, profile_of, releases_of, split_at_layouts, with_memory
from layoutsim.ir.clone import clone_module
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.shape import array_leaves
from layoutsim.passes import Pass, Pipeline
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.backend_gpu import ROW_REDUCTION_THRESHOLD
from layoutsim.passes.presets import SWITCHES, preset_names, resolve_preset, with_rules
from layoutsim.text.printer import print_module


@frozen
class Option:
    """An option of a pass, or a pass.

    Attributes:
        hint: where XLA decides that, or the flag.
        about: opcodes without which it makes no difference; empty if there are none.
        concerns: whether it can make a difference to an instruction with such an opcode.
        for_copies: all that it can save are copies that layout assignment inserts.
        is_late: XLA's whole pipeline does the same elsewhere, so that it saves nothing there.
    """

    hint: str
    about: tuple[Opcode, ...] = ()
    concerns: Callable[[Instruction], bool] = lambda _: True
    for_copies: bool = True
    is_late: bool = False

    def is_about(self, module: Module) -> bool:
        """Whether the module has such opcodes."""
        return not self.about or any(i.opcode in self.about for c in module.computations for i in c.instructions)

    def can_help(self, module: Module, copied_bytes: int) -> bool:
        """Whether it is worth trying on a module in which layout assignment copies that much."""
        if self.is_late or (self.for_copies and not copied_bytes):
            return False
        instructions = (i for c in module.computations for i in c.instructions)
        return not self.about or any(i.opcode in self.about and self.concerns(i) for i in instructions)


def _has_ones(instruction: Instruction) -> bool:
    """Whether dimensions of size 1 come in or out."""
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands)]
    return any(1 in leaf.dimensions for shape in shapes for _, leaf in array_leaves(shape))


def _is_convolution(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.CONVOLUTION or "conv" in instruction.custom_call_target


def _reduces_little(reduce: Instruction) -> bool:
    """Whether releases disagree about reductions of that many elements."""
    dimensions = array_of(reduce.operand(0)).dimensions
    return math.prod(dimensions[d] for d in reduce.payload_as(DimensionsPayload).dimensions) < ROW_REDUCTION_THRESHOLD


_COLLECTIVE = "GpuLayoutAssignment::AddBackendConstraints: when the dimension counts as most major"
_CALLS = (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL)

OPTIONS = {
    "all-gather": Option(_COLLECTIVE, (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START), _has_ones),
    "reduce-scatter": Option(_COLLECTIVE, (Opcode.REDUCE_SCATTER,), _has_ones),
    "all-to-all": Option(_COLLECTIVE, (Opcode.ALL_TO_ALL,), _has_ones),
    "ragged-all-to-all": Option(_COLLECTIVE, (Opcode.RAGGED_ALL_TO_ALL,), _has_ones),
    "reshape-alignment": Option("GpuLayoutAssignment: dimensions of size 1 of a reshape", (Opcode.RESHAPE,), _has_ones),
    "reduction-pull": Option(
        "GpuLayoutAssignment: which reductions ask for a layout of their operand", (Opcode.REDUCE,), _reduces_little
    ),
    "convolution-layout": Option(
        "XLA_FLAGS=--xla_gpu_force_conv_nchw or --xla_gpu_force_conv_nhwc",
        (Opcode.CONVOLUTION, Opcode.CUSTOM_CALL),
        _is_convolution,
    ),
    "loop-invariants": Option("who chooses the layout of what a loop only reads (docs/loop_invariants.md)", (Opcode.WHILE,)),
    "computation-order": Option("the order of computations in LayoutAssignment::Run", _CALLS),
    "work-list": Option("the order of constraints in LayoutAssignment::PropagateConstraints"),
    "copies": Option("when LayoutAssignment::AssignLayouts copies", is_late=True),
    "conditional": Option(
        "CopyInsertion::RemoveUnnecessaryCopies: the order of branches", (Opcode.CONDITIONAL,), for_copies=False
    ),
    "in-place": Option("HloDataflowAnalysis::GetInPlaceInputOutputPairs behind bitcasts", for_copies=False, is_late=True),
}
"""Options of passes."""

NOT_TRIED = frozenset(
    {
        "backend",
        "target",
        "convolution-fusion",
        "pack-along-contraction",
        "constrain-ragged-dot",
        "constrain-bitcast-convert",
        "outputs-follow-aliases",
        "transparent-copies",
        "priorities",
        "rules",
        "region-analysis",
    }
)
"""Facts of a release or device, and what has no list of values."""

_OURS = "not in XLA; layoutsim/passes/"
_OFF = "XLA_FLAGS=--xla_disable_hlo_passes=NAME leaves a pass out"

PASSES = {
    "all-gather-remove-degenerate-dims": Option(
        f"in XLA since jax 0.6.2; {_OFF}", (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START), _has_ones
    ),
    "all-gather-major-dimension": Option(f"{_OURS}all_gather_major_dimension.py", (Opcode.ALL_GATHER,)),
    "reduce-scatter-remove-degenerate-dims": Option(
        f"{_OURS}collective_degenerate_dims.py", (Opcode.REDUCE_SCATTER,), _has_ones
    ),
    "reduce-scatter-major-dimension": Option(f"{_OURS}reduce_scatter_major_dimension.py", (Opcode.REDUCE_SCATTER,)),
    "all-to-all-remove-degenerate-dims": Option(f"{_OURS}collective_degenerate_dims.py", (Opcode.ALL_TO_ALL,), _has_ones),
    "copy-sinking": Option(f"{_OURS}loops/copy_sinking.py", (Opcode.WHILE,)),
    "while-loop-invariant-code-motion": Option(_OFF, (Opcode.WHILE,), for_copies=False),
    "while-loop-constant-sinking": Option(_OFF, (Opcode.WHILE,), for_copies=False),
    "while-loop-simplifier": Option(_OFF, (Opcode.WHILE,), for_copies=False),
}
"""What XLA has of the passes that presets can be switched to."""


@frozen
class RuleSet:
    """A pipeline to try.

    Attributes:
        text: as ``--preset`` takes it.
        title: what it is, in a line.
        option: what was changed.
        decisive: the pass that must change something for a difference to be; ``None`` if layouts or options tell.
    """

    pipeline: Pipeline
    text: str
    title: str
    option: Option
    decisive: Pass | None = None


def rule_sets(module: Module, preset: str) -> list[RuleSet]:
    """Everything worth trying on ``module`` instead of ``preset``, no pipeline twice; the narrowest changes first."""
    current = resolve_preset(preset)
    found = [
        *_options(current, _fitting(OPTIONS, module)),
        *_switches(current, _fitting(PASSES, module)),
        *_releases(current),
    ]
    different = {_key(r.pipeline): r for r in reversed(found) if r.pipeline.passes != current.passes}
    return [r for r in found if different.get(_key(r.pipeline)) is r]


def _key(pipeline: Pipeline) -> tuple[tuple[Pass, ...], int]:
    """What a rule set differs from others in: passes, and the release's alignment of buffers."""
    return pipeline.passes, profile_of(pipeline).alignment


def _fitting(table: Mapping[str, Option], module: Module) -> list[str]:
    """The options or passes that are about something in the module."""
    return [name for name, option in table.items() if option.is_about(module)]


def _releases(current: Pipeline) -> Iterator[RuleSet]:
    for name in releases_of(current):
        yield RuleSet(resolve_preset(name), name, f"rules of {name}", Option(""))


def _options(current: Pipeline, options: Sequence[str]) -> Iterator[RuleSet]:
    for name in options:
        field = name.replace("-", "_")
        for owner in current.passes:
            kind = typing.get_type_hints(type(owner)).get(field)
            if not (isinstance(kind, type) and issubclass(kind, Enum)):
                continue
            for value in kind:
                if value is not getattr(owner, field):
                    change = f"{name}={value.value}"
                    changed = with_rules(current, change)
                    yield RuleSet(changed, _text(changed, change), f"{owner.name} with {change}", OPTIONS[name])


def _text(changed: Pipeline, change: str) -> str:
    """How ``--preset`` takes a changed preset: by name if it has one; the last of two values for the same option counts."""
    name, brace, options = changed.name.partition("{")
    if name not in preset_names():
        return changed.to_text()
    return f"{name}{{{options.removesuffix('}')} {change}}}" if brace else f"{name}{{{change}}}"


def _switches(current: Pipeline, passes: Container[str]) -> Iterator[RuleSet]:
    for key, switch in SWITCHES.items():
        if switch.pass_name not in passes:
            continue
        chosen = {options: value for value, options in reversed(list(switch.values.items()))}
        for value in (*chosen.values(), "off"):
            changed, text = with_rules(current, f"{key}={value}"), f"{key}={value}"
            added = next((p for p in changed.passes if p.name == switch.pass_name and p not in current.passes), None)
            place = "behind layout assignment" if switch.is_behind else "in front of layout assignment"
            title = f"without {switch.pass_name}" if added is None else f"{added} {place}"
            yield RuleSet(changed, _text(changed, text), title, PASSES[switch.pass_name], added)


def advise_rule_sets(trials: Trials, on_step: Callable[[str], None] = lambda _: None) -> list[Advice]:
    """The effect of each rule set that may save something."""
    found: list[Advice] = []
    before: dict[object, Simulation] = {}
    for rules in rule_sets(trials.module, trials.now.preset):
        if not rules.option.can_help(trials.module, trials.now.transposing_bytes):
            continue
        on_step(rules.title)
        if rules.decisive is not None and not _does_something(trials, rules.pipeline, rules.decisive):
            continue
        if (then := _simulated(trials, rules, before)) is not None:
            found.append(measured(trials.now, then, audience="xla", title=rules.title, code=_code(rules), preset=rules.text))
    return found


def _simulated(trials: Trials, rules: RuleSet, before: dict[object, Simulation]) -> Simulation | None:
    """The module under other rules; ``None`` if they copy no less than now, and differ in that only.

    Args:
        before: simulations by what they were made from, so that none is made twice.
    """
    layouts, rest = split_at_layouts(rules.pipeline)
    decided_by_copies = rules.option.for_copies and layouts.passes != split_at_layouts(trials.pipeline)[0].passes
    if decided_by_copies and trials.transposing_bytes(rules.pipeline) >= trials.now.transposing_bytes:
        return None
    laid_out = trials.lay_out(rules.pipeline)
    key = (print_module(laid_out.module), rest.passes, profile_of(rules.pipeline).alignment)
    if key not in before:
        before[key] = with_memory(laid_out, rules.pipeline)
    return before[key]


def _does_something(trials: Trials, pipeline: Pipeline, decisive: Pass) -> bool:
    """Whether a pass changes the module as it finds it in the pipeline."""
    end = pipeline.passes.index(decisive) + 1
    start = len(pipeline.parted_at(LayoutAssignment)[0].passes) + 1
    if end < start:
        module, passes = trials.module, pipeline.passes[:end]
    else:  # what is in front is as now: one pass at a time is put in
        module, passes = trials.laid_out, pipeline.passes[start:end]
    return Pipeline(passes, pipeline.name).run(clone_module(module)).runs[-1].result.changed


def _code(rules: RuleSet) -> str:
    hint = f"# {rules.option.hint}" if rules.option.hint else ""
    return "\n".join(filter(None, [f"layoutsim run FILE --preset '{rules.text}'", hint]))
