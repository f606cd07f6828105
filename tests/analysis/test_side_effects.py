"""Which instructions have effects beside their value."""

from layoutsim.analysis.side_effects import effectful_computations, has_own_side_effect, has_side_effect
from layoutsim.ir import Module
from layoutsim.text import parse_module

TEXT = """
HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

quiet {
  q = f32[4] parameter(0)
  ROOT r = f32[4] negate(q)
}

loud {
  p = f32[4] parameter(0)
  print = () custom-call(p), custom_call_target="print", custom_call_has_side_effect=true
  ROOT s = f32[4] negate(p)
}

caller {
  t = f32[4] parameter(0)
  ROOT u = f32[4] call(t), to_apply=loud
}

ENTRY main {
  x = f32[4] parameter(0)
  silent = f32[4] call(x), to_apply=quiet
  speaking = f32[4] call(x), to_apply=caller
  tok = token[] after-all()
  sent = (f32[4], u32[], token[]) send(x, tok), channel_id=1
  done = token[] send-done(sent), channel_id=1
  channel = f32[4] all-reduce(x), channel_id=2, replica_groups={}, to_apply=add
  bare = f32[4] all-reduce(x), replica_groups={}, to_apply=add
  permuted = f32[4] collective-permute(x), channel_id=3, source_target_pairs={{0,1}}
  ROOT end = (f32[4], f32[4], f32[4], f32[4], f32[4]) tuple(silent, speaking, channel, bare, permuted)
}
"""


def _own(module: Module) -> list[str]:
    return [i.name for i in module.entry.instructions if has_own_side_effect(i)]


def test_transfers_and_channels_of_several_programs_have_effects() -> None:
    assert _own(parse_module(TEXT)) == ["sent", "done", "channel", "permuted"]


def test_channels_of_one_partitioned_program_have_none() -> None:
    assert _own(parse_module(TEXT.replace("HloModule m", "HloModule m, num_partitions=2"))) == ["sent", "done"]


def test_a_constrained_all_reduce_has_an_effect() -> None:
    text = TEXT.replace("all-reduce(x), replica_groups={}", "all-reduce(x), replica_groups={}, constrain_layout=true")

    assert "bare" in _own(parse_module(text))


def test_a_caller_has_the_effects_of_what_it_calls() -> None:
    module = parse_module(TEXT)

    assert not has_side_effect(module.find("main", "silent"))
    assert has_side_effect(module.find("main", "speaking"))


def test_effects_climb_through_calls() -> None:
    module = parse_module(TEXT)

    assert {c.name for c in effectful_computations(module.computations)} == {"loud", "caller", "main"}
