"""What layout assignment refuses, as XLA does (layout spec, section 14)."""

import pytest

from layoutsim.errors import LayoutError
from layoutsim.passes.layout_assignment import gpu_backend
from tests.passes.layout_assignment.running import GPU, Run


def refused(text: str, message: str, backend=GPU) -> None:
    with pytest.raises(LayoutError, match=message):
        Run(text, backend)


def test_a_token_cannot_be_copied() -> None:
    # The loop's operand must be copied for its array; its token is not, and stays the same value.
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[4,8]{0,1})->(token[], f32[4,8]{1,0})}
ENTRY e {
  p = f32[4,8] parameter(0)
  k = token[] after-all()
  ROOT t = (token[], f32[4,8]) tuple(k, p)
}""",
        GPU,
    )

    assert run.expression(run.root) == "tuple(t[0], copy{1,0}(t[1]))"


def test_two_branches_that_share_a_mismatching_computation_are_cloned_or_refused() -> None:
    run = Run(
        """
HloModule m
big {
  x = f32[4,8] parameter(0)
  t = f32[8,4] transpose(x), dimensions={1,0}
  n = f32[8,4] negate(t)
  ROOT a = f32[8,4] abs(n)
}
small {
  y = f32[4,8] parameter(0)
  k = token[] after-all()
  i = (f32[8,4]{0,1}, token[]) infeed(k)
  ROOT g = f32[8,4]{0,1} get-tuple-element(i), index=0
}
ENTRY e {
  c = s32[] parameter(0)
  p = f32[4,8] parameter(1)
  ROOT r = f32[8,4] conditional(c, p, p), branch_computations={big, small}
}"""
    )

    assert run.layout("a") == run.layout("r")


def test_a_shared_mismatching_branch_is_refused() -> None:
    refused(
        """
HloModule m, entry_computation_layout={(s32[], f32[4,8]{1,0})->f32[4,8]{1,0}}
big {
  x = f32[4,8] parameter(0)
  n = f32[4,8] negate(x)
  m = f32[4,8] abs(n)
  o = f32[4,8] negate(m)
  ROOT a = f32[4,8] abs(o)
}
small {
  y = f32[4,8] parameter(0)
  k = token[] after-all()
  i = (f32[4,8]{0,1}, token[]) infeed(k)
  ROOT g = f32[4,8]{0,1} get-tuple-element(i), index=0
}
ENTRY e {
  c = s32[] parameter(0)
  p = f32[4,8] parameter(1)
  ROOT r = f32[4,8] conditional(c, p, p, p), branch_computations={big, small, small}
}""",
        "small: two branches share a computation whose result layout must change",
    )


def test_a_variadic_all_reduce_on_a_channel_is_refused() -> None:
    refused(
        """
HloModule m
sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[4,8] parameter(0)
  ROOT a = (f32[4,8], f32[4,8]) all-reduce(p, p), channel_id=1, replica_groups={}, to_apply=sum
}""",
        "a: a variadic all-reduce cannot constrain the layout of its channel",
    )


def test_a_convolution_call_with_an_unexpected_side_input_is_refused() -> None:
    refused(
        """
HloModule m
ENTRY e {
  p = f32[1,64,64,16] parameter(0)
  k = f32[3,3,16,32] parameter(1)
  b = f32[1,64,64,32] parameter(2)
  ROOT c = (f32[1,64,64,32], u8[0]) custom-call(p, k, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f,
    custom_call_target="__cudnn$convForward"
}""",
        r"c: convolution has a side input, but __cudnn\$convForward takes none",
    )


def test_a_convolution_to_be_fused_must_have_its_kind_set() -> None:
    refused(
        """
HloModule m
ENTRY e {
  p = f32[1,64,64,16] parameter(0)
  k = f32[3,3,16,32] parameter(1)
  ROOT c = f32[1,64,64,32] convolution(p, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}""",
        "c: convolution kind is not set",
        gpu_backend(convolution_fusion=True),
    )


def test_empty_arrays_are_laid_out_like_others() -> None:
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[0,8]{0,1})->f32[8,0]}
ENTRY e {
  p = f32[0,8] parameter(0)
  r = f32[8,0] reshape(p)
  ROOT n = f32[8,0] negate(r)
}""",
        GPU,
    )

    assert run.layout("p") == "{0,1}"
    assert run.copies == []
