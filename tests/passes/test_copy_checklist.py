"""More of the memory spec's checklist of copy insertion: modules of several computations, one fact each (85, 89, 91 to 99).

Counts are those of XLA's own tests of the same situation; ``R`` in the spec stands for region analysis.
"""

from collections import Counter

import pytest

from layoutsim.ir import Module, Opcode
from layoutsim.passes.copy_insertion import CopyInsertion, remove_unnecessary_copies
from layoutsim.passes.sharing_rules import SharingRules
from layoutsim.text import parse_module


def _inserted(text: str, *, rules: SharingRules = SharingRules.DEFAULT, region_analysis: bool = False) -> Module:
    module = parse_module(text)
    CopyInsertion(rules=rules, region_analysis=region_analysis).run(module)
    return module


def _copies(module: Module) -> dict[str, int]:
    return dict(Counter(c.name for c in module.computations for i in c.instructions if i.opcode is Opcode.COPY))


def _root_operands(module: Module, computation: str) -> list[Opcode]:
    return [operand.opcode for operand in module.find_computation(computation).root.operands]


_NESTED_CARRY = """HloModule m
cond {
  cp = (s32[], (f32[8], f32[8])) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(10)
  ROOT less = pred[] compare(ci, cn), direction=LT
}
body {
  p = (s32[], (f32[8], f32[8])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  pair = (f32[8], f32[8]) get-tuple-element(p), index=1
  a = f32[8] get-tuple-element(pair), index=0
  b = f32[8] get-tuple-element(pair), index=1
  sum = f32[8] add(a, b)
  both = (f32[8], f32[8]) tuple(sum, sum)
  ROOT t = (s32[], (f32[8], f32[8])) tuple(next, both)
}
ENTRY e {
  zero = s32[] constant(0)
  f = f32[] constant(0)
  v = f32[8] broadcast(f), dimensions={}
  inner = (f32[8], f32[8]) tuple(v, v)
  init = (s32[], (f32[8], f32[8])) tuple(zero, inner)
  w = (s32[], (f32[8], f32[8])) while(init), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=0
}
"""


@pytest.mark.checklist(85)
def test_one_value_for_two_elements_is_copied_once_before_the_loop_and_once_in_it() -> None:
    # Before the loop: the counter's constant, and one of the two elements that are the same broadcast.
    # In the body: one of the two elements that are the same sum.
    assert _copies(_inserted(_NESTED_CARRY)) == {"body": 1, "e": 2}


@pytest.mark.checklist(81)
def test_the_plain_copy_at_the_root_goes_and_the_sum_is_the_root() -> None:
    module = _inserted(
        "HloModule m\nENTRY e {\n  c = f32[2,2]{1,0} constant({{1, 2}, {3, 4}})\n  a = f32[2,2]{0,1} copy(c)\n"
        "  b = f32[2,2]{0,1} copy(c)\n  s = f32[2,2]{0,1} add(a, b)\n  ROOT r = f32[2,2]{0,1} copy(s)\n}\n"
    )

    assert (module.entry.root.opcode, _copies(module)) == (Opcode.ADD, {"e": 2})


def _chained_loops(count: int) -> str:
    state = "(f32[42], f32[42], f32[42], f32[42])"
    computations: list[str] = []
    entry = [f"  p{n} = f32[42] parameter({n})" for n in range(4)]
    carried = ["p1", "p2", "p3"]
    for n in range(count):
        computations.append(
            f"cond{n} {{\n  c{n} = {state} parameter(0)\n  ROOT g{n} = pred[] constant(false)\n}}\n"
            f"body{n} {{\n  state{n} = {state} parameter(0)\n"
            + "".join(f"  s{n}_{k} = f32[42] get-tuple-element(state{n}), index={k}\n" for k in range(4))
            + f"  neg{n} = f32[42] negate(s{n}_2)\n  rev{n} = f32[42] reverse(s{n}_3), dimensions={{0}}\n"
            f"  ROOT t{n} = {state} tuple(s{n}_0, s{n}_1, neg{n}, rev{n})\n}}\n"
        )
        entry += [
            f"  i{n} = {state} tuple(p0, {', '.join(carried)})",
            f"  {'ROOT ' if n == count - 1 else ''}w{n} = {state} while(i{n}), condition=cond{n}, body=body{n}",
        ]
        carried = [f"w{n}_{k}" for k in (1, 2, 3)]
        if n < count - 1:
            entry += [f"  w{n}_{k} = f32[42] get-tuple-element(w{n}), index={k}" for k in (1, 2, 3)]
    return "HloModule m\n" + "".join(computations) + "ENTRY e {\n" + "\n".join(entry) + "\n}\n"


@pytest.mark.checklist(89)
@pytest.mark.parametrize("count", [1, 3, 5])
def test_each_element_of_chained_loops_is_copied_once_and_each_body_copies_what_it_reverses(count: int) -> None:
    module = _inserted(_chained_loops(count))

    # The two changed elements before the first loop, the two passed through at the root, and one reverse in each body.
    assert _copies(module) == {"e": 4} | {f"body{n}": 1 for n in range(count)}
    first = module.entry.find("w0").operand(0)
    assert [o.opcode for o in first.operands] == [Opcode.PARAMETER, Opcode.PARAMETER, Opcode.COPY, Opcode.COPY]
    assert _root_operands(module, "e")[:2] == [Opcode.COPY, Opcode.COPY]


# -- in place -----------------------------------------------------------------------------------------------------------------

_FUSED_UPDATE = """fused {
  x = f32[8] parameter(0)
  c = s32[] constant(0)
  f = f32[] constant(1)
  u = f32[2] broadcast(f), dimensions={}
  ROOT d = f32[8] dynamic-update-slice(x, u, c)
}
"""


def _fused_update(lines: str) -> str:
    return f"HloModule m\n{_FUSED_UPDATE}ENTRY e {{\n  p = f32[8] parameter(0)\n  n = f32[8] negate(p)\n{lines}\n}}\n"


@pytest.mark.checklist(91)
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("  ROOT f1 = f32[8] fusion(n), kind=kLoop, calls=fused", {}),
        ("  f1 = f32[8] fusion(n), kind=kLoop, calls=fused\n  ROOT s = f32[8] add(f1, n)", {"e": 1}),
        ("  ROOT f1 = f32[8] fusion(p), kind=kLoop, calls=fused", {"e": 1}),
    ],
)
def test_a_fused_update_copies_what_is_read_later_or_belongs_to_the_caller(lines: str, expected: dict[str, int]) -> None:
    assert _copies(_inserted(_fused_update(lines))) == expected


def _two_fused_updates(second: str) -> str:
    shape = "(f32[8], f32[8], f32[8])"
    return f"""HloModule m
fused {{
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  z = f32[8] parameter(2)
  c = s32[] constant(0)
  f = f32[] constant(1)
  u = f32[2] broadcast(f), dimensions={{}}
  s = f32[8] add(x, x)
  d = f32[8] dynamic-update-slice(y, u, c)
  d2 = f32[8] dynamic-update-slice(z, u, c)
  ROOT t = {shape} tuple(s, d, d2)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  n0 = f32[8] negate(p)
  n1 = f32[8] negate(p)
  n2 = f32[8] negate(p)
  fu = {shape} fusion(n0, n1, n2), kind=kLoop, calls=fused
  g0 = f32[8] get-tuple-element(fu), index=0
  g1 = f32[8] get-tuple-element(fu), index=1
  g2 = f32[8] get-tuple-element(fu), index=2
  a0 = f32[8] add(n0, g0)
  a1 = f32[8] add({second}, g1)
  a2 = f32[8] add(n2, g2)
  ROOT r = {shape} tuple(a0, a1, a2)
}}
"""


@pytest.mark.checklist(91)
@pytest.mark.parametrize(("second", "expected"), [("n1", 2), ("g1", 1)])
def test_a_fusion_with_two_updates_copies_each_source_that_is_read_later(second: str, expected: int) -> None:
    assert _copies(_inserted(_two_fused_updates(second))) == {"e": expected}


@pytest.mark.checklist(92)
def test_a_variadic_scatter_of_one_array_copies_all_but_the_first() -> None:
    module = _inserted(
        """HloModule m
update {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  x = s32[] parameter(3)
  y = s32[] parameter(4)
  z = s32[] parameter(5)
  ROOT t = (s32[], s32[], s32[]) tuple(x, y, z)
}
ENTRY e {
  idx = s32[8,1] parameter(0)
  data = s32[8] iota(), iota_dimension=0
  new = s32[8] iota(), iota_dimension=0
  ROOT s = (s32[8], s32[8], s32[8]) scatter(data, data, data, idx, new, new, new), update_window_dims={},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=update
}
""",
        region_analysis=True,
    )

    assert _root_operands(module, "e")[:3] == [Opcode.IOTA, Opcode.COPY, Opcode.COPY]
    assert _copies(module) == {"e": 2}


# -- branches -----------------------------------------------------------------------------------------------------------------


def _branches(root: str) -> str:
    """One branch negates its operand, the other returns a copy of its own."""
    return f"""HloModule m
first {{
  p = (s32[2]) parameter(0)
  x = s32[2] get-tuple-element(p), index=0
  n = s32[2] negate(x)
  c = s32[2] copy(n)
  ROOT t = (s32[2]) tuple(c)
}}
second {{
  q = (s32[2]) parameter(0)
  y = s32[2] get-tuple-element(q), index=0
  c1 = s32[2] copy(y)
  ROOT u = (s32[2]) tuple(c1)
}}
ENTRY e {{
  i = s32[] parameter(0)
  a = s32[2] parameter(1)
  b = s32[2] parameter(2)
  ta = (s32[2]) tuple(a)
  tb = (s32[2]) tuple(b)
  {root}
}}
"""


_CONDITIONAL = "cond = (s32[2]) conditional(i, tb, ta), branch_computations={first, second}"
_ELEMENT = "\n  g = s32[2] get-tuple-element(cond), index=0\n  ROOT r = (s32[2], s32[2]) "


@pytest.mark.checklist(94)
@pytest.mark.parametrize(
    ("root", "returned"),
    [
        (_CONDITIONAL + _ELEMENT + "tuple(a, g)", Opcode.COPY),  # the operand is returned too
        (f"ROOT {_CONDITIONAL}", Opcode.COPY),  # a parameter must not be the result
    ],
)
def test_the_copy_of_a_branch_stays_where_its_operand_lives_on(root: str, returned: Opcode) -> None:
    assert _root_operands(_inserted(_branches(root), region_analysis=True), "second") == [returned]


@pytest.mark.checklist(94)
def test_the_copy_of_a_branch_goes_where_only_the_conditional_is_returned() -> None:
    module = _inserted(_branches(_CONDITIONAL + _ELEMENT + "tuple(g, g)"), region_analysis=True)

    assert "second" not in _copies(module)


@pytest.mark.checklist(95)
def test_a_branch_that_returns_one_value_twice_copies_it_once() -> None:
    module = _inserted(
        """HloModule m
first {
  p = f64[] parameter(0)
  n = f64[] negate(p)
  ROOT t = (f64[], f64[]) tuple(n, n)
}
fused {
  x = f64[] parameter(0)
  a = f64[] abs(x)
  m = f64[] negate(x)
  ROOT u = (f64[], f64[]) tuple(m, a)
}
second {
  q = f64[] parameter(0)
  ROOT f = (f64[], f64[]) fusion(q), kind=kLoop, calls=fused
}
ENTRY e {
  i = s32[] parameter(0)
  v = f64[] parameter(1)
  w = f64[] parameter(2)
  ROOT c = (f64[], f64[]) conditional(i, v, w), branch_computations={first, second}
}
""",
        region_analysis=True,
    )

    assert _copies(module) == {"first": 1}


# -- order --------------------------------------------------------------------------------------------------------------------


@pytest.mark.checklist(96)
def test_results_over_donated_parameters_are_ordered_and_one_is_copied() -> None:
    module = _inserted(
        """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  add = f32[3] add(x, y)
  mul = f32[3] multiply(x, y)
  ROOT r = (f32[3], f32[3]) tuple(add, mul)
}
""",
        region_analysis=True,
    )
    instructions = {i.opcode: i for i in module.entry.instructions}

    # The product goes elsewhere, the sum over x once both have read it, and the copy over y behind the sum.
    assert _copies(module) == {"e": 1}
    assert [i.name for i in instructions[Opcode.ADD].control_predecessors] == ["mul"]
    assert [i.name for i in instructions[Opcode.COPY].control_predecessors] == ["add"]


@pytest.mark.checklist(97)
def test_a_copy_behind_a_root_that_is_not_last_stays() -> None:
    module = parse_module("""HloModule m, is_scheduled=true
body2 {
  sb = (f32[2]) parameter(0)
  x2 = f32[2] get-tuple-element(sb), index=0
  a2 = f32[2] add(x2, x2)
  ROOT t2 = (f32[2]) tuple(a2)
}
cond2 {
  cb = (f32[2]) parameter(0)
  ROOT g2 = pred[] constant(true)
}
body {
  s = (f32[2]) parameter(0)
  x = f32[2] get-tuple-element(s), index=0
  ROOT t = (f32[2]) tuple(x)
  copy = f32[2] copy(x)
  i = (f32[2]) tuple(copy)
  inner = (f32[2]) while(i), condition=cond2, body=body2
}
cond {
  c = (f32[2]) parameter(0)
  ROOT g = pred[] constant(true)
}
ENTRY e {
  k = f32[2] constant({1, 2})
  init = (f32[2]) tuple(k)
  ROOT w = (f32[2]) while(init), condition=cond, body=body
}
""")
    remove_unnecessary_copies(module, SharingRules.DEFAULT.rules, region_analysis=True)

    # The root lives on beside the inner loop, which writes what it is given.
    assert module.find("body", "inner").operand(0).operand(0).opcode is Opcode.COPY


@pytest.mark.checklist(98)
def test_a_receive_in_flight_across_iterations_needs_no_copy() -> None:
    module = _inserted("""HloModule m
cond {
  cp = ((f32[16], u32[], token[])) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = ((f32[16], u32[], token[])) parameter(0)
  flying = (f32[16], u32[], token[]) get-tuple-element(p), index=0
  done = (f32[16], token[]) recv-done(flying), channel_id=1
  after = token[] after-all()
  start = (f32[16], u32[], token[]) recv(after), channel_id=1
  ROOT t = ((f32[16], u32[], token[])) tuple(start)
}
ENTRY e {
  tok = token[] after-all()
  first = (f32[16], u32[], token[]) recv(tok), channel_id=1
  init = ((f32[16], u32[], token[])) tuple(first)
  w = ((f32[16], u32[], token[])) while(init), condition=cond, body=body
  g = (f32[16], u32[], token[]) get-tuple-element(w), index=0
  last = (f32[16], token[]) recv-done(g), channel_id=1
  ROOT r = f32[16] get-tuple-element(last), index=0
}
""")

    assert _copies(module) == {}
    assert [i.name for i in module.find("body", "start").control_predecessors] == ["done"]


# -- in place on GPUs ---------------------------------------------------------------------------------------------------------

_PERMUTES = """HloModule m
ENTRY e {
  id = u32[] replica-id()
  source = u32[2,8,128] broadcast(id), dimensions={}
  k = u32[] constant(1000)
  small = u32[2,8,128] broadcast(k), dimensions={}
  large = u32[4,8,128] broadcast(k), dimensions={}
  z = s32[] constant(0)
  o = s32[] constant(1)
  in = (u32[2,8,128], u32[2,8,128]) tuple(source, source)
  out = (u32[2,8,128], u32[4,8,128]) tuple(small, large)
  zero = (s32[], s32[], s32[]) tuple(z, z, z)
  one = (s32[], s32[], s32[]) tuple(o, z, z)
  pair = ((s32[], s32[], s32[]), (s32[], s32[], s32[])) tuple(zero, one)
  from = (((s32[], s32[], s32[]), (s32[], s32[], s32[])), ((s32[], s32[], s32[]), (s32[], s32[], s32[]))) tuple(pair, pair)
  to = (((s32[], s32[], s32[]), (s32[], s32[], s32[])), ((s32[], s32[], s32[]), (s32[], s32[], s32[]))) tuple(pair, pair)
  p0 = (u32[2,8,128], u32[4,8,128]) collective-permute(in, out, from, to),
    source_target_pairs={{0,1},{1,2},{2,3},{3,0},{0,3},{3,2},{2,1},{1,0}},
    slice_sizes={{1,8,128},{1,8,128},{2,8,128},{2,8,128}}
  p1 = (u32[2,8,128], u32[4,8,128]) collective-permute(in, out, from, to),
    source_target_pairs={{0,1},{1,2},{2,3},{3,0},{0,3},{3,2},{2,1},{1,0}},
    slice_sizes={{1,8,128},{1,8,128},{2,8,128},{2,8,128}}
  ROOT t = ((u32[2,8,128], u32[4,8,128]), (u32[2,8,128], u32[4,8,128])) tuple(p0, p1)
}
"""


@pytest.mark.checklist(99)
def test_two_permutes_into_one_output_copy_its_parts_for_each() -> None:
    # Two parts of the output tuple, for each of the two permutes.
    assert _copies(_inserted(_PERMUTES)) == {"e": 4}


@pytest.mark.checklist(99)
def test_a_loop_unrolled_for_double_buffering_needs_no_copy_in_its_body() -> None:
    state = "(f32[1,128], f32[1,128], f32[2,128], s32[])"
    module = _inserted(
        f"""HloModule m
body {{
  s = {state} parameter(0)
  x = f32[1,128] get-tuple-element(s), index=0
  w = f32[2,128] get-tuple-element(s), index=2
  i = s32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  used = f32[1,128] dynamic-slice(w, one, zero), dynamic_slice_sizes={{1,128}}
  i1 = s32[] add(i, one)
  f = f32[] constant(0)
  fs = f32[1,128] broadcast(f), dimensions={{}}
  a = f32[1,128] add(fs, x)
  st = (f32[1,128], f32[2,128]) all-gather-start(a), channel_id=1, replica_groups={{{{0,1}}}}, dimensions={{0}},
    use_global_device_ids=true
  dn = f32[2,128] all-gather-done(st)
  part = f32[1,128] dynamic-slice(dn, one, zero), dynamic_slice_sizes={{1,128}}
  fs2 = f32[1,128] broadcast(f), dimensions={{}}
  a2 = f32[1,128] add(fs2, x)
  st2 = (f32[1,128], f32[2,128]) all-gather-start(a2), channel_id=2, replica_groups={{{{0,1}}}}, dimensions={{0}},
    use_global_device_ids=true
  dn2 = f32[2,128] all-gather-done(st2)
  i2 = s32[] add(i1, one)
  ROOT t = {state} tuple(x, part, dn2, i2)
}}
cond {{
  c = {state} parameter(0)
  ci = s32[] get-tuple-element(c), index=3
  cn = s32[] constant(10)
  ROOT less = pred[] compare(ci, cn), direction=LT
}}
ENTRY e {{
  p = f32[1,128] parameter(0)
  q = f32[2,128] parameter(1)
  one = s32[] constant(1)
  zero = s32[] constant(0)
  first = f32[1,128] dynamic-slice(q, one, zero), dynamic_slice_sizes={{1,128}}
  f = f32[] constant(0)
  fs = f32[1,128] broadcast(f), dimensions={{}}
  a = f32[1,128] add(fs, p)
  st = (f32[1,128], f32[2,128]) all-gather-start(a), channel_id=3, replica_groups={{{{0,1}}}}, dimensions={{0}},
    use_global_device_ids=true
  dn = f32[2,128] all-gather-done(st)
  n = s32[] add(zero, one)
  init = {state} tuple(p, first, dn, n)
  ROOT w = {state} while(init), condition=cond, body=body
}}
""",
        rules=SharingRules.NVIDIA,
    )

    assert "body" not in _copies(module)


@pytest.mark.checklist(99)
def test_a_fused_update_behind_a_bitcast_needs_no_copy_in_its_loop() -> None:
    state = "(bf16[2,4,8]{2,1,0}, bf16[5,2,8,4]{2,3,1,0}, s32[])"
    module = _inserted(
        f"""HloModule m
fused {{
  u = bf16[2,4,8]{{2,1,0}} parameter(0)
  x = bf16[5,2,8,4]{{2,3,1,0}} parameter(1)
  i = s32[] parameter(2)
  xb = bf16[5,2,4,8]{{3,2,1,0}} bitcast(x)
  ub = bf16[1,2,4,8]{{3,2,1,0}} bitcast(u)
  z = s32[] constant(0)
  ROOT d = bf16[5,2,4,8]{{3,2,1,0}} dynamic-update-slice(xb, ub, i, z, z, z)
}}
cond {{
  c = {state} parameter(0)
  ci = s32[] get-tuple-element(c), index=2
  cn = s32[] constant(5)
  ROOT less = pred[] compare(ci, cn), direction=LT
}}
body {{
  s = {state} parameter(0)
  a = bf16[2,4,8]{{2,1,0}} get-tuple-element(s), index=0
  b = bf16[5,2,8,4]{{2,3,1,0}} get-tuple-element(s), index=1
  i = s32[] get-tuple-element(s), index=2
  f = bf16[5,2,4,8]{{3,2,1,0}} fusion(a, b, i), kind=kLoop, calls=fused
  fb = bf16[5,2,8,4]{{2,3,1,0}} bitcast(f)
  one = s32[] constant(1)
  n = s32[] add(i, one), control-predecessors={{f}}
  ROOT t = {state} tuple(a, fb, n)
}}
ENTRY e {{
  p = bf16[2,4,8]{{2,1,0}} parameter(0)
  q = bf16[5,2,8,4]{{2,3,1,0}} parameter(1)
  zero = s32[] constant(0)
  init = {state} tuple(p, q, zero)
  w = {state} while(init), condition=cond, body=body
  ROOT r = bf16[5,2,8,4]{{2,3,1,0}} get-tuple-element(w), index=1
}}
""",
        rules=SharingRules.NVIDIA,
    )

    # Before the loop the stack, which is the caller's, and the counter's constant.
    assert _copies(module) == {"e": 2}
