"""Rule sets worth trying instead of the compiler's, for its engineers: other releases, single options, single passes.

1. Every preset of the same backend.
2. :data:`OPTIONS`: each option there is tried with each of its other values, if the module has what it is about. Options of
   layout assignment and copy insertion that are not there are facts of a release or device and stand in :data:`NOT_TRIED`; a
   test holds that every option is in one of the two.
3. :data:`~layoutsim.passes.presets.SWITCHES`: each pass there is put in, with each choice of its options, or left out if it is
   in, if the module has what it is about (:data:`PASSES`).

Memory is measured only where layouts come out differently, a pass that is put in changes something, or the difference is behind
layout assignment.
"""

from __future__ import annotations

import typing
from collections.abc import Container, Iterator, Mapping, Sequence
from enum import Enum

from attrs import frozen

from layoutsim.experiments.advice.report import Advice, measured
from layoutsim.experiments.simulate import Simulation, profile_of, releases_of, simulate
from layoutsim.ir.clone import clone_module
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.passes import Pass, Pipeline
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.presets import SWITCHES, preset_names, resolve_preset, with_rules


@frozen
class Option:
    """An option of a pass.

    Attributes:
        hint: where XLA decides that, or the flag.
        about: opcodes without which it makes no difference; empty if there are none.
    """

    hint: str
    about: tuple[Opcode, ...] = ()


_COLLECTIVE = "GpuLayoutAssignment::AddBackendConstraints: when the dimension counts as most major"

OPTIONS = {
    "all-gather": Option(_COLLECTIVE, (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START)),
    "reduce-scatter": Option(_COLLECTIVE, (Opcode.REDUCE_SCATTER,)),
    "all-to-all": Option(_COLLECTIVE, (Opcode.ALL_TO_ALL,)),
    "ragged-all-to-all": Option(_COLLECTIVE, (Opcode.RAGGED_ALL_TO_ALL,)),
    "reshape-alignment": Option("GpuLayoutAssignment: dimensions of size 1 of a reshape", (Opcode.RESHAPE,)),
    "reduction-pull": Option("GpuLayoutAssignment: which reductions ask for a layout of their operand", (Opcode.REDUCE,)),
    "convolution-layout": Option(
        "XLA_FLAGS=--xla_gpu_force_conv_nchw or --xla_gpu_force_conv_nhwc", (Opcode.CONVOLUTION, Opcode.CUSTOM_CALL)
    ),
    "loop-invariants": Option("who chooses the layout of what a loop only reads (docs/loop_invariants.md)", (Opcode.WHILE,)),
    "computation-order": Option("the order of computations in LayoutAssignment::Run"),
    "work-list": Option("the order of constraints in LayoutAssignment::PropagateConstraints"),
    "copies": Option("when LayoutAssignment::AssignLayouts copies; XLA's algebraic simplifier does the same later"),
    "conditional": Option("CopyInsertion::RemoveUnnecessaryCopies: the order of branches", (Opcode.CONDITIONAL,)),
    "in-place": Option("HloDataflowAnalysis::GetInPlaceInputOutputPairs behind bitcasts"),
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
        f"in XLA since jax 0.6.2; {_OFF}", (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START)
    ),
    "all-gather-major-dimension": Option(f"{_OURS}all_gather_major_dimension.py", (Opcode.ALL_GATHER,)),
    "reduce-scatter-remove-degenerate-dims": Option(f"{_OURS}collective_degenerate_dims.py", (Opcode.REDUCE_SCATTER,)),
    "reduce-scatter-major-dimension": Option(f"{_OURS}reduce_scatter_major_dimension.py", (Opcode.REDUCE_SCATTER,)),
    "all-to-all-remove-degenerate-dims": Option(f"{_OURS}collective_degenerate_dims.py", (Opcode.ALL_TO_ALL,)),
    "copy-sinking": Option(f"{_OURS}loops/copy_sinking.py", (Opcode.WHILE,)),
    "while-loop-invariant-code-motion": Option(_OFF, (Opcode.WHILE,)),
    "while-loop-constant-sinking": Option(_OFF, (Opcode.WHILE,)),
    "while-loop-simplifier": Option(_OFF, (Opcode.WHILE,)),
}
"""What XLA has of the passes that presets can be switched to."""


@frozen
class RuleSet:
    """A pipeline to try.

    Attributes:
        text: as ``--preset`` takes it.
        title: what it is, in a line.
        hint: where XLA decides that, or the flag.
        decisive: the pass that must change something for a difference to be; ``None`` if layouts or options tell.
    """

    pipeline: Pipeline
    text: str
    title: str
    hint: str
    decisive: Pass | None = None


def rule_sets(module: Module, preset: str) -> list[RuleSet]:
    """Everything worth trying on ``module`` instead of ``preset``, no pipeline twice."""
    current = resolve_preset(preset)
    opcodes = {i.opcode for computation in module.computations for i in computation.instructions}
    found = [
        *_releases(current),
        *_options(current, _fitting(OPTIONS, opcodes)),
        *_switches(current, _fitting(PASSES, opcodes)),
    ]
    different = {_key(r.pipeline): r for r in reversed(found) if r.pipeline.passes != current.passes}
    return [r for r in found if different.get(_key(r.pipeline)) is r]


def _key(pipeline: Pipeline) -> tuple[tuple[Pass, ...], int]:
    """What a rule set differs from others in: passes, and the release's alignment of buffers."""
    return pipeline.passes, profile_of(pipeline).alignment


def _fitting(table: Mapping[str, Option], opcodes: Container[Opcode]) -> list[str]:
    """The options or passes that are about something in the module."""
    return [name for name, option in table.items() if not option.about or any(opcode in opcodes for opcode in option.about)]


def _releases(current: Pipeline) -> Iterator[RuleSet]:
    for name in releases_of(current):
        yield RuleSet(resolve_preset(name), name, f"rules of {name}", "")


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
                    yield RuleSet(changed, _text(changed, change), f"{owner.name} with {change}", OPTIONS[name].hint)


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
            yield RuleSet(changed, _text(changed, text), title, PASSES[switch.pass_name].hint, decisive=added)


def advise_rule_sets(module: Module, now: Simulation) -> list[Advice]:
    """The effect of each rule set that makes a difference."""
    found: list[Advice] = []
    for rules in rule_sets(module, now.preset):
        if rules.decisive is not None:
            if not _does_something(module, rules.pipeline, rules.decisive):
                continue
        elif _before_memory(rules.pipeline) != _before_memory(resolve_preset(now.preset)):
            layouts = simulate(module, rules.pipeline, measure_memory=False)
            if _copies(layouts) == _copies(now):
                continue
        then = simulate(module, rules.pipeline)
        found.append(measured(now, then, audience="xla", title=rules.title, code=_code(rules)))
    return found


def _does_something(module: Module, pipeline: Pipeline, decisive: Pass) -> bool:
    """Whether a pass changes the module as it finds it in the pipeline."""
    end = pipeline.passes.index(decisive) + 1
    return Pipeline(pipeline.passes[:end], pipeline.name).run(clone_module(module)).runs[-1].result.changed


def _before_memory(pipeline: Pipeline) -> tuple[Pass, ...]:
    """The passes up to layout assignment."""
    end = next(i for i, p in enumerate(pipeline.passes) if isinstance(p, LayoutAssignment))
    return pipeline.passes[: end + 1]


def _copies(simulation: Simulation) -> list[tuple[str, str, str, str]]:
    return [(c.computation, c.source, c.from_layout, c.to_layout) for c in simulation.copies]


def _code(rules: RuleSet) -> str:
    return "\n".join(filter(None, [f"layoutsim run FILE --preset '{rules.text}'", rules.hint and f"# {rules.hint}"]))
