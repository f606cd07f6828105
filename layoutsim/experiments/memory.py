"""Buffer assignment of a scheduled module, with what people ask of it: allocations, the peak, and differences."""

from __future__ import annotations

from functools import cached_property

from attrs import evolve, field, frozen

from layoutsim.analysis.source_lines import source_line
from layoutsim.analysis.values import Value
from layoutsim.errors import UnsupportedError
from layoutsim.experiments.simulate import memory_rows, profile_of
from layoutsim.garbage import no_collection
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.shape import byte_size, index_text, shape_text
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.donation import DonationReport, donation_report
from layoutsim.memory.reference import numbering_of
from layoutsim.memory.report_format import AssignmentReport
from layoutsim.memory.reported import assignment_report
from layoutsim.memory.sharing_verdict import SharingVerdict, find_value, why_shared
from layoutsim.memory.summary import MemorySummary, Peak, find_peak, summarize
from layoutsim.memory.tpu import TPU, PaddedValue, bytes_by_memory_space, is_tpu_module, output_bytes, padding_table
from layoutsim.memory.waste import WasteReport, waste_report
from layoutsim.passes.presets import resolve_preset
from layoutsim.report.buffer_diff import BufferComparison, compare_assignments
from layoutsim.report.tables import Rows, byte_rows
from layoutsim.report.units import human_bytes

_LARGEST = 25


@frozen
class PeakBuffer:
    """A value that is alive at the peak."""

    name: str
    shape: str
    size_bytes: int
    kind: str
    op_name: str
    location: str

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "shape": self.shape,
            "bytes": self.size_bytes,
            "kind": self.kind,
            "op_name": self.op_name,
            "location": self.location,
        }


@frozen(eq=False)
class PaddingRow:
    """What tiles add to one value."""

    padded: PaddedValue

    @property
    def name(self) -> str:
        value = self.padded.value
        return value.instruction.name + (index_text(value.index) if value.index else "")

    @property
    def best_order(self) -> str:
        return "{" + ",".join(map(str, self.padded.padding.best_order)) + "}"

    def cells(self) -> tuple[str, ...]:
        """For a table."""
        padding = self.padded.padding
        sizes = [human_bytes(n) for n in (padding.data_bytes, padding.padded_bytes, padding.padding_bytes)]
        return (self.name, str(padding.shape), *sizes, self.best_order, human_bytes(padding.best_padded_bytes))

    def to_json(self) -> dict[str, object]:
        padding = self.padded.padding
        return {
            "name": self.name,
            "shape": str(padding.shape),
            "memory_space": self.padded.memory_space,
            "data_bytes": padding.data_bytes,
            "padded_bytes": padding.padded_bytes,
            "best_order": list(padding.best_order),
            "best_padded_bytes": padding.best_padded_bytes,
        }


@frozen(eq=False, slots=False)
class MemoryView:
    """A module's buffer assignment; ``comparison`` is there if a reference was given."""

    module: Module
    assignment: BufferAssignment
    comparison: BufferComparison | None = field(default=None)

    @cached_property
    def summary(self) -> MemorySummary:
        """The figures; on TPU an output's table of pointers takes a whole block."""
        found = summarize(self.assignment)
        return evolve(found, output_bytes=output_bytes(self.module)) if self.is_tpu else found

    @cached_property
    def report(self) -> AssignmentReport:
        """In the form of XLA's own report."""
        return assignment_report(self.assignment)

    @cached_property
    def waste(self) -> WasteReport:
        """What the largest buffers at the peak are there for."""
        return waste_report(self.assignment, _LARGEST)

    @cached_property
    def donations(self) -> DonationReport:
        """What became of donated parameters."""
        return donation_report(self.assignment)

    @property
    def is_tpu(self) -> bool:
        return self.assignment.profile is TPU

    @cached_property
    def padding(self) -> tuple[PaddingRow, ...]:
        """What tiles add to each value, most first (TPU modules)."""
        return tuple(map(PaddingRow, padding_table(self.assignment)))

    @cached_property
    def spaces(self) -> dict[str, int]:
        """Bytes in each memory space (TPU modules)."""
        return dict(bytes_by_memory_space(self.assignment))

    def why(self, first: str, second: str) -> SharingVerdict:
        """Whether two values share memory, and if not, what keeps them apart.

        Args:
            first: ``name`` or ``name{index}`` (the same for ``second``).

        Raises:
            InputError: there is no such value.
        """
        return why_shared(self.assignment, find_value(self.assignment, first), find_value(self.assignment, second))

    @cached_property
    def peak(self) -> tuple[PeakBuffer, ...]:
        """What is alive at the peak, largest first."""
        allocation_of = self.assignment.allocation_of
        found = [_peak_buffer(allocation_of[value], value) for value, _ in self._found_peak.alive]
        return tuple(sorted(found, key=lambda buffer: (-buffer.size_bytes, buffer.name)))

    @property
    def peak_instruction(self) -> Instruction | None:
        """What begins when the peak is reached; ``None`` if nothing is alive but what lives all the time."""
        return self._found_peak.at

    @cached_property
    def _found_peak(self) -> Peak:
        return find_peak(self.assignment)

    @property
    def _peak_moment(self) -> str:
        at = self.peak_instruction
        if at is None:
            return ""
        assert at.parent is not None, at
        return f", when {at.name} begins in {at.parent.name}"

    def to_json(self) -> dict[str, object]:
        return {
            "allocations": [
                {
                    "index": allocation.index,
                    "size": allocation.size,
                    "kind": allocation.kind,
                    "values": [
                        {"name": str(v.value), "offset": v.offset, "size": v.size, "shape": v.shape} for v in reported.values
                    ],
                }
                for allocation, reported in zip(self.assignment.allocations, self.report.allocations, strict=True)
            ],
            **self.summary.to_json(),
            "peak_instruction": self.peak_instruction.name if self.peak_instruction is not None else None,
            "peak": [buffer.to_json() for buffer in self.peak],
            "waste": {"rows": [row.to_json() for row in self.waste.rows], "bytes": dict(self.waste.bytes_by_class)},
            "donations": [donation.to_json() for donation in self.donations.donations],
            **({"padding": [row.to_json() for row in self.padding], "memory_spaces": self.spaces} if self.is_tpu else {}),
            "differences": [] if self.comparison is None else [d.to_json() for d in self.comparison.differences],
        }

    def rows(self) -> tuple[Rows, ...]:
        """Tables: the figures, and the largest buffers at the peak."""
        columns = ("at the peak", "shape", "bytes", "≈", "kind", "source")
        shown = self.peak[:_LARGEST]
        body = tuple(
            (b.name, b.shape, f"{b.size_bytes:,}", human_bytes(b.size_bytes), b.kind, b.location or b.op_name) for b in shown
        )
        rest = len(self.peak) - len(shown)
        note = f"and {rest:,} smaller ones (--json lists all)" if rest else ""
        peak = Rows(f"alive at the peak{self._peak_moment}", columns, body, frozenset({"bytes", "≈"}), note)
        return (memory_rows(self.summary), peak, self._waste_rows(), *(self._tpu_rows() if self.is_tpu else ()))

    def _waste_rows(self) -> Rows:
        rows = tuple((row.label, f"{row.size:,}", row.waste.value, row.reason) for row in self.waste.rows)
        columns = ("what the largest are for", "bytes", "class", "because")
        return Rows("waste", columns, rows, frozenset({"bytes"}))

    def donation_rows(self) -> Rows:
        """What became of each donated argument."""
        rows = tuple((d.label, shape_text(d.shape), f"{d.size:,}", d.outcome.value, d.reason) for d in self.donations.donations)
        columns = ("donated", "shape", "bytes", "outcome", "because")
        return Rows("donated arguments", columns, rows, frozenset({"bytes"}), "" if rows else "none are donated")

    def _tpu_rows(self) -> tuple[Rows, ...]:
        columns = ("padding of", "shape", "data", "padded", "padding", "least wasteful order", "padded then")
        shown = tuple(row.cells() for row in self.padding[:_LARGEST])
        padding = Rows("tile padding", columns, shown, frozenset({"data", "padded", "padding", "padded then"}))
        return (byte_rows("memory spaces", list(self.spaces.items())), padding)

    def _repr_html_(self) -> str:
        return "".join(rows.to_html() for rows in self.rows())


@no_collection()
def view_memory(module: Module, preset: str, reference: AssignmentReport | None = None) -> MemoryView:
    """Assign buffers to a scheduled module.

    Args:
        module: with a schedule.
        preset: decides the backend, unless the module is a TPU's, which its tiled layouts tell.
        reference: to compare with.

    Raises:
        UnsupportedError: the module is not scheduled, or its call graph is not flat.
    """
    if module.schedule is None:
        raise UnsupportedError(
            f"module {module.name} is not scheduled, so nothing tells what is alive when; take the dump from after all passes "
            "(*after_optimizations.txt), or use `layoutsim run` for this one"
        )
    numbering = None if reference is None else numbering_of(reference, module)
    profile = TPU if is_tpu_module(module) else profile_of(resolve_preset(preset))
    assignment = assign_buffers(module, profile, numbering=numbering)
    comparison = compare_assignments(assignment_report(assignment), reference) if reference is not None else None
    return MemoryView(module, assignment, comparison)


def _peak_buffer(allocation: Allocation, value: Value) -> PeakBuffer:
    metadata = value.instruction.metadata
    return PeakBuffer(
        name=value.instruction.name + (index_text(value.index) if value.index else ""),
        shape=shape_text(value.shape),
        size_bytes=byte_size(value.shape),
        kind=allocation.kind,
        op_name=metadata.op_name,
        location=source_line(value.instruction),
    )
