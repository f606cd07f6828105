"""What the README shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest

from layoutsim.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("block", _blocks("python"))
def test_python_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("block", _blocks("console"))
def test_commands_print_what_is_shown(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *shown = block.rstrip("\n").split("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "layoutsim"
    assert main(arguments) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.split("\n")]

    expected = shown[: shown.index("...")] if "..." in shown else shown
    assert printed[: len(expected)] == expected


def test_the_first_command_names_a_file_that_is_there() -> None:
    (path,) = re.findall(r"layoutsim run (\S+) --preset xla-gpu-0.6.1$", _blocks("sh")[0].strip())

    assert (ROOT / path).exists()


def test_links_lead_somewhere() -> None:
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", README) if not t.startswith("http")]

    assert [t for t in targets if not (ROOT / t).exists()] == []
