"""Comparing two modules after layout assignment: ours, and what the real compiler made of the same input.

1. Instructions that the input has are matched by computation and name; every leaf of their shapes must agree, layouts included.
2. What was inserted (``copy``, ``get-tuple-element``, ``tuple``) is compared as an expression in the slot that reads it, since
   the suffixes of new names depend on the compiler's history: opcode, shape with layouts, and operands down to instructions
   of the input.
3. Roots are compared like slots; so is the entry computation layout.
4. Inside fusions layout assignment unsets the layouts of all but parameters, root and constants. Readers of HLO text fill in
   the default where none stands, so what we left without a layout is compared without.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from layoutsim.ir import Computation, Instruction, Module, Opcode, has_layout, shape_text

Names = Mapping[str, frozenset[str]]
"""The instruction names of each computation."""

ENTRY_LAYOUT = "(entry layout)"
ROOT = "(root)"


@frozen
class Mismatch:
    """One difference.

    Attributes:
        name: of the instruction; ``(root)`` and ``(entry layout)`` for those.
        ours: what we have, as text.
        theirs: what the compiler has.
    """

    computation: str
    name: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.computation}/{self.name}: ours {self.ours}, theirs {self.theirs}"

    def to_json(self) -> dict[str, str]:
        return {"computation": self.computation, "name": self.name, "ours": self.ours, "theirs": self.theirs}


@frozen
class LayoutComparison:
    """Result of a comparison.

    Attributes:
        instructions: how many instructions of the input were compared.
        copies_ours: how many copies we inserted.
        copies_theirs: how many the compiler inserted.
        stored_last: instructions that the pair agrees on only if XLA had stored them last
            (see :mod:`layoutsim.passes.layout_assignment.conformance`).
        registered_last: instructions that the pair agrees on only if they were the last that XLA made users of their operands.
    """

    instructions: int
    mismatches: tuple[Mismatch, ...]
    copies_ours: int
    copies_theirs: int
    stored_last: tuple[str, ...] = ()
    registered_last: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.mismatches

    def to_json(self) -> dict[str, object]:
        return {
            "instructions": self.instructions,
            "mismatches": [m.to_json() for m in self.mismatches],
            "copies_ours": self.copies_ours,
            "copies_theirs": self.copies_theirs,
            "stored_last": list(self.stored_last),
            "registered_last": list(self.registered_last),
        }


def instruction_names(module: Module) -> Names:
    """The names that ``module`` has before the pass; take them before running it."""
    return {c.name: frozenset(i.name for i in c.instructions) for c in module.computations}


def compare_layouts(original: Names, ours: Module, theirs: Module) -> LayoutComparison:
    """Compare two results of layout assignment on one input.

    Args:
        original: :func:`instruction_names` of the input.
        ours: after our pass.
        theirs: after the compiler's.
    """
    mismatches: list[Mismatch] = []
    compared = 0
    theirs_by_name = {c.name: c for c in theirs.computations}
    for computation in ours.computations:
        if computation.name not in original:  # a clone that the pass made
            continue
        other = theirs_by_name.get(computation.name)
        if other is None:
            mismatches.append(Mismatch(computation.name, "(computation)", "present", "absent"))
            continue
        names = original[computation.name]
        compared += len(names)
        mismatches += _compare_computations(computation, other, names)
    mismatches += _compare_entry_layouts(ours, theirs)
    return LayoutComparison(compared, tuple(mismatches), _copies(original, ours), _copies(original, theirs))


def instructions_laid_out_differently(original: Names, ours: Module, theirs: Module) -> dict[str, tuple[str, ...]]:
    """By computation, the instructions of the input whose own layout differs."""
    theirs_by_name = {c.name: {i.name: i for i in c.instructions} for c in theirs.computations}
    found: dict[str, tuple[str, ...]] = {}
    for computation in ours.computations:
        others, names = theirs_by_name.get(computation.name, {}), original.get(computation.name, frozenset())
        found[computation.name] = tuple(
            i.name
            for i in computation.instructions
            if i.name in names and i.name in others and _shape_texts(i, others[i.name]) is not None
        )
    return {computation: late for computation, late in found.items() if late}


def _shape_texts(ours: Instruction, theirs: Instruction) -> tuple[str, str] | None:
    """Both shapes as text, if they differ."""
    if ours.shape == theirs.shape:
        return None
    layouts = has_layout(ours.shape)  # (4)
    a, b = (shape_text(i.shape, layouts=layouts, index_comments=False) for i in (ours, theirs))
    return None if a == b else (a, b)  # scalars print alike with and without their layout {}


def _compare_computations(ours: Computation, theirs: Computation, names: frozenset[str]) -> list[Mismatch]:
    found: list[Mismatch] = []
    by_name = {i.name: i for i in theirs.instructions}
    for instruction in ours.instructions:
        if instruction.name not in names:
            continue
        other = by_name.get(instruction.name)
        if other is None:
            found.append(Mismatch(ours.name, instruction.name, "present", "absent"))
            continue
        found += _compare_instructions(ours.name, instruction, other, names)
    a, b = _expression(ours.root, names), _expression(theirs.root, names)
    if a != b:
        found.append(Mismatch(ours.name, ROOT, a, b))
    return found


def _compare_instructions(computation: str, ours: Instruction, theirs: Instruction, names: frozenset[str]) -> list[Mismatch]:
    found: list[Mismatch] = []
    texts = _shape_texts(ours, theirs)
    if texts is not None:
        found.append(Mismatch(computation, ours.name, *texts))
    if ours.operand_count != theirs.operand_count:
        found.append(Mismatch(computation, ours.name, f"{ours.operand_count} operands", f"{theirs.operand_count}"))
        return found
    for number, (x, y) in enumerate(zip(ours.operands, theirs.operands, strict=True)):
        if x.name == y.name and x.name in names:
            continue
        a, b = _expression(x, names), _expression(y, names)
        if a != b:
            found.append(Mismatch(computation, ours.name, f"operand {number} = {a}", f"operand {number} = {b}"))
    return found


def _expression(value: Instruction, names: frozenset[str]) -> str:
    """The name of an instruction of the input; what was inserted, written out."""
    if value.name in names:
        return value.name
    operands = ", ".join(_expression(operand, names) for operand in value.operands)
    index = f", index={value.tuple_index}" if value.opcode is Opcode.GET_TUPLE_ELEMENT else ""
    return f"{shape_text(value.shape, index_comments=False)} {value.opcode}({operands}{index})"


def _compare_entry_layouts(ours: Module, theirs: Module) -> list[Mismatch]:
    a, b = _entry_texts(ours), _entry_texts(theirs)
    if len(a) != len(b):
        return [Mismatch(ours.entry.name, ENTRY_LAYOUT, f"{len(a)} shapes", f"{len(b)} shapes")]
    return [
        Mismatch(ours.entry.name, ENTRY_LAYOUT, f"{name} {x}", f"{name} {y}")
        for (name, x), (_, y) in zip(a, b, strict=True)
        if x != y
    ]


def _entry_texts(module: Module) -> list[tuple[str, str]]:
    entry = module.entry_layout
    if entry is None:
        return []
    shapes = [*((f"parameter {i}", shape) for i, shape in enumerate(entry.parameters)), ("result", entry.result)]
    return [(name, shape_text(shape, index_comments=False)) for name, shape in shapes]


def _copies(original: Names, module: Module) -> int:
    return sum(
        i.opcode is Opcode.COPY and i.name not in original.get(c.name, frozenset())
        for c in module.computations
        for i in c.instructions
    )
