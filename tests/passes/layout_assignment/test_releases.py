"""What the GPU rules of jax 0.6.1 and 0.6.2 do differently from 0.10.2; each seen in the real compilers."""

import pytest

from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.presets import preset
from tests.passes.layout_assignment.running import Run


def backend(release: str):
    return next(p for p in preset(f"xla-gpu-{release}").passes if isinstance(p, LayoutAssignment)).rules()


OLD, NEW = "0.6.2", "0.10.2"


def reduce_of(size: int, release: str) -> str:
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[3,{size},8])->f32[3,8]{{1,0}}}}
sum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
ENTRY e {{
  p = f32[3,{size},8] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[3,8] reduce(p, z), dimensions={{1}}, to_apply=sum
}}""",
        backend(release),
    )
    return run.layout("p")


ROWS, AS_IT_IS = "{1,2,0}", "{2,1,0}"


@pytest.mark.parametrize(
    ("size", "old", "new"),
    [
        (32, ROWS, ROWS),
        (40, ROWS, ROWS),
        (16, ROWS, AS_IT_IS),
        (2, ROWS, AS_IT_IS),
        (1, ROWS, AS_IT_IS),
        (12, AS_IT_IS, AS_IT_IS),
    ],
)
def test_small_reductions_that_fit_a_warp_wanted_rows_too(size: int, old: str, new: str) -> None:
    assert (reduce_of(size, OLD), reduce_of(size, NEW)) == (old, new)


RAGGED = """
HloModule m, entry_computation_layout={(f32[4,4]{0,1}, f32[3,4,4]{2,1,0}, s32[3]{0})->f32[4,4]{0,1}}
ENTRY e {
  p = f32[4,4] parameter(0)
  q = f32[3,4,4] parameter(1)
  i = s32[3] parameter(2)
  ROOT d = f32[4,4] ragged-dot(p, q, i), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
    rhs_group_dims={0}
}"""


def test_ragged_products_were_free() -> None:
    assert Run(RAGGED, backend(OLD)).copies == []
    assert Run(RAGGED, backend(NEW)).copies == ["operand 0 of %d: {0,1} to {1,0}", "root of e: {1,0} to {0,1}"]


IN_PLACE = """
HloModule m, entry_computation_layout={(s32[4,8]{1,0})->s32[4,8]{0,1}}
ENTRY e {
  p = s32[4,8] parameter(0)
  ROOT c = s32[4,8]{0,1} custom-call(p), custom_call_target="x", operand_layout_constraints={s32[4,8]{0,1}},
    output_to_operand_aliasing={{}: (0, {})}
}"""


def test_one_copy_in_front_of_a_constrained_in_place_call_was_enough() -> None:
    assert Run(IN_PLACE, backend(OLD)).operands("c") == ["copy{0,1}(p)"]
    assert Run(IN_PLACE, backend(NEW)).operands("c") == ["copy{0,1}(copy{0,1}(p))"]


CONVERT = """
HloModule m, entry_computation_layout={(s8[3,5]{0,1})->s4[3,5,2]{2,1,0:E(4)}}
ENTRY e {
  p = s8[3,5] parameter(0)
  ROOT b = s4[3,5,2]{2,1,0:E(4)} bitcast-convert(p)
}"""


def test_bitcast_converts_between_ranks_were_free() -> None:
    assert Run(CONVERT, backend(OLD)).copies == []
    assert Run(CONVERT, backend(NEW)).copies == ["operand 0 of %b: {0,1} to {1,0:E(4)}"]


FOLLOWS = """
HloModule m, entry_computation_layout={(s32[4,8]{0,1})->s32[4,8]}
ENTRY e {
  p = s32[4,8] parameter(0)
  ROOT c = s32[4,8] custom-call(p), custom_call_target="x", output_to_operand_aliasing={{}: (0, {})}
}"""


def test_outputs_did_not_follow_the_operand_they_overwrite() -> None:
    assert Run(FOLLOWS, backend(OLD)).entry_layout == "({0,1}) -> {1,0}"
    assert Run(FOLLOWS, backend(NEW)).entry_layout == "({0,1}) -> {0,1}"
