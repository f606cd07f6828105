"""Inferred shapes, family by family: text without shapes, and the shapes that XLA's parser gives it."""

import pytest

from layoutsim.ir import shape_text
from layoutsim.text import parse_module

REDUCERS = """
HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

arg {
  a1 = f32[] parameter(0)
  i1 = s32[] parameter(1)
  a2 = f32[] parameter(2)
  i2 = s32[] parameter(3)
  a3 = f32[] maximum(a1, a2)
  i3 = s32[] maximum(i1, i2)
  ROOT r = (f32[], s32[]) tuple(a3, i3)
}

less {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT is = pred[] compare(l, r), direction=LT
}

step {
  x1 = f32[4] parameter(0)
  h1 = f32[4] parameter(1)
  sum = f32[4] add(x1, h1)
  ROOT o1 = (f32[4], f32[4]) tuple(sum, sum)
}

body {
  ROOT p = (s32[], f32[4]) parameter(0)
}

more {
  q = (s32[], f32[4]) parameter(0)
  ROOT yes = pred[] constant(true)
}

grown {
  w = f32[2,3] parameter(0)
  ROOT v = f32[2,3]{0,1} copy(w)
}

ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  b = bf16[2,3]{1,0} parameter(1)
  i = s32[2,3]{1,0} parameter(2)
  c = c64[2,3]{1,0} parameter(3)
  p = pred[] parameter(4)
  n = s32[] parameter(5)
  z = f32[] parameter(6)
  v = f32[3] parameter(7)
  d = f32[<=2,3] parameter(8)
  m = f32[2,4,4] parameter(9)
  state = (s32[], f32[4]) parameter(10)
  image = f32[1,8,9,4] parameter(11)
  kernel = f32[3,3,4,16] parameter(12)
  t = token[] parameter(13)
  rows = s32[5,1] parameter(14)
  updates = f32[5,3] parameter(15)
  xs = f32[8,4] parameter(16)
  h = f32[4] parameter(17)
  out = INSTRUCTION
  ROOT end = () tuple()
}
"""


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("abs(c)", "f32[2,3]"),
        ("real(c)", "f32[2,3]"),
        ("is-finite(x)", "pred[2,3]"),
        ("add(x, b)", "f32[2,3]"),
        ("add(x, d)", "f32[<=2,3]"),
        ("complex(x, x)", "c64[2,3]"),
        ("clamp(z, x, z)", "f32[2,3]"),
        ("select(p, b, x)", "f32[2,3]"),
        ("add-dependency(x, t)", "f32[2,3]"),
        ("opt-barrier(state)", "(s32[], f32[4])"),
        ("transpose(x), dimensions={1,0}", "f32[3,2]"),
        ("concatenate(x, b, x), dimensions={0}", "f32[6,3]"),
        ("concatenate(d, x), dimensions={0}", "f32[<=4,3]"),
        ("pad(x, z), padding=1_-1_2x-1_3", "f32[4,5]"),
        ("get-dimension-size(x), dimensions={1}", "s32[]"),
        ("set-dimension-size(x, n), dimensions={1}", "f32[2,<=3]"),
        ("tuple(x, state)", "(f32[2,3], (s32[], f32[4]))"),
        ("get-tuple-element(state), index=1", "f32[4]"),
        ("dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[2]"),
        ("dot(m, m), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={2}", "f32[2,4,4]"),
        ("dot(b, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "f32[3,3]"),
        ("reduce(x, z), dimensions={1}, to_apply=add", "f32[2]"),
        ("reduce(d, z), dimensions={1}, to_apply=add", "f32[<=2]"),
        ("reduce(x, i, z, n), dimensions={0,1}, to_apply=arg", "(f32[], s32[])"),
        # 3 rows padded by 1 and 1 are 5, a window of 2 dilated by 2 spans 3: (5 - 3) / 2 + 1 = 2 places.
        ("reduce-window(x, z), window={size=1x2 stride=1x2 pad=0_0x1_1 rhs_dilate=1x2}, to_apply=add", "f32[2,2]"),
        # Base dilation 3 spreads 2 elements over 4; a window of 2 has 3 places.
        ("reduce-window(x, z), window={size=2x1 lhs_dilate=3x1}, to_apply=add", "f32[3,3]"),
        ("reduce-window(x, z), window={size=5x1}, to_apply=add", "f32[0,3]"),
        ("map(x, b), dimensions={0,1}, to_apply=add", "f32[2,3]"),
        ("sort(x), dimensions={1}, to_apply=less", "f32[2,3]"),
        ("topk(x), k=2", "(f32[2,2], s32[2,2])"),
        ("scan(xs, h), dimensions={0}, num_carries=1, to_apply=step", "(f32[8,4], f32[4])"),
        ("fft(x), fft_type=RFFT, fft_length={3}", "c64[2,2]"),
        ("fft(c), fft_type=IRFFT, fft_length={4}", "f32[2,4]"),
        ("cholesky(m), lower=true", "f32[2,4,4]"),
        ("triangular-solve(m, m), left_side=true, transpose_a=TRANSPOSE", "f32[2,4,4]"),
        ("batch-norm-training(x, v, v), epsilon=0.01, feature_index=1", "(f32[2,3], f32[3], f32[3])"),
        ("batch-norm-grad(x, v, v, v, x), epsilon=0.01, feature_index=1", "(f32[2,3], f32[3], f32[3])"),
        ("convolution(image, kernel), window={size=3x3 stride=2x1 pad=0_1x1_1}, dim_labels=b01f_01io->bf01", "f32[1,16,4,9]"),
        (
            "gather(x, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
            "slice_sizes={1,3}",
            "f32[5,3]",
        ),
        (
            "gather(x, rows), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
            "slice_sizes={1,3}",
            "f32[3,5,1]",
        ),
        (
            "scatter(x, rows, updates), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
            "index_vector_dim=1, to_apply=add",
            "f32[2,3]",
        ),
        ("while(state), condition=more, body=body", "(s32[], f32[4])"),
        ("conditional(p, x, x), true_computation=grown, false_computation=grown", "f32[2,3]"),
        ("call(x), to_apply=grown", "f32[2,3]"),
        ("after-all(t)", "token[]"),
        ("replica-id()", "u32[]"),
    ],
)
def test_a_shape_that_is_left_out_is_inferred(instruction: str, expected: str) -> None:
    module = parse_module(REDUCERS.replace("INSTRUCTION", instruction))

    assert expected == shape_text(module.find("main", "out").shape, layouts=False)


def test_a_call_has_the_layout_of_its_callees_root() -> None:
    module = parse_module(REDUCERS.replace("INSTRUCTION", "call(x), to_apply=grown"))

    assert shape_text(module.find("main", "out").shape) == "f32[2,3]{0,1}"
