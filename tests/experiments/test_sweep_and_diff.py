"""Sweeps that go on where they stopped, and diffs of two dumps."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.errors import InputError, PassError
from layoutsim.experiments.diff import _op_name, _shortened, diff_modules
from layoutsim.experiments.sweep import COLUMNS, SweepRow, find_dumps, sweep

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    for case in ("axis0", "axis1flax"):
        target = tmp_path / "dumps" / case
        target.mkdir(parents=True)
        shutil.copy(FIXTURES / f"lora_{case}" / "gpu-0.10.2" / "before_layout.hlo.gz", target)
    (tmp_path / "dumps" / "before_layout.hlo").write_text("HloModule broken\nENTRY e {\n")
    return tmp_path / "dumps"


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_bad_file_gives_a_row_with_its_error_and_the_others_go_on(dumps: Path, tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    written = sweep(find_dumps(dumps), ["xla-gpu-0.10.2"], output, workers=1)
    rows = {Path(row["file"]).parent.name: row for row in _table(output)}

    assert written == 3
    assert rows["axis0"]["transposing_bytes"] == "0"
    assert rows["axis1flax"]["transposing_copies"] == "3"
    assert "before_layout.hlo:" in rows["dumps"]["error"]


def test_a_sweep_goes_on_where_it_stopped(dumps: Path, tmp_path: Path) -> None:
    output, files = tmp_path / "table.csv", find_dumps(dumps)
    sweep(files[:1], ["xla-gpu-0.10.2"], output, workers=1)
    seen: list[SweepRow] = []
    written = sweep(files, ["xla-gpu-0.10.2"], output, workers=1, on_row=seen.append)

    assert written == len(seen) == 2
    assert len(_table(output)) == 3
    assert sweep(files, ["xla-gpu-0.10.2"], output) == 0


def test_processes_write_what_one_process_writes(dumps: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        sweep(find_dumps(dumps), ["xla-gpu-0.10.2", "xla-gpu-proposed"], tmp_path / f"{workers}.csv", workers=workers)
    tables = [
        sorted((r["file"], r["preset"], r["temp_bytes"], r["error"]) for r in _table(tmp_path / f"{n}.csv")) for n in (1, 2)
    ]

    assert tables[0] == tables[1]


def test_another_table_is_not_continued(dumps: Path, tmp_path: Path) -> None:
    output = tmp_path / "table.csv"
    output.write_text("a,b\n1,2\n")

    with pytest.raises(InputError, match="is not a table of `layoutsim sweep`"):
        sweep(find_dumps(dumps), ["xla-gpu-0.10.2"], output)


def test_an_unknown_preset_ends_it_before_it_begins(dumps: Path, tmp_path: Path) -> None:
    with pytest.raises(PassError, match="unknown preset"):
        sweep(find_dumps(dumps), ["xla-gpu-0.0"], tmp_path / "table.csv")


def test_a_folder_without_modules_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no modules"):
        find_dumps(tmp_path)


def test_the_command_counts_rows_and_errors(dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "table.csv"
    assert main(["sweep", str(dumps), "--presets", "xla-gpu-0.10.2", "-o", str(output), "--workers", "1"]) == 0

    assert capsys.readouterr().out.strip().endswith("0 were there already, 1 with errors")
    assert tuple(_table(output)[0]) == COLUMNS


def test_a_diff_of_two_releases_shows_the_doubling() -> None:
    old, new = (layoutsim.load(FIXTURES / "lora_axis1flax" / f"gpu-{r}" / "final.hlo.gz") for r in ("0.6.1", "0.6.2"))
    report = diff_modules(old, new)
    at_peak = {d.what: d.size_bytes for d in report.differences if d.kind == "peak"}

    # The stack bf16[24,16,256], transposed: 24*16*256*2 = 196,608 bytes that 0.6.1 did not have at the peak.
    assert at_peak["jit(lora_step)/while bf16[24,16,256]"] == 196_608
    assert report.after.temp_bytes > report.before.temp_bytes


def test_a_module_does_not_differ_from_itself() -> None:
    module = layoutsim.load(FIXTURES / "lora_axis0" / "gpu-0.10.2" / "before_layout.hlo.gz")

    assert diff_modules(module, module).differences == ()


def test_modules_from_before_layout_assignment_are_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(FIXTURES / f"lora_{case}" / "gpu-0.10.2" / "before_layout.hlo.gz") for case in ("axis0", "axis1flax")]
    assert main(["diff", *paths, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["differences"]

    assert {"copy", "peak"} == {d["kind"] for d in found}  # stacks of other shapes, so no common layouts
    assert main(["diff", *paths]) == 0


def test_operations_are_matched_however_a_release_writes_their_way() -> None:
    names = {
        "jit(f)/jit(main)/while/body/transpose(jvp(while))/body/checkpoint/dot_general",
        "jit(f)/while/body/closed_call/transpose(jvp())/while/body/closed_call/checkpoint/dot_general",
    }

    assert {_op_name(name) for name in names} == {"jit(f)/while/body/transpose(jvp())/while/body/dot_general"}


def test_a_long_way_is_shortened_in_the_table() -> None:
    assert _shortened("jit(f)/while/body/jvp()/dot f32[2]") == "…/body/jvp()/dot f32[2]"
    assert _shortened("jit(f)/dot f32[2]") == "jit(f)/dot f32[2]"


def _with_reversed(shape: str, dimension: int) -> layoutsim.Module:
    """A module that has ``b``, of 100 floats, at the peak."""
    return layoutsim.parse(
        "HloModule m, is_scheduled=true\nENTRY e {\n"
        f"  p = {shape} parameter(0)\n  a = {shape} exponential(p)\n  b = {shape} reverse(a), dimensions={{{dimension}}}\n"
        f"  ROOT r = {shape.replace('100', '200')} concatenate(a, b), dimensions={{{dimension}}}\n}}\n"
    )


def test_dimensions_of_size_1_make_no_difference_at_the_peak() -> None:
    assert diff_modules(_with_reversed("f32[100]", 0), _with_reversed("f32[1,100]", 1)).differences == ()


def test_what_only_one_side_has_at_the_peak_is_a_difference() -> None:
    found = diff_modules(_with_reversed("f32[100]", 0), _with_reversed("f32[2,100]", 1)).differences

    # 2 * 100 * 4 = 800 bytes where there were 400.
    assert ("b f32[2,100]", 800) in {(d.what, d.size_bytes) for d in found}
