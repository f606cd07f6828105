"""Layout assignment against the real compiler: every pair of ``before_layout`` and ``after_layout`` in the oracle folders.

Every instruction's layout, every inserted copy as an expression in the slot that reads it, roots, and the entry layout; and
every copy must be explained down to a demand. Each folder is checked with the rules of its own release.
"""

import os
from pathlib import Path

import pytest

from layoutsim.ir import Module
from layoutsim.load import load
from layoutsim.passes.layout_assignment import LayoutAssignment, LayoutAssignmentResult
from layoutsim.passes.layout_assignment.conformance import check_against
from layoutsim.passes.presets import resolve_preset

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
PAIRS = SHARED.glob("oracle/*/*/before_layout.hlo.gz")
FOLDERS = sorted(f.parent for f in PAIRS if (f.parent / "after_layout.hlo.gz").exists())

if not FOLDERS:
    pytest.skip(f"no oracle folders in {SHARED} (set LAYOUTSIM_SHARED)", allow_module_level=True)

STORED_ORDER_MATTERS = {
    "gemma4_2b": 182,
    "jax_coll_scatter_a2a_while": 1,
    "jax_dus_loop": 2,
    "llama31_405b_bf16_16x8": 4,
    "llama31_70b_bf16_16x8": 4,
    "llama31_70b_fp8_16x8": 4,
    "mixtral_8x7b_1x8": 385,
    "mobilenet_v2": 17,
    "nv_maxtext_1n1g": 9,
}
"""CPU modules in which some instructions were not stored where the text has them, and how many; on GPU there are none."""


def _name(folder: Path) -> str:
    return "/".join(folder.relative_to(SHARED / "oracle").parts)


def _layout_pass(folder: Path) -> LayoutAssignment:
    pipeline = resolve_preset(f"xla-{folder.name.removesuffix('-bare')}")
    return next(p for p in pipeline.passes if isinstance(p, LayoutAssignment))


def _read(folder: Path, stage: str) -> Module:
    return load(folder / f"{stage}.hlo.gz")


@pytest.mark.parametrize("folder", FOLDERS, ids=_name)
def test_every_layout_and_copy_is_the_compilers(folder: Path) -> None:
    found = check_against(_read(folder, "before_layout"), _read(folder, "after_layout"), _layout_pass(folder))

    assert [str(m) for m in found.mismatches[:5]] == []
    assert found.copies_ours == found.copies_theirs
    is_cpu = folder.name.startswith("cpu")
    assert len(found.stored_last) == (STORED_ORDER_MATTERS.get(folder.parent.name, 0) if is_cpu else 0)
    assert found.registered_last == ()


SMALL_BYTES = 60_000
"""Packed size up to which every folder's copies are explained; of the larger ones one on GPU and one on CPU."""

EXPLAINED = [
    f
    for f in FOLDERS
    if f.name != "gpu-0.10.2-bare"
    and ((f / "before_layout.hlo.gz").stat().st_size < SMALL_BYTES or f.parent.name == "llama31_8b_bf16_1x8")
]


@pytest.mark.parametrize("folder", EXPLAINED, ids=_name)
def test_every_copy_is_explained_down_to_a_demand(folder: Path) -> None:
    module = _read(folder, "before_layout")
    result = _layout_pass(folder).run(module)

    assert isinstance(result, LayoutAssignmentResult)
    for copy in result.copies:
        assert copy.demanded.origin.rule.is_demand, copy.demanded.chain()
        assert copy.source is not None, copy
        assert copy.source.origin.rule.is_demand, copy.source.chain()


@pytest.mark.parametrize(
    ("case", "release", "count", "size_bytes"),
    [
        ("lora_axis0", "0.6.1", 2, 167_772_160),  # bf16[80,128,4096] and bf16[80,512,1024]: 2 * 80 * (524288 + 524288)
        ("seed_axis0", "0.6.1", 5, 3_932_160),
        ("seed_axis0", "0.6.2", 0, 0),
        ("seed_axis0", "0.10.2", 0, 0),
        ("seed_axis1", "0.6.1", 2, 393_216),
        ("seed_axis1", "0.6.2", 3, 3_538_944),
        ("seed_axis1", "0.10.2", 0, 0),
        ("seed_axis1flax", "0.6.1", 2, 393_216),
        ("seed_axis1flax", "0.6.2", 3, 3_538_944),
        ("seed_axis1flax", "0.10.2", 3, 3_538_944),
        ("seed_minor", "0.6.1", 5, 3_932_160),
        ("seed_minor", "0.6.2", 3, 3_538_944),
        ("seed_minor", "0.10.2", 3, 3_538_944),
        ("seed_mixed", "0.6.1", 5, 3_932_160),
        ("seed_mixed", "0.6.2", 1, 1_572_864),
        ("seed_mixed", "0.10.2", 1, 1_572_864),
        ("seed_70b_axis0", "0.6.1", 5, 11_072_962_560),
        ("seed_70b_axis0", "0.10.2", 0, 0),
    ],
)
def test_transposing_copies_of_the_reported_program(case: str, release: str, count: int, size_bytes: int) -> None:
    from layoutsim.experiments import simulate

    folder = SHARED / "oracle" / case / f"gpu-{release}"
    result = simulate(_read(folder, "before_layout"), f"xla-gpu-{release}", measure_memory=False)
    at_entry = [c for c in result.transposing_copies if c.computation == result.module.entry.name]

    assert (len(at_entry), sum(c.size_bytes for c in at_entry)) == (count, size_bytes)


@pytest.mark.parametrize("preset", ["xla-gpu-0.6.1{all-gather=ignore-degenerate}", "xla-gpu-0.6.2", "xla-gpu-0.10.2"])
def test_the_reported_copies_go_away_with_the_fix_and_with_the_rule(preset: str) -> None:
    from layoutsim.experiments import simulate

    before = _read(SHARED / "oracle" / "lora_axis0" / "gpu-0.6.1", "before_layout")

    assert simulate(before, preset, measure_memory=False).transposing_copies == ()
