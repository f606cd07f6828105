"""What ``load`` takes: text, gzip, folders and archives of an XLA dump, and one clear line for everything else."""

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutsim.errors import InputError, ParseError
from layoutsim.ir import ComputationLayout, without_layout
from layoutsim.load import list_dump, load
from layoutsim.proto import module_to_bytes
from layoutsim.text import ParseOptions, parse_module

DUMP = "module_0004.jit_step"
FILES = {
    f"{DUMP}.before_optimizations.txt": "first",
    f"{DUMP}.0006.simplification.after_pipeline-start.before_algsimp.txt": "entering",
    f"{DUMP}.0007.layout_assignment.after_layout-assignment.before_sub-byte-size-setter.txt": "leaving",
    f"{DUMP}.0008.layout_normalization.after_pipeline-start.before_algsimp.txt": "later",
    f"{DUMP}.sm_9.0a_gpu_after_optimizations.txt": "final",
    f"{DUMP}.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt": "no HLO",
    f"{DUMP}.ir-no-opt.ll": "no HLO",
}


def hlo(name: str, size: int = 0) -> str:
    body = "".join(f"  a{i} = f32[2] negate(x)\n" for i in range(size))
    return f"HloModule {name}\n\nENTRY e {{\n  x = f32[2] parameter(0)\n{body}  ROOT y = f32[2] negate(x)\n}}\n"


def write_dump(folder: Path, files: dict[str, str] = FILES) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in files.items():
        (folder / name).write_text(hlo(module) if " " not in module else module)
    return folder


def pack(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return archive


@pytest.mark.parametrize("name", ["a.hlo", "a.txt"])
def test_text_files_are_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(hlo("m"))

    assert load(tmp_path / name).name == "m"


@pytest.mark.parametrize("name", ["a.hlo.gz", "a.txt.gz", "misnamed.hlo"])
def test_gzip_is_recognised_by_content(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(hlo("m").encode()))

    assert load(tmp_path / name).name == "m"


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("before_layout", "entering"),
        ("before layout assignment", "entering"),
        ("after_layout", "leaving"),
        ("After Layout-Assignment", "leaving"),
        ("scheduled", "final"),
        ("before_optimizations", "first"),
        (None, "entering"),
    ],
)
def test_a_dump_folder_gives_the_stage_asked_for(tmp_path: Path, stage: str | None, expected: str) -> None:
    folder = write_dump(tmp_path / "dump")

    assert load(folder, stage).name == expected


def test_an_archive_of_a_dump_reads_like_the_folder(tmp_path: Path) -> None:
    archive = pack(write_dump(tmp_path / "dump"), tmp_path / "dump.tgz")

    assert [load(archive, stage).name for stage in ("before_layout", "after_layout", "scheduled")] == [
        "entering",
        "leaving",
        "final",
    ]


def test_a_dump_named_before_layout_assignment_is_preferred(tmp_path: Path) -> None:
    named = f"{DUMP}.0009.layout_assignment.after_flatten-call-graph.before_layout-assignment.txt"
    folder = write_dump(tmp_path, {**FILES, named: "exact"})

    assert load(folder).name == "exact"


def test_without_a_dump_after_layout_assignment_the_pass_changed_nothing(tmp_path: Path) -> None:
    name = f"{DUMP}.0003.layout_assignment.after_flatten-call-graph.before_layout-assignment.txt"
    folder = write_dump(tmp_path, {name: "same"})

    assert load(folder, "after_layout").name == "same"


def test_passes_with_a_longer_name_are_not_layout_assignment(tmp_path: Path) -> None:
    name = f"{DUMP}.0003.p.after_x.before_layout-assignment-for-y.txt"
    folder = write_dump(tmp_path, {name: "other", f"{DUMP}.cpu_after_optimizations.txt": "final"})

    assert [file.stage for file in list_dump(folder)] == ["scheduled"]


@pytest.mark.parametrize("target", ["cpu_", "gpu_", "sm_9.0_gpu_", "gfx90a_gpu_", "cl_812345678.", ""])
def test_scheduled_modules_of_all_targets_are_found(tmp_path: Path, target: str) -> None:
    folder = write_dump(tmp_path, {f"{DUMP}.{target}after_optimizations.txt": "final"})

    assert [(file.module, file.stage) for file in list_dump(folder)] == [(DUMP, "scheduled")]


def test_plain_stage_names_are_a_dump_too(tmp_path: Path) -> None:
    for stage in ("before_layout", "after_layout", "final"):
        (tmp_path / f"{stage}.hlo.gz").write_bytes(gzip.compress(hlo(stage).encode()))

    assert [load(tmp_path, stage).name for stage in ("before_layout", "after_layout", "scheduled")] == [
        "before_layout",
        "after_layout",
        "final",
    ]


def test_of_several_modules_the_largest_is_taken(tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_init.before_optimizations.txt").write_text(hlo("small"))
    (tmp_path / "module_0002.jit_step.before_optimizations.txt").write_text(hlo("large", size=20))
    (tmp_path / "module_0003.jit_sum.before_optimizations.txt").write_text(hlo("middle", size=2))

    assert load(tmp_path).name == "large"
    assert load(tmp_path, module="jit_init").name == "small"


def test_a_missing_stage_lists_what_there_is(tmp_path: Path) -> None:
    folder = write_dump(tmp_path, {f"{DUMP}.cpu_after_optimizations.txt": "final"})

    with pytest.raises(InputError) as caught:
        load(folder, "before_layout")

    assert str(caught.value) == f"{folder}: no stage before_layout; there are scheduled of {DUMP}"


def test_a_missing_module_lists_what_there_is(tmp_path: Path) -> None:
    folder = write_dump(tmp_path)

    with pytest.raises(InputError, match=f"no module 'jit_init'; there are {DUMP}$"):
        load(folder, module="jit_init")


def test_an_unknown_stage_lists_the_stages(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="unknown stage 'middle', expected one of before_layout, after_layout, scheduled, before_optimizations"
    ):
        load(tmp_path, "middle")


def test_a_folder_without_dumps_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no HLO dump found"):
        load(tmp_path)


def test_a_stage_of_a_single_file_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(hlo("m"))

    with pytest.raises(InputError, match="this is a single file"):
        load(tmp_path / "a.hlo", "scheduled")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        load(tmp_path / "absent.hlo")


@pytest.mark.parametrize("cut", [5, 12, -3])
def test_damaged_gzip_is_an_input_error(tmp_path: Path, cut: int) -> None:
    (tmp_path / "a.hlo.gz").write_bytes(gzip.compress(hlo("m").encode())[:cut])

    with pytest.raises(InputError, match="damaged gzip data"):
        load(tmp_path / "a.hlo.gz")


@pytest.mark.parametrize(
    "content", [b"", b"not an archive", gzip.compress(b"neither", mtime=0)], ids=["empty", "text", "packed text"]
)
def test_damaged_archives_are_input_errors(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tgz").write_bytes(content)

    with pytest.raises(InputError, match="cannot be read as an archive"):
        load(tmp_path / "a.tgz")


def test_parse_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text("HloModule m\n\nENTRY e {\n  x = f32[2] foo(y)\n}\n")

    with pytest.raises(ParseError, match=r"a\.hlo:4:"):
        load(tmp_path / "a.hlo")


def test_text_that_is_not_utf8_is_a_parse_error_at_the_byte(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_bytes(b"HloModule m\n  \xff\n")

    with pytest.raises(ParseError, match=r"a\.hlo:2:3: expected UTF-8 text, got byte 0xff"):
        load(tmp_path / "a.hlo")


def test_an_entry_layout_left_out_is_automatic(tmp_path: Path) -> None:
    header = "HloModule m, entry_computation_layout={(f32[2,3], f32[2,3]{0,1})->f32[2,3]}\n"
    body = "ENTRY e {\n  x = f32[2,3] parameter(0)\n  y = f32[2,3] parameter(1)\n  ROOT z = f32[2,3] add(x, y)\n}\n"
    (tmp_path / "a.hlo").write_text(header + body)

    layout = load(tmp_path / "a.hlo").entry_layout

    assert layout is not None
    assert [str(shape) for shape in (*layout.parameters, layout.result)] == ["f32[2,3]", "f32[2,3]{0,1}", "f32[2,3]"]


@pytest.mark.parametrize(("name", "pack"), [("a.hlo.pb", bytes), ("a.pb.gz", gzip.compress), ("misnamed.hlo", bytes)])
def test_binary_protos_are_read(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    pytest.importorskip("google.protobuf")
    (tmp_path / name).write_bytes(pack(module_to_bytes(parse_module(hlo("m")))))

    assert load(tmp_path / name).name == "m"


def test_a_dump_of_protos_is_a_dump(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    for name, module in FILES.items():
        if name.endswith(".txt") and " " not in module:
            (tmp_path / name.replace(".txt", ".hlo.pb")).write_bytes(module_to_bytes(parse_module(hlo(module))))

    assert [load(tmp_path, stage).name for stage in ("before_layout", "after_layout", "scheduled")] == [
        "entering",
        "leaving",
        "final",
    ]


def test_text_is_preferred_to_a_proto_of_the_same_stage(tmp_path: Path) -> None:
    (tmp_path / f"{DUMP}.before_optimizations.hlo.pb").write_bytes(b"\x01")
    (tmp_path / f"{DUMP}.before_optimizations.txt").write_text(hlo("text"))

    assert load(tmp_path).name == "text"


def test_text_is_stored_in_the_order_of_the_proto_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    from layoutsim.proto import module_to_bytes

    text = "HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  ROOT c = f32[2] add(a, b)\n}\n"
    stored = parse_module(text)
    a, b, c = stored.entry.instructions
    stored.entry.reorder([b, a, c])
    (tmp_path / "m.txt").write_text(text)
    (tmp_path / "m.hlo.pb").write_bytes(module_to_bytes(stored))

    assert [i.name for i in load(tmp_path / "m.txt").entry.instructions] == ["b", "a", "c"]


def test_automatic_scalars_come_from_the_proto_beside_a_text(tmp_path: Path) -> None:
    """Text prints a scalar alike whether it has a layout or not."""
    pytest.importorskip("google.protobuf")
    text = (
        "HloModule m, entry_computation_layout={(f32[8], f32[])->f32[8]}\nENTRY e {\n  p = f32[8] parameter(0)\n"
        "  s = f32[] parameter(1)\n  ROOT n = f32[8] negate(p)\n}\n"
    )
    stored = parse_module(text, options=ParseOptions(keep_module_auto_layouts=True))
    assert stored.entry_layout is not None
    free = ComputationLayout(tuple(map(without_layout, stored.entry_layout.parameters)), stored.entry_layout.result)
    stored.entry_layout = free
    (tmp_path / "m.txt").write_text(text)
    (tmp_path / "m.hlo.pb").write_bytes(module_to_bytes(stored))

    assert load(tmp_path / "m.txt").entry_layout == free


def test_a_damaged_proto_is_a_parse_error_that_names_the_file(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    (tmp_path / "a.pb").write_bytes(b"\x0a\xff\xff")

    with pytest.raises(ParseError, match=r"a\.pb: not a binary HLO proto"):
        load(tmp_path / "a.pb")
