"""Layout assignment on random modules and on those where it once differed, against what the real compiler did.

``fixtures/passes/layout_assignment``, recorded by ``record.py`` there.
"""

from pathlib import Path

import pytest

from layoutsim.passes.layout_assignment import BackendName, LayoutAssignment
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.text import ParseOptions, parse_module

FIXTURES = Path(__file__).parents[3] / "fixtures" / "passes" / "layout_assignment"
RECORDED = sorted(FIXTURES.glob("*/*.before.hlo"))
AS_DUMPED = ParseOptions(keep_module_auto_layouts=True)


def test_recorded_modules_are_there() -> None:
    assert len(RECORDED) >= 80


@pytest.mark.parametrize("before", RECORDED, ids=lambda path: path.name.removesuffix(".before.hlo"))
def test_recorded_layouts(before: Path) -> None:
    after = before.with_name(before.name.replace(".before.", ".after."))
    layout_pass = LayoutAssignment(backend=BackendName(before.name.partition("-")[0]))

    found = check_against(
        parse_module(before.read_text(), options=AS_DUMPED), parse_module(after.read_text(), options=AS_DUMPED), layout_pass
    )

    assert [str(mismatch) for mismatch in found.mismatches] == []
    assert found.stored_last == found.registered_last == ()
