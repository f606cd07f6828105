"""The sharded training step on eight simulated devices against XLA's CPU compiler (fixtures/interp/training_step.npz)."""

from pathlib import Path

import numpy as np
import pytest

from layoutsim import load
from layoutsim.interp import Interpreter
from layoutsim.interp.literals import seeded_value

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDED = np.load(FIXTURES / "interp" / "training_step.npz")
CASES = sorted({name.split("/")[0] for name in RECORDED.files})
SCALE = 1 / 8


@pytest.mark.parametrize("case", CASES)
def test_the_updates_of_the_adapters_are_xlas(case: str) -> None:
    module = load(FIXTURES / "xla" / case / "gpu-0.10.2", "before_layout")
    interpreter = Interpreter(module)
    given = [
        [seeded_value(p.shape, f"{p.name}/{d}", SCALE) for p in module.entry.parameters]
        for d in range(interpreter.devices.count)
    ]

    results = interpreter.run(given)

    for name in (name for name in RECORDED.files if name.startswith(f"{case}/")):
        device, leaf = map(int, name.split("/")[1:])
        result = results[device]
        assert isinstance(result, tuple)
        before = np.asarray(given[device][leaf])  # the adapters are the first parameters, and the results
        actual, expected = np.asarray(result[leaf]) - before, RECORDED[name] - before
        # Gradients of a bf16 network: within 2 % of the largest.
        np.testing.assert_allclose(actual, expected, rtol=0, atol=0.02 * np.abs(expected).max())
        assert np.abs(expected).max() > 1e-5
