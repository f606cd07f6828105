"""What the real GPU compiler (jaxlib 0.10.2, H100, layout assignment alone) did with small modules (layout spec, 15.F)."""

from tests.passes.layout_assignment.running import GPU, Run

SUM = """
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}"""


def test_a_reduction_of_a_parameter_in_another_layout_needs_no_copy() -> None:  # F2
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[8,16,64]{{0,1,2}})->f32[8,16]}}
{SUM}
ENTRY e {{
  p = f32[8,16,64] parameter(0)
  n = f32[8,16,64] negate(p)
  z = f32[] constant(0)
  ROOT r = f32[8,16] reduce(n, z), dimensions={{2}}, to_apply=sum
}}""",
        GPU,
    )

    assert run.layouts("n", "r") == {"n": "{0,1,2}", "r": "{1,0}"}
    assert run.copies == []


def test_the_result_layout_of_a_large_reduction_shapes_its_automatic_parameter() -> None:  # F3: 64 elements are reduced
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[8,16,64])->f32[8,16]{{0,1}}}}
{SUM}
ENTRY e {{
  p = f32[8,16,64] parameter(0)
  n = f32[8,16,64] negate(p)
  z = f32[] constant(0)
  ROOT r = f32[8,16] reduce(n, z), dimensions={{2}}, to_apply=sum
}}""",
        GPU,
    )

    assert run.layouts("p", "n") == {"p": "{2,0,1}", "n": "{2,0,1}"}


def test_a_reduction_reads_a_parameter_as_it_is_and_a_product_reads_a_copy() -> None:  # F4
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[8,16,64]{{0,1,2}})->f32[8,16,64]{{2,1,0}}}}
{SUM}
ENTRY e {{
  p = f32[8,16,64] parameter(0)
  z = f32[] constant(0)
  r = f32[8,64] reduce(p, z), dimensions={{1}}, to_apply=sum
  b = f32[8,16,64] broadcast(r), dimensions={{0,2}}
  ROOT m = f32[8,16,64] multiply(p, b)
}}""",
        GPU,
    )

    assert run.operands("r") == ["p", "z"]
    assert run.operands("m") == ["copy{2,1,0}(p)", "b"]
    assert run.layouts("r", "b", "m") == {"r": "{1,0}", "b": "{2,1,0}", "m": "{2,1,0}"}


def test_the_largest_operand_of_a_concatenate_decides() -> None:  # F8
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[10,20]{0,1}, f32[10,5]{1,0})->f32[25,3,10]}
ENTRY e {
  p = f32[10,20] parameter(0)
  q = f32[10,5] parameter(1)
  c = f32[10,25] concatenate(p, q), dimensions={1}
  b = f32[3,10,25] broadcast(c), dimensions={1,2}
  ROOT t = f32[25,3,10] transpose(b), dimensions={2,0,1}
}""",
        GPU,
    )

    assert run.operands("c") == ["p", "copy{0,1}(q)"]
    assert run.operands("b") == ["copy{1,0}(c)"]
    assert run.layouts("b", "t") == {"b": "{2,1,0}", "t": "{0,2,1}"}


def test_reshapes_that_cannot_be_bitcasts_are_left_as_they_are() -> None:  # F9
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[2,3,4]{0,1,2})->(f32[6,4], f32[2,12])}
ENTRY e {
  p = f32[2,3,4] parameter(0)
  r = f32[6,4] reshape(p)
  s = f32[2,12] reshape(p)
  ROOT t = (f32[6,4], f32[2,12]) tuple(r, s)
}""",
        GPU,
    )

    assert run.layouts("r", "s") == {"r": "{1,0}", "s": "{1,0}"}
    assert run.copies == []


def test_the_array_updated_decides_over_the_update() -> None:  # F10
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[64,32]{0,1}, f32[64,8]{1,0}, s32[])->f32[4,4,32]}
ENTRY e {
  p = f32[64,32] parameter(0)
  u = f32[64,8] parameter(1)
  i = s32[] parameter(2)
  d = f32[64,32] dynamic-update-slice(p, u, i, i)
  s = f32[16,32] dynamic-slice(d, i, i), dynamic_slice_sizes={16,32}
  ROOT r = f32[4,4,32] reshape(s)
}""",
        GPU,
    )

    assert run.operands("d") == ["p", "copy{0,1}(u)", "i", "i"]
    assert run.layouts("s", "r") == {"s": "{0,1}", "r": "{1,0,2}"}


def test_a_plain_product_writes_for_the_transpose_behind_it() -> None:  # F11
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,32]{1,0}, f32[32,16]{1,0})->f32[16,8]{1,0}}
ENTRY e {
  p = f32[8,32] parameter(0)
  q = f32[32,16] parameter(1)
  d = f32[8,16] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[16,8] transpose(d), dimensions={1,0}
}""",
        GPU,
    )

    assert run.layouts("d", "t") == {"d": "{0,1}", "t": "{1,0}"}
    assert run.copies == []


def test_constants_are_laid_out_anew_for_their_users() -> None:  # F13
    run = Run(
        """
HloModule m, entry_computation_layout={(s32[2,3]{0,1})->s32[2,3]}
ENTRY e {
  p = s32[2,3] parameter(0)
  i = s32[2] iota(), iota_dimension=0
  b = s32[2,3] broadcast(i), dimensions={0}
  a = s32[2,3] add(p, b)
  c = s32[2,3] constant({{1,2,3},{4,5,6}})
  ROOT r = s32[2,3] add(a, c)
}""",
        GPU,
    )

    assert run.layouts("b", "a", "c", "r") == dict.fromkeys(["b", "a", "c", "r"], "{0,1}")
    assert str(run["c"].constant.literal.shape) == "s32[2,3]{0,1}"
    assert run["c"].constant.literal.array().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_slice_of_a_stack_takes_the_odd_layout_of_its_gather() -> None:  # F15, 12.1
    run = Run(
        """
HloModule m, replica_count=8, entry_computation_layout={(f32[1,32,8]{2,1,0}, s32[])->f32[1,32,8]{2,1,0}}
ENTRY e {
  p = f32[1,32,8] parameter(0)
  i = s32[] parameter(1)
  s = f32[1,4,8] dynamic-slice(p, i, i, i), dynamic_slice_sizes={1,4,8}
  g = f32[1,32,8] all-gather(s), dimensions={1}, replica_groups={{0,1,2,3,4,5,6,7}}
  ROOT n = f32[1,32,8] negate(g)
}""",
        GPU,
    )

    assert run.operands("s") == ["copy{2,0,1}(p)", "i", "i", "i"]
    assert run.layouts("s", "g", "n") == {"s": "{2,0,1}", "g": "{2,0,1}", "n": "{2,0,1}"}
    assert run.expression(run.root) == "copy{2,1,0}(n)"
