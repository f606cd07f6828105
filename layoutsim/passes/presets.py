"""Presets: pipelines named after what they imitate. Each is a text, so it can be printed, changed and passed around.

Every preset runs what its compiler runs around layout assignment (layout spec, 0.3) and then what memory depends on: copy
insertion, scheduling and, on GPUs, the second round of copy removal. What the releases differ in:

* ``xla-gpu-0.6.1``: up to jax 0.6.1. All-gathers keep their size-1 dimensions: the doubling of openxla/xla#26987.
* ``xla-gpu-0.6.2``: 0.6.2 to 0.10.0. With ``all-gather-remove-degenerate-dims``. Up to here schedulers weigh
  loops, know nothing of what GPUs do in place, and leave all-gathers where they are.
* ``xla-gpu-0.10.2``: from 0.10.1. Reshapes keep size-1 dimensions in place instead of moving them to the major end.
* ``xla-cpu-0.10.2``: the CPU backend.
* ``xla-gpu-proposed``: 0.10.2, and what a loop only reads keeps the layout that its caller has it in. No release has this; it
  is our proposal for the doubling that is left (``docs/loop_invariants.md``).

Passes over loops can be switched into any of them, :data:`SWITCHES` lists how: ``xla-gpu-0.10.2{copy-sinking=peak}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, frozen

from layoutsim.errors import PassError
from layoutsim.passes.base import Pass
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.loops.copy_sinking import CopySinking
from layoutsim.passes.pipeline import Pipeline
from layoutsim.passes.registry import did_you_mean, option_names, parse_pass, parse_pipeline, split_outside_braces

_PACKED = "sub-byte-size-setter"
_GPU_MEMORY = f"{_PACKED},copy-insertion,schedule,post-scheduling-copies"
_GPU_0_6_SCHEDULE = "schedule{rules=default weighing=buffers overlap-all-gathers=false}"
_GPU_0_6_MEMORY = f"{_PACKED},copy-insertion,{_GPU_0_6_SCHEDULE},post-scheduling-copies{{collective-memory=never}}"
_GPU_0_6_RULES = (
    "layout-assignment{backend=gpu reshape-alignment=size-1-most-major reduction-pull=large-or-divisor "
    "constrain-ragged-dot=false constrain-bitcast-convert=false transparent-copies=false outputs-follow-aliases=false}"
)
_DEGENERATE = "all-gather-remove-degenerate-dims"

_PRESETS = {
    "xla-gpu-0.6.1": f"flatten-call-graph,{_GPU_0_6_RULES},{_GPU_0_6_MEMORY}",
    "xla-gpu-0.6.2": f"{_DEGENERATE},flatten-call-graph,{_GPU_0_6_RULES},{_GPU_0_6_MEMORY}",
    "xla-gpu-0.10.2": f"{_DEGENERATE},flatten-call-graph,layout-assignment{{backend=gpu}},{_GPU_MEMORY}",
    "xla-gpu-proposed": f"{_DEGENERATE},flatten-call-graph,"
    f"layout-assignment{{backend=gpu loop-invariants=caller}},{_GPU_MEMORY}",
    "xla-cpu-0.10.2": f"flatten-call-graph,layout-assignment{{backend=cpu}},{_PACKED},copy-insertion{{rules=cpu}},"
    "schedule{algorithm=breadth-first rules=cpu gpu=false}",
}

DEFAULT_PRESET = "xla-gpu-0.10.2"

PROPOSED = "xla-gpu-proposed"
"""The preset that is no release."""

NEWEST: Mapping[str, str] = {"gpu": DEFAULT_PRESET, "cpu": "xla-cpu-0.10.2"}
"""The preset of each backend's newest release."""


@frozen
class Switch:
    """A pass that presets do not have, and that an option of a preset puts in.

    Attributes:
        values: of the option, with the options that the pass then has; ``off`` takes the pass out again.
        is_behind: it runs behind layout assignment; otherwise before everything else.
    """

    pass_name: str
    values: Mapping[str, str]
    is_behind: bool


SWITCHES: Mapping[str, Switch] = {
    "constant-sinking": Switch(
        "while-loop-constant-sinking",
        {"on": "", "broadcasts": "broadcasts=true", "scalars": "only-scalars=true"},
        is_behind=False,
    ),
    "loop-simplifier": Switch("while-loop-simplifier", {"on": "repeat=true", "once": ""}, is_behind=False),
    "early-loop-invariant-code-motion": Switch("while-loop-invariant-code-motion", {"on": ""}, is_behind=False),
    "loop-invariant-code-motion": Switch("while-loop-invariant-code-motion", {"on": ""}, is_behind=True),
    "copy-sinking": Switch(
        "copy-sinking",
        {"on": "choose=peak", "always": "choose=always", "bytes": "choose=bytes", "peak": "choose=peak"},
        is_behind=True,
    ),
    "all-gather-remove-degenerate-dims": Switch("all-gather-remove-degenerate-dims", {"on": ""}, is_behind=False),
    "reduce-scatter-remove-degenerate-dims": Switch("reduce-scatter-remove-degenerate-dims", {"on": ""}, is_behind=False),
    "all-to-all-remove-degenerate-dims": Switch("all-to-all-remove-degenerate-dims", {"on": ""}, is_behind=False),
    "all-gather-major-dimension": Switch("all-gather-major-dimension", {"on": ""}, is_behind=True),
    "reduce-scatter-major-dimension": Switch("reduce-scatter-major-dimension", {"on": ""}, is_behind=True),
}
"""Options that put passes into a preset. Passes over loops in front of layout assignment are XLA's own; the presets leave them
out because a dump from before layout assignment has been through them."""

_CHANGED = re.compile(r"(?P<name>[\w.-]+)\{(?P<options>.*)\}", re.DOTALL)


def preset_names() -> tuple[str, ...]:
    """Names that :func:`preset` takes."""
    return tuple(_PRESETS)


def preset(name: str) -> Pipeline:
    """The pipeline called ``name``.

    Raises:
        PassError: there is none; the message names the nearest.
    """
    if name not in _PRESETS:
        raise PassError(f"unknown preset {name!r}{did_you_mean(name, _PRESETS)}")
    return Pipeline(parse_pipeline(_PRESETS[name]).passes, name)


def resolve_preset(text: str) -> Pipeline:
    """A preset by name, a preset with changed options, or a pipeline written out.

    ``xla-gpu-0.6.1{all-gather=ignore-degenerate}`` is the preset with that option of its ``layout-assignment`` changed. What
    layout assignment does not have is an option of another pass: ``xla-gpu-0.10.2{conditional=symmetric}``.

    Raises:
        PassError: the text is none of these, or there is no ``layout-assignment`` in it.
    """
    changed = _CHANGED.fullmatch(text.strip())
    if changed and changed["name"] in _PRESETS:
        pipeline = with_rules(preset(changed["name"]), changed["options"])
    elif "," in text or changed or text.strip() == "layout-assignment":
        pipeline = parse_pipeline(text)
    else:
        pipeline = preset(text.strip())
    if not any(p.name == "layout-assignment" for p in pipeline.passes):
        raise PassError(f"pipeline {text!r} has no layout-assignment")
    return Pipeline(pipeline.passes, text.strip())


def with_rules(pipeline: Pipeline, options: str) -> Pipeline:
    """The pipeline with ``options`` (``key=value`` words) added: to layout assignment, or to the pass that has them.

    An option of :data:`SWITCHES` puts a pass in, or takes it out.

    Raises:
        PassError: an option or value is unknown, or several passes have the option.
    """
    for option in options.split():
        key, _, value = option.partition("=")
        if key in SWITCHES:
            pipeline = _switched(pipeline, key, value)
        else:
            pipeline = pipeline.replacing(_with_option(_owner(pipeline, key), option))
    return pipeline


def _switched(pipeline: Pipeline, key: str, value: str) -> Pipeline:
    """The pipeline with the pass of a switch where it belongs, behind those that were switched in before."""
    switch = SWITCHES[key]
    if value != "off" and value not in switch.values:
        raise PassError(f"{key}: expected one of {', '.join((*switch.values, 'off'))}, got {value!r}")
    names = [p.name for p in pipeline.passes]
    cut = names.index("layout-assignment") + 1 if switch.is_behind else 0
    front = [p for i, p in enumerate(pipeline.passes) if i < cut]
    back = [p for i, p in enumerate(pipeline.passes) if i >= cut]
    same_side = {s.pass_name for s in SWITCHES.values() if s.is_behind is switch.is_behind}
    while back and back[0].name in same_side:
        front.append(back.pop(0))
    front = [p for i, p in enumerate(front) if i < cut - 1 or p.name != switch.pass_name]
    added = [] if value == "off" else [_switched_pass(pipeline, switch, switch.values[value])]
    return Pipeline((*front, *added, *back), pipeline.name)


def _switched_pass(pipeline: Pipeline, switch: Switch, options: str) -> Pass:
    """The pass of a switch; it shares memory by the rules of the pipeline's copy insertion."""
    new = parse_pass(f"{switch.pass_name}{{{options}}}")
    rules = [p.rules for p in pipeline.passes if isinstance(p, CopyInsertion)]
    return evolve(new, rules=rules[0]) if isinstance(new, CopySinking) and rules else new


def _owner(pipeline: Pipeline, key: str) -> Pass:
    """The pass whose option ``key`` is: layout assignment, unless only another one has it."""
    layouts = next(p for p in pipeline.passes if p.name == "layout-assignment")
    others = {p.name: p for p in pipeline.passes if key in option_names(type(p))}
    if layouts.name in others or not others:
        return layouts
    if len(others) > 1:
        raise PassError(f"{', '.join(others)} all have an option {key!r}; write the pipeline out to say which")
    return next(iter(others.values()))


def _with_option(current: Pass, option: str) -> Pass:
    key = option.partition("=")[0]
    kept = split_outside_braces(current.to_text().removeprefix(current.name).removeprefix("{").removesuffix("}"), " ")
    words = [word for word in kept if word and word.partition("=")[0] != key]
    return parse_pass(f"{current.name}{{{' '.join([*words, option])}}}")
