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
from layoutsim.memory.judge import judge_assignment
from layoutsim.memory.profile import CPU, GPU, GPU_0_6_1, GPU_0_6_2
from layoutsim.memory.reference import numbering_of
from layoutsim.memory.report_format import AssignmentReport, parse_assignment_report
from layoutsim.memory.report_format_live_range import parse_live_range_report, print_live_range
from layoutsim.memory.report_format_stacks import with_stacks
from layoutsim.memory.report_format_usage import print_memory_usage_report
from layoutsim.memory.reported import assignment_report, live_range_report
from layoutsim.text import parse_module

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FOLDERS = sorted(path.parent for path in SHARED.glob("oracle/*/*/buffer-assignment.txt.gz"))

if not FOLDERS:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)

PROFILES = {"gpu-0.6.1": GPU_0_6_1, "gpu-0.6.2": GPU_0_6_2, "gpu-0.10.2": GPU, "gpu-0.10.2-bare": GPU, "cpu-0.10.2": CPU}


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
    return assign_buffers(module, PROFILES[folder.name], numbering=numbering_of(_theirs(folder), module))


def test_allocations_values_and_offsets_are_the_same(ours: BufferAssignment, folder: Path) -> None:
    """Also every number of a value, and with it the whole text of the report."""
    assert assignment_report(ours).allocations == _theirs(folder).allocations


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


def test_the_judge_finds_no_two_live_values_in_one_place(ours: BufferAssignment, folder: Path) -> None:
    assert judge_assignment(_theirs(folder), ours.aliases, ours.ranges) == []
    assert judge_assignment(assignment_report(ours), ours.aliases, ours.ranges) == []


def test_the_live_range_report_is_the_same_to_the_byte(ours: BufferAssignment, folder: Path) -> None:
    file = folder / "live-range.txt.gz"
    if not file.exists():
        pytest.skip("no live ranges in this folder")

    report = with_stacks(live_range_report(ours.ranges), ours.ranges, ours.aliases.module)
    assert print_live_range(report) == _read(file)
