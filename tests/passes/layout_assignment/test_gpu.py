"""The GPU rules (layout spec, 15.B)."""

import itertools

import pytest

from layoutsim.errors import LayoutError
from layoutsim.ir import Opcode, shape_text
from layoutsim.passes.layout_assignment import CollectiveRule, ConvolutionLayout, GpuTarget, ReshapeAlignment, gpu_backend
from tests.passes.layout_assignment.running import GPU, Run


@pytest.mark.parametrize(("p", "q", "r"), list(itertools.product(["0,1", "1,0"], repeat=3)))
def test_operands_of_an_add_always_agree(p: str, q: str, r: str) -> None:  # B1
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[42,12]{{{p}}}, f32[42,12]{{{q}}})->f32[42,12]{{{r}}}}}
ENTRY e {{
  p = f32[42,12] parameter(0)
  q = f32[42,12] parameter(1)
  ROOT a = f32[42,12] add(p, q)
}}""",
        GPU,
    )
    (add,) = [i for i in run.module.entry.instructions if i.opcode is Opcode.ADD]

    assert {str(o.shape.layout) for o in add.operands} == {str(add.shape.layout)}


def batched_dot(left: str, right: str, left_layout: str, right_layout: str, *, numbers: str, result: str) -> str:
    return f"""
HloModule m, entry_computation_layout={{(f32[{left}]{left_layout}, f32[{right}]{right_layout})->f32[{result}]}}
ENTRY e {{
  p = f32[{left}]{left_layout} parameter(0)
  q = f32[{right}]{right_layout} parameter(1)
  ROOT d = f32[{result}] dot(p, q), {numbers}
}}"""


BATCH_FIRST = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"


def test_a_product_keeps_layouts_that_are_matrices() -> None:  # B2
    run = Run(
        batched_dot("5,2,3", "5,3,4", "{1,2,0}", "{1,2,0}", numbers=BATCH_FIRST, result="5,2,4"),
        GPU,
    )

    assert run.layouts("p", "q", "d") == {"p": "{1,2,0}", "q": "{1,2,0}", "d": "{2,1,0}"}
    assert run.copies == []


def test_a_product_takes_default_layouts_where_the_given_ones_are_no_matrices() -> None:  # B3
    numbers = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}"
    run = Run(batched_dot("5,2,3", "5,4,3", "{2,1,0}", "{0,1,2}", numbers=numbers, result="5,2,4"), GPU)

    assert run.operands("d") == ["p", "copy{2,1,0}(q)"]


def test_bitcast_convert_to_fewer_dimensions_is_free_before_a_transpose() -> None:  # B4
    run = Run(
        """
HloModule m, entry_computation_layout={(u4[5,4,3,2]{3,2,1,0:E(4)})->u8[3,5,4]{2,1,0}}
ENTRY e {
  p = u4[5,4,3,2]{3,2,1,0:E(4)} parameter(0)
  b = u8[5,4,3] bitcast-convert(p)
  ROOT t = u8[3,5,4] transpose(b), dimensions={2,0,1}
}""",
        GPU,
    )

    assert run.operands("b") == ["p"]
    assert run.expression(run.root) == "copy{2,1,0}(t)"


def test_a_batch_dimension_that_is_most_minor_is_moved_out() -> None:  # B5
    numbers = "lhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_batch_dims={2}, rhs_contracting_dims={0}"
    run = Run(batched_dot("2,3,5", "3,4,5", "{2,1,0}", "{2,1,0}", numbers=numbers, result="5,2,4"), GPU)

    assert run.operands("d") == ["copy{0,1,2}(p)", "copy{1,0,2}(q)"]


def test_batch_dimensions_lie_in_their_own_order() -> None:  # B6
    numbers = "lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={1,0}, rhs_contracting_dims={2}"
    run = Run(batched_dot("5,6,2,3", "6,5,3,4", "{3,2,1,0}", "{3,2,1,0}", numbers=numbers, result="5,6,2,4"), GPU)

    assert run.operands("d") == ["p", "copy{3,2,0,1}(q)"]


def test_a_transpose_behind_a_product_is_free() -> None:  # B7
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[5,2,3]{2,1,0}, f32[5,3,4,6]{3,2,1,0})->f32[2,5,4,6]{3,2,1,0}}
ENTRY e {
  p = f32[5,2,3] parameter(0)
  q = f32[5,3,4,6] parameter(1)
  d = f32[5,2,4,6] dot(p, q), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  ROOT t = f32[2,5,4,6] transpose(d), dimensions={1,0,2,3}
}""",
        GPU,
    )

    assert run.layouts("d", "t") == {"d": "{3,2,0,1}", "t": "{3,2,1,0}"}


def test_a_layout_that_a_product_cannot_write_is_copied() -> None:  # B8
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,50]{1,0}, f32[2,8,4,4]{3,2,1,0}, f32[4,38]{1,0})->f32[2,50,38,4]{2,3,0,1}}
ENTRY e {
  p = f32[8,50] parameter(0)
  q = f32[2,8,4,4] parameter(1)
  r = f32[4,38] parameter(2)
  dot.1 = f32[50,2,4,4] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  dot.2 = f32[50,2,4,38] dot(dot.1, r), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT t = f32[2,50,38,4]{2,3,0,1} transpose(dot.2), dimensions={1,0,3,2}
}""",
        GPU,
    )

    assert run.layouts("dot.1", "dot.2", "t") == {"dot.1": "{3,2,1,0}", "dot.2": "{3,2,1,0}", "t": "{2,3,0,1}"}
    assert run.operands("dot.1") == ["p", "copy{3,2,0,1}(q)"]
    assert run.operands("dot.2") == ["copy{3,1,0,2}(dot.1)", "r"]


def test_an_integer_product_needs_the_contraction_minor() -> None:  # B9
    run = Run(
        """
HloModule m, entry_computation_layout={(s8[32,64]{1,0}, s8[64,96]{1,0})->s32[32,96]{1,0}}
ENTRY e {
  p = s8[32,64] parameter(0)
  q = s8[64,96] parameter(1)
  ROOT d = s32[32,96] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""",
        GPU,
    )

    assert run.operands("d") == ["p", "copy{0,1}(q)"]


@pytest.mark.parametrize("call", ["sort", "custom-call"])
def test_all_operands_of_a_sort_have_the_default_layout(call: str) -> None:  # B10, B11
    sort = {
        "sort": "sort(c, t), dimensions={1}, to_apply=compare",
        "custom-call": 'custom-call(c, t), custom_call_target="xla.gpu.ext.cub_sort_unassigned_scratch_size"',
    }[call]
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[2,3]{{1,0}})->(f32[3,2]{{1,0}}, f32[3,2]{{1,0}})}}
compare {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  x = f32[] parameter(2)
  y = f32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}}
ENTRY e {{
  c = f32[3,2]{{0,1}} constant({{{{6,5}},{{4,3}},{{2,1}}}})
  p = f32[2,3] parameter(0)
  t = f32[3,2] transpose(p), dimensions={{1,0}}
  ROOT s = (f32[3,2], f32[3,2]) {sort}
}}""",
        GPU,
    )

    assert run.layout("s") == "({1,0}, {1,0})"
    assert {str(o.shape.layout) for o in run["s"].operands} == {"{1,0}"}


def test_the_top_k_kernel_writes_default_layouts_and_keeps_its_operands() -> None:  # B12
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[2048,6]{1,0})->(f32[6,256]{1,0}, s32[6,256]{1,0})}
compare {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT g = pred[] compare(a, b), direction=GT
}
ENTRY e {
  p = f32[2048,6]{1,0} parameter(0)
  t = f32[6,2048]{0,1} transpose(p), dimensions={1,0}
  k = (f32[6,256], s32[6,256]) custom-call(t), custom_call_target="__gpu$TopK", called_computations={compare}
  v = f32[6,256] get-tuple-element(k), index=0
  i = s32[6,256] get-tuple-element(k), index=1
  ROOT r = (f32[6,256], s32[6,256]) tuple(v, i)
}""",
        GPU,
    )

    assert run.layouts("k", "t") == {"k": "({1,0}, {1,0})", "t": "{1,0}"}
    assert run.operands("t") == ["copy{0,1}(p)"]


def test_bitcast_convert_to_fewer_dimensions_moves_the_merged_one_minor() -> None:  # B13
    run = Run(
        """
HloModule m, entry_computation_layout={(s4[3,5,2]{0,1,2:E(4)})->s8[3,5]{0,1}}
ENTRY e {
  p = s4[3,5,2]{0,1,2:E(4)} parameter(0)
  ROOT b = s8[3,5]{0,1} bitcast-convert(p)
}""",
        GPU,
    )

    assert run.operands("b") == ["copy{2,0,1:E(4)}(p)"]


def test_bitcast_convert_to_more_dimensions_moves_the_split_one_minor() -> None:  # B14
    run = Run(
        """
HloModule m, entry_computation_layout={(s8[3,5]{1,0})->s4[3,5,2]{0,1,2:E(4)}}
ENTRY e {
  p = s8[3,5] parameter(0)
  ROOT b = s4[3,5,2]{0,1,2:E(4)} bitcast-convert(p)
}""",
        GPU,
    )

    assert run.operands("b") == ["copy{0,1:E(4)}(p)"]
    assert run.layout("b") == "{2,0,1:E(4)}"
    assert run.expression(run.root) == "copy{0,1,2:E(4)}(b)"


def test_a_bitcast_convert_hands_the_element_size_on_but_the_root_has_that_of_the_entry_layout() -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(u4[3,5,2]{2,1,0:E(4)})->(u8[3,5]{1,0})}
ENTRY e {
  p = u4[3,5,2]{2,1,0:E(4)} parameter(0)
  b = u8[3,5]{1,0} bitcast-convert(p)
  ROOT t = (u8[3,5]{1,0}) tuple(b)
}""",
        GPU,
    )

    assert shape_text(run["b"].shape) == "u8[3,5]{1,0:E(4)}"
    assert shape_text(run.root.shape) == "(u8[3,5]{1,0})"


def test_a_move_to_the_host_keeps_the_tiles_of_a_layout_and_an_all_gather_drops_its_element_size() -> None:
    run = Run(
        """
HloModule m, replica_count=4, entry_computation_layout={(bf16[4,8]{0,1}, s4[4,2]{1,0})->(bf16[4,8]{0,1}, s4[4,8]{1,0})}
ENTRY e {
  p = bf16[4,8]{0,1:T(8,128)(2,1)} parameter(0)
  q = s4[4,2]{1,0:E(4)} parameter(1)
  h = bf16[4,8]{0,1:T(8,128)(2,1)} custom-call(p), custom_call_target="MoveToHost"
  n = s4[4,2]{1,0:E(4)} negate(q)
  g = s4[4,8]{1,0:E(4)} all-gather(n), dimensions={1}, replica_groups={{0,1,2,3}}
  ROOT t = (bf16[4,8]{0,1}, s4[4,8]{1,0}) tuple(h, g)
}""",
        GPU,
    )

    assert run.operands("h") == ["copy{1,0:T(8,128)(2,1)}(p)"]
    assert run.layout("g") == "{0,1}"


def test_fft_takes_and_writes_default_layouts() -> None:  # B15
    run = Run(
        """
HloModule m, entry_computation_layout={(c64[8,32]{0,1})->c64[32,8]{1,0}}
ENTRY e {
  p = c64[8,32]{0,1} parameter(0)
  f = c64[8,32] fft(p), fft_type=FFT, fft_length={32}
  ROOT t = c64[32,8] transpose(f), dimensions={1,0}
}""",
        GPU,
    )

    assert run.operands("f") == ["copy{1,0}(p)"]
    assert run.layout("f") == "{1,0}"
    assert run.expression(run.root) == "copy{1,0}(t)"


def test_a_constrained_in_place_call_behind_a_batched_product() -> None:  # B16
    run = Run(
        """
HloModule m
ENTRY e {
  p = bf16[16,32,33] parameter(0)
  q = bf16[16,33,34] parameter(1)
  d = bf16[16,32,34] dot(p, q), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  c = (bf16[16,32,34]{1,2,0}, u32[2,8]{1,0}) custom-call(d, d), custom_call_target="x",
    operand_layout_constraints={bf16[16,32,34]{1,2,0}, bf16[16,32,34]{1,2,0}}, output_to_operand_aliasing={{0}: (0, {})}
  ROOT r = bf16[16,32,34] get-tuple-element(c), index=0
}""",
        GPU,
    )

    assert run.layout("c") == "({1,2,0}, {1,0})"
    assert {str(o.shape.layout) for o in run["c"].operands} == {"{1,2,0}"}


@pytest.mark.parametrize("target", ["MoveToHost", "MoveToDevice"])
def test_arrays_move_between_host_and_device_in_the_default_layout(target: str) -> None:  # B17, B18
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[4,6]{{0,1}})->f32[4,6]}}
ENTRY e {{
  p = f32[4,6] parameter(0)
  x = f32[4,6] custom-call(p), custom_call_target="{target}"
  ROOT c = f32[4,6]{{0,1}} custom-call(x), custom_call_target="y", operand_layout_constraints={{f32[4,6]{{0,1}}}}
}}""",
        GPU,
    )

    assert run.operands("x") == ["copy{1,0}(p)"]
    assert run.layout("x") == "{1,0}"


def convolution_call(element: str, target: str = "__cudnn$convForward") -> str:
    return f"""
HloModule m
ENTRY e {{
  p = {element}[1,64,64,16]{{3,2,1,0}} parameter(0)
  k = {element}[3,16,32,3]{{3,2,1,0}} parameter(1)
  c = ({element}[1,64,64,32]{{3,2,1,0}}, u8[0]{{0}}) custom-call(p, k), window={{size=3x3 pad=1_1x1_1}},
    dim_labels=b01f_0io1->b01f, custom_call_target="{target}"
  ROOT r = {element}[1,64,64,32] get-tuple-element(c), index=0
}}"""


NCHW, NHWC = "{2,1,3,0}", "{3,2,1,0}"


@pytest.mark.parametrize(
    ("target", "element", "expected"),
    [
        (GpuTarget.RDNA, "f16", NCHW),  # B19
        (GpuTarget.RDNA, "f32", NCHW),  # B20
        (GpuTarget.CDNA_NHWC, "f16", NHWC),  # B21
        (GpuTarget.CDNA_NHWC, "f32", NCHW),  # B22
        (GpuTarget.H100, "f32", NHWC),  # B23
        (GpuTarget.H100, "f64", NCHW),  # B25
        (GpuTarget.V100, "f16", NHWC),
        (GpuTarget.V100, "f32", NCHW),
        (GpuTarget.P100, "f16", NCHW),
        (GpuTarget.A100, "s8", NHWC),
        (GpuTarget.A100, "f8e4m3fn", NHWC),
    ],
)
@pytest.mark.parametrize("kind", ["__cudnn$convForward", "__cudnn$convForwardGraph"])
def test_the_device_chooses_the_layout_of_a_convolution(target: GpuTarget, element: str, expected: str, kind: str) -> None:
    run = Run(convolution_call(element, kind), gpu_backend(target=target))
    tuple_layout = run.layout("c")

    # input b01f: from major to minor b,f,0,1 for NCHW
    assert str(run["c"].operand(0).shape.layout) == expected
    assert tuple_layout == f"({expected}, {{0}})"


@pytest.mark.parametrize(("forced", "expected"), [(ConvolutionLayout.NCHW, NCHW), (ConvolutionLayout.NHWC, NHWC)])
def test_the_layout_of_convolutions_can_be_forced(forced: ConvolutionLayout, expected: str) -> None:
    run = Run(convolution_call("f32"), gpu_backend(convolution_layout=forced))

    assert str(run["c"].operand(0).shape.layout) == expected


def test_plain_convolutions_are_constrained_when_they_are_to_be_fused() -> None:  # B24
    text = """
HloModule m
ENTRY e {
  p = f32[1,16,64,64]{3,2,1,0} parameter(0)
  k = f32[32,16,3,3]{3,2,1,0} parameter(1)
  ROOT c = f32[1,32,64,64] convolution(p, k), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, convolution_kind=fprop
}"""

    assert Run(text, GPU).layout("c") == "{3,2,1,0}"
    assert Run(text, gpu_backend(convolution_fusion=True)).layout("c") == "{1,3,2,0}"


def reduce_text(sizes: str, dims: str, result: str, parameter: str = "", result_layout: str = "") -> str:
    return f"""
HloModule m, entry_computation_layout={{(f32[{sizes}]{parameter})->f32[{result}]{result_layout}}}
sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
ENTRY e {{
  p = f32[{sizes}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[{result}] reduce(p, z), dimensions={{{dims}}}, to_apply=sum
}}"""


def test_a_large_reduction_wants_the_reduced_dimensions_most_minor() -> None:  # B26: 64 * 32 elements are reduced
    run = Run(reduce_text("512,64,1024,32,128", "1,3", "512,1024,128", result_layout="{2,1,0}"), GPU)

    assert run.layout("p") == "{3,1,4,2,0}"


def test_a_small_reduction_leaves_its_operand_alone() -> None:  # B27: 16 elements are fewer than 32
    run = Run(reduce_text("8,16,4,2", "1", "8,4,2", result_layout="{2,1,0}"), GPU)

    assert run.layout("p") == "{3,2,1,0}"


@pytest.mark.parametrize(("target", "right"), [(GpuTarget.H100, "{0,1}"), (GpuTarget.B200, "{1,0}")])
def test_fp8_products_need_the_contraction_minor_before_blackwell(target: GpuTarget, right: str) -> None:  # B28
    run = Run(
        """
HloModule m, entry_computation_layout={(f8e4m3fn[128,5120], f8e4m3fn[5120,10240])->f32[128,10240]}
ENTRY e {
  p = f8e4m3fn[128,5120] parameter(0)
  q = f8e4m3fn[5120,10240] parameter(1)
  ROOT d = f32[128,10240] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""",
        gpu_backend(target=target),
    )

    assert run.layouts("p", "q") == {"p": "{1,0}", "q": right}


PACKED = """
HloModule m, entry_computation_layout={(bf16[128,64], s4[64,32])->bf16[128,32]}
ENTRY e {
  p = bf16[128,64] parameter(0)
  q = s4[64,32] parameter(1)
  c = bf16[64,32] convert(q)
  ROOT d = bf16[128,32] dot(p, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def test_packed_operands_lie_along_the_contraction() -> None:  # B29
    assert Run(PACKED, GPU).layouts("p", "q") == {"p": "{1,0}", "q": "{0,1}"}
    assert Run(PACKED, gpu_backend(pack_along_contraction=False)).layouts("p", "q") == {"p": "{1,0}", "q": "{1,0}"}


def test_packed_operands_are_found_through_elementwise_chains() -> None:  # B31
    run = Run(
        """
HloModule m, entry_computation_layout={(s4[32,64], bf16[64,32], bf16[32,64])->bf16[32,32]}
ENTRY e {
  q = s4[32,64] parameter(0)
  p = bf16[64,32] parameter(1)
  w = bf16[32,64] parameter(2)
  c = s8[32,64] convert(q)
  d = bf16[32,64] convert(c)
  u = bf16[32,64] multiply(d, w)
  ROOT r = bf16[32,32] dot(u, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""",
        GPU,
    )

    assert run.layouts("q", "w", "p") == {"q": "{1,0}", "w": "{1,0}", "p": "{1,0}"}


def test_a_product_asks_an_automatic_parameter_for_a_matrix() -> None:  # B32
    run = Run(
        """
HloModule m, entry_computation_layout={(f16[10,800]{1,0}, f16[40,20,50])->f16[10,50]{1,0}}
ENTRY e {
  p = f16[10,800] parameter(0)
  q = f16[40,20,50] parameter(1)
  t = f16[50,40,20] transpose(q), dimensions={2,0,1}
  r = f16[50,800] reshape(t)
  ROOT d = f16[10,50] dot(p, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}""",
        GPU,
    )

    assert run.layout("q") == "{1,0,2}"
    assert run.copies == []


def test_operands_of_a_variadic_reduce_share_a_layout() -> None:  # B33
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[2,3,4]{2,1,0}, f32[3,2,4]{2,1,0})->(f32[3,4]{1,0}, f32[3,4]{0,1})}
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  t = f32[] add(b, d)
  ROOT u = (f32[], f32[]) tuple(s, t)
}
ENTRY e {
  p = f32[2,3,4] parameter(0)
  t1 = f32[3,2,4] transpose(p), dimensions={1,0,2}
  q = f32[3,2,4] parameter(1)
  z = f32[] constant(0)
  ROOT r = (f32[3,4], f32[3,4]) reduce(t1, q, z, z), dimensions={1}, to_apply=f
}""",
        GPU,
    )
    (reduce,) = [i for i in run.module.entry.instructions if i.opcode is Opcode.REDUCE]

    assert reduce.operand(0).shape == reduce.operand(1).shape


def test_data_is_sent_and_received_in_the_default_layout() -> None:  # B34
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[5,2]{0,1})->f32[5,2]}
ENTRY e {
  p = f32[5,2]{0,1} parameter(0)
  k = token[] after-all()
  v = (f32[5,2]{0,1}, u32[], token[]) recv(k), channel_id=1
  s = (f32[5,2]{0,1}, u32[], token[]) send(p, k), channel_id=1
  sd = token[] send-done(s), channel_id=1
  vd = (f32[5,2]{0,1}, token[]) recv-done(v), channel_id=1
  ROOT r = f32[5,2] get-tuple-element(vd), index=0
}""",
        GPU,
    )

    assert run.layouts("s", "v", "r") == {
        "s": "({1,0}, {}, token[])",
        "v": "({1,0}, {}, token[])",
        "r": "{1,0}",
    }


def test_ragged_all_to_all_has_dimension_0_most_major() -> None:  # B35
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,4,2]{0,2,1}, f32[16,4,2]{0,1,2}, s64[2]{0})->f32[16,4,2]}
ENTRY e {
  p = f32[8,4,2]{0,2,1} parameter(0)
  q = f32[16,4,2]{0,1,2} parameter(1)
  i = s64[2] parameter(2)
  ROOT r = f32[16,4,2]{0,1,2} ragged-all-to-all(p, q, i, i, i, i), replica_groups={{0,1}}
}""",
        GPU,
    )
    first, second = run["r"].operands[:2]

    assert first.shape.layout == second.shape.layout == run["r"].shape.layout
    assert run["r"].shape.minor_to_major[-1] == 0


@pytest.mark.parametrize(("sizes", "result"), [("1,10,20", "{0,2,1}"), ("1,10,1,20", "{0,2,3,1}")])
def test_reshapes_keep_dimensions_of_size_1_in_place(sizes: str, result: str) -> None:  # B36, B37
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[10,20]{{1,0}})->f32[{sizes}]{result}}}
ENTRY e {{
  p = f32[10,20] parameter(0)
  ROOT r = f32[{sizes}]{result} reshape(p)
}}""",
        GPU,
    )

    assert run.layout("p") == "{1,0}"
    assert run.copies == []


def test_a_reshape_follows_its_consumer_over_its_own_old_layout() -> None:  # B38
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[10,20]{1,0})->f32[1,10,20]{0,2,1}}
ENTRY e {
  p = f32[10,20] parameter(0)
  r = f32[1,10,20]{0,1,2} reshape(p)
  ROOT n = f32[1,10,20]{0,2,1} negate(r)
}""",
        GPU,
    )

    assert run.layout("r") == "{0,2,1}"
    assert run.copies == []


def test_a_product_that_was_rewritten_already_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"__cublas\$lt\$matmul before layout assignment"):
        Run(
            """
HloModule m
ENTRY e {
  p = f32[4,4] parameter(0)
  ROOT c = f32[4,4] custom-call(p, p), custom_call_target="__cublas$lt$matmul"
}""",
            GPU,
        )


GATHER = """
HloModule m, replica_count=8, entry_computation_layout={(f32[1,4,8]{2,1,0})->f32[1,32,8]{2,1,0}}
ENTRY e {
  p = f32[1,4,8] parameter(0)
  g = f32[1,32,8] all-gather(p), dimensions={1}, replica_groups={{0,1,2,3,4,5,6,7}}
  ROOT n = f32[1,32,8] negate(g)
}"""


def test_the_gathered_dimension_is_most_major_by_position() -> None:  # 12.1
    run = Run(GATHER, GPU)

    assert run.layout("g") == "{2,0,1}"
    assert run.copies == ["operand 0 of %g: {2,1,0} to {2,0,1}", "root of e: {2,0,1} to {2,1,0}"]


def test_dimensions_of_size_1_can_be_ignored() -> None:  # 12.4
    run = Run(GATHER, gpu_backend(all_gather=CollectiveRule.IGNORE_DEGENERATE))

    assert run.layout("g") == "{2,1,0}"
    assert run.copies == []


def test_real_dimensions_are_never_ignored() -> None:  # F14
    text = GATHER.replace("1,4,8", "4,1,8").replace("1,32,8", "4,8,8")
    by_rule = {
        rule: Run(text, gpu_backend(all_gather=rule)).copies
        for rule in (CollectiveRule.POSITIONAL, CollectiveRule.IGNORE_DEGENERATE)
    }

    expected = ["operand 0 of %g: {2,1,0} to {2,0,1}", "root of e: {2,0,1} to {2,1,0}"]
    assert by_rule == dict.fromkeys(by_rule, expected)


@pytest.mark.parametrize(
    ("alignment", "expected"),
    [
        (ReshapeAlignment.IN_PLACE, {"r": "{1,0,3,2}", "n": "{1,0,3,2}", "s": "{2,0,1}"}),  # F7
        (ReshapeAlignment.SIZE_1_MOST_MAJOR, {"r": "{1,3,2,0}", "n": "{1,3,2,0}", "s": "{0,1,2}"}),
    ],
)
def test_releases_differ_in_where_reshapes_put_dimensions_of_size_1(
    alignment: ReshapeAlignment, expected: dict[str, str]
) -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[10,20]{0,1})->f32[10,20,1]}
ENTRY e {
  p = f32[10,20] parameter(0)
  r = f32[1,10,1,20] reshape(p)
  n = f32[1,10,1,20] negate(r)
  ROOT s = f32[10,20,1] reshape(n)
}""",
        gpu_backend(reshape_alignment=alignment),
    )

    assert run.layouts("r", "n", "s") == expected
    assert run.copies == []


def test_solvers_take_column_major_matrices() -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[3,4,4]{2,1,0}, f32[3,4,5]{2,1,0})->f32[3,4,5]{2,1,0}}
ENTRY e {
  a = f32[3,4,4] parameter(0)
  b = f32[3,4,5] parameter(1)
  ROOT x = f32[3,4,5] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
}""",
        GPU,
    )

    assert run.operands("x") == ["copy{1,2,0}(a)", "copy{1,2,0}(b)"]
    assert run.expression(run.root) == "copy{2,1,0}(x)"


HOST = """
HloModule m, entry_computation_layout={(f32[4,8]{1,0})->f32[8,4]{1,0}}
on_host {
  x = f32[4,8]{0,1} parameter(0)
  n = f32[4,8]{0,1} negate(x)
  ROOT t = f32[8,4]{0,1} transpose(n), dimensions={1,0}
}, execution_thread="THREAD"
ENTRY e {
  p = f32[4,8] parameter(0)
  q = f32[4,8] abs(p)
  s = ((f32[4,8]{0,1}), f32[8,4]{0,1}, s32[]) async-start(q), async_execution_thread="THREAD", calls=on_host
  ROOT d = f32[8,4]{0,1} async-done(s)
}"""


def test_a_computation_on_the_host_keeps_its_layouts_and_its_caller_follows() -> None:
    run = Run(HOST.replace("THREAD", "host"), GPU)

    assert run.layouts("x", "n", "t") == {"x": "{0,1}", "n": "{0,1}", "t": "{0,1}"}
    assert run.layouts("s", "d") == {"s": "(({0,1}), {0,1}, {})", "d": "{0,1}"}
    assert run.copies == ["operand 0 of %q: {1,0} to {0,1}", "root of e: {0,1} to {1,0}"]


def test_a_computation_on_another_thread_keeps_its_layouts_and_its_caller_is_free() -> None:
    run = Run(HOST.replace("THREAD", "other"), GPU)

    assert run.layouts("x", "d") == {"x": "{0,1}", "d": "{1,0}"}
    assert run.copies == []
