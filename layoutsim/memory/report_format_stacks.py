"""The tree of call stacks at the end of ``live-range.txt``, from our own live ranges (``xla/hlo/utils/hlo_stack_trace.cc``).

1. A value's path leads from the entry to it: for each call on the way the computation's name and the caller's label, then the
   name of the value's computation and the label of its instruction. A computation with several callers has several paths.
2. A label is the instruction's op name, or its name. ``params['layer/fc'].attr`` is split into ``params``, ``layer``, ``fc``
   and ``attr``; anything that is not of this form as a whole stays one part.
3. The last part of a path carries the value's index. Its bytes are divided among its paths, the first ones getting the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import evolve

from layoutsim.analysis.liveness import LiveRanges
from layoutsim.analysis.values import Value
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.shape import index_text
from layoutsim.memory.profile import size_in_bytes
from layoutsim.memory.report_format_live_range import LiveRangeReport, build_stacks

_VARIABLE = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
_KEY_OR_ATTRIBUTE = re.compile(r"\['([^']+)'\]|\.(\w+)", re.ASCII)


def with_stacks(report: LiveRangeReport, ranges: LiveRanges, module: Module) -> LiveRangeReport:
    """The report of ``ranges``, with the tree of what is alive at its peak."""
    callers = _callers(module)
    alive = [value for value, live in ranges.ranges.items() if live.start <= report.peak_time <= live.end]
    traces = [trace for value in alive for trace in _traces(value, callers)]
    return evolve(report, stacks=build_stacks(traces))


def split_label(label: str) -> tuple[str, ...]:
    """Rule (2)."""
    variable = _VARIABLE.match(label)
    if variable is None:
        return (label,)
    parts, position, has_keys = [variable[0]], variable.end(), False
    while match := _KEY_OR_ATTRIBUTE.match(label, position):
        has_keys |= match[1] is not None
        parts += match[1].split("/") if match[1] is not None else [match[2]]
        position = match.end()
    return tuple(parts) if position == len(label) and has_keys else (label,)


def _callers(module: Module) -> Mapping[Computation, list[Instruction]]:
    """The instructions that call each computation, each once, in the order of the text."""
    callers: dict[Computation, dict[Instruction, None]] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            for callee in instruction.called_computations:
                callers.setdefault(callee, {})[instruction] = None
    return {callee: list(found) for callee, found in callers.items()}


def _traces(value: Value, callers: Mapping[Computation, list[Instruction]]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Rule (3)."""
    paths = list(_paths(value.instruction, callers))
    share, rest = divmod(size_in_bytes(value.shape), len(paths))
    suffix = index_text(value.index) if value.index else ""
    for number, path in enumerate(paths):
        yield (*path[:-1], path[-1] + suffix), share + (number < rest)


def _paths(instruction: Instruction, callers: Mapping[Computation, list[Instruction]]) -> Iterator[tuple[str, ...]]:
    """Rule (1)."""
    computation = instruction.parent
    assert computation is not None, instruction
    end = (computation.name, *split_label(instruction.metadata.op_name or instruction.name))
    called_by = callers.get(computation, [])
    if not called_by:
        yield end
    for caller in called_by:
        yield from ((*path, *end) for path in _paths(caller, callers))
