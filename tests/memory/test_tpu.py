"""Reading TPU dumps: padded arguments and outputs, memory spaces, padding of each buffer."""

from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.tpu import TPU, argument_bytes, bytes_by_memory_space, is_tpu_module, output_bytes, padding_table
from layoutsim.text import parse_module

MODULE = parse_module("""
HloModule m, is_scheduled=true

ENTRY e {
  a = bf16[2048,128]{1,0:T(8,128)(2,1)} parameter(0)
  s = f32[]{:T(128)} parameter(1)
  wide = f32[64,10]{1,0:T(8,128)} broadcast(s), dimensions={}
  fast = f32[64,128]{1,0:T(8,128)S(1)} broadcast(s), dimensions={}
  ROOT t = (bf16[2048,128]{1,0:T(8,128)(2,1)}, f32[64,10]{1,0:T(8,128)}) tuple(a, wide)
}
""")


def test_arguments_take_their_padded_bytes():
    # 2048 x 128 x 2, and a scalar in a tile of 128 x 4
    assert argument_bytes(MODULE) == 524288 + 512


def test_outputs_take_their_padded_bytes_and_a_block_for_the_table():
    # 64 x 128 x 4 for f32[64,10]; the table of two pointers takes 512
    assert output_bytes(MODULE) == 524288 + 32768 + 512


def test_memory_spaces_are_counted_apart():
    by_space = bytes_by_memory_space(assign_buffers(MODULE, TPU))

    assert list(by_space) == ["HBM", "VMEM"]
    assert by_space["VMEM"] == 64 * 128 * 4


def test_the_table_begins_with_the_most_padding():
    table = padding_table(assign_buffers(MODULE, TPU))

    assert [(row.value.instruction.name, row.padding.padding_bytes, row.memory_space) for row in table] == [
        ("wide", 64 * 118 * 4, "HBM"),
        ("s", 508, "HBM"),
        ("fast", 0, "VMEM"),
        ("a", 0, "HBM"),
    ]
    # 64 as the minor dimension becomes 128 and 10 becomes 16: 16 x 128 x 4
    assert (table[0].padding.best_order, table[0].padding.best_padded_bytes) == ((0, 1), 8192)


def test_modules_without_tiles_are_not_of_a_tpu():
    other = parse_module("HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n")

    assert (is_tpu_module(MODULE), is_tpu_module(other)) == (True, False)
