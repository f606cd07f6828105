"""XLA's ``live-range.txt``: reading it into objects and printing it, byte for byte (memory spec, 11.4).

1. The flattened instruction sequence, numbered; then every value's live range, by value id, ends included.
2. The buffers alive at the peak with a running total, the largest first, equals by name and index.
3. From 0.10.2 the same buffers as a tree of call stacks: children by total (descending), then name. Total, percentage and
   remainder follow from each node's own bytes; the remainder goes down in the order of printing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, field, frozen

from layoutsim.memory.report_format_lines import Index, Lines, parse_index, print_index


@frozen
class LiveRange:
    """A value, by its defining instruction and index, and the times at which it is live, ends included."""

    name: str
    index: Index
    start: int
    end: int


@frozen
class LiveBuffer:
    """A value alive at the peak, with its own bytes."""

    name: str
    index: Index
    size: int


@frozen
class StackNode:
    """A node of the tree of call stacks: its name, the bytes that end here, and its children in order."""

    name: str
    own_bytes: int
    children: tuple[StackNode, ...] = ()

    @property
    def total_bytes(self) -> int:
        return self.own_bytes + sum(child.total_bytes for child in self.children)


@frozen
class LiveRangeReport:
    """A whole ``live-range.txt``.

    Attributes:
        end_time: the last time of the schedule.
        instructions: names in flattened order.
        ranges: by value id.
        peak_time: the time at which most bytes are live.
        peak: values alive then, the largest first.
        stacks: the tree's topmost nodes; ``None`` where the release prints no tree.
    """

    end_time: int
    instructions: tuple[str, ...]
    ranges: tuple[LiveRange, ...]
    peak_time: int
    peak: tuple[LiveBuffer, ...]
    stacks: tuple[StackNode, ...] | None = None


_HEADER = re.compile(r"HloLiveRange \(max (\d+)\):")
_INSTRUCTION = re.compile(r"    (\d+):(.+)")
_RANGE = re.compile(r"    (.+?)(\{[\d,]*\}):(\d+)-(\d+)")
_PEAK = re.compile(r"  Live ranges at (\d+) \(peak\):")
_BUFFER = re.compile(r"    (.+?)(\{[\d,]*\}): (\d+) bytes \(cumulative: \d+ bytes\)")
_STACKS = re.compile(r"  Stack trace breakdown for peak usage: ([\d ]+) bytes")
_NODE = re.compile(
    r"(?P<indent>  (?:│   |    )+(?:├── |└── )| {4})(?P<name>.*)"
    r" \(\d+\.\d%, total: [\d ]+ bytes, current: (?P<own>[\d ]+) bytes, remaining: -?[\d ]+ bytes\)"
)


def parse_live_range(lines: Lines) -> LiveRangeReport:
    """Reads the report to the end of the lines.

    Raises:
        ParseError: a line is not what XLA prints there.
    """
    end_time = int(lines.match(_HEADER, "HloLiveRange")[1])
    lines.expect("  InstructionSequence:")
    instructions = tuple(match[2] for match in _matches(lines, _INSTRUCTION, "an instruction"))
    lines.expect("  BufferLiveRange:")
    ranges = tuple(LiveRange(m[1], parse_index(m[2]), int(m[3]), int(m[4])) for m in _matches(lines, _RANGE, "a live range"))
    peak_time = int(lines.match(_PEAK, "the live ranges at the peak")[1])
    peak = tuple(LiveBuffer(m[1], parse_index(m[2]), int(m[3])) for m in _matches(lines, _BUFFER, "a buffer"))
    stacks = _parse_stacks(lines) if not lines.at_end else None
    return LiveRangeReport(end_time, instructions, ranges, peak_time, peak, stacks)


def parse_live_range_report(text: str, path: str = "") -> LiveRangeReport:
    """Reads a ``live-range.txt``.

    Raises:
        ParseError: a line is not what XLA prints there.
    """
    return parse_live_range(Lines(text, path))


def print_live_range(report: LiveRangeReport) -> str:
    """The text XLA prints for these live ranges."""
    return "".join(f"{line}\n" for line in _print_lines(report))


def sorted_peak(buffers: list[LiveBuffer]) -> tuple[LiveBuffer, ...]:
    """Buffers in the order of the report: size descending, then name, then index."""
    return tuple(sorted(buffers, key=lambda buffer: (-buffer.size, buffer.name, buffer.index)))


def build_stacks(traces: list[tuple[tuple[str, ...], int]]) -> tuple[StackNode, ...]:
    """The tree of ``(path, bytes)``, topmost name first; nodes without bytes are left out; rule (3)."""
    root = _OpenNode()
    for path, size in traces:
        node = root
        for name in path:
            node = node.children.setdefault(name, _OpenNode())
        node.own_bytes += size
    return _close(root)


@define
class _OpenNode:
    own_bytes: int = 0
    children: dict[str, _OpenNode] = field(factory=dict["str", "_OpenNode"])


def _close(node: _OpenNode) -> tuple[StackNode, ...]:
    closed = (StackNode(name, child.own_bytes, _close(child)) for name, child in node.children.items())
    return tuple(sorted((child for child in closed if child.total_bytes), key=lambda n: (-n.total_bytes, n.name)))


def _matches(lines: Lines, pattern: re.Pattern[str], what: str) -> Iterator[re.Match[str]]:
    while lines.starts_with("    "):
        yield lines.match(pattern, what)


def _parse_stacks(lines: Lines) -> tuple[StackNode, ...]:
    lines.match(_STACKS, "the breakdown by stack trace")
    # Children are complete when a line of their parent's depth or less follows: build from the last line upwards.
    nodes: list[tuple[int, str, int]] = []
    while not lines.at_end:
        match = lines.match(_NODE, "a node of the stack trace")
        depth = (len(match["indent"]) - 2) // 4 - (match["indent"] != "    ")
        nodes.append((depth, match["name"], int(match["own"].replace(" ", ""))))
    waiting: list[tuple[int, StackNode]] = []
    for depth, name, own_bytes in reversed(nodes):
        children: list[StackNode] = []
        while waiting and waiting[-1][0] > depth:
            children.append(waiting.pop()[1])
        waiting.append((depth, StackNode(name, own_bytes, tuple(children))))
    return tuple(node for _, node in reversed(waiting))


def _print_lines(report: LiveRangeReport) -> Iterator[str]:
    yield f"HloLiveRange (max {report.end_time}):"
    yield "  InstructionSequence:"
    yield from (f"    {number}:{name}" for number, name in enumerate(report.instructions))
    yield "  BufferLiveRange:"
    yield from (f"    {r.name}{print_index(r.index)}:{r.start}-{r.end}" for r in report.ranges)
    yield f"  Live ranges at {report.peak_time} (peak):"
    cumulative = 0
    for buffer in report.peak:
        cumulative += buffer.size
        yield f"    {buffer.name}{print_index(buffer.index)}: {buffer.size} bytes (cumulative: {cumulative} bytes)"
    if report.stacks is not None:
        yield f"  Stack trace breakdown for peak usage: {_spaced(cumulative)} bytes"
        yield from _StackPrinter(cumulative).print_children(report.stacks, "  ", topmost=True)


class _StackPrinter:
    """Prints the tree, with what remains of the total after each line."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._remaining = total

    def print_children(self, nodes: tuple[StackNode, ...], prefix: str, *, topmost: bool = False) -> Iterator[str]:
        for number, node in enumerate(nodes):
            last = number == len(nodes) - 1
            connector = "  " if topmost else "└── " if last else "├── "
            yield f"{prefix}{connector}{self._describe(node)}"
            yield from self.print_children(node.children, prefix + ("    " if last else "│   "))

    def _describe(self, node: StackNode) -> str:
        total = node.total_bytes
        percent = 100.0 * total / self._total if self._total else 0.0
        self._remaining -= node.own_bytes
        return (
            f"{node.name} ({percent:.1f}%, total: {_spaced(total)} bytes, current: {_spaced(node.own_bytes)} bytes,"
            f" remaining: {_spaced(self._remaining)} bytes)"
        )


def _spaced(number: int) -> str:
    """``1 048 576``."""
    return f"{number:,}".replace(",", " ")
