"""The worked example of the memory spec (section 10), rebuilt from its description: a loop that gathers, slices and multiplies.

The spec gives sizes, offsets, the order of allocations and live ranges of a module that the real GPU compiler dumped. The
module below has the same buffers at the same times; bitcasts stand where only the length of the schedule counts.
"""

import pytest

from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.profile import GPU
from layoutsim.memory.report_format import parse_assignment_report, print_assignment_report
from layoutsim.memory.report_format_live_range import print_live_range
from layoutsim.memory.report_format_usage import print_memory_usage_report
from layoutsim.memory.reported import assignment_report, live_range_report
from layoutsim.text import parse_module

pytestmark = pytest.mark.checklist(79)

_STATE = "(s32[], f32[128,64], f32[4,128,512])"
MODULE = f"""HloModule example, is_scheduled=true, replica_count=8

start {{
  x.1 = f32[512,128] parameter(0)
  id.1 = u32[] parameter(1)
  zero.1 = s32[] constant(0)
  row.1 = s32[] convert(id.1)
  part.1 = f32[64,128] dynamic-slice(x.1, row.1, zero.1), dynamic_slice_sizes={{64,128}}
  ROOT t.1 = f32[128,64] transpose(part.1), dimensions={{1,0}}
}}

turn {{
  a.2 = f32[128,64] parameter(0)
  ROOT t.2 = f32[64,128] transpose(a.2), dimensions={{1,0}}
}}

pick {{
  w.3 = f32[4,128,512] parameter(0)
  i.3 = s32[] parameter(1)
  zero.3 = s32[] constant(0)
  ROOT s.3 = f32[1,128,512] dynamic-slice(w.3, i.3, zero.3, zero.3), dynamic_slice_sizes={{1,128,512}}
}}

plus {{
  lhs = f32[] parameter(0)
  rhs = f32[] parameter(1)
  ROOT add = f32[] add(lhs, rhs)
}}

sum {{
  d.4 = f32[512,512] parameter(0)
  b.4 = f32[128,64,32] reshape(d.4)
  zero.4 = f32[] constant(0)
  ROOT r.4 = f32[128,64] reduce(b.4, zero.4), dimensions={{2}}, to_apply=plus
}}

next {{
  i.5 = s32[] parameter(0)
  one.5 = s32[] constant(1)
  ROOT n.5 = s32[] add(i.5, one.5)
}}

less {{
  i.6 = s32[] parameter(0)
  end.6 = s32[] constant(27)
  ROOT l.6 = pred[] compare(i.6, end.6), direction=LT
}}

body {{
  param = {_STATE} parameter(0)
  carried = f32[128,64] get-tuple-element(param), index=1
  wrapped_transpose = f32[64,128] fusion(carried), kind=kInput, calls=turn
  gather = (f32[64,128], f32[512,128]) all-gather-start(wrapped_transpose), dimensions={{0}}, replica_groups=[1,8]<=[8]
  weights = f32[4,128,512] get-tuple-element(param), index=2
  counter = s32[] get-tuple-element(param), index=0
  slice = f32[1,128,512] fusion(weights, counter), kind=kLoop, calls=pick
  matrix = f32[128,512] bitcast(slice)
  gathered = f32[512,128] all-gather-done(gather)
  dot = f32[512,512] dot(gathered, matrix), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  same = f32[512,512] bitcast(dot)
  sums = f32[128,64] fusion(same), kind=kInput, calls=sum
  loop_add = s32[] fusion(counter), kind=kLoop, calls=next
  again = f32[4,128,512] bitcast(weights)
  ROOT tuple.6 = {_STATE} tuple(loop_add, sums, again)
}}

condition {{
  param.1 = {_STATE} parameter(0)
  counter.1 = s32[] get-tuple-element(param.1), index=0
  ROOT compare = pred[] fusion(counter.1), kind=kLoop, calls=less
}}

ENTRY main {{
  const = s32[] constant(0)
  copy.8 = s32[] copy(const)
  partition-id = u32[] partition-id()
  w = f32[4,128,512] parameter(1)
  x = f32[512,128] parameter(0)
  carry1 = f32[128,64] fusion(x, partition-id), kind=kLoop, calls=start
  tuple.5 = {_STATE} tuple(copy.8, carry1, w)
  while.8 = {_STATE} while(tuple.5), condition=condition, body=body
  ROOT out = f32[128,64] get-tuple-element(while.8), index=1
}}
"""
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def example() -> BufferAssignment:
    return assign_buffers(parse_module(MODULE), GPU)


def _holds(example: BufferAssignment, index: int, name: str) -> bool:
    return any(value.instruction.name == name for value in example.allocations[index].places)


def test_allocations_are_parameters_outputs_thread_local_ones_and_the_temporaries(example: BufferAssignment) -> None:
    # The partition of temporaries behind the rest swaps 3 with 9, 4 with 8 and 6 with 7.
    assert [a.size for a in example.allocations] == [MIB, 256 * KIB, 32 * KIB, 4, 4, 4, 4, 1_573_400]
    assert all(_holds(example, n, name) for n, name in enumerate(["w", "x", "carry1", "add", "rhs", "const", "lhs"]))
    assert [a.kind for a in example.allocations[3:7]] == ["thread-local", "thread-local", "constant", "thread-local"]


def test_the_heap_and_both_tables_make_one_allocation(example: BufferAssignment) -> None:
    # The heap: 1 MiB + 256 KiB + 256 KiB + 4. The table of the start at the next multiple of 256, so the loop's.
    heap = MIB + 2 * 256 * KIB + 4
    assert (heap, -(-heap // 256) * 256, 1_573_120 + 256, 1_573_376 + 24) == (1_572_868, 1_573_120, 1_573_376, 1_573_400)
    assert example.temp_bytes == 1_573_400
    assert example.total_bytes == MIB + 256 * KIB + 32 * KIB + 4 * 4 + 1_573_400 == 2_916_904


def test_offsets_in_the_heap(example: BufferAssignment) -> None:
    offsets = {str(v.definition): offset for v, (offset, _) in example.allocations[7].places.items()}

    # The product shares its place in time with the transpose, the partition and the comparison.
    assert {name: offsets[name] for name in ("dot", "wrapped_transpose", "partition-id", "compare")} == dict.fromkeys(
        ("dot", "wrapped_transpose", "partition-id", "compare"), 0
    )
    assert (offsets["gather {1}"], offsets["slice"], offsets["copy.8"]) == (1_048_576, 1_310_720, 1_572_864)
    assert (offsets["gather {}"], offsets["while.8 {}"]) == (1_573_120, 1_573_376)


def test_live_ranges(example: BufferAssignment) -> None:
    ranges = {str(v.definition): (live.start, live.end) for v, live in example.ranges.ranges.items()}
    expected = {
        "w": (0, 27),
        "x": (0, 27),
        "copy.8": (1, 7),  # until the condition's parameter takes over
        "param.1 {0}": (7, 10),
        "param {0}": (10, 22),
        "loop_add": (22, 25),
        "while.8 {0}": (25, 25),
        "while.8 {1}": (25, 27),
        "wrapped_transpose": (12, 18),  # until the done, through the start
    }

    assert {name: ranges[name] for name in expected} == expected


def test_the_reports_say_the_same(example: BufferAssignment) -> None:
    report = assignment_report(example)
    text = print_assignment_report(report)
    usage, ranges = print_memory_usage_report(report), print_live_range(live_range_report(example.ranges))

    assert parse_assignment_report(text).allocations == report.allocations
    assert "allocation 7: size 1573400, preallocated-temp:" in text
    assert f"allocation 0: size {MIB}, parameter 1, shape |f32[4,128,512]| at ShapeIndex {{}}:" in text
    assert "Total bytes: 2916904 (2.78MiB)" in usage
    assert ranges.startswith("HloLiveRange (max 27):")
    assert "    copy.8{}:1-7" in ranges.splitlines()
