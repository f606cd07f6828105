"""Folders that ``layoutsim check`` takes: plain names, and XLA's own dumps."""

import gzip
from pathlib import Path

import pytest

from layoutsim.errors import InputError
from layoutsim.experiments.conformance import check_folder, preset_of
from layoutsim.experiments.recorded import find_recorded

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"
XLA_NAMES = {
    "before_layout": "module_0012.jit_f.0007.layout_assignment.after_pipeline-start.before_layout-assignment.txt",
    "after_layout": "module_0012.jit_f.0008.layout_assignment.after_layout-assignment.before_sub-byte-size-setter.txt",
    "final": "module_0012.jit_f.{target}after_optimizations.txt",
    "buffer-assignment": "module_0012.jit_f.{target}after_optimizations-buffer-assignment.txt",
}
SMALL = "HloModule m, is_scheduled=true\nENTRY e {\n  ROOT p = f32[2]{0} parameter(0)\n}\n"


def _dump(recorded: Path, to: Path, target: str) -> Path:
    """The recorded stages under the names that XLA gives them, a smaller module beside them."""
    for stage, name in XLA_NAMES.items():
        (source,) = recorded.glob(f"{stage}.*")
        data = source.read_bytes()
        (to / name.format(target=target)).write_bytes(gzip.decompress(data) if source.suffix == ".gz" else data)
    (to / f"module_0002.jit_g.{target}after_optimizations.txt").write_text(SMALL)
    return to


@pytest.mark.parametrize(
    ("kind", "target", "preset"),
    [("gpu-0.10.2", "sm_9.0a_gpu_", "xla-gpu-0.10.2"), ("cpu-0.10.2", "cpu_", "xla-cpu-0.10.2")],
)
def test_a_dump_is_checked_under_the_rules_of_its_backend(tmp_path: Path, kind: str, target: str, preset: str) -> None:
    verdict = check_folder(_dump(FIXTURES / "reshapes" / kind, tmp_path, target))

    assert verdict.preset == preset
    assert verdict.agrees
    assert verdict.layout is not None
    assert verdict.buffers is not None
    assert verdict.pipeline is None


def test_a_dump_is_the_cpus_whatever_its_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "gpu-0.6.1"
    folder.mkdir()

    assert preset_of(find_recorded(_dump(FIXTURES / "reshapes" / "cpu-0.10.2", folder, "cpu_"))) == "xla-cpu-0.10.2"


def test_a_missing_stage_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "before_layout.hlo").write_text(SMALL)

    with pytest.raises(InputError, match="holds no after_layout; there are before_layout"):
        find_recorded(tmp_path).module("after_layout")
    with pytest.raises(InputError, match=r"holds no pair of files to check .*--xla_dump_hlo_pass_re=layout-assignment"):
        check_folder(tmp_path)
