"""Advice on the original report's training step, in all its variants: what doubles in 0.10.2 has layouts that remove it."""

import ast
import os
import re
from pathlib import Path

import pytest

import layoutsim
from layoutsim.experiments.advice import Advice, advise
from layoutsim.ir import ArrayShape

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
ORACLE = SHARED / "oracle"

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason=f"no oracle in {SHARED} (set LAYOUTSIM_SHARED)")

# Elements per device of wq, up and down in some order, in bf16: 24 layers in the small step, 80 in the large one.
SMALL = 24 * (32 * 256 + 32 * 1024 + 128 * 256) * 2
LARGE = 80 * (1024 * 8192 + 3696 * 8192 + 1024 * 29568) * 2
DOUBLING = {
    "seed_axis1flax": SMALL,
    "seed_axis1minor": SMALL,
    "seed_minor": SMALL,
    "seed_mixed": 24 * 32 * 1024 * 2,
    "seed_70b_axis1flax": LARGE,
    "seed_70b_minor": LARGE,
}


def _module(case: str, stage: str = "before_layout") -> layoutsim.Module:
    return layoutsim.load(ORACLE / case / "gpu-0.10.2" / f"{stage}.hlo.gz")


def _best(case: str) -> Advice | None:
    return next((a for a in advise(_module(case)).advice if a.title.startswith("pass ")), None)


def _orders(code: str) -> dict[str, tuple[int, ...]]:
    (table,) = re.findall(r"^ORDERS = (\{.*?^\})", code, re.MULTILINE | re.DOTALL)
    return ast.literal_eval(table)


@pytest.mark.parametrize(("case", "saved"), DOUBLING.items())
def test_layouts_are_found_that_remove_every_copy_of_a_stack(case: str, saved: int) -> None:
    best = _best(case)

    assert best is not None
    assert best.saved_temp_bytes == saved
    # what stays are copies of one layer's slices
    assert best.remaining_copy_bytes < saved // 24


@pytest.mark.parametrize("case", ["seed_axis0", "seed_axis1", "seed_70b_axis0"])
def test_what_does_not_double_gets_no_layouts(case: str) -> None:
    assert _best(case) is None


@pytest.mark.parametrize("case", ["seed_axis1flax", "seed_minor", "seed_70b_axis1flax", "seed_70b_minor"])
def test_the_layouts_are_those_that_the_real_compiler_chooses_when_it_may(case: str) -> None:
    best, automatic = _best(case), _module(f"{case}_auto", "after_layout")
    shapes = {p.metadata.op_name: p.shape for p in automatic.entry.parameters if p.metadata.op_name.startswith("frozen")}

    assert best is not None
    assert _orders(best.code) == {
        name: shape.layout.major_to_minor
        for name, shape in shapes.items()
        if isinstance(shape, ArrayShape) and shape.layout is not None
    }
