"""XLA's ``buffer-assignment.txt``: reading it into objects and printing it, byte for byte.

The text, from ``xla/service/buffer_assignment.cc`` (memory spec, 11.1)::

    BufferAssignment:
    allocation 0: size 400, parameter 0, shape |f32[100]| at ShapeIndex {}:
     value: <2 p @0> (size=400,offset=0): f32[100]{0}
    allocation 1: size 800, output shape is |(f32[100], f32[100])|, maybe-live-out:
    ...

1. After ``size``, in this order and where they apply: ``color``, ``parameter`` with shape and index, ``output shape``,
   ``constant``, ``thread-local``, ``maybe-live-out``, ``preallocated-temp``.
2. Values are sorted by id. An index is printed where the defining instruction is tuple-shaped. The size is that of the chunk.
3. Buffers of another colour that use an allocation's free space are listed once more after its values.
4. Up to 0.6.x two more sections follow in the same file: the values with their positions and uses
   (:mod:`~layoutsim.memory.report_format_values`), and the live ranges (:mod:`~layoutsim.memory.report_format_live_range`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import frozen

from layoutsim.errors import ParseError
from layoutsim.memory.report_format_lines import Index, Lines, parse_index, print_index
from layoutsim.memory.report_format_live_range import LiveRangeReport, parse_live_range, print_live_range
from layoutsim.memory.report_format_values import UsedValues, ValueName, parse_used_values, print_used_values


@frozen
class ReportedValue:
    """A value's place in an allocation.

    Attributes:
        value: id, name, index, phi, colour.
        size: bytes of its chunk.
        offset: bytes from the start of the allocation.
        shape: shape with layout, as printed.
    """

    value: ValueName
    size: int
    offset: int
    shape: str

    def __str__(self) -> str:
        return f"{self.value} (size={self.size},offset={self.offset}): {self.shape}"


@frozen
class ReportedParameter:
    """Which part of which entry parameter an allocation is; ``shape`` has no layout."""

    number: int
    shape: str
    index: Index


@frozen
class ReportedAllocation:
    """One allocation with its values.

    Attributes:
        index: position in the assignment.
        size: bytes.
        color: memory space; printed only where it is not 0.
        parameter: set if it is an entry parameter.
        output_shape: the entry root's shape without layout, if the root's own buffer is here.
        values: sorted by id.
        cross_color: those of ``values`` that are of another colour and use free space here.
    """

    index: int
    size: int
    color: int = 0
    parameter: ReportedParameter | None = None
    output_shape: str | None = None
    constant: bool = False
    thread_local: bool = False
    maybe_live_out: bool = False
    preallocated_temp: bool = False
    values: tuple[ReportedValue, ...] = ()
    cross_color: tuple[tuple[ValueName, int], ...] = ()

    @property
    def kind(self) -> str:
        """``parameter``, ``constant``, ``thread-local``, ``output`` or ``temp``; a donated parameter is a parameter."""
        kinds = [
            ("parameter", self.parameter is not None),
            ("constant", self.constant),
            ("thread-local", self.thread_local),
            ("output", self.maybe_live_out),
        ]
        return next((name for name, applies in kinds if applies), "temp")


@frozen
class AssignmentReport:
    """A whole ``buffer-assignment.txt``; the last two are in the file up to 0.6.x only."""

    allocations: tuple[ReportedAllocation, ...]
    used_values: UsedValues | None = None
    live_range: LiveRangeReport | None = None

    @property
    def total_bytes(self) -> int:
        return sum(allocation.size for allocation in self.allocations)

    @property
    def temp_bytes(self) -> int:
        """Bytes of the preallocated temporaries, tuple tables among them."""
        return sum(allocation.size for allocation in self.allocations if allocation.preallocated_temp)


def parse_assignment_report(text: str, path: str = "") -> AssignmentReport:
    """Reads a ``buffer-assignment.txt``.

    Raises:
        ParseError: a line is not what XLA prints there.
    """
    lines = Lines(text, path)
    lines.expect("BufferAssignment:")
    allocations: list[ReportedAllocation] = []
    while lines.starts_with("allocation "):
        allocations.append(_parse_allocation(lines))
    used_values = None if lines.at_end else parse_used_values(lines)
    live_range = None
    if not lines.at_end:
        lines.expect("")
        lines.expect("")
        live_range = parse_live_range(lines)
    return AssignmentReport(tuple(allocations), used_values, live_range)


def print_assignment_report(report: AssignmentReport) -> str:
    """The text XLA prints for this assignment, with a newline at the end of every line."""
    parts = ["BufferAssignment:\n", *(f"{line}\n" for a in report.allocations for line in _print_allocation(a))]
    if report.used_values is not None:
        parts.append(print_used_values(report.used_values))
    if report.live_range is not None:
        parts += ["\n\n", print_live_range(report.live_range)]
    return "".join(parts)


_ALLOCATION = re.compile(
    r"allocation (?P<index>\d+): size (?P<size>\d+)(?:, color (?P<color>\d+))?"
    r"(?:, parameter (?P<parameter>\d+), shape \|(?P<shape>[^|]*)\| at ShapeIndex (?P<at>\{[\d,]*\}))?"
    r"(?:, output shape is \|(?P<output>[^|]*)\|)?(?P<flags>(?:, [a-z-]+)*):"
)
_VALUE = re.compile(r" value: (<[^ ].*?>) \(size=(\d+),offset=(\d+)\): (.*)")
_CROSS_COLOR = re.compile(r"  value: (<[^ ].*?>) \(color=(\d+)\)")
_CROSS_COLOR_HEADER = " reused by buffers of a different color:"
_FLAGS = ("constant", "thread-local", "maybe-live-out", "preallocated-temp")


def _parse_allocation(lines: Lines) -> ReportedAllocation:
    match = lines.match(_ALLOCATION, "an allocation")
    flags = match["flags"].split(", ")[1:]
    if flags != [flag for flag in _FLAGS if flag in flags]:
        raise lines.error(f"expected flags of {', '.join(_FLAGS)} in this order, got {', '.join(flags)}", back=1)
    parameter = None
    if match["parameter"] is not None:
        parameter = ReportedParameter(int(match["parameter"]), match["shape"], parse_index(match["at"]))
    values = tuple(_parse_values(lines))
    return ReportedAllocation(
        index=int(match["index"]),
        size=int(match["size"]),
        color=int(match["color"] or 0),
        parameter=parameter,
        output_shape=match["output"],
        constant="constant" in flags,
        thread_local="thread-local" in flags,
        maybe_live_out="maybe-live-out" in flags,
        preallocated_temp="preallocated-temp" in flags,
        values=values,
        cross_color=tuple(_parse_cross_color(lines)),
    )


def _parse_values(lines: Lines) -> Iterator[ReportedValue]:
    while lines.starts_with(" value: "):
        match = lines.match(_VALUE, "a value")
        yield ReportedValue(_parse_name(match[1], lines), int(match[2]), int(match[3]), match[4])


def _parse_cross_color(lines: Lines) -> Iterator[tuple[ValueName, int]]:
    if lines.starts_with(_CROSS_COLOR_HEADER):
        lines.expect(_CROSS_COLOR_HEADER)
        while lines.starts_with("  value: "):
            match = lines.match(_CROSS_COLOR, "a value of another colour")
            yield _parse_name(match[1], lines), int(match[2])


def _parse_name(text: str, lines: Lines) -> ValueName:
    name = ValueName.parse(text)
    if name is None:
        raise lines.error(f"expected a value like <12 add.3{{0}} (phi) @0>, got {text}", back=1)
    return name


def _print_allocation(allocation: ReportedAllocation) -> Iterator[str]:
    flags = (allocation.constant, allocation.thread_local, allocation.maybe_live_out, allocation.preallocated_temp)
    fields = [f"allocation {allocation.index}: size {allocation.size}"]
    if allocation.color:
        fields.append(f"color {allocation.color}")
    if (parameter := allocation.parameter) is not None:
        shape = f"shape |{parameter.shape}| at ShapeIndex {print_index(parameter.index)}"
        fields.append(f"parameter {parameter.number}, {shape}")
    if allocation.output_shape is not None:
        fields.append(f"output shape is |{allocation.output_shape}|")
    fields += [name for name, applies in zip(_FLAGS, flags, strict=True) if applies]
    yield f"{', '.join(fields)}:"
    for value in allocation.values:
        yield f" value: {value}"
    if allocation.cross_color:
        yield _CROSS_COLOR_HEADER
        for name, color in allocation.cross_color:
            yield f"  value: {name} (color={color})"


__all__ = [
    "AssignmentReport",
    "ParseError",
    "ReportedAllocation",
    "ReportedParameter",
    "ReportedValue",
    "ValueName",
    "parse_assignment_report",
    "print_assignment_report",
]
