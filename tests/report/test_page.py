"""The HTML report."""

import json
import re
from pathlib import Path

import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.errors import InputError
from layoutsim.experiments.page import report_page
from layoutsim.report.timeline import timeline

MODULE = Path(__file__).parents[2] / "fixtures" / "xla" / "lora_axis1flax" / "gpu-0.10.2" / "before_layout.hlo.gz"


@pytest.fixture(scope="module")
def result() -> layoutsim.Simulation:
    return layoutsim.simulate(layoutsim.load(MODULE))


def _data(page: str) -> dict[str, list[list[object]]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_the_page_needs_nothing_from_elsewhere(result: layoutsim.Simulation) -> None:
    page = report_page(result, remedies=False)

    assert not re.search(r"(src|href)=|https?://|@import|url\(", page)


def test_no_placeholder_is_left(result: layoutsim.Simulation) -> None:
    assert not re.search(r"__[A-Z]+__", report_page(result, remedies=False))


def test_the_curve_is_the_timeline(result: layoutsim.Simulation) -> None:
    data = _data(report_page(result, remedies=False))
    line = timeline(result.assignment)  # type: ignore[arg-type]

    assert data["live"] == list(line.live_bytes)
    # At the peak all three copies of stacks are alive: 196,608 + 196,608 + 98,304 bytes.
    assert data["marked"][line.peak_time] == 491_520


def test_every_transposing_copy_is_explained(result: layoutsim.Simulation) -> None:
    page = report_page(result, remedies=False)

    assert page.count("<details>") == 3
    assert page.count("{2,0,1} is wanted:") == 3


def test_names_are_escaped() -> None:
    module = layoutsim.parse('HloModule m\nENTRY e {\n ROOT p = f32[2,3] parameter(0), metadata={op_name="</script><b>"}\n}\n')
    page = report_page(layoutsim.simulate(module), remedies=False)

    assert "</script><b>" not in page


def test_without_memory_there_is_no_page() -> None:
    with pytest.raises(InputError, match="the report needs memory"):
        report_page(layoutsim.simulate(layoutsim.load(MODULE), measure_memory=False))


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    assert main(["report", str(MODULE), "-o", str(target), "--no-remedies"]) == 0

    assert target.read_text().startswith("<!doctype html>")
    assert "3 transposing copies" in capsys.readouterr().out
    assert main(["report", str(MODULE), "-o", str(tmp_path / "no" / "report.html"), "--no-remedies"]) == 2
