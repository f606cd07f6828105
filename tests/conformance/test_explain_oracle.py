"""Every copy in the oracle folder is explained down to a rule that demanded its layout."""

import os
import re
from pathlib import Path

import pytest

import layoutsim
from layoutsim.experiments.conformance import preset_of
from layoutsim.experiments.recorded import find_recorded
from layoutsim.passes.layout_assignment import CopyKind

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", ROOT.parent / "shared"))
LARGEST_BYTES = 300_000


def _folders() -> list[Path]:
    found = [*(ROOT / "fixtures" / "xla").glob("*/*"), *(SHARED / "oracle").glob("*/*")]
    return [f for f in sorted(found) if list(f.glob("before_layout.*"))]


@pytest.mark.skipif(not SHARED.exists(), reason=f"only fixtures/xla is checked: {SHARED} is not there")
def test_the_oracle_folder_is_present() -> None:
    assert len(_folders()) > 100


@pytest.mark.parametrize("folder", _folders(), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_every_copy_has_a_chain_that_starts_with_a_demand(folder: Path) -> None:
    (path,) = folder.glob("before_layout.*")
    if path.stat().st_size > LARGEST_BYTES and not os.environ.get("LAYOUTSIM_ALL"):
        pytest.skip("large module: set LAYOUTSIM_ALL=1 to explain its copies too")
    result = layoutsim.simulate(layoutsim.load(path), preset_of(find_recorded(folder)), measure_memory=False)

    for inserted in result.layout_result.copies:
        assert inserted.demanded.origin.rule.is_demand, inserted
        assert inserted.source is not None or inserted.kind is CopyKind.PROTECTIVE, inserted
        if inserted.source is not None:
            assert inserted.source.origin.rule.is_demand, inserted
    for copy in result.copies:
        explanation = result.explain(copy, remedies=False)
        assert _unpacked(explanation.wanted[-1].layout) == _unpacked(copy.to_layout), explanation.to_text()
        if explanation.met:
            assert _unpacked(explanation.met[-1].layout) == _unpacked(copy.from_layout), explanation.to_text()


def _unpacked(layout: str) -> str:
    """Without the width of elements, which is stated behind layout assignment."""
    return re.sub(r":?E\(\d\)", "", layout)
