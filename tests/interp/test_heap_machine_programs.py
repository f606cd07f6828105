"""The programs of fixtures/xla run inside XLA's own placement and inside ours, before and after all of XLA's passes."""

import gzip
import os
from pathlib import Path

import pytest

from layoutsim import load
from layoutsim.interp.heap_machine import run_in_memory
from layoutsim.interp.literals import seeded_value
from layoutsim.interp.options import Elided, Options, UnknownCustomCall
from layoutsim.interp.places import Places
from layoutsim.ir import Module
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import CPU, GPU, GPU_0_6_1, GPU_0_6_2
from layoutsim.memory.report_format import AssignmentReport, parse_assignment_report

FOLDER = Path(__file__).parents[2] / "fixtures" / "xla"
PROFILES = {"cpu-0.10.2": CPU, "gpu-0.6.1": GPU_0_6_1, "gpu-0.6.2": GPU_0_6_2}

SMALL = sorted(path for path in FOLDER.glob("*/*-0.*") if not path.parent.name.startswith("lora"))
"""Every program in every release but the training steps: 270 instructions and less."""

TRAINING_STEPS = sorted(FOLDER.glob("lora*/*-0.*"))
"""They take 5 to 20 seconds, since eight devices compute."""

DIFFERENT = [FOLDER / "lora_axis1flax" / kind for kind in ("gpu-0.6.1", "gpu-0.10.2", "gpu-0.10.2-bare")]
LORA = TRAINING_STEPS if os.environ.get("LAYOUTSIM_PROFILE") == "nightly" else DIFFERENT
"""Three that differ most; all with ``LAYOUTSIM_PROFILE=nightly``."""

OPTIONS = Options(elided_constants=Elided.SEEDED, unknown_custom_calls=UnknownCustomCall.ZEROS)


def read_report(folder: Path) -> AssignmentReport:
    (path,) = folder.glob("buffer-assignment.txt*")
    data = path.read_bytes()
    return parse_assignment_report((gzip.decompress(data) if path.suffix == ".gz" else data).decode())


def findings(places: Places, module: Module) -> list[str]:
    arguments = [seeded_value(p.shape, p.name, scale=1 / 8) for p in module.entry.parameters]
    return [str(finding) for finding in run_in_memory(places, [arguments], options=OPTIONS, watched=[0]).findings]


@pytest.mark.parametrize("folder", SMALL + LORA, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_program_runs_inside_both_placements(folder: Path) -> None:
    module = load(folder, "scheduled")
    theirs = Places.of_report(read_report(folder), module)
    ours = Places.of_assignment(assign_buffers(module, PROFILES.get(folder.name, GPU)))

    assert findings(theirs, module) == []
    assert findings(ours, module) == []
