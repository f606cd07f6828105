"""XLA's own reports in the shared oracle folder, read and printed again, byte for byte."""

import gzip
import os
from pathlib import Path

import pytest

from layoutsim.memory.report_format import parse_assignment_report, print_assignment_report
from layoutsim.memory.report_format_live_range import parse_live_range_report, print_live_range
from layoutsim.memory.report_format_usage import print_memory_usage_report

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FOLDERS = sorted(path.parent for path in SHARED.glob("oracle/*/*/buffer-assignment.txt.gz"))

if not FOLDERS:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)


def _read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def _name(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_a_buffer_assignment_is_printed_as_it_was_read(folder: Path):
    text = _read(folder / "buffer-assignment.txt.gz")

    assert print_assignment_report(parse_assignment_report(text)) == text


@pytest.mark.parametrize("folder", [f for f in FOLDERS if "0.10.2" in f.name], ids=_name)
def test_the_usage_report_follows_from_the_buffer_assignment(folder: Path):
    report = parse_assignment_report(_read(folder / "buffer-assignment.txt.gz"))

    assert print_memory_usage_report(report) == _read(folder / "memory-usage-report.txt.gz")


@pytest.mark.parametrize("folder", [f for f in FOLDERS if (f / "live-range.txt.gz").exists()], ids=_name)
def test_live_ranges_are_printed_as_they_were_read(folder: Path):
    text = _read(folder / "live-range.txt.gz")

    assert print_live_range(parse_live_range_report(text)) == text
