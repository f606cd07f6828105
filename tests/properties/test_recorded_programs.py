"""The claims on programs that were recorded from the real compiler's input, large ones aside."""

from pathlib import Path

import pytest

from layoutsim.load import load
from layoutsim.testing import check_pass
from layoutsim.testing.check import ACROSS_PROCESSES, ALL_CLAIMS

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"
PROGRAMS = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir() and not path.name.startswith("lora"))
CLAIMS = [claim for claim in ALL_CLAIMS if claim != ACROSS_PROCESSES]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("kind", "preset"), [("gpu-0.10.2-bare", "xla-gpu-0.10.2"), ("cpu-0.10.2", "xla-cpu-0.10.2")])
def test_program_keeps_every_claim(program: str, kind: str, preset: str) -> None:
    (path,) = (FIXTURES / program / kind).glob("before_layout.hlo*")

    assert check_pass(preset, modules=[load(path)], claims=CLAIMS).skipped == {}
