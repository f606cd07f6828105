"""The same input gives the same output in every process: no hash seed, address or time may show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from layoutsim.passes.presets import preset
from layoutsim.testing import Limits, random_module
from layoutsim.testing.other_process import difference_in_other_process
from tests.properties import faults

ROOT = Path(__file__).parents[2]

PROGRAM = """
import hashlib, json
from layoutsim.experiments import simulate
from layoutsim.memory.heaps import AnytimeHeap
from layoutsim.testing import Limits, random_module
from layoutsim.testing.problems import random_problem
from layoutsim.verify import verify

told = []
for seed in range(12):
    module = random_module(seed, Limits(devices=4 if seed % 2 else 1, executable=True))
    told.append(module.to_text())
    if not verify(module):
        simulation = simulate(module)
        told += [simulation.module.to_text(), json.dumps(simulation.to_json())]
        told += [str(simulation.explain(copy)) for copy in simulation.copies[:3]]
for seed in range(20):
    told.append(repr(AnytimeHeap(steps=200).pack(random_problem(seed))))
print(hashlib.sha256("\\n".join(told).encode()).hexdigest())
"""


def _digest(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_modules_simulations_and_placements_are_the_same_under_every_hash_seed() -> None:
    assert _digest("0") == _digest("12345")


@pytest.mark.parametrize("name", ["xla-gpu-0.10.2", "xla-cpu-0.10.2"])
def test_presets_give_the_same_text_in_another_process(name: str) -> None:
    texts = [random_module(seed, Limits(devices=4, executable=True)).to_text() for seed in range(8)]

    assert difference_in_other_process(preset(name).passes, texts) is None


def test_an_order_taken_from_a_set_is_caught() -> None:
    texts = [random_module(seed).to_text() for seed in range(3)]

    assert difference_in_other_process((faults.HashOrder(),), texts) is not None
