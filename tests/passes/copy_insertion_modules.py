"""Small modules for the tests of copy insertion; each says what is special about it (memory spec, checklist 80 to 99)."""

PARAMETER_IN_TUPLE = """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT t = (f32[4]) tuple(p)
}
"""

CONSTANT_IN_TUPLE = """
HloModule m
ENTRY e {
  c = f32[4] constant({1, 2, 3, 4})
  ROOT t = (f32[4]) tuple(c)
}
"""

BITCAST_OF_PARAMETER = """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT b = f32[2,2] bitcast(p)
}
"""

NESTED_PARAMETER_AS_ROOT = """
HloModule m
ENTRY e {
  ROOT p = ((f32[4], s32[]), f32[2]) parameter(0)
}
"""

LAYOUT_CHANGING_COPIES = """
HloModule m
ENTRY e {
  c = f32[2,2]{1,0} constant({{1, 2}, {3, 4}})
  a = f32[2,2]{0,1} copy(c)
  b = f32[2,2]{0,1} copy(c)
  s = f32[2,2]{0,1} add(a, b)
  ROOT r = f32[2,2]{0,1} copy(s)
}
"""

_CONDITION = """
cond {
  cp = (s32[], f32[8]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(10)
  ROOT less = pred[] compare(ci, cn), direction=LT
}
"""

INDEPENDENT_ADDS = f"""
HloModule m
{_CONDITION}
body {{
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(p), index=1
  f = f32[] constant(2)
  fs = f32[8] broadcast(f), dimensions={{}}
  y = f32[8] add(x, fs)
  ROOT t = (s32[], f32[8]) tuple(next, y)
}}
ENTRY e {{
  zero = s32[] constant(0)
  v = f32[8] constant({{0, 0, 0, 0, 0, 0, 0, 0}})
  init = (s32[], f32[8]) tuple(zero, v)
  ROOT w = (s32[], f32[8]) while(init), condition=cond, body=body
}}
"""

DEPENDENT_ADDS = f"""
HloModule m
{_CONDITION}
body {{
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(p), index=1
  fi = f32[] convert(i)
  fs = f32[8] broadcast(fi), dimensions={{}}
  y = f32[8] add(x, fs)
  ROOT t = (s32[], f32[8]) tuple(next, y)
}}
ENTRY e {{
  zero = s32[] constant(0)
  v = f32[8] constant({{0, 0, 0, 0, 0, 0, 0, 0}})
  init = (s32[], f32[8]) tuple(zero, v)
  ROOT w = (s32[], f32[8]) while(init), condition=cond, body=body
}}
"""

DEPENDENT_VECTORS = """
HloModule m
cond {
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  a2 = f32[8] negate(a)
  b2 = f32[8] add(b, a)
  ROOT t = (f32[8], f32[8]) tuple(a2, b2)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  init = (f32[8], f32[8]) tuple(x, y)
  ROOT w = (f32[8], f32[8]) while(init), condition=cond, body=body
}
"""

READ_ONLY_ELEMENT = """
HloModule m
cond {
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  b2 = f32[8] add(b, a)
  ROOT t = (f32[8], f32[8]) tuple(a, b2)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ny = f32[8] negate(y)
  init = (f32[8], f32[8]) tuple(x, ny)
  w = (f32[8], f32[8]) while(init), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""

TWO_LOOPS_FROM_ONE_PARAMETER = """
HloModule m
cond {
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  b2 = f32[8] add(b, a)
  ROOT t = (f32[8], f32[8]) tuple(a, b2)
}
cond2 {
  cp2 = (f32[8], f32[8]) parameter(0)
  ROOT yes2 = pred[] constant(true)
}
body2 {
  p2 = (f32[8], f32[8]) parameter(0)
  a2 = f32[8] get-tuple-element(p2), index=0
  b2 = f32[8] get-tuple-element(p2), index=1
  b22 = f32[8] add(b2, a2)
  ROOT t2 = (f32[8], f32[8]) tuple(a2, b22)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  init = (f32[8], f32[8]) tuple(x, y)
  w = (f32[8], f32[8]) while(init), condition=cond, body=body
  w2 = (f32[8], f32[8]) while(init), condition=cond2, body=body2
  r = f32[8] get-tuple-element(w), index=1
  r2 = f32[8] get-tuple-element(w2), index=1
  ROOT s = f32[8] add(r, r2)
}
"""

NESTED_CARRY_WITH_REVERSE = """
HloModule m
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
  inner = (f32[8], f32[8]) get-tuple-element(p), index=1
  a = f32[8] get-tuple-element(inner), index=0
  a2 = f32[8] add(a, a)
  b = f32[8] get-tuple-element(inner), index=1
  b2 = f32[8] reverse(b), dimensions={0}
  t1 = (f32[8], f32[8]) tuple(a2, b2)
  ROOT t = (s32[], (f32[8], f32[8])) tuple(next, t1)
}
ENTRY e {
  zero = s32[] constant(0)
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  inner = (f32[8], f32[8]) tuple(x, y)
  init = (s32[], (f32[8], f32[8])) tuple(zero, inner)
  ROOT w = (s32[], (f32[8], f32[8])) while(init), condition=cond, body=body
}
"""

INITIAL_VALUE_USED_AFTER_LOOP = f"""
HloModule m
{_CONDITION}
body {{
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(p), index=1
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(next, y)
}}
ENTRY e {{
  n = s32[] parameter(0)
  zero = s32[] negate(n)
  q = f32[8] parameter(1)
  v = f32[8] exponential(q)
  init = (s32[], f32[8]) tuple(zero, v)
  w = (s32[], f32[8]) while(init), condition=cond, body=body
  r = f32[8] get-tuple-element(w), index=1
  ROOT s = f32[8] add(r, v)
}}
"""

SAME_INITIAL_VALUE_TWICE = """
HloModule m
cond {
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  a2 = f32[8] negate(a)
  b2 = f32[8] add(b, a)
  ROOT t = (f32[8], f32[8]) tuple(a2, b2)
}
ENTRY e {
  c = f32[] constant(0)
  v = f32[8] broadcast(c), dimensions={}
  init = (f32[8], f32[8]) tuple(v, v)
  ROOT w = (f32[8], f32[8]) while(init), condition=cond, body=body
}
"""

SWIZZLE = """
HloModule m
cond {
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  ROOT t = (f32[8], f32[8]) tuple(b, a)
}
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  init = (f32[8], f32[8]) tuple(x, y)
  ROOT w = (f32[8], f32[8]) while(init), condition=cond, body=body
}
"""

SWIZZLE_WITH_NEGATE = SWIZZLE.replace("tuple(b, a)", "tuple(nb, a)").replace("  ROOT t", "  nb = f32[8] negate(b)\n  ROOT t")

SWIZZLE_OF_ONE_CONSTANT = """
HloModule m
cond {
  cp = (f32[8], f32[8]) parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = (f32[8], f32[8]) parameter(0)
  a = f32[8] get-tuple-element(p), index=0
  b = f32[8] get-tuple-element(p), index=1
  ROOT t = (f32[8], f32[8]) tuple(b, a)
}
ENTRY e {
  c = f32[8] constant({0, 0, 0, 0, 0, 0, 0, 0})
  init = (f32[8], f32[8]) tuple(c, c)
  ROOT w = (f32[8], f32[8]) while(init), condition=cond, body=body
}
"""


def donated(aliases: str, first: str = "a", second: str = "b") -> str:
    """Two parameters that are returned, with input/output aliasing."""
    header = f", input_output_alias={{ {aliases} }}" if aliases else ""
    return f"""
HloModule m{header}
ENTRY e {{
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  na = f32[8] negate(a)
  nb = f32[8] negate(b)
  ROOT t = (f32[8], f32[8]) tuple({first}, {second})
}}
"""


STRAIGHT = "{0}: (0, {}, may-alias), {1}: (1, {}, may-alias)"
CROSSED = "{0}: (1, {}, may-alias), {1}: (0, {}, may-alias)"
ONLY_SECOND = "{1}: (1, {}, may-alias)"

BITCAST_BESIDE_DONATED = """
HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[2,4] bitcast(a)
  ROOT t = (f32[2,4], f32[8]) tuple(b, a)
}
"""

CONSTANT_BODY_ROOT = """
HloModule m
cond {
  cp = f32[8] parameter(0)
  ROOT yes = pred[] constant(true)
}
body {
  p = f32[8] parameter(0)
  ROOT c = f32[8] constant({0, 0, 0, 0, 0, 0, 0, 0})
}
ENTRY e {
  x = f32[8] parameter(0)
  ROOT w = f32[8] while(x), condition=cond, body=body
}
"""

TOKEN_CARRY = """
HloModule m
cond {
  cp = (s32[], token[]) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(10)
  ROOT less = pred[] compare(ci, cn), direction=LT
}
body {
  p = (s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  old = token[] get-tuple-element(p), index=1
  new = token[] after-all(old)
  ROOT t = (s32[], token[]) tuple(next, new)
}
ENTRY e {
  n = s32[] parameter(0)
  tok = token[] after-all()
  init = (s32[], token[]) tuple(n, tok)
  w = (s32[], token[]) while(init), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=0
}
"""


def update(source: str, root: str = "d", lines: str = "") -> str:
    """A dynamic-update-slice of ``source``, one of ``p`` (a parameter) and ``n`` (computed)."""
    return f"""
HloModule m
ENTRY e {{
  p = f32[8] parameter(0)
  u = f32[2] parameter(1)
  i = s32[] parameter(2)
  n = f32[8] negate(p)
  d = f32[8] dynamic-update-slice({source}, u, i)
  {lines}
  ROOT r = (f32[8]) tuple({root})
}}
"""


TWO_UPDATES_OF_A_PARAMETER = update("p", "d2", "d2 = f32[8] dynamic-update-slice(d, u, i)")
READ_AFTER_UPDATE = update("n", "s", "s = f32[8] add(d, n)")

SCATTER_OF_ITS_OWN_UPDATES = """
HloModule m
assign {
  old = s32[] parameter(0)
  ROOT new = s32[] parameter(1)
}
ENTRY e {
  idx = s32[8,1] parameter(0)
  data = s32[8] iota(), iota_dimension=0
  ROOT s = s32[8] scatter(data, idx, data), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=assign
}
"""


def custom_call(source: str, root: str) -> str:
    """An in-place custom call on ``source``: a parameter ``p``, or ``n``, which is computed."""
    return f"""
HloModule m
ENTRY e {{
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  c = f32[8] custom-call({source}), custom_call_target="in_place", output_to_operand_aliasing={{{{}}: (0, {{}})}}
  s = f32[8] add(c, n)
  ROOT r = (f32[8]) tuple({root})
}}
"""


CONDITIONAL_ROOT = """
HloModule m
first {
  p = f32[8] parameter(0)
  ROOT c = f32[8] copy(p)
}
second {
  q = f32[8] parameter(0)
  ROOT n = f32[8] negate(q)
}
ENTRY e {
  x = f32[8] parameter(0)
  b = pred[] parameter(1)
  ROOT r = f32[8] conditional(b, x, x), true_computation=first, false_computation=second
}
"""

PASS_THROUGH_BESIDE_REVERSE = """
HloModule m
first {
  p = f32[8] parameter(0)
  ROOT t = (f32[8]) tuple(p)
}
second {
  q = f32[8] parameter(0)
  n = f32[8] reverse(q), dimensions={0}
  ROOT t2 = (f32[8]) tuple(n)
}
ENTRY e {
  x = f32[8] parameter(0)
  b = pred[] parameter(1)
  y = f32[8] exponential(x)
  c = (f32[8]) conditional(b, y, y), true_computation=first, false_computation=second
  ROOT r = f32[8] get-tuple-element(c), index=0
}
"""

RECEIVE_IN_LOOP = """
HloModule m
cond {
  cp = (s32[], (f32[8], u32[], token[])) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(10)
  ROOT less = pred[] compare(ci, cn), direction=LT
}
body {
  p = (s32[], (f32[8], u32[], token[])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  flying = (f32[8], u32[], token[]) get-tuple-element(p), index=1
  done = (f32[8], token[]) recv-done(flying), channel_id=1
  after = token[] after-all()
  start = (f32[8], u32[], token[]) recv(after), channel_id=1
  ROOT t = (s32[], (f32[8], u32[], token[])) tuple(next, start)
}
ENTRY e {
  n = s32[] parameter(0)
  tok = token[] after-all()
  first = (f32[8], u32[], token[]) recv(tok), channel_id=1
  init = (s32[], (f32[8], u32[], token[])) tuple(n, first)
  w = (s32[], (f32[8], u32[], token[])) while(init), condition=cond, body=body
  flying2 = (f32[8], u32[], token[]) get-tuple-element(w), index=1
  done2 = (f32[8], token[]) recv-done(flying2), channel_id=1
  ROOT r = f32[8] get-tuple-element(done2), index=0
}
"""

SEND_IN_LOOP = """
HloModule m
cond {
  cp = (s32[], f32[8], (f32[8], u32[], token[])) parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(10)
  ROOT less = pred[] compare(ci, cn), direction=LT
}
body {
  p = (s32[], f32[8], (f32[8], u32[], token[])) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(p), index=1
  flying = (f32[8], u32[], token[]) get-tuple-element(p), index=2
  done = token[] send-done(flying), channel_id=1
  after = token[] after-all()
  start = (f32[8], u32[], token[]) send(x, after), channel_id=1
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8], (f32[8], u32[], token[])) tuple(next, y, start)
}
ENTRY e {
  n = s32[] parameter(0)
  v = f32[8] parameter(1)
  tok = token[] after-all()
  first = (f32[8], u32[], token[]) send(v, tok), channel_id=1
  init = (s32[], f32[8], (f32[8], u32[], token[])) tuple(n, v, first)
  w = (s32[], f32[8], (f32[8], u32[], token[])) while(init), condition=cond, body=body
  flying2 = (f32[8], u32[], token[]) get-tuple-element(w), index=2
  done2 = token[] send-done(flying2), channel_id=1
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""
