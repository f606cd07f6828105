"""Copies that a schedule makes unnecessary."""

import pytest

from layoutsim.errors import PassError
from layoutsim.ir import Module, Opcode
from layoutsim.passes.post_scheduling_copies import PostSchedulingCopies
from layoutsim.text import parse_module

BODY = """
HloModule m, is_scheduled=true
cond {{
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}}
body {{
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  copy.1 = f32[8] copy(a)
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
READ, WRITE = "b2 = f32[8] add(b, copy.1)", "a2 = f32[8] negate(a)"


def _copies(module: Module) -> int:
    return sum(i.opcode is Opcode.COPY for c in module.computations for i in c.instructions)


def test_copy_goes_if_the_reader_is_scheduled_before_the_writer() -> None:
    module = parse_module(BODY.format(lines=f"{READ}\n  {WRITE}"))

    assert PostSchedulingCopies().run(module).changed

    assert _copies(module) == 0
    assert module.schedule is not None
    order = [i.name for i in module.schedule.sequences[module.find_computation("body")]]
    assert order == ["p", "a", "b", "b2", "a2", "t"]


def test_copy_stays_if_the_writer_is_scheduled_first() -> None:
    module = parse_module(BODY.format(lines=f"{WRITE}\n  {READ}"))

    result = PostSchedulingCopies().run(module)

    assert not result.changed
    assert _copies(module) == 1
    assert "copy.1: kept: live ranges meet" in str(result.remarks[0])


def test_module_must_be_scheduled() -> None:
    module = parse_module(BODY.format(lines=f"{WRITE}\n  {READ}").replace(", is_scheduled=true", ""))

    with pytest.raises(PassError, match="run schedule first"):
        PostSchedulingCopies().run(module)
