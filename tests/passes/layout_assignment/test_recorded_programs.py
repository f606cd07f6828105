"""Layout assignment on the recorded programs of ``fixtures/xla``, each with the rules of its release."""

from pathlib import Path

import pytest

from layoutsim.load import load
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.passes.presets import resolve_preset

XLA = Path(__file__).parents[3] / "fixtures" / "xla"
FOLDERS = sorted(XLA.glob("*/*"))
STORED_ORDER_MATTERS: dict[str, int] = {}
"""CPU modules in which some instructions were not stored where the text has them, and how many."""
ORDER_OF_USERS_MATTERS = {"eigenvectors": ("main.36/transpose.0",)}
"""Modules in which some instructions became users of their operands later than the text has it."""


def _stage(folder: Path, name: str) -> Path:
    plain = folder / f"{name}.hlo"
    return plain if plain.exists() else plain.with_name(plain.name + ".gz")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_recorded_layouts(folder: Path) -> None:
    pipeline = resolve_preset(f"xla-{folder.name.removesuffix('-bare')}")
    layout_pass = next(p for p in pipeline.passes if isinstance(p, LayoutAssignment))

    found = check_against(load(_stage(folder, "before_layout")), load(_stage(folder, "after_layout")), layout_pass)

    assert [str(mismatch) for mismatch in found.mismatches] == []
    assert found.copies_ours == found.copies_theirs
    assert len(found.stored_last) == STORED_ORDER_MATTERS.get(folder.parent.name, 0)
    assert found.registered_last == ORDER_OF_USERS_MATTERS.get(folder.parent.name, ())
