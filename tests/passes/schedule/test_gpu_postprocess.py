"""What the GPU does to every order: synchronous pairs closed up, asynchronous ones moved apart."""

from layoutsim.passes.schedule.gpu_postprocess import gpu_postprocess
from layoutsim.text import parse_module

PERMUTE = """
HloModule m
ENTRY e {{
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  start = (f32[8], f32[8], u32[], u32[]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}{config}
  n = f32[8] negate(q)
  done = f32[8] collective-permute-done(start)
  n2 = f32[8] abs(q)
  ROOT t = (f32[8], f32[8], f32[8]) tuple(done, n, n2)
}}
"""
SYNCHRONOUS = ', backend_config={"collective_backend_config":{"is_sync":true}}'


def _processed(text: str) -> list[str]:
    module = parse_module(text)
    return [i.name for i in gpu_postprocess(module.entry.instructions)]


def test_asynchronous_start_goes_up_and_its_done_goes_down() -> None:
    assert _processed(PERMUTE.format(config="")) == ["p", "start", "q", "n", "n2", "done", "t"]


def test_synchronous_start_goes_down_to_its_done() -> None:
    assert _processed(PERMUTE.format(config=SYNCHRONOUS)) == ["p", "q", "n", "start", "done", "n2", "t"]


def test_custom_calls_say_when_they_want_to_run() -> None:
    text = """
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  early = f32[8] custom-call(p), custom_call_target="start", schedule=SCHEDULE_EARLIEST
  late = f32[8] custom-call(early), custom_call_target="finish", schedule=SCHEDULE_LATEST
  n2 = f32[8] abs(n)
  n3 = f32[8] abs(n2)
  s = f32[8] add(late, n3)
  ROOT r = f32[8] negate(s)
}
"""
    assert _processed(text) == ["p", "early", "n", "n2", "n3", "late", "s", "r"]


def test_order_without_such_pairs_stays() -> None:
    text = "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n"

    assert _processed(text) == ["p", "n"]


def test_a_done_behind_an_update_goes_down_and_the_update_stays() -> None:
    text = """
HloModule m
a {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}
ENTRY e {
  p = f32[8] parameter(0)
  start = ((f32[8]), f32[8], u32[]) async-start(p), calls=a
  update = ((f32[8]), f32[8], u32[]) async-update(start)
  done = f32[8] async-done(update)
  n = f32[8] abs(p)
  ROOT t = (f32[8], f32[8]) tuple(done, n)
}
"""

    assert _processed(text) == ["p", "start", "update", "n", "done", "t"]


GATHER = """
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  start = (f32[8], f32[32]) all-gather-start(p), replica_groups={{0,1,2,3}}, dimensions={0}
  n = f32[8] negate(p)
  done = f32[32] all-gather-done(start)
  n2 = f32[8] abs(p)
  ROOT t = (f32[32], f32[8], f32[8]) tuple(done, n, n2)
}
"""


def test_all_gathers_are_moved_apart() -> None:
    assert _processed(GATHER) == ["p", "start", "n", "n2", "done", "t"]


def test_all_gathers_stay_where_they_are_up_to_0_6_2() -> None:
    order = gpu_postprocess(parse_module(GATHER).entry.instructions, overlap_all_gathers=False)

    assert [i.name for i in order] == ["p", "start", "n", "done", "n2", "t"]
