from layoutsim.analysis.call_graph import CallGraph, Context, async_done_of, async_start_of
from layoutsim.text import parse_module

TEXT = """
HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

inner {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add
}

outer {
  y = f32[4] parameter(0)
  c = f32[] call(y), to_apply=inner
  ROOT n = f32[] negate(c)
}

wrapped {
  v = f32[4] parameter(0)
  ROOT e = f32[4] exponential(v)
}

ENTRY main {
  p = f32[4] parameter(0)
  o = f32[] call(p), to_apply=outer
  start = ((f32[4]), f32[4], s32[]) async-start(p), calls=wrapped
  update = ((f32[4]), f32[4], s32[]) async-update(start)
  done = f32[4] async-done(update)
  ROOT t = (f32[], f32[4]) tuple(o, done)
}
"""


def _graph() -> CallGraph:
    return CallGraph(parse_module(TEXT))


def test_contexts_and_depths() -> None:
    nodes = {node.computation.name: node for node in _graph().nodes}

    assert {name: node.context for name, node in nodes.items()} == {
        "add": Context.EMBEDDED,
        "inner": Context.CONTROL_FLOW,
        "outer": Context.CONTROL_FLOW,
        "wrapped": Context.CONTROL_FLOW,
        "main": Context.CONTROL_FLOW,
    }
    assert {name: node.depth for name, node in nodes.items()} == {"main": 0, "outer": 1, "wrapped": 1, "inner": 2, "add": 3}


def test_post_order_has_callees_first() -> None:
    assert [c.name for c in _graph().post_order()] == ["add", "inner", "outer", "wrapped", "main"]


def test_nested_means_reached_only_through_a_computation() -> None:
    graph = _graph()
    module = graph.module
    add, outer, main = (module.find_computation(name) for name in ("add", "outer", "main"))

    assert graph.is_nested_in(add.root, outer) and graph.is_nested_in(add.root, main)
    assert not graph.is_nested_in(outer.root, add)


def test_nearest_common_ancestors() -> None:
    graph = _graph()
    module = graph.module
    deep, shallow = module.find("inner", "r"), module.find("main", "done")

    above = graph.nearest_common(deep, shallow)

    assert above is not None and [i.name for i in above] == ["o", "done"]


def test_async_chains_are_followed_both_ways() -> None:
    entry = _graph().module.entry

    assert async_start_of(entry.find("done")) is entry.find("start")
    assert async_done_of(entry.find("start")) is entry.find("done")


def test_a_graph_with_a_computation_called_twice_is_not_flat() -> None:
    twice = TEXT.replace(
        "ROOT t = (f32[], f32[4]) tuple(o, done)", "o2 = f32[] call(p), to_apply=outer\n ROOT t = (f32[], f32[]) tuple(o, o2)"
    )

    assert _graph().is_flattened
    assert not CallGraph(parse_module(twice)).is_flattened
