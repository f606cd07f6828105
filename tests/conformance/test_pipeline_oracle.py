"""From ``before_layout`` to the schedule, on every folder where the real compiler ran exactly these passes.

Layout assignment, copy insertion, scheduling and the copy removal after it; compared with ``final``: the same copies, the
same control edges, the same root and sequence of every computation, and nearly always the same names.
"""

import gc
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from layoutsim.ir import Module
from layoutsim.passes.registry import parse_pipeline
from layoutsim.passes.schedule.compare import compare_schedules
from layoutsim.text import parse_module

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FOLDERS = sorted(SHARED.glob("oracle/*/gpu-0.10.2-bare"))
BARE = "layout-assignment{backend=gpu},copy-insertion,schedule,post-scheduling-copies"

if not FOLDERS:
    pytest.skip(f"no bare oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)


@pytest.fixture(autouse=True)
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_pipeline_ends_where_the_real_compiler_ends(folder: Path) -> None:
    module = _read(folder, "before_layout")

    parse_pipeline(BARE).run(module)

    outcome = compare_schedules(module, _read(folder, "final"))
    assert outcome.equal, f"{folder.parent.name}: {outcome}"


def _read(folder: Path, stage: str) -> Module:
    return parse_module(gzip.decompress((folder / f"{stage}.hlo.gz").read_bytes()).decode())
