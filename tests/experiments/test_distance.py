"""How far XLA's layouts are from the best ones, in reports."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from layoutsim.cli import main
from layoutsim.experiments.joint import Distance, Effort, distance_for_report, distance_to_best
from layoutsim.load import load
from layoutsim.text import parse_module

pytest.importorskip("scipy")

SCAN = str(Path(__file__).parents[2] / "fixtures/xla/scan_transposed/gpu-0.10.2/before_layout.hlo")


def test_the_copy_of_a_scans_outputs_could_go() -> None:
    # bf16[5,4,16] copied once: 5*4*16*2 = 640 bytes; laid out otherwise the loop needs none.
    found = distance_to_best(load(SCAN))

    assert (found.xla_bytes, found.best_bytes, found.bound_bytes, found.is_optimal) == (640, 0, 0, True)
    assert str(found) == "layouts: 640 B moved, 640 B more than the best layouts found, which are proven to be the best"


def test_a_copy_that_the_caller_demands_is_as_good_as_can_be() -> None:
    # f32[8,16] in one layout, out in another: 8*16*4 = 512 bytes have to move.
    text = "HloModule m, entry_computation_layout={(f32[8,16]{1,0})->f32[8,16]{0,1}}\nENTRY e {\n  p = f32[8,16] parameter(0)\n"
    found = distance_to_best(parse_module(text + "  ROOT n = f32[8,16] negate(p)\n}\n"))

    assert str(found) == "layouts: as good as can be: 512 B moved, and no layouts move fewer"


def test_without_a_proof_the_bound_is_said_or_that_there_is_none() -> None:
    assert str(Distance(10, 8, 6, False, True)).endswith("2 B more than the best layouts found; none move less than 6 B")
    assert str(Distance(10, 8, None, False, True)).endswith("; nothing is proven")
    assert str(Distance(10, 8, 8, True, False)).endswith("which are proven to be the best among those offered")


@pytest.mark.parametrize("command", ["run", "explain", "advise"])
def test_reports_say_it_unless_told_not_to(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, SCAN]) == 0
    assert capsys.readouterr().out.endswith("which are proven to be the best\n")
    assert main([command, SCAN, "--best", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["best_bytes"] == 0
    assert main([command, SCAN, "--no-best", "--json"]) == 0
    assert "best" not in json.loads(capsys.readouterr().out)


def test_compare_says_it_for_each_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", SCAN, "--presets", "xla-gpu-0.6.1,xla-gpu-0.10.2", "--json"]) == 0

    assert list(json.loads(capsys.readouterr().out)["best"]) == ["xla-gpu-0.6.1", "xla-gpu-0.10.2"]


def test_the_page_says_it(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", SCAN, "-o", str(page)]) == 0

    said = "layouts: 640 B moved, 640 B more than the best layouts found, which are proven to be the best"
    assert f"<p>{said}.</p>" in page.read_text()


def test_a_sweep_says_it(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    shutil.copy(SCAN, folder)
    table = tmp_path / "table.csv"
    assert main(["sweep", str(folder), "--presets", "xla-gpu-0.10.2,xla-cpu-0.10.2", "-o", str(table), "--workers", "1"]) == 0

    with table.open(newline="") as stream:
        rows = [(row["over_best_bytes"], row["best_proven"]) for row in csv.DictReader(stream)]
    assert rows == [("640", "True"), ("", "")]  # on CPU, demands depend on the order of propagation


def test_what_stands_in_the_way_is_said_in_the_report() -> None:
    module = load(SCAN)
    large = distance_for_report(module, "xla-gpu-0.10.2", Effort(5.0, module.instruction_count - 1))

    assert str(large).startswith("layouts: distance to the best not known: modules above ")
    assert str(distance_for_report(module, "xla-cpu-0.10.2")).endswith(
        "the cpu backend's demands depend on the order of propagation"
    )
