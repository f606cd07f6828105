"""The judge of buffer assignments: holds allocations, ours or parsed from XLA's report, against the live ranges.

A value claims its place in its allocation while it is live. :func:`layoutsim.memory.check.find_overlaps` finds the claims that
get in each other's way; here is what a claim is, and what may touch:

1. Values of one buffer (they must be in the same memory) are one claim's group.
2. A value may begin where another one ends, at the same time and place, if its instruction takes that one as an operand, may
   share with it by the backend's rules, and is no ``copy``.
3. Thread-local allocations are not looked at: their values have no place in the module's time.

No code is shared with what assigns buffers; liveness, buffers and the sharing rules are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.analysis.values import Value
from layoutsim.errors import InputError
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ShapeIndex
from layoutsim.memory.check import Claim, Overlap, find_overlaps
from layoutsim.memory.report_format import AssignmentReport, ReportedValue


def judge_assignment(report: AssignmentReport, aliases: Aliases, ranges: LiveRanges) -> list[Overlap]:
    """Pairs of values that are live at the same time and have bytes of one allocation in common; none if all is right.

    Args:
        report: allocations, as XLA prints them; :func:`~layoutsim.memory.reported.assignment_report` makes one of ours.
        aliases: values and buffers of the module that the report is of.
        ranges: live ranges under the module's schedule.

    Raises:
        InputError: the report names a value that the module does not have.
    """
    values = {_key(value.instruction.name, value.index): value for value in aliases.dataflow.values}
    claims: dict[Claim, Value] = {}
    for allocation in report.allocations:
        if allocation.thread_local:
            continue
        for reported in allocation.values:
            value = _find(reported, values)
            live = ranges.get(value)
            if live is not None:
                group = aliases.buffer_of(value).id
                name = value.short_text
                claim = Claim(name, allocation.index, reported.offset, reported.size, live.start, live.end, group)
                claims[claim] = value
    return find_overlaps(claims, _may_touch(claims, aliases))


def _key(name: str, index: ShapeIndex) -> tuple[str, ShapeIndex]:
    return (name, index)


def _find(reported: ReportedValue, values: Mapping[tuple[str, ShapeIndex], Value]) -> Value:
    name = reported.value
    value = values.get(_key(name.name, name.index or ()))
    if value is None:
        raise InputError(f"the report has a value {name}, which the module does not have")
    return value


def _may_touch(claims: Mapping[Claim, Value], aliases: Aliases) -> Callable[[Claim, Claim], bool]:
    """Rule (2)."""

    def may_touch(earlier: Claim, later: Claim) -> bool:
        source, target = claims[earlier], claims[later]
        user = target.instruction
        if user.opcode is Opcode.COPY:
            return False
        return any(
            position.instruction in user.operands
            and aliases.sharing.can_share(position.instruction, position.index, user, target.index)
            for position in source.positions
        )

    return may_touch
