"""Control edges from the readers of a loop's state to its writer."""

from layoutsim.ir import Module
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.loop_schedule_linearizer import LoopScheduleLinearizer
from layoutsim.text import parse_module

LOOP = """
HloModule m
cond {{
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}}
body {{
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  {lines}
  ROOT t = (f32[8], f32[8]) tuple(a2, b2)
}}
ENTRY e {{
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  nx = f32[8] negate(x)
  ny = f32[8] negate(y)
  init = (f32[8], f32[8]) tuple(nx, ny)
  ROOT w = (f32[8], f32[8]) while(init), condition=cond, body=body
}}
"""


def _linearized(lines: str) -> Module:
    module = parse_module(LOOP.format(lines=lines))
    LoopScheduleLinearizer().run(module)
    return module


def _edges(module: Module) -> list[tuple[str, str]]:
    body = module.find_computation("body")
    return [(before.name, i.name) for i in body.instructions for before in i.control_predecessors]


def test_reader_runs_before_the_writer() -> None:
    module = _linearized("a2 = f32[8] negate(a)\n  b2 = f32[8] add(b, a)")

    assert _edges(module) == [("b2", "a2")]


def test_then_the_loop_needs_no_copy_inside() -> None:
    module = _linearized("a2 = f32[8] negate(a)\n  b2 = f32[8] add(b, a)")

    CopyInsertion().run(module)

    assert "copy" not in "".join(i.name for c in module.computations for i in c.instructions)


def test_edge_that_closes_a_cycle_is_left_out() -> None:
    # Each new value reads both old ones: only the edge that comes first can be had.
    module = _linearized("a2 = f32[8] add(a, b)\n  b2 = f32[8] subtract(b, a)")

    assert _edges(module) == [("b2", "a2")]


def test_reader_that_depends_on_the_writer_is_left_alone() -> None:
    module = _linearized("a2 = f32[8] negate(a)\n  b2 = f32[8] add(a2, a)")

    assert _edges(module) == []


def test_element_that_is_only_passed_on_is_left_alone() -> None:
    module = _linearized("a2 = f32[8] bitcast(a)\n  b2 = f32[8] add(b, a)")

    assert _edges(module) == []


def test_loop_with_asynchronous_collectives_is_left_alone() -> None:
    module = _linearized(
        "start = (f32[8], f32[8]) collective-permute-start(a), source_target_pairs={{0,0}}\n"
        "  a2 = f32[8] collective-permute-done(start)\n"
        "  b2 = f32[8] add(b, a)"
    )

    assert _edges(module) == []
    assert not LoopScheduleLinearizer().run(module).changed


def test_remarks_name_reader_and_writer() -> None:
    module = parse_module(LOOP.format(lines="a2 = f32[8] negate(a)\n  b2 = f32[8] add(b, a)"))

    result = LoopScheduleLinearizer().run(module)

    assert result.changed
    assert [str(r) for r in result.remarks] == ["a2: runs after b2, which reads the state that it writes"]
