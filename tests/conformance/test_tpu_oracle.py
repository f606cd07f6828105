"""TPU dumps in the shared folders: padded bytes of arguments and outputs, and the padding cases."""

import json
import os
from pathlib import Path

import pytest

from layoutsim.load import load
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.tpu import TPU, argument_bytes, is_tpu_module, output_bytes, padding_table

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
FOLDERS = sorted(path.parent for path in SHARED.glob("oracle/*/tpu-*/memory_stats.json"))

if not FOLDERS:
    pytest.skip(f"no TPU folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_arguments_and_outputs_have_the_bytes_the_compiler_reports(folder: Path):
    module = load(folder / "final.hlo.gz")
    stats = json.loads((folder / "memory_stats.json").read_text())

    assert is_tpu_module(module)
    assert argument_bytes(module) == stats["argument_size_in_bytes"]
    assert output_bytes(module) == stats["output_size_in_bytes"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_module_gets_an_assignment(folder: Path):
    assignment = assign_buffers(load(folder / "final.hlo.gz"), TPU)

    assert all(row.padding.best_padded_bytes <= row.padding.padded_bytes for row in padding_table(assignment))


def test_the_padding_case_has_the_expected_sizes():
    module = load(SHARED / "cases" / "12_tpu_tile_padding.hlo")
    expected = json.loads((SHARED / "cases" / "EXPECTED.json").read_text())["12_tpu_tile_padding"]["right_padded_MiB"]
    found = {
        row.value.instruction.name: [row.padding.data_bytes / 2**20, row.padding.padded_bytes / 2**20]
        for row in padding_table(assign_buffers(module, TPU))
    }

    assert {name: found[name] for name in expected} == expected
