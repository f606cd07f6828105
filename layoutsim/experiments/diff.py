"""Two dumps held against each other: copies and buffers at the peak, then layouts, each the largest difference first.

Names of instructions mean little across compilations, so things are matched by what the program calls them (``op_name`` of the
metadata, the name without its number where there is none) and by shape. Releases of jax write the way to an operation in
different forms; ``_op_name`` brings them into one. A scheduled dump is taken as it is; one from before
layout assignment is simulated first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from attrs import frozen

from layoutsim.experiments.memory import view_memory
from layoutsim.experiments.simulate import simulate
from layoutsim.garbage import no_collection
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module, split_name
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ArrayShape, Shape, array_shape, byte_size, has_layout, shape_text
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.summary import MemorySummary, find_peak, summarize
from layoutsim.passes.presets import DEFAULT_PRESET
from layoutsim.report.copies import is_transposing
from layoutsim.report.tables import Rows
from layoutsim.report.units import human_bytes, signed_bytes

_SHOWN = 30
_SHOWN_PARTS = 3
_PLUMBING = frozenset({"", "jit(main)", "closed_call", "checkpoint", "remat"})
"""Parts of an operation's name that some releases write and others do not."""
_INSIDE = re.compile(r"((?:\w+\()*)(\w[\w.]*)(\)+)")
_TRANSFORMS = ("jvp(", "vmap(", "transpose(")


@frozen
class Difference:
    """One thing that the two sides have differently.

    Attributes:
        kind: ``copy``, ``layout`` or ``peak``.
        what: operation and shape.
        before: on the first side, as text; ``-`` where it is not there.
        size_bytes: signed difference; for layouts the bytes of the array.
    """

    kind: str
    what: str
    before: str
    after: str
    size_bytes: int

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "what": self.what, "before": self.before, "after": self.after, "bytes": self.size_bytes}


@frozen(eq=False)
class DiffReport:
    """The figures of both sides and what differs."""

    before: MemorySummary
    after: MemorySummary
    differences: tuple[Difference, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "differences": [difference.to_json() for difference in self.differences],
        }

    def rows(self) -> tuple[Rows, ...]:
        """Figures, and the largest differences."""
        lines = [
            ("temporaries", self.before.temp_bytes, self.after.temp_bytes),
            ("peak", self.before.peak_bytes, self.after.peak_bytes),
            ("arguments", self.before.argument_bytes, self.after.argument_bytes),
            ("outputs", self.before.output_bytes, self.after.output_bytes),
        ]
        figures = tuple((name, human_bytes(a), human_bytes(b), signed_bytes(b - a)) for name, a, b in lines)
        shown = tuple(
            (d.kind, _shortened(d.what), d.before, d.after, signed_bytes(d.size_bytes)) for d in self.differences[:_SHOWN]
        )
        rest = len(self.differences) - len(shown)
        note = f"and {rest:,} more (--json lists all)" if rest > 0 else ""
        numbers = frozenset({"before", "after", "±"})
        return (
            Rows("memory", ("", "before", "after", "±"), figures, numbers),
            Rows("differences", ("kind", "what", "before", "after", "±"), shown, frozenset({"±"}), note),
        )


@no_collection()
def diff_modules(before: Module, after: Module, preset: str = DEFAULT_PRESET) -> DiffReport:
    """Compare two modules; both stay as they are.

    Args:
        before: scheduled, or as it enters layout assignment.
        after: the same.
        preset: rules for buffer assignment, and for what has to be simulated.
    """
    old, new = _assigned(before, preset), _assigned(after, preset)
    found = [
        *_changes("copy", _copies(old), _copies(new)),
        *_changes("peak", _peak(old), _peak(new)),
        *_layout_changes(_layouts(old), _layouts(new)),
    ]
    ranked = sorted(found, key=lambda d: (d.kind == "layout", -abs(d.size_bytes), d.kind, d.what))
    return DiffReport(summarize(old), summarize(new), tuple(ranked))


def _assigned(module: Module, preset: str) -> BufferAssignment:
    if module.schedule is not None:
        return view_memory(module, preset).assignment
    assignment = simulate(module, preset).assignment
    assert assignment is not None
    return assignment


def _label(instruction: Instruction, shape: Shape | None = None) -> str:
    """Operation and shape: of the whole result, or ``shape`` if only a part of it is meant."""
    name = _op_name(instruction.metadata.op_name) or split_name(instruction.name)[0]
    return f"{name} {shape_text(instruction.shape if shape is None else shape, layouts=False)}"


def _op_name(name: str) -> str:
    """``a/jit(main)/jvp(while)/body`` and ``a/jvp()/while/body/closed_call`` both become ``a/jvp()/while/body``."""
    parts: list[str] = []
    for part in name.split("/"):
        inside = _INSIDE.fullmatch(part)
        if inside is not None and inside[1].endswith(_TRANSFORMS):
            parts += [inside[1] + inside[3], inside[2]]
        elif part not in _PLUMBING:
            parts.append(part)
    return "/".join(parts)


def _shortened(what: str) -> str:
    """The end of a long way, which says most."""
    name, _, shape = what.partition(" ")
    parts = name.split("/")
    return what if len(parts) <= _SHOWN_PARTS else f"…/{'/'.join(parts[-_SHOWN_PARTS:])} {shape}"


def _instructions(assignment: BufferAssignment) -> Iterator[Instruction]:
    """All but those inside fusions, whose layouts are the backend's business."""
    module = assignment.aliases.module
    bodies = fusion_bodies(module)
    for computation in module.computations:
        if computation not in bodies:
            yield from computation.instructions


def _copies(assignment: BufferAssignment) -> dict[str, int]:
    """Bytes of transposing copies by what they copy."""
    found: dict[str, int] = defaultdict(int)
    for instruction in _instructions(assignment):
        if instruction.opcode is not Opcode.COPY:
            continue
        source, target = instruction.operand(0).shape, instruction.shape
        if _is_transposed(source, target):
            layouts = " to ".join(str(shape.layout) for shape in (source, target) if isinstance(shape, ArrayShape))
            found[f"{_label(instruction)} {layouts}"] += byte_size(target)
    return found


def _is_transposed(source: Shape, target: Shape) -> bool:
    if not (isinstance(source, ArrayShape) and isinstance(target, ArrayShape)):
        return False
    return has_layout(source) and has_layout(target) and is_transposing(source, target)


def _peak(assignment: BufferAssignment) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for value, size in find_peak(assignment).alive:
        found[_label(value.instruction, _without_ones(value.shape))] += size
    return found


def _without_ones(shape: Shape) -> Shape:
    """Dimensions of size 1 come and go between releases, and take no memory."""
    if not isinstance(shape, ArrayShape):
        return shape
    return array_shape(shape.element_type, tuple(size for size in shape.dimensions if size != 1))


def _layouts(assignment: BufferAssignment) -> dict[str, tuple[str, int]]:
    """The layouts that arrays of one label have, and the bytes of one of them."""
    texts: dict[str, dict[str, None]] = defaultdict(dict)
    sizes: dict[str, int] = {}
    for instruction in _instructions(assignment):
        shape = instruction.shape
        if isinstance(shape, ArrayShape) and shape.rank > 1 and has_layout(shape):
            texts[_label(instruction)][str(shape.layout)] = None
            sizes[_label(instruction)] = byte_size(shape)
    return {label: (" ".join(sorted(found)), sizes[label]) for label, found in texts.items()}


def _changes(kind: str, before: dict[str, int], after: dict[str, int]) -> Iterator[Difference]:
    for what in sorted(before.keys() | after.keys()):
        old, new = before.get(what, 0), after.get(what, 0)
        if old != new:
            texts = [human_bytes(size) if size else "-" for size in (old, new)]
            yield Difference(kind, what, texts[0], texts[1], new - old)


def _layout_changes(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]]) -> Iterator[Difference]:
    for what in sorted(before.keys() & after.keys()):
        (old, size), (new, _) = before[what], after[what]
        if old != new:
            yield Difference("layout", what, old, new, size)
