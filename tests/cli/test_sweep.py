"""``layoutsim sweep`` under what can go wrong: kills, broken tables, dying workers; and over a Dask cluster."""

import csv
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.experiments import sweep as sweeping
from layoutsim.experiments.sweep import find_dumps, sweep

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"
CASES = ("scan_transposed", "reductions", "reshapes")
PRESETS = "xla-gpu-0.6.1,xla-gpu-0.10.2"

Table = list[tuple[str, ...]]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    for case in CASES:
        shutil.copytree(FIXTURES / case / "gpu-0.10.2", tmp_path / "dumps" / case)
    return tmp_path / "dumps"


def _table(path: Path) -> Table:
    """Rows in a stable order, without their times."""
    with path.open(newline="") as stream:
        return sorted(tuple(text for name, text in row.items() if name != "seconds") for row in csv.DictReader(stream))


def _complete(dumps: Path, tmp_path: Path) -> Table:
    assert main(["sweep", str(dumps), "--presets", PRESETS, "-o", str(tmp_path / "whole.csv"), "--workers", "1"]) == 0
    return _table(tmp_path / "whole.csv")


def _start(dumps: Path, output: Path) -> subprocess.Popen[bytes]:
    """A sweep in a process of its own that has written a row but not all."""
    arguments = ["sweep", str(dumps), "--presets", PRESETS, "-o", str(output), "--workers", "1"]
    process = subprocess.Popen([sys.executable, "-m", "layoutsim", *arguments], stderr=subprocess.PIPE)
    while not output.exists() or output.read_bytes().count(b"\n") < 2:
        assert process.poll() is None
        time.sleep(0.005)
    return process


def test_a_killed_sweep_goes_on_to_the_same_table(dumps: Path, tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    process = _start(dumps, output)
    process.kill()
    process.communicate()
    lines = output.read_text().splitlines(keepends=True)
    # Whenever the kill came: as if the last line had been written halfway.
    output.write_text("".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])

    assert main(["sweep", str(dumps), "--presets", PRESETS, "-o", str(output), "--workers", "1"]) == 0
    assert _table(output) == _complete(dumps, tmp_path)


def test_an_interrupt_says_how_to_go_on(dumps: Path, tmp_path: Path) -> None:
    process = _start(dumps, tmp_path / "table.csv")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the sweep was over before the interrupt came")

    assert process.returncode == 130
    assert err.decode().endswith("the same command goes on\n")
    assert err.count(b"\n") == 1


@pytest.mark.parametrize("kept", [0, 5])
def test_a_header_that_was_cut_off_is_written_again(dumps: Path, tmp_path: Path, kept: int) -> None:
    output = tmp_path / "table.csv"
    output.write_text(",".join(sweeping.COLUMNS)[:kept])
    sweep(find_dumps(dumps), PRESETS.split(","), output, workers=1)

    assert _table(output) == _complete(dumps, tmp_path)


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="the patch has to reach the workers")
def test_a_worker_that_dies_costs_one_row(dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deadly = dumps / "reductions"

    def load(path: str) -> layoutsim.Module:
        if Path(path).parent == deadly:
            os._exit(9)  # as the system does where memory is short
        return layoutsim.load(path)

    monkeypatch.setattr(sweeping, "load", load)
    sweep(find_dumps(dumps), ["xla-gpu-0.10.2"], tmp_path / "table.csv", workers=2)
    errors = {Path(row[0]).parent.name: row[-1] for row in _table(tmp_path / "table.csv")}

    assert errors == {
        "reductions": "the process died, perhaps for lack of memory",
        "reshapes": "",
        "scan_transposed": "",
    }


def test_in_a_dump_folder_only_the_module_before_layout_assignment_is_taken(tmp_path: Path) -> None:
    names = (
        "module_0001.jit_f.0003.p.after_x.before_layout-assignment.txt",
        "module_0001.jit_f.0004.p.after_layout-assignment.before_y.txt",
        "module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt",
        "module_0001.jit_f.sm_9.0_gpu_after_optimizations-buffer-assignment.txt",
    )
    for name in names:
        (tmp_path / name).write_text("HloModule m\n")

    assert find_dumps(tmp_path) == [tmp_path / names[0]]


def test_a_dask_cluster_writes_what_processes_write(dumps: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    (dumps / "before_layout.hlo").write_text("HloModule broken\nENTRY e {\n")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        written = sweep(find_dumps(dumps), PRESETS.split(","), tmp_path / "dask.csv", cluster=client)

    assert written == 8
    assert _table(tmp_path / "dask.csv") == _complete(dumps, tmp_path)


def test_a_task_that_a_dask_cluster_gives_up_is_a_row_with_an_error(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")

    class Strange(Exception):
        """Nothing that ``measure`` expects."""

    def load(path: str) -> layoutsim.Module:
        if "reductions" in path:
            raise Strange("worker lost")
        return layoutsim.load(path)

    monkeypatch.setattr(sweeping, "load", load)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        sweep(find_dumps(dumps), ["xla-gpu-0.10.2"], tmp_path / "dask.csv", cluster=client)
    errors = {Path(row[0]).parent.name: row[-1] for row in _table(tmp_path / "dask.csv")}

    assert errors == {"reductions": "internal error: Strange: worker lost", "reshapes": "", "scan_transposed": ""}


def test_without_dask_the_command_says_what_to_install(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    assert main(["sweep", str(dumps), "-o", str(tmp_path / "table.csv"), "--dask", "local"]) == 2
    assert "pip install 'layoutsim[dask]'" in capsys.readouterr().err
