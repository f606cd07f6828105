"""Packing problems as CSV, as MiniMalloc reads and writes them (``github.com/google/minimalloc``, ``src/converter.cc``).

1. The header names the columns: ``id,lower,upper,size`` in any order, and perhaps ``alignment``, ``gaps``, ``hint``,
   ``offset``. Older names: ``buffer`` or ``buffer_id`` for ``id``, ``start`` or ``begin`` for ``lower``, ``end`` for ``upper``
   (then the last tick is included).
2. ``lower`` and ``upper`` are half-open; an :class:`~layoutsim.memory.problem.Interval` has ``start = lower`` and
   ``end = upper - 1``.
3. A row is a group. Times within it when no member is live are ``gaps``: ``4-9 12-15``, half-open, separated by blanks.
   Read, each stretch between gaps is a member, named after the row; their ids follow those of all rows.
4. Fields are not quoted. Names with a comma cannot be written; then all rows are named by the ids of their intervals.

Hints are for MiniMalloc's own search and are left out. Gaps with a window (partial use) and rows that differ in alignment
are not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from layoutsim.errors import InputError, UnsupportedError
from layoutsim.memory.problem import Chunk, Group, Heap, Interval, Placement, Problem

_COLUMN_NAMES = {"buffer": "id", "buffer_id": "id", "begin": "lower", "start": "lower", "end": "upper"}
_COLUMNS = ("id", "lower", "upper", "size", "alignment", "gaps", "hint", "offset")


@frozen
class CsvProblem:
    """What a CSV file holds: a problem, and a placement if it has offsets."""

    problem: Problem
    placement: Placement | None


def read_problem_csv(text: str) -> CsvProblem:
    """Reads a problem; rules (1) to (3).

    Raises:
        InputError: a column is missing, unknown or twice, or a field is no number; the message has the line.
        UnsupportedError: a gap has a window, or alignments differ.
    """
    lines = text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError("line 1: expected a header with id,lower,upper,size, got an empty file")
    names = [name.strip() for name in lines[0].split(",")]
    columns = _read_header(names)
    rows = [_read_row(line, number, columns, closed="end" in names) for number, line in enumerate(lines[1:], start=2)]
    problem = Problem(_intervals(rows), _common_alignment(rows))
    return CsvProblem(problem, _placement(rows, problem) if "offset" in columns else None)


def print_problem_csv(problem: Problem, placement: Placement | None = None) -> str:
    """Prints a problem, with a column ``offset`` if there is a placement; rules (2) to (4)."""
    groups = problem.groups
    names = _printable_names(groups)
    gaps = [_print_gaps(group) for group in groups]
    columns: list[tuple[str, list[str]]] = [
        ("id", names),
        ("lower", [str(group.start) for group in groups]),
        ("upper", [str(group.end + 1) for group in groups]),
        ("size", [str(group.size) for group in groups]),
    ]
    if problem.alignment != 1:
        columns.append(("alignment", [str(problem.alignment)] * len(groups)))
    if any(gaps):
        columns.append(("gaps", gaps))
    if placement is not None:
        columns.append(("offset", [str(placement.chunks[group.root.id].offset) for group in groups]))
    header = ",".join(name for name, _ in columns)
    return "".join(f"{line}\n" for line in [header, *map(",".join, zip(*(column for _, column in columns), strict=True))])


@frozen
class _Row:
    line: int
    name: str
    lives: tuple[tuple[int, int], ...]  # half-open, at least one
    size: int
    alignment: int
    offset: int


def _read_header(names: list[str]) -> Mapping[str, int]:
    columns: dict[str, int] = {}
    for position, name in enumerate(_COLUMN_NAMES.get(name, name) for name in names):
        if name in columns:
            raise InputError(f"line 1: column {name} occurs twice")
        if name not in _COLUMNS:
            raise InputError(f"line 1: expected a column of {', '.join(_COLUMNS)}, got {name!r}")
        columns[name] = position
    for name in _COLUMNS[:4]:
        if name not in columns:
            raise InputError(f"line 1: column {name} is missing")
    return columns


def _read_row(line: str, number: int, columns: Mapping[str, int], *, closed: bool) -> _Row:
    fields = line.split(",")
    if len(fields) != len(columns):
        raise InputError(f"line {number}: expected {len(columns)} fields, got {len(fields)}")

    def integer(column: str, default: int = 0) -> int:
        return _integer(fields[columns[column]], number, column) if column in columns else default

    last = 1 if closed else 0
    lower, upper = integer("lower"), integer("upper") + last
    gaps = _read_gaps(fields[columns["gaps"]], number, last) if "gaps" in columns else []
    lives = _lives(lower, upper, gaps)
    size, alignment, offset = integer("size"), integer("alignment", 1), integer("offset")
    if not lives or size < 0 or alignment < 1 or offset < 0:
        raise InputError(f"line {number}: expected a time of at least one tick and numbers that are not negative, got {line!r}")
    return _Row(number, fields[columns["id"]].strip(), lives, size, alignment, offset)


def _integer(text: str, number: int, column: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"line {number}: expected a number in column {column}, got {text!r}") from error


def _read_gaps(text: str, number: int, last: int) -> list[tuple[int, int]]:
    gaps: list[tuple[int, int]] = []
    for gap in text.split():
        if "@" in gap:
            raise UnsupportedError(f"line {number}: gap {gap} has a window; buffers in use in part are not modelled")
        low, dash, high = gap.partition("-")
        if not dash:
            raise InputError(f"line {number}: expected a gap like 4-9, got {gap!r}")
        gaps.append((_integer(low, number, "gaps"), _integer(high, number, "gaps") + last))
    return sorted(gaps)


def _lives(lower: int, upper: int, gaps: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Half-open stretches of ``lower .. upper`` outside all gaps."""
    lives: list[tuple[int, int]] = []
    for low, high in gaps:
        if low > lower:
            lives.append((lower, min(low, upper)))
        lower = max(lower, high)
    if lower < upper:
        lives.append((lower, upper))
    return tuple(lives)


def _intervals(rows: list[_Row]) -> tuple[Interval, ...]:
    intervals: list[Interval] = []
    next_mate = len(rows)
    for row_number, row in enumerate(rows):
        (first, *later) = row.lives
        mates = tuple(range(next_mate, next_mate + len(later)))
        next_mate += len(later)
        if not row.size:
            continue
        intervals.append(Interval(row_number, first[0], first[1] - 1, row.size, mates, name=row.name))
        for mate, (start, end) in zip(mates, later, strict=True):
            intervals.append(Interval(mate, start, end - 1, row.size, need=False, name=row.name))
    return tuple(intervals)


def _common_alignment(rows: list[_Row]) -> int:
    alignments = sorted({row.alignment for row in rows})
    if len(alignments) > 1:
        raise UnsupportedError(f"rows have alignments {alignments}; a problem has one alignment for all")
    return alignments[0] if alignments else 1


def _placement(rows: list[_Row], problem: Problem) -> Placement:
    chunks: dict[int, Chunk] = {}
    for group in problem.groups:
        chunk = Chunk(rows[group.root.id].offset, group.size)
        chunks |= {member.id: chunk for member in group.members}
    return Placement((Heap(chunks, max((chunk.end for chunk in chunks.values()), default=0)),))


def _printable_names(groups: tuple[Group, ...]) -> list[str]:
    names = [group.root.name for group in groups]
    plain = all(name and not set(name) & set(",\r\n") for name in names) and len(set(names)) == len(names)
    return names if plain else [str(group.root.id) for group in groups]


def _print_gaps(group: Group) -> str:
    gaps: list[str] = []
    live_until = group.start
    for start, end in sorted((member.start, member.end + 1) for member in group.members):
        if start > live_until:
            gaps.append(f"{live_until}-{start}")
        live_until = max(live_until, end)
    return " ".join(gaps)
