"""The HTML report in a real browser: no errors, and usable with a keyboard."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import layoutsim
from layoutsim.experiments.page import report_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MODULE = Path(__file__).parents[2] / "fixtures" / "xla" / "lora_axis1flax" / "gpu-0.10.2" / "before_layout.hlo.gz"

WATCH = "<script>window.problems = []; addEventListener('error', (event) => problems.push(event.message));</script>"
ACT = """
<script type="module">
const at = (id) => document.getElementById(id);
const painted = () => {
  const { width, height } = at("picture");
  return width * height > 0 && at("picture").getContext("2d").getImageData(0, 0, width, height).data.some((part) => part !== 0);
};
for (let tries = 0; tries < 40 && (tries < 5 || !painted()); tries++) { // the page draws once it has a size
  await new Promise((done) => setTimeout(done, 100));
}
const press = (key, target = "timeline") => at(target).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const now = () => Number(at("timeline").getAttribute("aria-valuenow"));
const chosen = () => document.querySelector("[aria-selected=true]")?.children[1].textContent ?? null;
const cells = () => document.querySelectorAll("#copy-table tbody tr:not(.space) td:first-child");
const names = () => [...cells()].map((cell) => cell.textContent);
const sizes = () => [...document.querySelectorAll("#copy-table th button")].find((button) => button.textContent === "bytes");
const result = { peak: now(), text: at("timeline").getAttribute("aria-valuetext") };
press("ArrowLeft"); result.left = now();
press("End"); result.end = now();
press("Home"); result.home = now();
press("p"); result.again = now();
press("ArrowDown"); press("ArrowDown"); result.second = chosen();
press("ArrowUp", "alive"); result.first = chosen();
result.active = at("alive").getAttribute("aria-activedescendant") !== null;
result.names = names();
sizes().click(); sizes().click(); result.ascending = names();
result.sort = sizes().parentElement.getAttribute("aria-sort");
document.querySelector("#copy-table tbody a").click();
result.steps = document.querySelectorAll("#why-2 .steps li").length;
dispatchEvent(new Event("beforeprint"));
result.opened = document.querySelectorAll("details.why[open]").length;
dispatchEvent(new Event("afterprint"));
result.drawn = painted();
result.problems = window.problems;
const out = document.createElement("pre");
out.id = "result";
out.textContent = JSON.stringify(result);
document.body.append(out);
</script>
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    folder = tmp_path_factory.mktemp("browser")
    page = report_page(layoutsim.simulate(layoutsim.load(MODULE)), remedies=False)
    (folder / "report.html").write_text(
        page.replace("<head>", "<head>" + WATCH).replace("</body>", ACT + "</body>"), encoding="utf-8"
    )
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=8000",
    ]
    command = [CHROMIUM, *options, "--dump-dom", (folder / "report.html").as_uri()]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    result = re.search(r'<pre id="result">(.*?)</pre>', found.stdout, re.DOTALL)
    assert result is not None, found.stderr[-2000:]
    return json.loads(html.unescape(result.group(1)))


def test_the_page_runs_without_errors_and_draws(seen: dict[str, Any]) -> None:
    assert seen["problems"] == []
    assert seen["drawn"]


def test_arrow_keys_step_through_time(seen: dict[str, Any]) -> None:
    assert seen["text"].startswith(f"time {seen['peak']} of {seen['end']}, 1.31 MiB of temporaries alive (the peak)")
    assert (seen["left"], seen["home"], seen["again"]) == (seen["peak"] - 1, 0, seen["peak"])


def test_arrow_keys_step_through_the_values_alive_then(seen: dict[str, Any]) -> None:
    # The largest are copy.1 and copy.2, both 196,608 bytes.
    assert (seen["first"], seen["second"]) == ("copy.1", "copy.2")
    assert seen["active"]


def test_the_copies_are_sorted_by_a_click_on_a_column(seen: dict[str, Any]) -> None:
    assert seen["names"] == ["copy.1", "copy.2", "copy"]
    assert seen["ascending"] == ["copy", "copy.1", "copy.2"]
    assert seen["sort"] == "ascending"


def test_a_click_on_a_copy_opens_its_chains(seen: dict[str, Any]) -> None:
    # copy: 11 steps to the layout that is wanted, 1 to the one that is there.
    assert seen["steps"] == 12


def test_everything_is_open_when_printed(seen: dict[str, Any]) -> None:
    assert seen["opened"] == 3
