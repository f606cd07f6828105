"""Passes by name, and the text form of passes and pipelines: ``name{key=value key=value},name``.

Names lead to modules that are imported when a pass is asked for. Values may hold braces (``entry-layout=w:{2,0,1}``): commas
and spaces inside braces do not separate.
"""

from __future__ import annotations

import difflib
import importlib
import types
import typing
from collections.abc import Iterable
from enum import Enum

import attrs

from layoutsim.errors import PassError
from layoutsim.passes.base import Pass
from layoutsim.passes.pipeline import Pipeline

_PASSES = {
    "all-gather-major-dimension": "all_gather_major_dimension:AllGatherMajorDimension",
    "all-gather-remove-degenerate-dims": "all_gather_degenerate_dims:AllGatherRemoveDegenerateDims",
    "all-to-all-remove-degenerate-dims": "collective_degenerate_dims:AllToAllRemoveDegenerateDims",
    "copy-insertion": "copy_insertion:CopyInsertion",
    "copy-sinking": "loops.copy_sinking:CopySinking",
    "dead-code-elimination": "dead_code:DeadCodeElimination",
    "flatten-call-graph": "flatten_calls:FlattenCallGraph",
    "layout-assignment": "layout_assignment:LayoutAssignment",
    "loop-schedule-linearizer": "loop_schedule_linearizer:LoopScheduleLinearizer",
    "post-scheduling-copies": "post_scheduling_copies:PostSchedulingCopies",
    "reduce-scatter-major-dimension": "reduce_scatter_major_dimension:ReduceScatterMajorDimension",
    "reduce-scatter-remove-degenerate-dims": "collective_degenerate_dims:ReduceScatterRemoveDegenerateDims",
    "schedule": "schedule:ScheduleModule",
    "sub-byte-size-setter": "sub_byte_size_setter:SubByteSizeSetter",
    "tuple-simplifier": "tuple_simplifier:TupleSimplifier",
    "while-loop-constant-sinking": "loops.while_loop_constant_sinking:WhileLoopConstantSinking",
    "while-loop-invariant-code-motion": "loops.while_loop_invariant_code_motion:WhileLoopInvariantCodeMotion",
    "while-loop-simplifier": "loops.while_loop_simplifier:WhileLoopSimplifier",
}


def pass_names() -> tuple[str, ...]:
    """Every pass that can be named in a pipeline text."""
    return tuple(_PASSES)


def pass_class(name: str) -> type[Pass]:
    """The class of the pass called ``name``.

    Raises:
        PassError: there is none; the message names the nearest.
    """
    if name not in _PASSES:
        raise PassError(f"unknown pass {name!r}{did_you_mean(name, _PASSES)}")
    module_name, _, class_name = _PASSES[name].partition(":")
    return getattr(importlib.import_module(f"layoutsim.passes.{module_name}"), class_name)


def parse_pipeline(text: str) -> Pipeline:
    """A pipeline from ``name{key=value},name``.

    Raises:
        PassError: the text is malformed, or a pass, option or value is unknown.
    """
    return Pipeline(tuple(parse_pass(part) for part in split_outside_braces(text, ",") if part.strip()))


def parse_pass(text: str) -> Pass:
    """One pass from ``name`` or ``name{key=value key=value}``."""
    name, brace, rest = text.strip().partition("{")
    cls = pass_class(name.strip())
    if not brace:
        return cls()
    if not rest.rstrip().endswith("}"):
        raise PassError(f"options of {name!r} do not end with '}}': {text.strip()!r}")
    settings = [word for word in split_outside_braces(rest.rstrip()[:-1], " ") if word]
    return cls(**dict(_option(cls, setting) for setting in settings))


def split_outside_braces(text: str, separator: str) -> list[str]:
    """``text`` cut at each separator that is not inside braces or brackets."""
    parts: list[str] = []
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c in "{[(") - (c in "}])")
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def option_names(cls: type[Pass]) -> dict[str, str]:
    """The options of a pass by the name they have in texts, with the name of the field."""
    return {field.name.replace("_", "-"): field.name for field in attrs.fields(cls)}


def _option(cls: type[Pass], setting: str) -> tuple[str, object]:
    key, equals, value = setting.partition("=")
    names = option_names(cls)
    if not equals:
        raise PassError(f"{cls.name}: expected key=value, got {setting!r}")
    if key not in names:
        raise PassError(f"{cls.name} has no option {key!r}{did_you_mean(key, names)}")
    hint = typing.get_type_hints(cls)[names[key]]
    return names[key], _read(value, hint, f"{cls.name}: {key}")


def _read(value: str, hint: object, where: str) -> object:
    """The value that ``value`` denotes for a field of type ``hint``."""
    origin = typing.get_origin(hint)
    if origin is types.UnionType or origin is typing.Union:
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return None if value == "none" else _read(value, kinds[0], where)
    if origin is tuple:
        return tuple(_read(part, typing.get_args(hint)[0], where) for part in value.split("+") if part)
    if hint is bool:
        return _choose(value, {"true": True, "false": False}, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _choose(value, {str(member.value): member for member in hint}, where)
    if hint is int or hint is float:
        try:
            return hint(value)
        except ValueError:
            raise PassError(f"{where}: expected a number, got {value!r}") from None
    return value


def _choose(value: str, choices: dict[str, object] | dict[str, bool], where: str) -> object:
    if value not in choices:
        raise PassError(f"{where}: expected one of {', '.join(choices)}, got {value!r}")
    return choices[value]


_NEAR = 0.75
_SHORTEST_PART = 3
_MOST_MEANT = 3


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """How an error about an unknown word ends: what is nearest to it, else what it is a part of, or all that is known."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=_NEAR)
    parts = [name for name in names if len(word) >= _SHORTEST_PART and f"-{word}" in f"-{name}"]
    meant = near or parts[:_MOST_MEANT]
    return f"; did you mean {' or '.join(map(repr, meant))}?" if meant else f"; known: {', '.join(names)}"
