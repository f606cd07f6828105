"""What the compiler's process does to a module before the compiler sees it, without a compiler."""

from pathlib import Path

from layoutsim.oracle.dumps import clear_dumps, read_dumps
from layoutsim.oracle.worker.module_text import as_replicas, entry_orders
from layoutsim.oracle.worker.wire import edit_fields, without_layouts


def test_entry_orders_tell_fixed_automatic_and_scalar_leaves_apart() -> None:
    text = "HloModule m, entry_computation_layout={(f32[4,6]{0,1}, (bf16[2,3], s32[]), token[])->/*index=0*/f32[6,4]{1,0}}"

    assert entry_orders(text) == ([(0, 1), None, ()], [(1, 0)])


def test_entry_orders_read_the_order_before_tiles() -> None:
    text = "HloModule m, entry_computation_layout={(f32[4,6]{0,1:T(8,128)})->f32[4,6]{1,0:S(5)}}"

    assert entry_orders(text) == ([(0, 1)], [(1, 0)])


def test_without_an_entry_layout_nothing_is_wished() -> None:
    assert entry_orders("HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }") is None


def test_partitions_become_replicas() -> None:
    text = "\n".join(
        [
            "HloModule m, num_partitions=4, replica_count=1",
            '  p = f32[2]{0} parameter(0), sharding={devices=[4]<=[4]}, metadata={op_name="p"}',
            "  i = u32[] partition-id()",
            "  a = f32[8]{0} all-gather(p), channel_id=3, replica_groups={{0,1,2,3}}, dimensions={0}",
            "  r = f32[2]{0} all-reduce(p), channel_id=4, replica_groups={}, use_global_device_ids=true, to_apply=add",
        ]
    )

    assert as_replicas(text) == "\n".join(
        [
            "HloModule m, replica_count=1",
            '  p = f32[2]{0} parameter(0), metadata={op_name="p"}',
            "  i = u32[] replica-id()",
            "  a = f32[8]{0} all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}",
            "  r = f32[2]{0} all-reduce(p), channel_id=4, replica_groups={}, use_global_device_ids=true, to_apply=add",
        ]
    )


def test_nested_shardings_go_as_a_whole() -> None:
    line = "  t = (f32[2]{0}) tuple(p), sharding={{replicated}, {devices=[4]<=[4]}}, metadata={}"

    assert as_replicas(line) == "  t = (f32[2]{0}) tuple(p), metadata={}"


FIELD_2_VARINT_11 = b"\x10\x0b"  # element_type
FIELD_5_LAYOUT = b"\x2a\x02\x0a\x00"  # layout, two bytes
FIELD_4 = b"\x22"  # tuple_shapes
ARRAY = FIELD_2_VARINT_11 + FIELD_5_LAYOUT
BARE = FIELD_2_VARINT_11


def test_a_layout_is_cut_out_of_a_serialized_shape() -> None:
    assert without_layouts(ARRAY, iter([False])) == BARE
    assert without_layouts(ARRAY, iter([True])) == ARRAY


def test_leaves_of_a_serialized_tuple_are_decided_one_by_one() -> None:
    part = FIELD_4 + bytes([len(ARRAY)]) + ARRAY

    edited = without_layouts(part + part, iter([True, False]))

    assert edited == part + FIELD_4 + bytes([len(BARE)]) + BARE


def test_other_fields_stay_where_they_are() -> None:
    fixed64, fixed32 = b"\x09" + b"12345678", b"\x1d" + b"1234"
    message = fixed64 + FIELD_4 + b"\x01x" + fixed32

    assert edit_fields(message, {4: lambda content: content * 2}) == fixed64 + FIELD_4 + b"\x02xx" + fixed32


def test_a_pass_that_changed_nothing_dumped_nothing_after_it(tmp_path: Path) -> None:
    (tmp_path / "module_0001.m.0003.layout_assignment.after_pipeline-start.before_layout-assignment.txt").write_text("b")
    assert read_dumps(tmp_path) == {"before_layout": "b"}  # the compiler got no further

    (tmp_path / "module_0001.m.sm_9.0_gpu_after_optimizations.txt").write_text("f")
    assert read_dumps(tmp_path) == {"before_layout": "b", "after_layout": "b", "final": "f"}


def test_dumps_are_found_by_meaning_and_cleared(tmp_path: Path) -> None:
    for name in (
        "module_0001.m.0003.x.after_flatten-call-graph.before_layout-assignment.txt",
        "module_0001.m.0004.x.after_layout-assignment.before_pipeline-end.txt",
        "module_0001.m.cpu_after_optimizations.txt",
        "module_0001.m.cpu_after_optimizations-buffer-assignment.txt",
        "module_0001.m.cpu_after_optimizations-memory-usage-report.txt",
        "module_0001.m.cpu_after_optimizations-live-range.txt",
    ):
        (tmp_path / name).write_text("text")

    assert sorted(read_dumps(tmp_path)) == [
        "after_layout",
        "before_layout",
        "buffer_assignment",
        "final",
        "live_range",
        "memory_usage_report",
    ]
    (tmp_path / "module_0001.m").mkdir()
    (tmp_path / "module_0001.m" / "module.mlir").write_text("the CPU client's copy of the program")
    clear_dumps(tmp_path)
    assert list(tmp_path.iterdir()) == []
