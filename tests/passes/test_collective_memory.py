"""Collective memory: what must be in memory space 1, and the copies around it; all figures are jaxlib 0.10.2's own."""

import re

import pytest

from layoutsim.experiments import simulate
from layoutsim.experiments.simulate import Simulation
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.text import parse_module

BARE = "layout-assignment{backend=gpu},copy-insertion,schedule,post-scheduling-copies"
NCCL_BUFFERS = f"{BARE}{{collective-memory=all}}"

GATHER = """HloModule m, replica_count=2, entry_computation_layout={(f32[8,128]{1,0})->f32[16,128]{1,0}}
ENTRY e {
  p = f32[8,128]{1,0} parameter(0)
  n = f32[8,128]{1,0} negate(p)
  g = f32[16,128]{1,0} all-gather(n), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}
  ROOT r = f32[16,128]{1,0} exponential(g)
}"""
SYMMETRIC = ', backend_config={"collective_backend_config":{"collectives_mode":"COLLECTIVES_SYMMETRIC_MEMORY"}}'
GATHER_ALONE = """HloModule m, replica_count=2, entry_computation_layout={(f32[8,128]{1,0})->f32[16,128]{1,0}}
ENTRY e {
  p = f32[8,128]{1,0} parameter(0)
  ROOT g = f32[16,128]{1,0} all-gather(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}
}"""
MOSAIC = """HloModule m, entry_computation_layout={(f32[8,128]{1,0})->f32[8,128]{1,0}}
ENTRY e {
  p = f32[8,128]{1,0} parameter(0)
  ROOT g = f32[8,128]{1,0} custom-call(p), custom_call_target="mosaic_gpu_v2", api_version=API_VERSION_TYPED_FFI,
    backend_config={multimem_parameters = "0", module = "x"}
}"""
ASKING = """HloModule m, entry_computation_layout={(f32[8,128]{1,0})->f32[8,128]{1,0}}
ENTRY e {
  p = f32[8,128]{1,0} parameter(0)
  h = f32[8,128]{1,0} custom-call(p), custom_call_target="foo", api_version=API_VERSION_TYPED_FFI,
    frontend_attributes={operands_memory_spaces={0:1}}
  a = f32[8,128]{1,0} add(h, p)
  ROOT k = f32[8,128]{1,0} custom-call(a), custom_call_target="foo", api_version=API_VERSION_TYPED_FFI,
    frontend_attributes={results_memory_spaces="{0:1}"}
}"""
LOOP = """HloModule lp, replica_count=2, input_output_alias={ {0}: (0, {}, may-alias) }

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  s = (s32[], f32[64]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[64]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=sum@
  ROOT t = (s32[], f32[64]{0}) tuple(next, y)
}

condition {
  s = (s32[], f32[64]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT lt = pred[] compare(i, n), direction=LT
}

ENTRY e {
  p = f32[64]{0} parameter(0)
  q = f32[64]{0} parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[64]{0}) tuple(zero, p)
  w = (s32[], f32[64]{0}) while(init), condition=condition, body=body
  r = f32[64]{0} get-tuple-element(w), index=1
  z = f32[64]{0} constant({...})
  h = f32[64]{0} all-reduce(z), replica_groups={{0,1}}, to_apply=sum@
  u = f32[64]{0} add(h, q)
  ROOT out = (f32[64]{0}, f32[64]{0}, f32[64]{0}) tuple(r, u, h)
}"""


def run(text: str, pipeline: str = BARE) -> Simulation:
    return simulate(parse_module(text), pipeline)


def allocations(simulation: Simulation) -> list[tuple[int, int]]:
    """Size in bytes and memory space of every allocation, sorted."""
    assert simulation.assignment is not None
    return sorted((a.size, a.color) for a in simulation.assignment.allocations)


@pytest.mark.parametrize(
    ("text", "pipeline"),
    [(GATHER, NCCL_BUFFERS), (GATHER.replace("dimensions={0}", "dimensions={0}" + SYMMETRIC), BARE)],
    ids=["flag", "symmetric memory"],
)
def test_what_a_collective_reads_and_makes_is_in_collective_memory(text: str, pipeline: str) -> None:
    # Parameter 8*128*4 = 4096, result 16*128*4 = 8192; in space 1 the negation and the gather, 4096 + 8192.
    assert allocations(run(text, pipeline)) == [(4096, 0), (8192, 0), (12288, 1)]


def test_without_being_asked_for_it_is_not() -> None:
    # The gather is where the result is, and the negation is a temporary.
    assert allocations(run(GATHER)) == [(4096, 0), (4096, 0), (8192, 0)]


@pytest.mark.parametrize(
    ("text", "pipeline", "expected"),
    [
        (GATHER_ALONE, NCCL_BUFFERS, [(4096, 0), (8192, 0), (12288, 1)]),
        (MOSAIC, BARE, [(4096, 0), (4096, 0), (8192, 1)]),
    ],
    ids=["gather", "mosaic"],
)
def test_parameters_and_results_are_copied(text: str, pipeline: str, expected: list[tuple[int, int]]) -> None:
    simulation = run(text, pipeline)
    root = simulation.module.entry.root

    assert [root.opcode, root.operand(0).operand(0).opcode, root.operand(0).operand(0).operand(0).opcode] == [
        "copy",
        "copy",
        "parameter",
    ]
    assert allocations(simulation) == expected


def test_a_custom_call_asks_by_number() -> None:
    simulation = run(ASKING)

    # In space 1 the copy of the parameter and the result of the second call, one after the other.
    assert allocations(simulation) == [(4096, 0), (4096, 0), (4096, 1)]
    assert simulation.module.find("e", "a").operand(1).opcode == "copy"


LOOP_ALLOCATIONS = [(4, 0)] * 6 + [(24, 0)] + [(256, 0)] * 5 + [(280, 0), (512, 1)]


@pytest.mark.parametrize(("asked", "pipeline"), [(SYMMETRIC, BARE), ("", NCCL_BUFFERS)], ids=["symmetric memory", "flag"])
def test_a_loop_that_a_donated_parameter_enters(asked: str, pipeline: str) -> None:
    simulation = run(LOOP.replace("@", asked).replace("{...}", "{" + ",".join("1" * 64) + "}"), pipeline)

    assert allocations(simulation) == LOOP_ALLOCATIONS
    assert [o.opcode for o in simulation.module.entry.root.operands] == ["copy", "get-tuple-element", "copy"]


def test_layouts_of_a_dump_after_buffer_assignment_say_where_arrays_are() -> None:
    scheduled = """HloModule m, is_scheduled=true, replica_count=2
ENTRY e {
  p = f32[8,128]{1,0} parameter(0)
  n = f32[8,128]{1,0:S(1)} negate(p)
  g = f32[16,128]{1,0:S(1)} all-gather(n), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}
  ROOT r = f32[16,128]{1,0} exponential(g)
}"""
    assignment = assign_buffers(parse_module(scheduled), GPU)

    assert sorted((a.size, a.color) for a in assignment.allocations) == [(4096, 0), (8192, 0), (12288, 1)]


def test_the_remark_names_the_cause() -> None:
    remarks = [str(r) for r in run(MOSAIC).pipeline_result.runs[-1].result.remarks]

    assert any(re.search("parameter p is not in collective memory", r) for r in remarks)
    assert any(re.search("results are not in collective memory", r) for r in remarks)


@pytest.mark.parametrize("text", [MOSAIC, ASKING])
def test_up_to_0_6_2_nothing_can_ask_for_it(text: str) -> None:
    simulation = run(text, "xla-gpu-0.6.1")

    assert all(i.opcode != "copy" for i in simulation.module.entry.instructions)
    assert {color for _, color in allocations(simulation)} == {0}
