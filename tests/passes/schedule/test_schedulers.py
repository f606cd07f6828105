"""Orders of XLA's memory schedulers (memory spec, checklist 100 to 102)."""

import random

import pytest

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.points_to import PointsTo
from layoutsim.ir import Instruction, Module, byte_size
from layoutsim.passes.registry import parse_pass
from layoutsim.passes.schedule import Algorithm, MinimumMemory, ScheduleModule, Weighing
from layoutsim.passes.schedule.breadth_first import breadth_first_order
from layoutsim.passes.schedule.depth_first import depth_first_order
from layoutsim.passes.schedule.list_scheduler import list_order
from layoutsim.passes.sharing_rules import SharingRules
from layoutsim.text import parse_module


def _names(order: list[Instruction]) -> list[str]:
    return [instruction.name for instruction in order]


def _list(module: Module) -> list[str]:
    return _names(list_order(module.entry, PointsTo(module), byte_size))


def _before(order: list[str], first: str, second: str) -> bool:
    return order.index(first) < order.index(second)


@pytest.mark.checklist(100)
def test_last_use_is_scheduled_first() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[42] parameter(0)
  a = f32[42] abs(p)
  x = f32[42] exponential(p)
  add = f32[42] add(a, x)
  n = f32[42] negate(x)
  ROOT s = f32[42] subtract(add, n)
}
""")
    result = ScheduleModule(rules=SharingRules.DEFAULT).run(module)

    # The add is the only user of abs; once it ran, there is room for the negate.
    order = _names(result.candidates[0].sequences[module.entry])
    assert (order[0], order[-1]) == ("p", "s")
    assert _before(order, "add", "n")


@pytest.mark.checklist(100)
def test_list_knows_what_a_tuple_holds() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  param = s32[1000] parameter(0)
  p0 = s32[1000] copy(param)
  p1 = s32[1000] copy(param)
  t = (s32[1000], s32[1000]) tuple(p0, p1)
  a = s32[1000] get-tuple-element(t), index=0
  b = s32[1000] get-tuple-element(t), index=1
  c = s32[1000] add(a, b)
  d = s32[1000] add(c, b)
  e2 = s32[1000] add(c, c)
  f = s32[1000] add(e2, e2)
  ROOT r = (s32[1000], s32[1000], s32[1000]) tuple(d, e2, f)
}
""")
    # d frees p1, which it reads through the tuple; e2 frees nothing.
    assert _before(_list(module), "d", "e2")


def test_list_schedules_last_ready_first_among_equals() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  r = f32[8] parameter(2)
  ROOT t = (f32[8], f32[8], f32[8]) tuple(p, q, r)
}
""")
    assert _list(module) == ["r", "q", "p", "t"]


def test_list_takes_scalars_first() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  c = s32[1,1] parameter(1)
  n = f32[8] negate(p)
  ROOT t = (f32[8], s32[1,1]) tuple(n, c)
}
""")
    assert _list(module) == ["c", "p", "n", "t"]


@pytest.mark.checklist(101)
def test_list_counts_the_table_of_a_tuple() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[1000] parameter(0)
  a1 = f32[1000] abs(p)
  t = (f32[1000]) tuple(a1)
  g = f32[1000] get-tuple-element(t), index=0
  a2 = f32[1000] abs(g)
  a3 = f32[1000] abs(a1)
  ROOT r = (f32[1000], f32[1000]) tuple(a2, a3)
}
""")
    # a3 frees nothing while the tuple still holds a1, and neither does the tuple: 4000 bytes against its 8.
    order = _list(module)

    assert _before(order, "t", "a3")


def test_list_refreshes_only_users_of_the_operands_of_what_ran() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] abs(p)
  big = f32[8,8] broadcast(a), dimensions={0}
  small = f32[2] slice(a), slice={[0:2]}
  ROOT t = (f32[8,8], f32[2]) tuple(big, small)
}
""")
    # small: 8 bytes defined, nothing freed; then big frees the 32 bytes of a but defines 256.
    assert _list(module) == ["p", "a", "small", "big", "t"]


def test_list_runs_outfeed_early_and_infeed_late() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  tok = token[] after-all()
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  in = (f32[8], token[]) infeed(tok), infeed_config="late"
  out = token[] outfeed(p, tok), outfeed_shape=f32[8]{0}, outfeed_config="early"
  ROOT t = (f32[8], (f32[8], token[])) tuple(n, in)
}
""")
    order = _list(module)

    assert _before(order, "out", "n")
    assert _before(order, "n", "in")


@pytest.mark.checklist(101)
def test_list_counts_all_outputs_of_a_fusion() -> None:
    module = parse_module("""
HloModule m
fused {
  a = f32[5] parameter(0)
  b = f32[5] parameter(1)
  c = f32[5] parameter(2)
  s = f32[5] add(a, b)
  p = f32[5] multiply(s, c)
  ROOT t = (f32[5], f32[5]) tuple(s, p)
}
ENTRY e {
  one = f32[5] constant({1, 1, 1, 1, 1})
  two = f32[5] constant({1, 2, 3, 4, 5})
  three = f32[5] constant({0, 2, 4, 6, 8})
  f = (f32[5], f32[5]) fusion(one, two, three), kind=kLoop, calls=fused
  g = f32[5] get-tuple-element(f), index=0
  x = f32[5] exponential(three)
  ROOT r = f32[5] add(g, x)
}
""")
    # The fusion defines 2 * 20 bytes and a table, the exponential 20; neither frees anything.
    assert _before(_list(module), "x", "f")


@pytest.mark.checklist(101)
def test_list_ends_a_transfer_to_the_host_before_an_unrelated_chain() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[1000,1000] parameter(0)
  tok = token[] after-all()
  send = (f32[1000,1000], u32[], token[]) send(p, tok), channel_id=1, is_host_transfer=true
  n1 = f32[1000,1000] negate(p)
  n2 = f32[1000,1000] negate(n1)
  n3 = f32[1000,1000] negate(n2)
  done = token[] send-done(send), channel_id=1, is_host_transfer=true
  ROOT t = (f32[1000,1000], token[]) tuple(n3, done)
}
""")
    assert _before(_list(module), "done", "n1")


@pytest.mark.checklist(102)
def test_breadth_first_runs_each_kind_of_a_wide_tree_together() -> None:
    lines = ["c = f32[] constant(1)"]
    for n in range(3):
        lines += [
            f"b{n} = f32[8] broadcast(c), dimensions={{}}",
            f"a{n} = f32[8] add(b{n}, b{n})",
            f"r{n} = f32[] reduce(a{n}, c), dimensions={{0}}, to_apply=sum",
        ]
    entry = "\n  ".join([*lines, "x = f32[] add(r0, r1)", "ROOT y = f32[] add(x, r2)"])
    plus = "sum {\n  l = f32[] parameter(0)\n  r = f32[] parameter(1)\n  ROOT s = f32[] add(l, r)\n}"
    module = parse_module(f"HloModule m\n{plus}\nENTRY e {{\n  {entry}\n}}\n")

    order = _names(breadth_first_order(module.entry))
    assert order == ["c", "b0", "b1", "b2", "a0", "a1", "a2", "r0", "r1", "r2", "x", "y"]


@pytest.mark.checklist(102)
def test_breadth_first_goes_level_by_level() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] abs(p)
  b = f32[8] negate(p)
  a2 = f32[8] abs(a)
  b2 = f32[8] abs(b)
  ROOT s = f32[8] add(a2, b2)
}
""")
    assert _names(breadth_first_order(module.entry)) == ["p", "a", "b", "a2", "b2", "s"]


def test_depth_first_goes_where_the_history_is_shared_most() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  a = f32[8] abs(p)
  b = f32[8] abs(q)
  b2 = f32[8] add(b, b)
  b3 = f32[8] add(b, b2)
  ROOT s = f32[8] add(a, b3)
}
""")
    # b has two users, so b3's side comes first although a is the first operand.
    order = _names(depth_first_order(module.entry, lambda i: byte_size(i.shape)))

    assert order == ["q", "b", "b2", "b3", "p", "a", "s"]


def test_depth_first_breaks_ties_by_name() -> None:
    module = parse_module("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  z = f32[8] abs(p)
  y = f32[8] abs(q)
  ROOT s = f32[8] add(z, y)
}
""")
    assert _names(depth_first_order(module.entry, lambda i: byte_size(i.shape))) == ["q", "y", "p", "z", "s"]


CHAINS = """
HloModule m
ENTRY e {
  p = f32[64] parameter(0)
  a = f32[64,64] broadcast(p), dimensions={0}
  b = f32[64,64] broadcast(p), dimensions={1}
  a1 = f32[64] slice(p), slice={[0:64]}
  s = f32[64,64] add(a, b)
  ROOT t = (f32[64,64], f32[64]) tuple(s, a1)
}
"""


@pytest.mark.checklist(102)
def test_best_is_the_first_of_those_with_the_least_peak() -> None:
    module = parse_module(CHAINS)

    result = ScheduleModule().run(module)

    peaks = [candidate.peak_bytes for candidate in result.candidates]
    assert peaks == sorted(peaks)
    assert {Algorithm.LIST, Algorithm.DEPTH_FIRST, Algorithm.POST_ORDER} == {c.algorithm for c in result.candidates}
    assert module.schedule is not None
    assert dict(result.candidates[0].sequences) == module.schedule.sequences


@pytest.mark.checklist(100)
def test_reported_peak_is_the_minimum_memory_of_the_schedule() -> None:
    module = parse_module(CHAINS)

    result = ScheduleModule().run(module)

    assert module.schedule is not None
    measured = MinimumMemory(Aliases.run(module, SharingRules.NVIDIA.rules), byte_size).peak_bytes(module.schedule.sequences)
    # p 256 + a 16384 + b 16384; s takes over a, and a1 and the table come when b is free.
    assert 256 + 16384 + 16384 == measured == result.candidates[0].peak_bytes


def test_scheduled_module_keeps_its_schedule() -> None:
    module = parse_module(CHAINS)
    ScheduleModule(algorithm=Algorithm.POST_ORDER).run(module)
    schedule = module.schedule

    assert not ScheduleModule().run(module).changed
    assert module.schedule is schedule


def test_pass_reads_its_options() -> None:
    scheduler = parse_pass("schedule{algorithm=breadth-first rules=cpu gpu=false}")

    assert ScheduleModule(algorithm=Algorithm.BREADTH_FIRST, rules=SharingRules.CPU, gpu=False) == scheduler
    assert scheduler.to_text() == "schedule{algorithm=breadth-first rules=cpu gpu=false}"


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_operands_and_control_predecessors_come_first(algorithm: Algorithm) -> None:
    module = _random_module(random.Random(7), 200)

    ScheduleModule(algorithm=algorithm).run(module)

    assert module.schedule is not None
    order = module.schedule.sequences[module.entry]
    place = {instruction: i for i, instruction in enumerate(order)}
    assert sorted(_names(list(module.entry.instructions))) == sorted(_names(order))
    for instruction in order:
        for before in (*instruction.operands, *instruction.control_predecessors):
            assert place[before] < place[instruction]


def _random_module(source: random.Random, count: int) -> Module:
    lines = ["p0 = f32[8] parameter(0)"]
    for i in range(1, count):
        a, b = (source.randrange(i) for _ in range(2))
        control = f", control-predecessors={{p{source.randrange(i)}}}" if source.random() < 0.2 else ""
        lines.append(f"p{i} = f32[8] add(p{a}, p{b}){control}")
    body = "\n  ".join(lines)
    return parse_module(f"HloModule m\nENTRY e {{\n  {body}\n  ROOT r = f32[8] negate(p{count - 1})\n}}\n")


LOOP_AND_EXP = """
HloModule m
body {
  ROOT b = (f32[4], f32[8]) parameter(0)
}
go {
  c = (f32[4], f32[8]) parameter(0)
  ROOT g = pred[] constant(false)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[8] parameter(1)
  x = f32[8] exponential(q)
  i = (f32[4], f32[8]) tuple(p, q)
  w = (f32[4], f32[8]) while(i), condition=go, body=body
  a = f32[4] get-tuple-element(w), index=0
  ROOT t = (f32[8], f32[4]) tuple(x, a)
}
"""


@pytest.mark.parametrize(("weighing", "first"), [(Weighing.VALUES, "x"), (Weighing.BUFFERS, "w")])
def test_depth_first_counts_what_a_loop_returns_up_to_0_6_2(weighing: Weighing, first: str) -> None:
    # As values x defines 32 bytes, i 16 of pointers, w and a nothing: x goes before a with its 16.
    # As buffers w defines 16 + 32 bytes and 16 of pointers: a with its 64 + 16 goes before x.
    module = parse_module(LOOP_AND_EXP)
    result = ScheduleModule(algorithm=Algorithm.DEPTH_FIRST, weighing=weighing).run(module)

    assert next(i.name for i in result.candidates[0].sequences[module.entry] if i.name in ("x", "w")) == first
