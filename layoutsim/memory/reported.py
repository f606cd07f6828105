"""Our results in the form of XLA's reports, to print them like XLA or to hold them against XLA's own.

* :func:`assignment_report`: allocations, for ``buffer-assignment.txt`` and ``memory-usage-report.txt``.
* :func:`live_range_report`: times and ranges, for ``live-range.txt`` (memory spec, sections 6.4 and 11.4).
"""

from __future__ import annotations

from layoutsim.analysis.liveness import LiveRanges
from layoutsim.analysis.values import Value
from layoutsim.ir.shape import TupleShape, byte_size, shape_text, subshape, without_layout
from layoutsim.memory.buffers import Allocation, AssignedValue, BufferAssignment
from layoutsim.memory.report_format import AssignmentReport, ReportedAllocation, ReportedParameter, ReportedValue
from layoutsim.memory.report_format_live_range import LiveBuffer, LiveRange, LiveRangeReport, sorted_peak
from layoutsim.memory.report_format_values import ValueName


def value_name(value: Value, color: int | None) -> ValueName:
    """The value as XLA names it; its index is given where the defining instruction is tuple-shaped."""
    index = value.index if isinstance(value.instruction.shape, TupleShape) else None
    return ValueName(value.id, value.instruction.name, index, value.is_phi, color)


def assignment_report(assignment: BufferAssignment) -> AssignmentReport:
    """The assignment as XLA would report it."""
    return AssignmentReport(tuple(_allocation(assignment, allocation) for allocation in assignment.allocations))


def _allocation(assignment: BufferAssignment, allocation: Allocation) -> ReportedAllocation:
    values = allocation.values
    cross = [(value_name(value, assignment.colors[value]), assignment.colors[value]) for value in allocation.cross_color]
    return ReportedAllocation(
        index=allocation.index,
        size=allocation.size,
        color=allocation.color,
        parameter=_parameter(assignment, allocation),
        output_shape=_output_shape(assignment, values),
        constant=allocation.is_constant,
        thread_local=allocation.is_thread_local,
        maybe_live_out=allocation.is_live_out,
        preallocated_temp=allocation.is_temp,
        values=tuple(_value(assignment, assigned) for assigned in values),
        cross_color=tuple(cross),
    )


def _value(assignment: BufferAssignment, assigned: AssignedValue) -> ReportedValue:
    value = assigned.value
    shape = shape_text(value.shape)
    return ReportedValue(value_name(value, assignment.colors[value]), assigned.size, assigned.offset, shape)


def _parameter(assignment: BufferAssignment, allocation: Allocation) -> ReportedParameter | None:
    parameter = allocation.parameter
    if parameter is None:
        return None
    instruction = assignment.aliases.dataflow.parameters(assignment.aliases.module.entry)[parameter.number]
    shape = without_layout(subshape(instruction.shape, parameter.index))
    return ReportedParameter(parameter.number, shape_text(shape), parameter.index)


def _output_shape(assignment: BufferAssignment, values: list[AssignedValue]) -> str | None:
    root = assignment.aliases.module.entry.root
    holds_root = any(p.instruction is root and not p.index for assigned in values for p in assigned.value.positions)
    return shape_text(without_layout(root.shape)) if holds_root else None


def live_range_report(ranges: LiveRanges) -> LiveRangeReport:
    """Times, ranges and the peak, without the tree of call stacks."""
    peak_time = peak_moment(ranges)
    alive = [value for value, live in ranges.ranges.items() if live.start <= peak_time <= live.end]
    return LiveRangeReport(
        end_time=ranges.end,
        instructions=tuple(instruction.name for instruction in ranges.schedule.instructions),
        ranges=tuple(LiveRange(v.instruction.name, v.index, r.start, r.end) for v, r in ranges.ranges.items()),
        peak_time=peak_time,
        peak=sorted_peak([LiveBuffer(v.instruction.name, v.index, byte_size(v.shape)) for v in alive]),
    )


def peak_moment(ranges: LiveRanges) -> int:
    """The first time at which the most bytes are live, as XLA counts for its live range dump.

    XLA counts every value with the size of its defining instruction's whole shape, a tuple as its table of pointers.
    """
    changes: list[tuple[int, bool, int]] = []
    for value, live in ranges.ranges.items():
        size = byte_size(value.instruction.shape)
        changes += [(live.start, False, size), (live.end + 1, True, -size)]
    bytes_, peak, time = 0, 0, 0
    for at, _, change in sorted(changes, key=lambda c: c[:2]):
        bytes_ += change
        if bytes_ > peak:
            peak, time = bytes_, at
    return time
