"""The answers to the small cases made from public reports (``cases/EXPECTED.json``)."""

import json
import os
from pathlib import Path

import pytest

import layoutsim
from layoutsim.experiments.memory import MemoryView, view_memory
from layoutsim.ir import Opcode, total_bytes
from layoutsim.memory.waste import Waste

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases"
GPU, CPU = "xla-gpu-0.10.2", "xla-cpu-0.10.2"
MIB = 1 << 20

pytestmark = pytest.mark.skipif(not CASES.exists(), reason=f"no cases in {SHARED} (set LAYOUTSIM_SHARED)")


def _run(case: str, preset: str = GPU) -> layoutsim.Simulation:
    return layoutsim.simulate(layoutsim.load(CASES / f"{case}.hlo"), preset)


def _memory(case: str) -> MemoryView:
    return view_memory(layoutsim.load(CASES / f"{case}.hlo"), GPU)


def _copies_of(result: layoutsim.Simulation, size: int) -> list[str]:
    instructions = (i for c in result.module.computations for i in c.instructions)
    return [i.name for i in instructions if i.opcode is Opcode.COPY and total_bytes(i.shape) == size]


def test_01_a_gathered_slice_does_not_make_the_stack_a_copy() -> None:
    assert _run("01_ag_degenerate_slice_in_scan").transposing_copies == ()


def test_01_the_old_rule_copies_the_whole_stack() -> None:
    # bf16[8,512,64]: 8*512*64*2 = 524,288 bytes more at the peak
    old, new = (_run("01_ag_degenerate_slice_in_scan", p) for p in ("xla-gpu-0.6.1", GPU))

    assert [c.size_bytes for c in old.transposing_copies] == [524_288]
    assert old.memory.peak_bytes - new.memory.peak_bytes == 524_288


def test_02_a_gather_along_the_minor_dimension_takes_two_copies() -> None:
    # f32[1024,2048] and f32[1024,256]
    assert [c.size_bytes for c in _run("02_ag_minor_dim").transposing_copies] == [8_388_608, 1_048_576]


def test_03_transposed_weights_in_a_scan_are_not_copied() -> None:
    # One layer bf16[1024,1024] is 2,097,152 bytes, the stack of 16 is 33,554,432.
    result = _run("03_scan_dot_transposed_weights")

    assert result.transposing_copies == ()
    assert result.memory.temp_bytes < 3 * 2_097_152


@pytest.mark.parametrize("preset", [GPU, CPU])
def test_04_two_copies_under_a_fixed_entry_layout(preset: str) -> None:
    assert len(_run("04_transpose_both_ways", preset).transposing_copies) == 2


def test_07_a_shifted_update_of_a_carry_is_in_place() -> None:
    # f32[100000]: 400,000 bytes; only the segment of 256 bytes needs a place of its own.
    result = _run("07_shifted_self_dus_in_scan")

    assert _copies_of(result, 400_000) == []
    assert result.memory.temp_bytes < 2048


def test_08_an_update_behind_bitcasts_is_in_place() -> None:
    view = _memory("08_dus_fusion_behind_bitcast")
    allocation, _, _ = view.assignment.slice_at(view.module.find("main", "f"))

    assert view.summary.temp_bytes == 0
    assert allocation.parameter is not None
    assert allocation.parameter.number == 1


def test_10b_an_update_of_a_select_in_a_loop_is_in_place() -> None:
    # f32[1,65536]: 262,144 bytes
    result = _run("10b_dus_of_select_in_while")

    assert _copies_of(result, 262_144) == []
    assert result.memory.temp_bytes < 2048


def test_11_a_stack_that_is_stacked_again_is_held_twice() -> None:
    # f32[8,512,512]: 8*512*512*4 = 8,388,608 bytes
    result = _run("11_scan_restacks_readonly_params")
    view = view_memory(result.module, GPU)
    restacked = [row for row in view.waste.rows if row.waste is Waste.RESTACKED]

    assert result.memory.temp_bytes >= 8_388_608
    assert [(row.size, "loop input w" in row.reason) for row in restacked] == [(8_388_608, True)]


def test_12_padding_of_tiles() -> None:
    wanted = json.loads((CASES / "EXPECTED.json").read_text())["12_tpu_tile_padding"]["right_padded_MiB"]
    rows = {row.name: row.padded.padding for row in _memory("12_tpu_tile_padding").padding}

    assert {n: [rows[n].data_bytes / MIB, rows[n].padded_bytes / MIB] for n in wanted} == wanted


def test_14_outputs_of_one_fusion_are_alive_together() -> None:
    assert _memory("14_multi_output_fusion_liveness").summary.temp_bytes >= 16 * MIB
