"""The copies that layout assignment inserted, as records to print, count and sort.

A copy is *transposing* if its two layouts order the dimensions of size greater than 1 differently; otherwise the bytes stay
where they are, and a later pass turns it into a bitcast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from layoutsim.analysis.source_lines import source_line
from layoutsim.analysis.trip_count import execution_counts
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape, byte_size, index_text, shape_text
from layoutsim.passes.layout_assignment import InsertedCopy


def is_transposing(source: ArrayShape, target: ArrayShape) -> bool:
    """Whether going from one layout to the other moves bytes: dimensions of size 1 do not count, nor do empty arrays."""
    if source.element_count == 0:
        return False
    return _order_without_ones(source) != _order_without_ones(target)


def _order_without_ones(shape: ArrayShape) -> tuple[int, ...]:
    return tuple(d for d in shape.minor_to_major if shape.dimensions[d] != 1)


@frozen
class CopyRecord:
    """One inserted copy.

    Attributes:
        shape: text without layout, ``bf16[80,128,4096]``.
        size_bytes: of the copied array.
        runs: how often it runs in one run of the entry; ``None`` where a loop's trip count is unknown.
        source: the value that is copied, ``name`` or ``name{index}`` for a part of a tuple.
        place: what the copy serves: ``operand 1 of %dot.3``, ``root of main``.
        op_name: of the copied instruction's metadata, ``""`` where absent (the same for ``location``).
    """

    name: str
    computation: str
    shape: str
    from_layout: str
    to_layout: str
    size_bytes: int
    transposing: bool
    runs: int | None
    source: str
    place: str
    op_name: str
    location: str
    instruction: Instruction = field(repr=False, eq=False)

    @property
    def moved_bytes(self) -> int | None:
        """Bytes copied in one run of the entry: size times runs."""
        return None if self.runs is None else self.size_bytes * self.runs

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "computation": self.computation,
            "shape": self.shape,
            "from_layout": self.from_layout,
            "to_layout": self.to_layout,
            "bytes": self.size_bytes,
            "transposing": self.transposing,
            "runs": self.runs,
            "source": self.source,
            "place": self.place,
            "op_name": self.op_name,
            "location": self.location,
        }

    def __str__(self) -> str:
        kind = "transposing copy" if self.transposing else "copy"
        return f"{kind} {self.name} of {self.shape} {self.from_layout} to {self.to_layout} in {self.computation}"


def copy_records(module: Module, copies: Iterable[InsertedCopy]) -> tuple[CopyRecord, ...]:
    """Records of the ``copies`` that layout assignment inserted in ``module``, transposing ones first, then by size."""
    counts = execution_counts(module)
    records = [copy_record(copy, counts) for copy in copies]
    return tuple(sorted(records, key=lambda r: (not r.transposing, -r.size_bytes, r.computation, r.name)))


def copy_record(inserted: InsertedCopy, counts: Mapping[Computation, int | None]) -> CopyRecord:
    """The record of one copy; ``counts`` as of ``execution_counts``."""
    copy = inserted.copy
    source, computation = copy.operand(0), copy.parent
    assert isinstance(copy.shape, ArrayShape) and isinstance(source.shape, ArrayShape), copy
    assert computation is not None, copy
    metadata = inserted.value.metadata
    return CopyRecord(
        name=copy.name,
        computation=computation.name,
        shape=shape_text(copy.shape, layouts=False),
        from_layout=str(source.shape.layout),
        to_layout=str(copy.shape.layout),
        size_bytes=byte_size(copy.shape),
        transposing=is_transposing(source.shape, copy.shape),
        runs=counts.get(computation),
        source=inserted.value.name + (index_text(inserted.index) if inserted.index else ""),
        place=inserted.place,
        op_name=metadata.op_name,
        location=source_line(inserted.value),
        instruction=copy,
    )
