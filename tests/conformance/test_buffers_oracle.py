"""Buffer assignment of every scheduled module in the oracle folder, held against the report XLA printed for it.

Value ids follow an order of computations that a dump's text does not hold; it is taken from the report (``memory.reference``).
Everything else is computed from the text: allocations, what is in each, offsets, live ranges and the usage report.
"""

import gzip
import os
from functools import cache
from pathlib import Path

import pytest
from attrs import evolve

from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.profile import CPU, GPU, GPU_0_6_1
from layoutsim.memory.reference import numbering_of
from layoutsim.memory.report_format import AssignmentReport, ReportedAllocation, parse_assignment_report
from layoutsim.memory.report_format_live_range import parse_live_range_report
from layoutsim.memory.report_format_usage import print_memory_usage_report
from layoutsim.memory.reported import assignment_report, live_range_report
from layoutsim.text import parse_module

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FOLDERS = sorted(path.parent for path in SHARED.glob("oracle/*/*/buffer-assignment.txt.gz"))

if not FOLDERS:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)

PROFILES = {"gpu-0.6.1": GPU_0_6_1, "gpu-0.6.2": GPU, "gpu-0.10.2": GPU, "gpu-0.10.2-bare": GPU, "cpu-0.10.2": CPU}


def _name(folder: Path) -> str:
    return "/".join(folder.parts[-2:])


def _read(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode(errors="replace")


@cache
def _theirs(folder: Path) -> AssignmentReport:
    return parse_assignment_report(_read(folder / "buffer-assignment.txt.gz"))


@pytest.fixture(params=FOLDERS, ids=_name, scope="module")
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def ours(folder: Path) -> BufferAssignment:
    module = parse_module(_read(folder / "final.hlo.gz"))
    return assign_buffers(module, PROFILES[folder.name], order=numbering_of(_theirs(folder), module))


def _kind(allocation: ReportedAllocation) -> tuple[object, ...]:
    return (
        allocation.index,
        allocation.size,
        allocation.color,
        allocation.kind,
        allocation.maybe_live_out,
        allocation.preallocated_temp,
        allocation.parameter,
        allocation.output_shape,
    )


def _places(allocation: ReportedAllocation) -> frozenset[tuple[object, ...]]:
    """Values without their ids, with their places."""
    return frozenset((evolve(v.value, id=0), v.offset, v.size, v.shape) for v in allocation.values)


def test_allocations_have_the_same_sizes_and_kinds(ours: BufferAssignment, folder: Path) -> None:
    report = assignment_report(ours)

    assert list(map(_kind, report.allocations)) == list(map(_kind, _theirs(folder).allocations))


def test_values_are_in_the_same_allocations_at_the_same_offsets(ours: BufferAssignment, folder: Path) -> None:
    report = assignment_report(ours)

    assert set(map(_places, report.allocations)) == set(map(_places, _theirs(folder).allocations))


def test_the_usage_report_is_the_same_to_the_byte(ours: BufferAssignment, folder: Path) -> None:
    if "0.10.2" not in folder.name:
        pytest.skip("0.6 prints another table")

    assert print_memory_usage_report(assignment_report(ours)) == _read(folder / "memory-usage-report.txt.gz")


def test_live_ranges_and_their_peak_are_the_same(ours: BufferAssignment, folder: Path) -> None:
    file = folder / "live-range.txt.gz"
    theirs = parse_live_range_report(_read(file)) if file.exists() else _theirs(folder).live_range
    if theirs is None:
        pytest.skip("no live ranges in this folder")

    assert live_range_report(ours.ranges) == evolve(theirs, stacks=None)
