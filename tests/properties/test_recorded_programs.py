"""The claims on programs that were recorded from the real compiler's input, large ones aside."""

from pathlib import Path

import pytest

from layoutsim.load import load
from layoutsim.testing import check_pass
from layoutsim.testing.check import ACROSS_PROCESSES, ALL_CLAIMS

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"
KINDS = [("gpu-0.10.2-bare", "xla-gpu-0.10.2"), ("cpu-0.10.2", "xla-cpu-0.10.2")]
PROGRAMS = [
    pytest.param(FIXTURES / name / kind, preset, id=f"{name}-{kind}")
    for kind, preset in KINDS
    for name in sorted(path.parent.name for path in FIXTURES.glob(f"*/{kind}"))
    if not name.startswith("lora")
]
CLAIMS = [claim for claim in ALL_CLAIMS if claim != ACROSS_PROCESSES]


@pytest.mark.parametrize(("folder", "preset"), PROGRAMS)
def test_program_keeps_every_claim(folder: Path, preset: str) -> None:
    (path,) = folder.glob("before_layout.hlo*")

    assert check_pass(preset, modules=[load(path)], claims=CLAIMS).skipped == {}
