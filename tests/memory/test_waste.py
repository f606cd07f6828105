"""Classes of the buffers at the peak: each kind of waste in the smallest module that has it."""

from pathlib import Path

import pytest

from layoutsim.load import load
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import CPU, GPU, MemoryProfile
from layoutsim.memory.tpu import TPU
from layoutsim.memory.waste import Waste, WasteReport, WasteRow, waste_report
from layoutsim.text import parse_module

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"


def report(text: str, profile: MemoryProfile = GPU) -> WasteReport:
    return waste_report(assign_buffers(parse_module(text), profile))


def row(found: WasteReport, name: str) -> WasteRow:
    return next(r for r in found.rows if r.label == name)


LAYOUT_COPY = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[64,32]{1,0} parameter(0)
  t = f32[64,32]{0,1} copy(p)
  s = f32[1,32]{0,1} slice(t), slice={[0:1], [0:32]}
  ROOT n = f32[1,32]{0,1} negate(s)
}
"""


def test_a_transposing_copy_beside_its_source_is_a_layout_copy():
    found = row(report(LAYOUT_COPY), "t")

    assert found.waste is Waste.LAYOUT_COPY
    assert found.reason == "t is a transposing copy of p, which is alive too"


def test_a_copy_that_moves_no_bytes_is_no_layout_copy():
    flat = LAYOUT_COPY.replace("[64,32]", "[1,32]")

    assert row(report(flat), "t").waste is Waste.NEEDED


def test_arguments_and_results_are_needed():
    found = report(LAYOUT_COPY)

    assert (row(found, "p").waste, row(found, "p").reason) == (Waste.NEEDED, "argument 0")
    assert row(found, "s").reason == "part of the result"  # s and n are in one place


def loop(body: str, carried: str, init: str, before: str = "", after: str = "ROOT r = f32[8,64]{1,0} copy(ys)") -> str:
    """A loop of 8 steps over ``carried``; the body reads ``st``, ``i``, ``zero``, and names what it gives back ``out``."""
    return f"""
HloModule m, is_scheduled=true

body {{
  st = {carried} parameter(0)
  i = s32[] get-tuple-element(st), index=0
  zero = s32[] constant(0)
  one = s32[] constant(1)
  i1 = s32[] add(i, one)
{body}
}}

cond {{
  st2 = {carried} parameter(0)
  j = s32[] get-tuple-element(st2), index=0
  n = s32[] constant(8)
  ROOT lt = pred[] compare(j, n), direction=LT
}}

ENTRY e {{
  w = f32[8,64]{{1,0}} parameter(0)
  z0 = s32[] constant(0)
  z = s32[] copy(z0)
  f0 = f32[] constant(0)
  blank = f32[8,64]{{1,0}} broadcast(f0), dimensions={{}}
{before}
  init = {carried} tuple({init})
  loop = {carried} while(init), condition=cond, body=body
  ys = f32[8,64]{{1,0}} get-tuple-element(loop), index=1
  {after}
}}
"""


STACKS = "(s32[], f32[8,64]{1,0}, f32[8,64]{1,0})"
READ = """
  ys0 = f32[8,64]{1,0} get-tuple-element(st), index=1
  in = f32[8,64]{1,0} get-tuple-element(st), index=2
  ds = f32[1,64]{1,0} dynamic-slice(in, i, zero), dynamic_slice_sizes={1,64}"""
WRITE = """
  dus = f32[8,64]{1,0} dynamic-update-slice(ys0, UPDATE, INDEX, zero)
  ROOT out = (s32[], f32[8,64]{1,0}, f32[8,64]{1,0}) tuple(i1, dus, in)"""


def test_a_stack_made_of_the_slices_of_an_input_is_restacked():
    write = WRITE.replace("UPDATE", "ds").replace("INDEX", "i")
    found = row(report(loop(READ + write, STACKS, "z, blank, w")), "blank")

    assert found.waste is Waste.RESTACKED
    assert found.reason == "loop output loop{1} equals loop input w (re-stacked): drop it from the scan outputs"


@pytest.mark.parametrize(
    ("between", "update", "index"),
    [("  neg = f32[1,64]{1,0} negate(ds)\n", "neg", "i"), ("", "ds", "i1")],
)
def test_a_stack_of_changed_or_moved_slices_is_a_loop_carry(between: str, update: str, index: str):
    write = WRITE.replace("UPDATE", update).replace("INDEX", index)
    found = row(report(loop(READ + "\n" + between + write, STACKS, "z, blank, w")), "blank")

    assert (found.waste, found.reason) == (Waste.LOOP_CARRY, "carried by loop{1}")


def test_a_restack_inside_a_fusion_is_found():
    fusion = """
fused {
  a = f32[8,64]{1,0} parameter(0)
  b = f32[1,64]{1,0} parameter(1)
  k = s32[] parameter(2)
  o = s32[] constant(0)
  ROOT u = f32[8,64]{1,0} dynamic-update-slice(a, b, k, o)
}
"""
    call = WRITE.replace("dynamic-update-slice(ys0, UPDATE, INDEX, zero)", "fusion(ys0, ds, i), kind=kLoop, calls=fused")
    text = loop(READ + call, STACKS, "z, blank, w").replace("\nbody {", f"{fusion}\nbody {{", 1)

    assert row(report(text), "blank").waste is Waste.RESTACKED


def test_a_widened_array_that_a_loop_reads_is_a_hoisted_up_cast():
    body = """
  ys0 = f32[8,64]{1,0} get-tuple-element(st), index=1
  big = f32[8,64]{1,0} get-tuple-element(st), index=2
  sum = f32[8,64]{1,0} add(ys0, big)
  ROOT out = (s32[], f32[8,64]{1,0}, f32[8,64]{1,0}) tuple(i1, sum, big)"""
    before = "  h = bf16[8,64]{1,0} parameter(1)\n  wide = f32[8,64]{1,0} convert(h)"
    found = row(report(loop(body, STACKS, "z, blank, wide", before)), "wide")

    assert found.waste is Waste.UP_CAST
    assert found.reason == "wide widens h from bf16 to f32 before loop"


def test_the_cpu_compiler_hoists_the_up_cast_of_all_weights_of_a_scan():
    # bf16[5,16,16] widened to f32 before the loop: 5*16*16*4 = 5,120 bytes (jax-ml/jax#20303, case 03).
    module = load(FIXTURES / "scan_transposed" / "cpu-0.10.2" / "final.hlo")
    found = row(waste_report(assign_buffers(module, CPU)), "wrapped_convert")

    assert (found.waste, found.size) == (Waste.UP_CAST, 5_120)
    assert found.reason == "wrapped_convert widens weights.1 from bf16 to f32 before while.1"


def test_a_value_that_only_a_select_still_reads_is_kept_alive_by_it():
    text = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[64]{0} parameter(0)
  q = pred[64]{0} parameter(1)
  a = f32[64]{0} negate(p)
  b = f32[64]{0} reverse(a), dimensions={0}
  c = f32[128]{0} concatenate(b, b), dimensions={0}
  d = f32[64]{0} slice(c), slice={[0:64]}
  s = f32[64]{0} select(q, a, d)
  t = f32[128]{0} concatenate(s, s), dimensions={0}
  ROOT r = f32[1]{0} slice(t), slice={[0:1]}
}
"""
    found = row(report(text), "a")

    assert found.waste is Waste.KEPT_ALIVE
    assert found.reason == "only s still reads it, to choose between it and what was computed from it"


def test_outputs_of_one_fusion_that_are_read_one_after_the_other_are_waste():
    text = """
HloModule m, is_scheduled=true

fused {
  z = f32[] constant(0)
  b0 = f32[64]{0} broadcast(z), dimensions={}
  b1 = f32[64]{0} broadcast(z), dimensions={}
  ROOT t = (f32[64]{0}, f32[64]{0}) tuple(b0, b1)
}

ENTRY e {
  f = (f32[64]{0}, f32[64]{0}) fusion(), kind=kLoop, calls=fused
  g0 = f32[64]{0} get-tuple-element(f), index=0
  r0 = f32[1]{0} slice(g0), slice={[0:1]}
  g1 = f32[64]{0} get-tuple-element(f), index=1
  r1 = f32[1]{0} slice(g1), slice={[0:1]}
  ROOT y = f32[1]{0} add(r0, r1)
}
"""
    found = report(text)

    assert [row(found, name).waste for name in ("f{0}", "f{1}")] == [Waste.FUSION_OUTPUTS] * 2
    assert row(found, "f{0}").reason == "f makes 2 outputs of 512 bytes at once, read one after the other"


def test_a_buffer_that_is_half_padding_is_padding():
    text = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[64,64]{1,0:T(8,128)} parameter(0)
  ROOT n = f32[64,64]{1,0:T(8,128)} negate(p)
}
"""
    found = report(text, TPU)

    # 64 x 64 x 4 in 64 x 128 x 4
    assert {r.label: r.waste for r in found.rows} == {"p": Waste.PADDING, "n": Waste.PADDING}
    assert row(found, "p").reason == "16,384 bytes of data in 32,768"


def test_gaps_are_a_row_of_their_own():
    text = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[3]{0} parameter(0)
  a = f32[3]{0} negate(p)
  b = f32[3]{0} reverse(a), dimensions={0}
  c = f32[6]{0} concatenate(a, b), dimensions={0}
  ROOT r = f32[1]{0} slice(c), slice={[0:1]}
}
"""
    (gaps,) = [r for r in report(text).rows if r.value is None]

    # c (24 bytes), a and b (12 each) lie at 0, 256 and 512: 524 bytes, of which 48 are values
    assert (gaps.waste, gaps.size) == (Waste.FRAGMENTATION, 524 - 48)


def test_bytes_by_class_add_up_the_rows():
    found = report(LAYOUT_COPY)

    # t takes 64 x 32 x 4; p as much, and what the slice and the result take
    assert found.bytes_by_class["layout copy"] == 8192
    assert sum(found.bytes_by_class.values()) == sum(r.size for r in found.rows)


def test_only_the_largest_are_listed_if_asked_for():
    found = waste_report(assign_buffers(parse_module(LAYOUT_COPY), GPU), largest=1)

    assert len([r for r in found.rows if r.value is not None]) == 1
