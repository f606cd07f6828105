"""XLA's ``memory-usage-report.txt`` of 0.10.2, from a parsed or computed assignment (memory spec, 11.3).

1. One section per colour, ascending; in it a block per allocation, the largest first, equals by index.
2. A block has a row per distinct offset: the values there, the largest size among them, and their shapes without layout with
   counts, sorted by count and text. Rows: size descending, then the largest value id at the offset.
3. Percentages are of the sum of the rows' sizes, not of the allocation.
4. After 50 rows (or blocks) the list stops at the first one after which less than 5 % of the total is left.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from layoutsim.memory.report_format import AssignmentReport, ReportedAllocation, ReportedValue

_MEMORY_SPACES = {0: "default", 1: "vmem", 2: "smem", 3: "hbm", 4: "host", 5: "cmem"}
_TIMES = "\u00d7"
_ROWS_SHOWN = 50
_REST_PERCENT = 5
_HEADER = "  cumulative_size;       size;       offset; used_by_n_values; shapes_list"
_RULE = f"  {'-' * 60}"


def print_memory_usage_report(report: AssignmentReport) -> str:
    """The text of ``memory-usage-report.txt`` for this assignment."""
    by_color: defaultdict[int, list[ReportedAllocation]] = defaultdict(list)
    for allocation in report.allocations:
        by_color[allocation.color].append(allocation)
    return "".join(f"{line}\n" for color in sorted(by_color) for line in _print_color(color, by_color[color]))


def human_bytes(size: int) -> str:
    """Bytes as XLA prints them: ``24B``, ``256.0KiB``, ``1.50MiB``; whole divisions by 1024 down to the last one."""
    if size < 1024:
        return f"{size}B"
    units = ("MiB", "GiB", "TiB", "PiB", "EiB")
    if size < 1024**2:
        return f"{size / 1024:.1f}KiB"
    size //= 1024
    for unit in units[:-1]:
        if size < 1024**2:
            return f"{size / 1024:.2f}{unit}"
        size //= 1024
    return f"{size / 1024:.2f}{units[-1]}"


@frozen
class _Row:
    size: int
    offset: int
    values: tuple[ReportedValue, ...]


def _print_color(color: int, allocations: list[ReportedAllocation]) -> Iterator[str]:
    total = sum(allocation.size for allocation in allocations)
    yield f"Memory Space: {_MEMORY_SPACES.get(color, f'color_{color}')} (color={color})"
    yield f"Total bytes: {total} ({human_bytes(total)})"
    cumulative = 0
    for number, allocation in enumerate(sorted(allocations, key=lambda a: (-a.size, a.index)), start=1):
        cumulative += allocation.size
        yield from _print_block(allocation)
        yield ""
        if _rest_is_small(number, total, cumulative):
            break
    yield ""


def _print_block(allocation: ReportedAllocation) -> Iterator[str]:
    rows = _rows(allocation)
    total = sum(row.size for row in rows)
    yield _HEADER
    yield _RULE
    cumulative = 0
    for number, row in enumerate(rows, start=1):
        cumulative += row.size
        # A block of nothing but empty values has no percentage: XLA prints what 0 / 0 gives.
        percent = f"{100.0 * cumulative / total:3.0f}" if total else "-nan"
        sizes = f"  {human_bytes(cumulative):>9}({percent}%); {human_bytes(row.size):>10}; {row.offset:12d}"
        yield f"{sizes}; {len(row.values):16d}; {_print_shapes(row)}"
        if _rest_is_small(number, total, cumulative):
            yield f"  The rest {len(rows) - number} values are less than {_REST_PERCENT}% of the total size and not shown."
            break


def _rest_is_small(shown: int, total: int, cumulative: int) -> bool:
    return shown > _ROWS_SHOWN and total - cumulative < total * (_REST_PERCENT / 100)


def _rows(allocation: ReportedAllocation) -> list[_Row]:
    at_offset: defaultdict[int, list[ReportedValue]] = defaultdict(list)
    for value in allocation.values:
        at_offset[value.offset].append(value)
    rows = [_Row(max(v.size for v in values), offset, tuple(values)) for offset, values in at_offset.items()]
    return sorted(rows, key=lambda row: (-row.size, row.values[-1].value.id))


def _print_shapes(row: _Row) -> str:
    counts = Counter(_without_layout(value.shape) for value in row.values)
    ordered = sorted((count, shape) for shape, count in counts.items())
    return ", ".join(shape if count == 1 else f"{count}{_TIMES}{shape}" for count, shape in ordered)


_LAYOUT = re.compile(r"\{[^{}]*\}")


def _without_layout(shape: str) -> str:
    return _LAYOUT.sub("", shape)
