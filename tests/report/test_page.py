"""The HTML report."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.errors import InputError
from layoutsim.experiments.page import report_page
from layoutsim.report.timeline import timeline

MODULE = Path(__file__).parents[2] / "fixtures" / "xla" / "lora_axis1flax" / "gpu-0.10.2" / "before_layout.hlo.gz"
VOID = {"meta", "input", "br", "col"}


@pytest.fixture(scope="module")
def result() -> layoutsim.Simulation:
    return layoutsim.simulate(layoutsim.load(MODULE))


@pytest.fixture(scope="module")
def page(result: layoutsim.Simulation) -> str:
    return report_page(result, remedies=False)


def _data(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


class _Tags(HTMLParser):
    """Collects ids, and tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open += [tag] if tag not in VOID else []
        for name, value in attrs:
            self.ids += [value or ""] if name == "id" else []
            self.references += [value or ""] if name in ("aria-labelledby", "aria-describedby") else []
            self.references += [(value or "").removeprefix("#")] if name == "href" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_from_elsewhere(page: str) -> None:
    assert not re.search(r"\bsrc=|href=\"[^#]|https?://|@import|url\(", page)
    assert "default-src 'none'" in page


def test_the_page_is_well_formed_and_its_references_lead_somewhere(page: str) -> None:
    tags = _Tags()
    tags.feed(page)

    assert tags.open == []
    assert len(set(tags.ids)) == len(tags.ids)
    assert set(tags.references) <= set(tags.ids)


def test_no_placeholder_is_left(page: str) -> None:
    assert not re.search(r"__[A-Z]+__", page)


def test_the_spans_add_up_to_the_timeline(result: layoutsim.Simulation, page: str) -> None:
    data = _data(page)
    line = timeline(result.assignment)  # type: ignore[arg-type]
    spans, groups = data["spans"], [group["name"] for group in data["groups"]]
    alive = [i for i, start in enumerate(spans["start"]) if start <= data["peak"] < spans["end"][i]]

    assert data["times"] == len(line.live_bytes)
    assert sum(spans["size"][i] for i in alive) == max(line.live_bytes)
    # At the peak all three copies of stacks are alive: 196,608 + 196,608 + 98,304 bytes.
    assert sum(spans["size"][i] for i in alive if groups[spans["group"][i]] == "transposing copies") == 491_520
    assert sorted(data["order"]) == list(range(len(spans["name"])))


def test_the_forest_of_steps_holds_both_chains_of_every_copy(result: layoutsim.Simulation, page: str) -> None:
    data = _data(page)

    def places(leaf: int) -> list[str]:
        found: list[str] = []
        while leaf >= 0:
            found.append(data["texts"][data["steps"][leaf][1]])
            leaf = data["steps"][leaf][0]
        return found[::-1]

    assert [copy["cells"][0] for copy in data["copies"]] == ["copy.1", "copy.2", "copy"]
    for copy in data["copies"]:
        explanation = result.explain(copy["cells"][0], remedies=False)
        assert places(copy["wanted"]) == [step.place for step in explanation.wanted]
        assert places(copy["met"]) == [step.place for step in explanation.met]


def test_every_kind_of_copy_is_explained_with_a_picture(page: str) -> None:
    assert page.count('<details class="why"') == 3
    assert page.count('<svg class="chain"') == 3
    assert page.count("{2,0,1} is wanted</text>") == 3


def test_copies_of_one_kind_are_explained_together() -> None:
    # Two parameters of one shape, each gathered along dimension 1 and copied for it.
    module = layoutsim.parse(
        "HloModule m, entry_computation_layout={(f32[8,16]{1,0}, f32[8,16]{1,0})->(f32[8,64]{0,1}, f32[8,64]{0,1})}, "
        "num_partitions=4\nENTRY e {\n"
        + "".join(
            f"  p{n} = f32[8,16] parameter({n})\n"
            f"  g{n} = f32[8,64] all-gather(p{n}), dimensions={{1}}, channel_id={n + 1}, replica_groups=[1,4]<=[4], "
            "use_global_device_ids=true\n"
            for n in (0, 1)
        )
        + "  ROOT t = (f32[8,64], f32[8,64]) tuple(g0, g1)\n}\n"
    )
    page = report_page(layoutsim.simulate(module), remedies=False)

    # 2 * 8 * 16 * 4 = 1,024 bytes.
    assert page.count('<details class="why"') == 1
    assert "2 copies of f32[8,16] {1,0} to {0,1}, 1,024 B" in page


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

    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "3 transposing copies" in capsys.readouterr().out
    assert main(["report", str(MODULE), "-o", str(tmp_path / "no" / "report.html"), "--no-remedies"]) == 2
