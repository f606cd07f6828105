"""The copies that layout assignment inserted, as records to print, count and sort.

A copy is *transposing* if its two layouts order the dimensions of size greater than 1 differently; otherwise the bytes stay
where they are, and a later pass turns it into a bitcast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from layoutsim.analysis.trip_count import execution_counts
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape, byte_size, shape_text


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
        source: the instruction that is copied.
        users: instructions that read the copy; ``(root)`` for a computation's result.
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
    users: tuple[str, ...]
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
            "users": list(self.users),
            "op_name": self.op_name,
            "location": self.location,
        }

    def __str__(self) -> str:
        kind = "transposing copy" if self.transposing else "copy"
        return f"{kind} {self.name} of {self.shape} {self.from_layout} to {self.to_layout} in {self.computation}"


def copy_records(module: Module, copies: Iterable[Instruction]) -> tuple[CopyRecord, ...]:
    """Records of ``copies`` (instructions of ``module`` after assignment), largest first."""
    counts = execution_counts(module)
    records = [copy_record(copy, counts) for copy in copies]
    return tuple(sorted(records, key=lambda r: (not r.transposing, -r.size_bytes, r.computation, r.name)))


def copy_record(copy: Instruction, counts: Mapping[Computation, int | None]) -> CopyRecord:
    """The record of one copy; ``counts`` as of ``execution_counts``."""
    source, computation = copy.operand(0), copy.parent
    assert isinstance(copy.shape, ArrayShape) and isinstance(source.shape, ArrayShape), copy
    assert computation is not None, copy
    return CopyRecord(
        name=copy.name,
        computation=computation.name,
        shape=shape_text(copy.shape, layouts=False),
        from_layout=str(source.shape.layout),
        to_layout=str(copy.shape.layout),
        size_bytes=byte_size(copy.shape),
        transposing=is_transposing(source.shape, copy.shape),
        runs=counts.get(computation),
        source=source.name,
        users=tuple(user.name for user in copy.users) + (("(root)",) if copy.is_root else ()),
        op_name=source.metadata.op_name,
        location=source.metadata.location,
        instruction=copy,
    )
