"""Joint layout assignment: what it saves, what it must not change, and the proof."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from layoutsim.cli import joint as command
from layoutsim.errors import InputError, LayoutError, UnsupportedError
from layoutsim.experiments.joint import DemandReading, JointResult, Objective, assign_jointly
from layoutsim.ir import Module, Opcode
from layoutsim.load import load
from layoutsim.testing.execution import first_difference, inputs_for, run, why_not_comparable
from layoutsim.testing.modules import random_module
from layoutsim.testing.scope import Limits
from layoutsim.text import parse_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, verify

pytest.importorskip("scipy")

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"

# The stack is passed in {2,0,1}. The body slices one layer, and multiplies it in the default layout.
_LOOP = """HloModule loop, entry_computation_layout={(f32[4,8,16]{2,0,1})->f32[8,16]{1,0}}

body {
  state = (s32[], f32[4,8,16], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  stack = f32[4,8,16] get-tuple-element(state), index=1
  sum = f32[8,16] get-tuple-element(state), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  layer = f32[1,8,16] dynamic-slice(stack, i, zero, zero), dynamic_slice_sizes={1,8,16}
  matrix = f32[8,16] reshape(layer)
  next = s32[] add(i, one)
  total = f32[8,16] add(sum, matrix)
  ROOT out = (s32[], f32[4,8,16], f32[8,16]) tuple(next, stack, total)
}

condition {
  state = (s32[], f32[4,8,16], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(i, limit), direction=LT
}

ENTRY main {
  stack = f32[4,8,16] parameter(0)
  zero = s32[] constant(0)
  fzero = f32[] constant(0)
  start = f32[8,16] broadcast(fzero), dimensions={}
  state = (s32[], f32[4,8,16], f32[8,16]) tuple(zero, stack, start)
  loop = (s32[], f32[4,8,16], f32[8,16]) while(state), condition=condition, body=body
  ROOT sum = f32[8,16] get-tuple-element(loop), index=2
}
"""

# Both branches like {0,1}; what they return is wanted in {0,1} as well.
_FORCED = """HloModule forced, entry_computation_layout={(f32[8,16]{1,0})->f32[8,16]{0,1}}

ENTRY main {
  p = f32[8,16] parameter(0)
  ROOT n = f32[8,16] negate(p)
}
"""


def _joint(text: str, **options: bool | float) -> JointResult:
    return assign_jointly(parse_module(text), **options)  # type: ignore[arg-type]


def _difference(module: Module, result: JointResult) -> object:
    inputs = inputs_for(module, 0)
    return first_difference(run(result.module, inputs), run(module, inputs), module.entry.root.shape)


def test_a_stack_that_a_loop_only_slices_is_not_copied() -> None:
    result = _joint(_LOOP)

    # XLA: the body has the stack in {2,1,0}, so that the caller copies f32[4,8,16] = 512 * 4 bytes
    assert (result.xla.total, result.joint.total) == (2048, 0)


def test_the_laid_out_loop_is_valid_and_computes_the_same() -> None:
    module = parse_module(_LOOP)
    result = assign_jointly(module)

    assert verify(result.module, AFTER_LAYOUT_ASSIGNMENT) == []
    assert _difference(module, result) is None


def test_changes_name_the_arrays_with_both_layouts() -> None:
    changes = {(c.computation, c.name): (c.xla_layout, c.layout) for c in _joint(_LOOP).changes}

    assert changes["main", "loop{1}"] == ("{2,1,0}", "{2,0,1}")


def test_what_the_entry_demands_is_proven_to_cost_a_copy() -> None:
    result = _joint(_FORCED)

    # f32[8,16] once = 128 * 4 bytes
    assert (result.joint.total, result.bound, result.is_optimal, result.covers_all_orders) == (512, 512, True, True)


def test_where_nothing_is_gained_xlas_layouts_stay() -> None:
    assert _joint(_FORCED).changes == ()


def test_what_moves_in_a_loop_counts_once_for_each_run() -> None:
    # The product of the loop is carried in {1,0} and added to its transpose: one of the two is moved, 4 times.
    text = _LOOP.replace("f32[8,16]", "f32[8,8]").replace("[4,8,16]", "[4,8,8]").replace("{1,8,16}", "{1,8,8}")
    text = text.replace("f32[1,8,16]", "f32[1,8,8]")
    text = text.replace("matrix = f32[8,8] reshape(layer)", "m = f32[8,8] reshape(layer)")
    text = text.replace("next =", "t = f32[8,8] transpose(m), dimensions={1,0}\n  matrix = f32[8,8] add(m, t)\n  next =")
    result = _joint(text)

    # f32[8,8] = 256 bytes, 4 runs; nothing else has to move
    assert (result.joint.held, result.joint.total, result.is_optimal) == (256, 4 * 256, True)


def test_the_local_search_alone_proves_nothing_but_finds_the_loop() -> None:
    result = _joint(_LOOP, exact=False)

    assert (result.joint.total, result.bound, result.is_optimal) == (0, None, False)


def test_the_module_given_stays_as_it_is() -> None:
    module = parse_module(_LOOP)
    before = module.to_text()
    assign_jointly(module)

    assert module.to_text() == before


def test_results_do_not_depend_on_the_run() -> None:
    assert _joint(_LOOP).module.to_text() == _joint(_LOOP).module.to_text()


def test_only_size_1_dimensions_that_differ_become_bitcasts() -> None:
    text = """HloModule ones, entry_computation_layout={(f32[1,8]{1,0})->f32[1,8]{0,1}}

ENTRY main {
  p = f32[1,8] parameter(0)
  ROOT n = f32[1,8] negate(p)
}
"""
    opcodes = [i.opcode for i in _joint(text).module.entry.instructions]

    assert opcodes == [Opcode.PARAMETER, Opcode.NEGATE, Opcode.BITCAST]


@pytest.mark.parametrize("reading", DemandReading)
def test_the_second_doubling_of_lora_is_gone_with_every_reading(reading: DemandReading) -> None:
    module = load(_FIXTURES / "lora_axis1flax" / "gpu-0.10.2" / "before_layout.hlo.gz")
    result = assign_jointly(module, reading=reading)

    # XLA copies the stacks of the two adapters' weights: 491,520 bytes; the least is nothing
    assert (result.xla.total, result.joint.total, result.is_optimal) == (491_520, 0, True)
    assert verify(result.module, AFTER_LAYOUT_ASSIGNMENT) == []


@pytest.mark.parametrize("name", ["lora_axis0", "lora_axis1", "lora_minor", "lora_mixed"])
def test_lora_is_never_worse_than_xla(name: str) -> None:
    result = assign_jointly(load(_FIXTURES / name / "gpu-0.10.2" / "before_layout.hlo.gz"))

    assert result.joint.total <= result.xla.total
    assert result.is_optimal


@pytest.mark.parametrize("seed", range(30))
def test_random_modules_stay_valid_and_are_not_worse(seed: int) -> None:
    module = random_module(seed, Limits(executable=True))
    try:
        result = assign_jointly(module, time_limit=10.0)
    except (LayoutError, UnsupportedError) as error:
        pytest.skip(str(error))

    assert len(verify(result.module, AFTER_LAYOUT_ASSIGNMENT)) <= len(verify(result.xla_module, AFTER_LAYOUT_ASSIGNMENT))
    assert result.joint.total <= result.xla.total
    assert result.bound is not None and result.bound <= result.joint.total
    if result.is_optimal:  # the programme's costs are those measured on the module
        assert result.joint.total == result.bound
    if not why_not_comparable(module):
        assert _difference(module, result) is None


def test_the_cpu_backend_is_refused() -> None:
    message = "joint layout assignment: the cpu backend's demands depend on the order of propagation"
    with pytest.raises(UnsupportedError, match=message):
        assign_jointly(parse_module(_FORCED), "xla-cpu-0.10.2")


def test_a_scheduled_module_is_refused() -> None:
    text = _FORCED.replace("HloModule forced,", "HloModule forced, is_scheduled=true,")
    with pytest.raises(InputError, match="module forced is scheduled, so its layouts are assigned already"):
        _joint(text)


def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(InputError, match=r"joint layout assignment needs scipy: pip install 'layoutsim\[solve\]'"):
        _joint(_FORCED)


def test_the_command_writes_the_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop.hlo").write_text(_LOOP)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    out = tmp_path / "out.hlo"

    assert command.main(parser.parse_args([str(tmp_path / "loop.hlo"), "-o", str(out)])) == 0
    assert "proven: no choice among all orders has fewer bytes moved" in capsys.readouterr().out
    assert verify(load(out), AFTER_LAYOUT_ASSIGNMENT) == []


def test_with_copies_counted_once_a_gather_along_the_minor_dimension_copies_layers_not_stacks() -> None:
    module = load(_FIXTURES / "lora_minor" / "gpu-0.10.2" / "before_layout.hlo.gz")
    result = assign_jointly(module, objective=Objective.HELD)
    xla, joint = result.memory

    # XLA copies the stack of 491,520 bytes in front of the loop; here each iteration copies its slice.
    assert result.is_optimal
    assert xla.peak_bytes - joint.peak_bytes == 491_520


def test_of_answers_that_move_as_much_the_one_that_holds_less_is_taken() -> None:
    # The sort needs {1,0}. Turning the stack once or each of its 4 layers moves 4 * 8 * 16 * 4 = 2048 bytes either way.
    comparator = (
        "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT\n}\n\n"
    )
    text = _LOOP.replace("body {", comparator + "body {").replace("{2,0,1}", "{1,2,0}")
    text = text.replace("matrix = f32[8,16] reshape(layer)", "m = f32[8,16] reshape(layer)")
    text = text.replace("next =", "matrix = f32[8,16] sort(m), dimensions={1}, to_apply=less\n  next =")
    result = _joint(text)

    # One layer is 8 * 16 * 4 bytes
    assert (result.xla.total, result.xla.held) == (2048, 2048)
    assert (result.joint.total, result.joint.held, result.is_optimal) == (2048, 512, True)


def test_with_the_orders_of_rules_only_the_proof_says_so() -> None:
    result = _joint(_LOOP, every_order=False)

    assert (result.joint.total, result.is_optimal, result.covers_all_orders) == (0, True, False)
    assert result.rows()[0].note == "proven: no choice among the offered orders has fewer bytes moved"


# The element of the entry's parameter is there in {1,0}, and both calls take it in {0,1}; 4 * 8 * 4 = 128 bytes.
_TWO_USERS = """HloModule two, entry_computation_layout={((f32[4,8]{1,0}))->f32[4]{0}}

ENTRY main {
  t = (f32[4,8]) parameter(0)
  x = f32[4,8] get-tuple-element(t), index=0
  a = f32[4] custom-call(x), custom_call_target="c", operand_layout_constraints={f32[4,8]{0,1}}
  b = f32[4] custom-call(x), custom_call_target="c", operand_layout_constraints={f32[4,8]{0,1}}
  ROOT s = f32[4] add(a, b)
}
"""


def test_users_of_a_tuples_element_share_its_copy() -> None:
    result = _joint(_TWO_USERS)

    # XLA copies for each of the two.
    assert (result.xla.total, result.joint.total, result.is_optimal) == (2 * 128, 128, True)


def test_an_element_that_is_the_result_is_copied_once() -> None:
    text = """HloModule one, entry_computation_layout={((f32[4,8]{1,0}))->f32[4,8]{0,1}}

ENTRY main {
  t = (f32[4,8]) parameter(0)
  ROOT x = f32[4,8] get-tuple-element(t), index=0
}
"""
    result = _joint(text)

    assert (result.xla.total, result.joint.total) == (128, 128)


def test_a_transfer_passes_on_the_layout_of_its_copied_operand() -> None:
    text = _TWO_USERS.replace(
        "b = f32[4] custom-call(x)", "st = (f32[4,8], f32[4,8], u32[]) copy-start(x)\n  d = copy-done(st)"
    )
    text = text.replace("d = copy-done(st)", "d = f32[4,8] copy-done(st)\n  b = f32[4] custom-call(d)")
    result = _joint(text)
    start = next(i for i in result.module.entry.instructions if i.opcode is Opcode.COPY_START)

    # What it forwards has the operand's layout, and its done reads the start itself.
    assert start.shape.elements[1] == start.operand(0).shape  # type: ignore[union-attr]
    assert [user.opcode for user in start.users] == [Opcode.COPY_DONE]
