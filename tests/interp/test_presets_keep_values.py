"""Every preset, on every program of fixtures/xla: the module it makes runs inside our own placement, and computes the same.

The programs' collectives run on as many simulated devices as they were compiled for.
"""

from pathlib import Path

import numpy as np
import pytest

from layoutsim import load, preset, preset_names
from layoutsim.interp import Elided, Interpreter, Options, Value, compare_values
from layoutsim.interp.heap_machine import run_in_memory
from layoutsim.interp.literals import seeded_value
from layoutsim.interp.places import Places
from layoutsim.ir import ArrayShape, Module
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import CPU, GPU, GPU_0_6_1, MemoryProfile

FOLDER = Path(__file__).parents[2] / "fixtures" / "xla"
OPTIONS = Options(elided_constants=Elided.SEEDED)

PROGRAMS = sorted(path.parent.name for path in FOLDER.glob("*/gpu-0.10.2") if not path.parent.name.startswith("lora"))
LORA = ("lora_axis0", "lora_axis1flax", "lora_minor")


def profile(name: str) -> MemoryProfile:
    if "cpu" in name:
        return CPU
    return GPU_0_6_1 if name.endswith("0.6.1") else GPU


def arguments(module: Module, devices: int) -> list[list[Value]]:
    """Seeded values; arrays differ from device to device, scalars (positions, counts) do not."""

    def seed(name: str, shape: object, device: int) -> str:
        return f"{name}/{device}" if isinstance(shape, ArrayShape) and shape.rank else name

    parameters = module.entry.parameters
    return [[seeded_value(p.shape, seed(p.name, p.shape, d), scale=1 / 8) for p in parameters] for d in range(devices)]


def is_finite(value: Value) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return all(is_finite(part) if isinstance(part, tuple) else bool(np.isfinite(np.asarray(part)).all()) for part in parts)


def check(program: str, names: tuple[str, ...]) -> None:
    folder = FOLDER / program / "gpu-0.10.2"
    before = load(folder, "before_layout")
    interpreter = Interpreter(before, OPTIONS)
    given = arguments(before, interpreter.devices.count)
    expected = interpreter.run(given)
    assert is_finite(expected), "inputs are too large to show anything"
    for name in names:
        module = load(folder, "before_layout")
        preset(name).run(module)
        run = run_in_memory(Places.of_assignment(assign_buffers(module, profile(name))), given, options=OPTIONS, watched=[0])
        assert [str(finding) for finding in run.findings] == [], name
        for device, (actual, wanted) in enumerate(zip(run.results, expected, strict=True)):
            assert compare_values(actual, wanted, module.entry.root.shape) == [], f"{name}, device {device}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_presets_keep_the_values_of_programs(program: str) -> None:
    check(program, preset_names())


@pytest.mark.slow
@pytest.mark.parametrize("program", LORA)
def test_presets_keep_the_values_of_the_training_step(program: str) -> None:
    check(program, preset_names())
