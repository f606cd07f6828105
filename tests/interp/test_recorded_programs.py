"""Whole recorded programs, at every stage on CPU and GPU, against what they computed on a CPU (``fixtures/xla``).

The GPU's modules are of the same programs: fusions, cuDNN calls, asynchronous copies and all.
"""

from pathlib import Path

import numpy as np
import pytest

from layoutsim.interp import Value, compare_values, evaluate
from layoutsim.interp.values import value_from
from layoutsim.ir import leaves
from layoutsim.load import load

XLA = Path(__file__).parents[2] / "fixtures" / "xla"
KINDS = ("cpu-0.10.2", "gpu-0.10.2", "gpu-0.10.2-bare")
RECORDED = [
    pytest.param(values, folder, id=f"{folder.parent.name}-{folder.name}")
    for values in sorted(XLA.glob("*/*/values.npz"))
    for folder in sorted(values.parents[1].iterdir())
    if folder.name in KINDS
]


def flat(value: Value) -> list[Value]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("stage", ["before_layout", "after_layout", "final"])
@pytest.mark.parametrize(("recorded", "folder"), RECORDED)
def test_results_are_the_compiled_programs(recorded: Path, folder: Path, stage: str) -> None:
    module = load(next(folder.glob(f"{stage}.hlo*")))
    with np.load(recorded) as arrays:
        values = {name: arrays[name] for name in arrays.files}
    parameters = module.entry.parameters

    actual = evaluate(module, *(value_from(values[f"input_{i}"], p.shape) for i, p in enumerate(parameters)))

    shapes = [shape for _, shape in leaves(module.entry.root.shape)]
    assert len(shapes) == sum(name.startswith("output_") for name in values)
    for i, (value, shape) in enumerate(zip(flat(actual), shapes, strict=True)):
        assert compare_values(value, value_from(values[f"output_{i}"], shape), shape) == [], f"output {i}"
