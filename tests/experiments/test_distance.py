"""How far XLA's layouts are from the best ones, in reports."""

import json
from pathlib import Path

import pytest

from layoutsim.cli import main
from layoutsim.experiments.joint import Distance, distance_to_best
from layoutsim.load import load
from layoutsim.text import parse_module

pytest.importorskip("scipy")

SCAN = str(Path(__file__).parents[2] / "fixtures/xla/scan_transposed/gpu-0.10.2/before_layout.hlo")


def test_the_copy_of_a_scans_outputs_could_go() -> None:
    # bf16[5,4,16] copied once: 5*4*16*2 = 640 bytes; laid out otherwise the loop needs none.
    found = distance_to_best(load(SCAN))

    assert (found.xla_bytes, found.best_bytes, found.bound_bytes, found.is_optimal) == (640, 0, 0, True)
    assert str(found) == "640 B moved, 640 B more than the best layouts found, which are proven to be the best"


def test_a_copy_that_the_caller_demands_is_as_good_as_can_be() -> None:
    # f32[8,16] in one layout, out in another: 8*16*4 = 512 bytes have to move.
    text = "HloModule m, entry_computation_layout={(f32[8,16]{1,0})->f32[8,16]{0,1}}\nENTRY e {\n  p = f32[8,16] parameter(0)\n"
    found = distance_to_best(parse_module(text + "  ROOT n = f32[8,16] negate(p)\n}\n"))

    assert str(found) == "as good as can be: 512 B moved, and no layouts move fewer"


def test_without_a_proof_the_bound_is_said_or_that_there_is_none() -> None:
    assert str(Distance(10, 8, 6, False, True)).endswith("2 B more than the best layouts found; none move less than 6 B")
    assert str(Distance(10, 8, None, False, True)).endswith("; nothing is proven")
    assert str(Distance(10, 8, 8, True, False)).endswith("which are proven to be the best among those offered")


@pytest.mark.parametrize("command", ["run", "explain"])
def test_reports_say_it_when_asked(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, SCAN, "--best"]) == 0
    assert capsys.readouterr().out.endswith("which are proven to be the best\n")
    assert main([command, SCAN, "--best", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["best_bytes"] == 0
    assert main([command, SCAN, "--json"]) == 0
    assert "best" not in json.loads(capsys.readouterr().out)


def test_compare_says_it_for_each_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", SCAN, "--presets", "xla-gpu-0.6.1,xla-gpu-0.10.2", "--best", "--json"]) == 0

    assert list(json.loads(capsys.readouterr().out)["best"]) == ["xla-gpu-0.6.1", "xla-gpu-0.10.2"]
