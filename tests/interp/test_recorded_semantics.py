"""Each family of instructions against what XLA's CPU compiler computed (fixtures/interp, recorded by its record.py)."""

from pathlib import Path

import numpy as np
import pytest

from layoutsim.interp import Value, compare_values, evaluate
from layoutsim.interp.literals import seeded_value
from layoutsim.interp.values import value_from
from layoutsim.ir import leaves
from layoutsim.text import parse_module
from layoutsim.verify import verify

FOLDER = Path(__file__).parents[2] / "fixtures" / "interp"
CASES = sorted(path.stem for path in FOLDER.glob("*.hlo"))
EXPECTED = np.load(FOLDER / "expected.npz")


def flat(value: Value) -> list[Value]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("case", CASES)
def test_results_are_xlas(case: str) -> None:
    module = parse_module((FOLDER / f"{case}.hlo").read_text())

    actual = evaluate(module, *(seeded_value(p.shape, p.name) for p in module.entry.parameters))

    shapes = [shape for _, shape in leaves(module.entry.root.shape)]
    for number, (value, shape) in enumerate(zip(flat(actual), shapes, strict=True)):
        expected = value_from(EXPECTED[f"{case}/{number}"], shape)
        assert compare_values(value, expected, shape) == [], f"leaf {number}"


@pytest.mark.parametrize("case", CASES)
def test_the_modules_are_valid(case: str) -> None:
    assert verify(parse_module((FOLDER / f"{case}.hlo").read_text())) == []
