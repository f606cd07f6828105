"""What the recordings in ``fixtures/xla`` must show, whatever layoutsim makes of them."""

import gzip
import math
import re
from pathlib import Path

import pytest

from layoutsim.ir import ArrayShape, Opcode, byte_size
from layoutsim.text import parse_module

XLA = Path(__file__).parents[1] / "fixtures" / "xla"
TEXTS = sorted(p for p in XLA.rglob("*") if p.suffix in (".hlo", ".txt", ".gz"))
STAGES = {"before_layout.hlo", "after_layout.hlo", "final.hlo", "buffer-assignment.txt", "memory-usage-report.txt"}

# Per device, 24 layers in bf16: attention 16 x 128, up 16 x 256, down 32 x 128.
ATTENTION, UP, DOWN = (24 * rows * columns * 2 for rows, columns in ((16, 128), (16, 256), (32, 128)))
# The adapters in f32: a 16 x 16, b 2 x 128.
ADAPTERS = 24 * 16 * 16 * 4 + 24 * 2 * 128 * 4
STACKS = ATTENTION + UP + DOWN

# Transposing copies in the entry, their bytes: what the real compilers did.
COPIES = {
    ("lora_axis0", "gpu-0.6.1"): (5, STACKS + ADAPTERS),
    ("lora_axis0", "gpu-0.6.2"): (0, 0),
    ("lora_axis0", "gpu-0.10.2"): (0, 0),
    ("lora_axis1", "gpu-0.6.1"): (2, ADAPTERS),
    ("lora_axis1", "gpu-0.6.2"): (3, STACKS),
    ("lora_axis1", "gpu-0.10.2"): (0, 0),
    ("lora_axis1flax", "gpu-0.6.1"): (2, ADAPTERS),
    ("lora_axis1flax", "gpu-0.6.2"): (3, STACKS),
    ("lora_axis1flax", "gpu-0.10.2"): (3, STACKS),
    ("lora_minor", "gpu-0.6.1"): (5, STACKS + ADAPTERS),
    ("lora_minor", "gpu-0.6.2"): (3, STACKS),
    ("lora_minor", "gpu-0.10.2"): (3, STACKS),
    ("lora_mixed", "gpu-0.6.1"): (5, STACKS + ADAPTERS),
    ("lora_mixed", "gpu-0.6.2"): (1, DOWN),
    ("lora_mixed", "gpu-0.10.2"): (1, DOWN),
    ("lora_axis0_auto", "gpu-0.10.2"): (0, 0),
    ("lora_axis1flax_auto", "gpu-0.10.2"): (0, 0),
    ("lora_minor_auto", "gpu-0.10.2"): (0, 0),
}


def read(path: Path) -> str:
    packed = path.with_name(path.name + ".gz")
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else path.read_text()


def real_order(shape: ArrayShape) -> list[int]:
    """The order of the dimensions that are not 1: what counts in memory."""
    return [d for d in shape.minor_to_major if shape.dimensions[d] != 1]


@pytest.mark.parametrize(("case", "kind"), COPIES)
def test_transposing_copies_of_the_lora_step(case: str, kind: str) -> None:
    entry = parse_module(read(XLA / case / kind / "after_layout.hlo")).entry
    copies = [(i.operand(0).shape, i.shape) for i in entry.instructions if i.opcode is Opcode.COPY]
    arrays = [(a, b) for a, b in copies if isinstance(a, ArrayShape) and isinstance(b, ArrayShape)]
    transposing = [after for before, after in arrays if real_order(before) != real_order(after)]

    assert (len(transposing), sum(map(byte_size, transposing))) == COPIES[case, kind]


def test_stacks_are_an_eighth_of_the_weights() -> None:
    assert 24 * math.prod((128, 128)) * (1 + 2 + 2) * 2 // 8 == STACKS


@pytest.mark.parametrize("folder", sorted(XLA.glob("*/*")), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_every_stage_is_there(folder: Path) -> None:
    assert {p.name.removesuffix(".gz") for p in folder.iterdir()} >= STAGES


def test_no_path_of_the_recording_machine_is_left() -> None:
    found = [str(p.relative_to(XLA)) for p in TEXTS if re.search(r'"/|/home/|/work/|/opt/|/root/|/tmp/', _any(p))]

    assert found == []


def _any(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
