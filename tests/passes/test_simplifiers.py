"""flatten-call-graph, tuple-simplifier, dead-code-elimination."""

from layoutsim.ir import Module
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.flatten_calls import FlattenCallGraph
from layoutsim.passes.tuple_simplifier import TupleSimplifier
from layoutsim.text import parse_module
from layoutsim.verify import verify

SHARED = """
HloModule m
inner {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
outer {
  y = f32[4] parameter(0)
  ROOT c = f32[4] call(y), to_apply=inner
}
ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] call(p), to_apply=outer
  b = f32[4] call(a), to_apply=outer
  ROOT d = f32[4] call(b), to_apply=inner
}"""


def callees(module: Module) -> dict[str, list[str]]:
    return {
        i.name: [c.name for c in i.called_computations]
        for computation in module.computations
        for i in computation.instructions
        if i.called_computations
    }


def test_every_caller_has_computations_of_its_own() -> None:
    module = parse_module(SHARED)
    outcome = FlattenCallGraph().run(module)
    called = [name for names in callees(module).values() for name in names]

    assert outcome.changed
    assert len(called) == len(set(called)) == 5
    assert list(verify(module)) == []


def test_a_flat_call_graph_stays_as_it_is() -> None:
    module = parse_module(SHARED)
    FlattenCallGraph().run(module)
    before = module.to_text()

    assert not FlattenCallGraph().run(module).changed
    assert module.to_text() == before


def test_a_conditional_that_names_a_computation_twice_gets_two_clones() -> None:
    module = parse_module(
        """
HloModule m
branch {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
ENTRY e {
  c = pred[] parameter(0)
  p = f32[4] parameter(1)
  ROOT r = f32[4] conditional(c, p, p), true_computation=branch, false_computation=branch
}"""
    )
    FlattenCallGraph().run(module)

    assert callees(module) == {"r": ["branch.clone", "branch.clone.1"]}


def test_reducers_are_cloned_like_any_computation() -> None:
    module = parse_module(
        """
HloModule m
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[4,8] parameter(0)
  z = f32[] constant(0)
  a = f32[8] reduce(p, z), dimensions={0}, to_apply=sum
  ROOT b = f32[] reduce(a, z), dimensions={0}, to_apply=sum
}"""
    )
    FlattenCallGraph().run(module)

    assert callees(module) == {"a": ["sum"], "b": ["sum.clone"]}


def test_elements_of_tuples_are_forwarded() -> None:
    module = parse_module(
        """
HloModule m
ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  t = (f32[4], f32[4]) tuple(a, b)
  u = ((f32[4], f32[4]), f32[4]) tuple(t, a)
  g = (f32[4], f32[4]) get-tuple-element(u), index=0
  h = f32[4] get-tuple-element(g), index=1
  ROOT n = f32[4] negate(h)
}"""
    )
    outcome = TupleSimplifier().run(module)

    assert outcome.changed
    assert [i.name for i in module.entry.instructions] == ["a", "b", "n"]
    assert module.entry.root.operand(0).name == "b"


def test_a_tuple_of_all_elements_is_the_whole() -> None:
    module = parse_module(
        """
HloModule m
ENTRY e {
  p = (f32[4], s32[]) parameter(0)
  g = f32[4] get-tuple-element(p), index=0
  h = s32[] get-tuple-element(p), index=1
  ROOT t = (f32[4], s32[]) tuple(g, h)
}"""
    )
    TupleSimplifier().run(module)

    assert [i.name for i in module.entry.instructions] == ["p"]
    assert module.entry.root.name == "p"


def test_a_tuple_of_elements_in_another_order_stays() -> None:
    module = parse_module(
        """
HloModule m
ENTRY e {
  p = (f32[4], f32[4]) parameter(0)
  g = f32[4] get-tuple-element(p), index=0
  h = f32[4] get-tuple-element(p), index=1
  ROOT t = (f32[4], f32[4]) tuple(h, g)
}"""
    )

    assert not TupleSimplifier().run(module).changed


def test_dead_instructions_and_computations_go() -> None:
    module = parse_module(
        """
HloModule m
unused {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  d = f32[4] call(p), to_apply=unused
  d2 = f32[4] negate(d)
  q = f32[4] parameter(1)
  ROOT r = f32[4] abs(p)
}"""
    )
    outcome = DeadCodeElimination().run(module)

    assert outcome.changed
    assert [i.name for i in module.entry.instructions] == ["p", "q", "r"]
    assert [c.name for c in module.computations] == ["e"]


def test_side_effects_stay() -> None:
    module = parse_module(
        """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  k = token[] after-all()
  o = token[] outfeed(p, k), outfeed_shape=f32[4]{0}
  c = f32[4] custom-call(p), custom_call_target="x", custom_call_has_side_effect=true
  ROOT r = f32[4] abs(p)
}"""
    )

    assert not DeadCodeElimination().run(module).changed


def test_unused_outputs_of_a_fusion_go_with_the_operands_that_only_they_need() -> None:
    module = parse_module(
        """
HloModule m
body {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  c = f32[4] parameter(2)
  n = f32[4] negate(b)
  s = f32[4] add(n, c)
  ROOT t = (f32[4], f32[4], f32[4]) tuple(a, n, s)
}
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  d = f32[4] abs(p)
  f = (f32[4], f32[4], f32[4]) fusion(d, q, q), kind=kLoop, calls=body
  x = f32[4] get-tuple-element(f), index=1
  y = f32[4] get-tuple-element(f), index=2
  ROOT r = f32[4] add(x, y)
}"""
    )
    assert DeadCodeElimination().run(module).changed
    verify(module)

    entry = module.entry
    assert [i.name for i in entry.instructions] == ["p", "q", "f", "x", "y", "r"]
    assert [entry.find(name).tuple_index for name in ("x", "y")] == [0, 1]
    assert [i.name for i in entry.find("f").to_apply.parameters] == ["param_0", "param_1"]


def test_a_fusion_with_one_used_output_becomes_its_value() -> None:
    module = parse_module(
        """
HloModule m
body {
  a = f32[4] parameter(0)
  n = f32[4] negate(a)
  ROOT t = (f32[4], f32[4]) tuple(a, n)
}
ENTRY e {
  p = f32[4] parameter(0)
  f = (f32[4], f32[4]) fusion(p), kind=kLoop, calls=body
  x = f32[4] get-tuple-element(f), index=1
  ROOT r = f32[4] abs(x)
}"""
    )
    DeadCodeElimination().run(module)
    verify(module)

    assert module.entry.root.operand(0) is module.entry.find("f")
    assert module.entry.find("f").to_apply.root.name == "n"


def test_outputs_of_custom_fusions_stay() -> None:
    module = parse_module(
        """
HloModule m
body {
  a = f32[4] parameter(0)
  ROOT t = (f32[4], f32[4]) tuple(a, a)
}
ENTRY e {
  p = f32[4] parameter(0)
  f = (f32[4], f32[4]) fusion(p), kind=kCustom, calls=body
  ROOT x = f32[4] get-tuple-element(f), index=1
}"""
    )

    assert not DeadCodeElimination().run(module).changed


def test_an_unused_operand_of_a_fusion_goes_even_with_a_side_effect() -> None:
    # As in XLA, which asks about side effects of what only the operand used, not of the operand.
    module = parse_module(
        """
HloModule m
body {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT n = f32[4] negate(b)
}
ENTRY e {
  p = f32[4] parameter(0)
  c = f32[4] custom-call(p), custom_call_target="x", custom_call_has_side_effect=true
  ROOT f = f32[4] fusion(c, p), kind=kLoop, calls=body
}"""
    )
    DeadCodeElimination().run(module)
    verify(module)

    assert [i.name for i in module.entry.instructions] == ["p", "f"]


def test_an_after_all_behind_a_side_effect_stays() -> None:
    module = parse_module(
        """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  k = token[] after-all()
  o = token[] outfeed(p, k), outfeed_shape=f32[4]{0}
  a = token[] after-all(o)
  ROOT r = f32[4] abs(p)
}"""
    )

    assert not DeadCodeElimination().run(module).changed


ORDERED = """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] negate(p)
  t = (f32[4], f32[4]) tuple(p, q), control-predecessors={q}
  a = f32[4] get-tuple-element(t), index=0
  b = f32[4] get-tuple-element(t), index=1
  r = f32[4] add(a, b), control-predecessors={t}
  ROOT s = f32[4] negate(r)
}"""


def test_a_tuple_that_nobody_reads_any_more_goes_although_control_edges_order_it() -> None:
    module = parse_module(ORDERED)

    TupleSimplifier().run(module)

    assert [i.name for i in module.entry.instructions] == ["p", "q", "r", "s"]
    assert [i.name for i in module.entry.find("r").control_predecessors] == ["q"]


def test_dead_code_that_control_edges_order_stays() -> None:
    module = parse_module(ORDERED.replace("add(a, b)", "add(p, q)"))

    DeadCodeElimination().run(module)

    assert [i.name for i in module.entry.instructions] == ["p", "q", "t", "r", "s"]
