"""Whole programs (fixtures/xla) before layout assignment and after all passes give what XLA's CPU compiler computed."""

from pathlib import Path

import numpy as np
import pytest

from layoutsim import load
from layoutsim.interp import Value, compare_values, evaluate
from layoutsim.interp.values import value_from
from layoutsim.ir import ArrayShape, leaves

FOLDER = Path(__file__).parents[2] / "fixtures" / "xla"
CASES = sorted(path.parent for path in FOLDER.glob("*/cpu-0.10.2/values.npz"))


def flat(value: Value) -> list[Value]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("stage", ["before_layout", "after_layout", "scheduled"])
@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.parent.name)
def test_a_program_computes_what_xla_computed(folder: Path, stage: str) -> None:
    module = load(folder, stage)
    recorded = np.load(folder / "values.npz")
    shapes = [p.shape for p in module.entry.parameters]
    arguments = [
        value_from(recorded[f"input_{i}"].reshape(s.dimensions), s) for i, s in enumerate(shapes) if isinstance(s, ArrayShape)
    ]

    actual = evaluate(module, *arguments)

    for number, (value, (_, shape)) in enumerate(zip(flat(actual), leaves(module.entry.root.shape), strict=True)):
        assert isinstance(shape, ArrayShape)
        expected = value_from(recorded[f"output_{number}"].reshape(shape.dimensions), shape)
        assert compare_values(value, expected, shape) == [], f"output {number}"
