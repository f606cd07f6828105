"""Loops, conditionals, calls, transfers and collectives in the generic pass (layout spec, 15.A)."""

from layoutsim.passes.layout_assignment import ComputationOrder, CopyKind
from tests.passes.layout_assignment.running import GPU, WITHOUT_LAYOUTS, Run


def test_branches_return_one_layout() -> None:  # A17
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[128,8]{1,0}, f32[128,8]{1,0}, pred[])->(f32[128,8]{1,0})}
yes {
  y = (f32[128,8], f32[128,8]) parameter(0)
  y0 = f32[128,8] get-tuple-element(y), index=0
  y1 = f32[128,8] get-tuple-element(y), index=1
  ya = f32[128,8] add(y0, y1)
  ROOT yr = (f32[128,8]) tuple(ya)
}
no {
  n = (f32[128,8], f32[128,8]) parameter(0)
  k = token[] after-all()
  i = (f32[128,8]{0,1}, token[]) infeed(k)
  d = f32[128,8]{0,1} get-tuple-element(i), index=0
  ROOT nr = (f32[128,8]{0,1}) tuple(d)
}
ENTRY e {
  p = f32[128,8] parameter(0)
  q = f32[128,8] parameter(1)
  c = pred[] parameter(2)
  t = (f32[128,8], f32[128,8]) tuple(p, q)
  ROOT r = (f32[128,8]) conditional(c, t, t), true_computation=yes, false_computation=no
}"""
    )
    no = run.module.find_computation("no")
    yes = run.module.find_computation("yes")

    assert no.root.operand(0).shape == yes.root.operand(0).shape
    assert run.expression(no.root) == "tuple(copy{1,0}(nr[0]))"


def test_a_branch_may_return_an_element_and_another_its_parameter() -> None:  # A18
    run = Run(
        """
HloModule m
yes {
  y = (f64[2,3], f64[2,3]) parameter(0)
  ROOT g = f64[2,3] get-tuple-element(y), index=1
}
no {
  ROOT n = f64[2,3] parameter(0)
}
ENTRY e {
  p = (f64[2,3], f64[2,3]) parameter(0)
  q = f64[2,3] parameter(1)
  c = pred[] constant(true)
  ROOT r = f64[2,3] conditional(c, p, q), true_computation=yes, false_computation=no
}"""
    )

    assert run.layouts("g", "n", "r") == {"g": "{1,0}", "n": "{1,0}", "r": "{1,0}"}


def test_send_and_recv_on_a_channel_agree() -> None:  # A20
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[2,2]{0,1}))->f32[2,2]{1,0}}
ENTRY e {
  p = (f32[2,2]) parameter(0)
  g = f32[2,2] get-tuple-element(p), index=0
  k = token[] after-all()
  v = (f32[2,2], u32[], token[]) recv(k), channel_id=1
  vd = (f32[2,2], token[]) recv-done(v), channel_id=1
  ROOT r = f32[2,2] get-tuple-element(vd), index=0
  s = (f32[2,2], u32[], token[]) send(g, k), channel_id=1
  sd = token[] send-done(s), channel_id=1
}"""
    )

    assert run["s"].shape == run["v"].shape


def test_what_is_sent_is_copied_first() -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[2,2]{0,1})->token[]}
ENTRY e {
  p = f32[2,2] parameter(0)
  k = token[] after-all()
  s = (f32[2,2], u32[], token[]) send(p, k), channel_id=1
  ROOT sd = token[] send-done(s), channel_id=1
}"""
    )
    (copy,) = run.result.copies

    assert copy.kind is CopyKind.PROTECTIVE
    assert copy.place == "operand 0 of %s"


SPMD_ALL_REDUCES = """
HloModule m, num_partitions=2
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[2,2] parameter(0)
  a = f32[2,2] all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=sum
  q = f32[2] parameter(1)
  b = f32[2] all-reduce(q), channel_id=1, replica_groups={{0}}, to_apply=sum
  ROOT t = (f32[2,2], f32[2]) tuple(a, b)
}"""


def test_channels_mean_nothing_in_an_spmd_module() -> None:  # A21
    run = Run(SPMD_ALL_REDUCES)

    assert run.layouts("a", "b") == {"a": "{1,0}", "b": "{0}"}


def test_all_reduces_on_one_channel_share_a_layout() -> None:  # A22
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[2,2]{0,1}))->f32[2,2]{1,0}}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = (f32[2,2]) parameter(0)
  g = f32[2,2] get-tuple-element(p), index=0
  a = f32[2,2] all-reduce(g), channel_id=1, replica_groups={{0}}, to_apply=sum
  c = f32[2,2] constant({{0,1},{2,3}})
  ROOT b = f32[2,2] all-reduce(c), channel_id=1, replica_groups={{0}}, to_apply=sum
}"""
    )

    assert run.layouts("g", "a", "b") == {"g": "{0,1}", "a": "{0,1}", "b": "{0,1}"}
    assert run.expression(run.root) == "copy{1,0}(b)"


INFEED_LOOP = """
HloModule m
cond {
  c = (s32[], token[], f32[512,1024]{0,1}) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  five = s32[] constant(5)
  ROOT lt = pred[] compare(n, five), direction=LT
}
body {
  b = (s32[], token[], f32[512,1024]{0,1}) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  tok = token[] get-tuple-element(b), index=1
  feed2 = (f32[512,1024]{1,0}, token[]) infeed(tok)
  next_tok = token[] get-tuple-element(feed2), index=1
  next_buf = f32[512,1024]{1,0} get-tuple-element(feed2), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT br = (s32[], token[], f32[512,1024]{0,1}) tuple(next, next_tok, next_buf)
}
ENTRY e {
  start = token[] after-all()
  feed = (f32[512,1024]{0,1}, token[]) infeed(start)
  itok = token[] get-tuple-element(feed), index=1
  ibuf = f32[512,1024]{0,1} get-tuple-element(feed), index=0
  zero = s32[] constant(0)
  init = (s32[], token[], f32[512,1024]{0,1}) tuple(zero, itok, ibuf)
  loop = (s32[], token[], f32[512,1024]{0,1}) while(init), condition=cond, body=body
  ROOT r = f32[512,1024]{0,1} get-tuple-element(loop), index=2
}"""


def test_a_loop_carries_what_its_body_returns_and_tokens_are_not_copied() -> None:  # A30
    run = Run(INFEED_LOOP)

    assert run.operands("loop") == ["tuple(init[0], init[1], copy{1,0}(init[2]))"]
    assert run.layout("br") == "({}, token[], {1,0})"
    assert run.layout("ibuf") == "{0,1}"


def test_a_constrained_variadic_all_reduce_keeps_its_layouts() -> None:  # A43
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[8,4]{0,1}, f32[16,2]{0,1}))->(f32[8,4]{1,0}, f32[16,2]{1,0})}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = (f32[8,4]{0,1}, f32[16,2]{0,1}) parameter(0)
  g0 = f32[8,4] get-tuple-element(p), index=0
  g1 = f32[16,2] get-tuple-element(p), index=1
  a = (f32[8,4]{0,1}, f32[16,2]{1,0}) all-reduce(g0, g1), replica_groups={}, constrain_layout=true, to_apply=sum
  g2 = f32[8,4] get-tuple-element(a), index=0
  g3 = f32[16,2] get-tuple-element(a), index=1
  ROOT r = (f32[8,4]{1,0}, f32[16,2]{1,0}) tuple(g2, g3)
}"""
    )

    assert run.layout("a") == "({0,1}, {1,0})"
    assert run.operands("a") == ["g0", "copy{1,0}(g1)"]


def test_a_constrained_collective_in_front_of_a_concatenate() -> None:  # A44
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[16,4]{0,1}, f32[16,4]{1,0}))->f32[16,8]{0,1}}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = (f32[16,4]{0,1}, f32[16,4]{1,0}) parameter(0)
  g0 = f32[16,4] get-tuple-element(p), index=0
  g1 = f32[16,4] get-tuple-element(p), index=1
  a = (f32[16,4]{1,0}, f32[16,4]{1,0}) all-reduce(g0, g1), replica_groups={{0,1}}, constrain_layout=true, to_apply=sum
  g2 = f32[16,4] get-tuple-element(a), index=0
  g3 = f32[16,4] get-tuple-element(a), index=1
  ROOT c = f32[16,8]{0,1} concatenate(g2, g3), dimensions={1}
}"""
    )

    assert run.layout("a") == "({1,0}, {1,0})"
    assert run.operands("a") == ["copy{1,0}(g0)", "g1"]


def test_callers_first_spares_copies_across_computations() -> None:  # A46
    run = Run(
        """
HloModule m, entry_computation_layout={(pred[], f32[93184,4]{0,1})->f32[2,512,364]{0,1,2}}
called {
  c = (f32[93184,4]) parameter(0)
  cg = f32[93184,4] get-tuple-element(c), index=0
  ROOT cr = f32[2,512,364] reshape(cg)
}
yes {
  y = (f32[93184,4]) parameter(0)
  yg = f32[93184,4] get-tuple-element(y), index=0
  ROOT yr = f32[2,512,364] reshape(yg)
}
no {
  n = (f32[93184,4]) parameter(0)
  ng = f32[93184,4] get-tuple-element(n), index=0
  nr = f32[2,512,364] reshape(ng)
  ROOT na = f32[2,512,364] add(nr, nr)
}
ENTRY e {
  p = pred[] parameter(0)
  q = f32[93184,4] parameter(1)
  t = (f32[93184,4]) tuple(q)
  u = f32[2,512,364] call(t), to_apply=called
  v = f32[2,512,364] conditional(p, t, t), true_computation=yes, false_computation=no
  ROOT a = f32[2,512,364] add(u, v)
}""",
        order=ComputationOrder.REVERSE,
    )

    assert run.layouts("cr", "yr", "nr") == dict.fromkeys(["cr", "yr", "nr"], "{0,1,2}")


def test_a_pipelined_send_in_a_loop_runs() -> None:  # A56
    run = Run(
        """
HloModule m
cond {
  c = (f32[100,100], (f32[100,100], u32[], token[])) parameter(0)
  ROOT lt = pred[] constant(true)
}
body {
  b = (f32[100,100], (f32[100,100], u32[], token[])) parameter(0)
  x = f32[100,100] get-tuple-element(b), index=0
  t = (f32[100,100], u32[], token[]) get-tuple-element(b), index=1
  done = token[] send-done(t), channel_id=1
  k = token[] after-all()
  s = (f32[100,100], u32[], token[]) send(x, k), channel_id=1
  a = f32[100,100] add(x, x)
  ROOT br = (f32[100,100], (f32[100,100], u32[], token[])) tuple(a, s)
}
ENTRY e {
  p = f32[100,100] parameter(0)
  start = token[] after-all()
  sent = (f32[100,100], u32[], token[]) send(p, start), channel_id=1
  init = (f32[100,100], (f32[100,100], u32[], token[])) tuple(p, sent)
  loop = (f32[100,100], (f32[100,100], u32[], token[])) while(init), condition=cond, body=body
  last = (f32[100,100], u32[], token[]) get-tuple-element(loop), index=1
  done2 = token[] send-done(last), channel_id=1
  ROOT r = f32[100,100] get-tuple-element(loop), index=0
}"""
    )

    assert run.layout("loop") == "({1,0}, ({1,0}, {}, token[]))"


def test_a_loop_without_any_layouts_runs() -> None:  # A57
    run = Run(
        """
HloModule m
cond {
  c = (f32[5,16], u32[]) parameter(0)
  n = u32[] get-tuple-element(c), index=1
  eight = u32[] constant(8)
  ROOT lt = pred[] compare(n, eight), direction=LT
}
body {
  b = (f32[5,16], u32[]) parameter(0)
  x = f32[5,16] get-tuple-element(b), index=0
  i = u32[] get-tuple-element(b), index=1
  one = u32[] constant(1)
  next = u32[] add(i, one)
  a = f32[5,16] add(x, x)
  ROOT br = (f32[5,16], u32[]) tuple(a, next)
}
ENTRY e {
  p = f32[5,16] parameter(0)
  zero = u32[] constant(0)
  init = (f32[5,16], u32[]) tuple(p, zero)
  loop = (f32[5,16], u32[]) while(init), condition=cond, body=body
  ROOT r = f32[5,16] get-tuple-element(loop), index=0
}""",
        options=WITHOUT_LAYOUTS,
    )

    assert run.layout("loop") == "({1,0}, {})"
    assert run.copies == []


def test_scan_in_one_dimension_has_no_copy() -> None:  # A66
    run = Run(
        """
HloModule m
f {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  a = f32[] add(x, y)
  ROOT t = (f32[], f32[]) tuple(a, a)
}
ENTRY e {
  p = f32[100] parameter(0)
  z = f32[] constant(0)
  ROOT s = (f32[100], f32[]) scan(p, z), dimensions={0}, num_carries=1, is_associative=true, to_apply=f
}"""
    )

    assert run.layout("s") == "({0}, {})"
    assert run.copies == []


def test_the_result_layout_of_a_scan_reaches_its_operand() -> None:  # A67
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[100,200])->(f32[100,200]{0,1}, f32[200]{0})}
f {
  x = f32[200] parameter(0)
  y = f32[200] parameter(1)
  a = f32[200] add(x, y)
  ROOT t = (f32[200], f32[200]) tuple(a, a)
}
ENTRY e {
  p = f32[100,200] parameter(0)
  z = f32[] constant(0)
  i = f32[200] broadcast(z), dimensions={}
  ROOT s = (f32[100,200], f32[200]) scan(p, i), dimensions={0}, num_carries=1, is_associative=true, to_apply=f
}"""
    )

    assert run.layout("s") == "({0,1}, {0})"
    assert run.layout("p") == "{0,1}"
    assert run.copies == []


def test_a_scan_along_a_middle_dimension_keeps_layout_too() -> None:  # A68
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[30,40,50])->(f32[30,40,50]{0,2,1}, f32[30,50]{0,1})}
f {
  x = f32[30,50] parameter(0)
  y = f32[30,50] parameter(1)
  a = f32[30,50] add(x, y)
  ROOT t = (f32[30,50], f32[30,50]) tuple(a, a)
}
ENTRY e {
  p = f32[30,40,50] parameter(0)
  z = f32[] constant(0)
  i = f32[30,50] broadcast(z), dimensions={}
  ROOT s = (f32[30,40,50], f32[30,50]) scan(p, i), dimensions={1}, num_carries=1, is_associative=true, to_apply=f
}"""
    )

    assert run.layout("s") == "({0,2,1}, {0,1})"
    assert run.layout("p") == "{0,2,1}"


def test_a_branch_that_is_also_called_is_cloned() -> None:  # A69
    run = Run(
        """
HloModule m
shared {
  x = f32[2,8] parameter(0)
  ROOT n = f32[2,8] negate(x)
}
ENTRY e {
  p = f32[2,8] parameter(0)
  c = pred[] parameter(1)
  u = f32[2,8] call(p), to_apply=shared
  v = f32[2,8] conditional(c, p, p), true_computation=shared, false_computation=shared
  ROOT a = f32[2,8] add(u, v)
}"""
    )
    called = [c.name for c in run["v"].called_computations]

    assert called == ["shared.clone", "shared.clone"]
    assert run["u"].to_apply.name == "shared"


BRANCH_COPY = """
HloModule m, entry_computation_layout={(pred[], f32[8,16]{1,0}, f32[16,8]{1,0})->f32[16,8]{1,0}}
yes {
  y = f32[8,16] parameter(0)
  ROOT t = f32[16,8] transpose(y), dimensions={1,0}
}
no {
  x = f32[16,8] parameter(0)
  ROOT n = f32[16,8] negate(x)
}
ENTRY e {
  c = pred[] parameter(0)
  p = f32[8,16] parameter(1)
  q = f32[16,8] parameter(2)
  ROOT r = f32[16,8] conditional(c, p, q), true_computation=yes, false_computation=no
}"""


def test_a_copy_only_one_branch_needs_goes_into_the_branch() -> None:  # F6
    run = Run(BRANCH_COPY)

    assert run.operands("n") == ["copy{0,1}(x)"]
    assert run.operands("r") == ["c", "p", "q"]
    assert run.expression(run.root) == "copy{1,0}(r)"
    assert [c.copy.name for c in run.result.copies] == ["copy", "copy.1"]
    assert [c.kind for c in run.result.copies] == [CopyKind.BRANCH_PARAMETER, CopyKind.ROOT]


def test_a_loop_body_and_condition_take_the_bodys_layout() -> None:  # F5
    run = Run(
        """
HloModule m, entry_computation_layout={(s32[], f32[8,16]{0,1})->f32[8,16]{1,0}}
cond {
  c = (s32[], f32[8,16]) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  four = s32[] constant(4)
  ROOT lt = pred[] compare(n, four), direction=LT
}
body {
  b = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  x = f32[8,16] get-tuple-element(b), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = f32[8,16] add(x, x)
  ROOT br = (s32[], f32[8,16]) tuple(next, a)
}
ENTRY e {
  z = s32[] parameter(0)
  p = f32[8,16] parameter(1)
  init = (s32[], f32[8,16]) tuple(z, p)
  loop = (s32[], f32[8,16]) while(init), condition=cond, body=body
  ROOT r = f32[8,16] get-tuple-element(loop), index=1
}"""
    )

    assert run.layouts("b", "c", "loop") == dict.fromkeys(["b", "c", "loop"], "({}, {1,0})")
    assert run.operands("loop") == ["tuple(init[0], copy{1,0}(init[1]))"]
    assert run.layout("r") == "{1,0}"


def test_a_constrained_reduce_scatter_has_its_layout_on_the_larger_operand_too() -> None:
    run = Run("""
HloModule m, replica_count=2, entry_computation_layout={(f32[8,4]{1,0})->f32[4,4]{1,0}}
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
ENTRY e {
  p = f32[8,4] parameter(0)
  ROOT r = f32[4,4]{0,1} reduce-scatter(p), dimensions={0}, replica_groups={{0,1}}, constrain_layout=true, to_apply=sum
}""")

    assert run.operands("r") == ["copy{0,1}(p)"]
    assert run.expression(run.root) == "copy{1,0}(r)"


def test_a_demand_after_that_of_a_constrained_reduce_scatter_is_followed_anew() -> None:
    # The GPU asks for the same layout, but XLA compares it with a shape of the result's size. So it is this demand that p, of
    # which the caller leaves the layout open, hears of first, and not that of the result of n.
    text = """
HloModule m, replica_count=4, entry_computation_layout={(f32[1,32])->(f32[1,16]{1,0}, f32[1,32]{1,0})}
sum {
  ROOT x = f32[] parameter(0)
  y = f32[] parameter(1)
}
ENTRY e {
  p = f32[1,32] parameter(0)
  s = f32[1,16]{0,1} reduce-scatter(p), replica_groups={{0,1},{2,3}}, constrain_layout=true, dimensions={1}, to_apply=sum
  n = f32[1,32] negate(p)
  ROOT t = (f32[1,16], f32[1,32]) tuple(s, n)
}"""
    run = Run(text, GPU)

    assert run.layout("p") == "{0,1}"
    assert run.operands("s") == ["p"]
