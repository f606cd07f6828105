"""What the real GPU compiler made of small modules, recorded in ``fixtures/passes/memory`` (see ``record.py`` there).

The named ones are the modules of ``copy_insertion_modules``; the others came from a generator of loops, conditionals,
in-place updates, reversals, donated parameters and aliasing custom calls, through which 4,000 modules agreed.
"""

from pathlib import Path

import pytest

from layoutsim.passes.registry import parse_pipeline
from layoutsim.passes.schedule.compare import compare_schedules
from layoutsim.text import parse_module

FIXTURES = Path(__file__).parents[2] / "fixtures" / "passes" / "memory"
NAMES = sorted(path.name.removesuffix(".final.hlo") for path in FIXTURES.glob("*.final.hlo"))
BARE = "layout-assignment{backend=gpu},copy-insertion,schedule,post-scheduling-copies"


@pytest.mark.parametrize("name", NAMES)
def test_copies_edges_order_and_names_are_xlas(name: str) -> None:
    module = parse_module((FIXTURES / f"{name}.hlo").read_text())

    parse_pipeline(BARE).run(module)

    outcome = compare_schedules(module, parse_module((FIXTURES / f"{name}.final.hlo").read_text()))
    assert outcome.equal, outcome
    assert outcome.names == 0
