"""Modules like the training step of the original report: stacks of weights, sliced layer by layer, gathered, multiplied."""

from hypothesis import strategies as st

from layoutsim.ir import Module
from layoutsim.text import parse_module


def _numbers(values: list[int]) -> str:
    return ",".join(map(str, values))


@st.composite
def stack_modules(draw: st.DrawFn) -> Module:
    """A loop over the layers of a stack of weights, all layouts default, four devices.

    The stack has its layers along any dimension. Each iteration slices a layer, gathers it along one of the other two,
    sometimes negates it or drops the dimension of size 1 before the gather, and multiplies it with what it carries.
    """
    axis = draw(st.integers(0, 2))
    gathered = draw(st.sampled_from([d for d in range(3) if d != axis]))
    layers, rows, columns = draw(st.integers(2, 4)), draw(st.sampled_from([2, 4, 8])), draw(st.sampled_from([2, 4, 8]))
    is_flat = draw(st.booleans())
    local = [rows, columns]
    local.insert(axis, layers)
    layer = [1 if d == axis else size for d, size in enumerate(local)]
    whole = [4 * size if d == gathered else size for d, size in enumerate(layer)]
    flat = [size for d, size in enumerate(layer) if d != axis]
    flat_gathered = sorted(d for d in range(3) if d != axis).index(gathered)
    flat_whole = [4 * size if d == flat_gathered else size for d, size in enumerate(flat)]
    contracting = draw(st.integers(0, 1))
    carried = [3, flat_whole[contracting]]
    product = [3, flat_whole[1 - contracting]]
    starts = ", ".join("i" if d == axis else "zero" for d in range(3))
    if is_flat:
        steps = f"""
  flat = f32[{_numbers(flat)}] reshape(slice)
  weights = f32[{_numbers(flat_whole)}] all-gather(flat), replica_groups={{{{0,1,2,3}}}}, dimensions={{{flat_gathered}}}"""
    else:
        steps = f"""
  gathered = f32[{_numbers(whole)}] all-gather(slice), replica_groups={{{{0,1,2,3}}}}, dimensions={{{gathered}}}
  weights = f32[{_numbers(flat_whole)}] reshape(gathered)"""
    state = f"(s32[], f32[{_numbers(carried)}], f32[{_numbers(product)}], f32[{_numbers(local)}])"
    return parse_module(f"""HloModule stack, replica_count=4
body {{
  state = {state} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[{_numbers(carried)}] get-tuple-element(state), index=1
  sum = f32[{_numbers(product)}] get-tuple-element(state), index=2
  stack = f32[{_numbers(local)}] get-tuple-element(state), index=3
  zero = s32[] constant(0)
  slice = f32[{_numbers(layer)}] dynamic-slice(stack, {starts}), dynamic_slice_sizes={{{_numbers(layer)}}}{steps}
  y = f32[{_numbers(product)}] dot(x, weights), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{contracting}}}
  more = f32[{_numbers(product)}] add(sum, y)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT out = {state} tuple(next, x, more, stack)
}}
condition {{
  state = {state} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  last = s32[] constant({layers})
  ROOT go = pred[] compare(i, last), direction=LT
}}
ENTRY main {{
  zero = s32[] constant(0)
  x = f32[{_numbers(carried)}] parameter(0)
  sum = f32[{_numbers(product)}] parameter(1)
  stack = f32[{_numbers(local)}] parameter(2)
  state = {state} tuple(zero, x, sum, stack)
  loop = {state} while(state), condition=condition, body=body
  ROOT result = f32[{_numbers(product)}] get-tuple-element(loop), index=2
}}
""")


@st.composite
def single_collectives(draw: st.DrawFn) -> Module:
    """A parameter in any layout, one collective as frontends write it (default layout), a result in any layout."""
    rank = draw(st.integers(1, 4))
    sizes = [draw(st.sampled_from([1, 1, 2, 4])) for _ in range(rank)]
    dimension = draw(st.integers(0, rank - 1))
    opcode = draw(st.sampled_from(["all-gather", "reduce-scatter"]))
    result = [4 * size if d == dimension else size for d, size in enumerate(sizes)]
    if opcode == "reduce-scatter":
        sizes, result = result, sizes
    wished = [_numbers(draw(st.permutations(range(rank)))) for _ in range(2)]
    default = _numbers(list(range(rank - 1, -1, -1)))
    from_to = f"(f32[{_numbers(sizes)}]{{{wished[0]}}})->f32[{_numbers(result)}]{{{wished[1]}}}"
    called = ", to_apply=sum" if opcode == "reduce-scatter" else ""
    return parse_module(f"""HloModule one, entry_computation_layout={{{from_to}}}, replica_count=4
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  p = f32[{_numbers(sizes)}]{{{default}}} parameter(0)
  ROOT g = f32[{_numbers(result)}]{{{default}}} {opcode}(p), replica_groups={{{{0,1,2,3}}}}, dimensions={{{dimension}}}{called}
}}
""")
