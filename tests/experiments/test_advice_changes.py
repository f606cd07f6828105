"""Changes of the user's program, imitated on HLO: each saves what it should, leaves a valid module, and computes the same."""

from collections.abc import Callable

import pytest

import layoutsim
from layoutsim.experiments.advice import Advice, advise
from layoutsim.experiments.advice.change import ProgramChange
from layoutsim.experiments.advice.conditionals import find_conditionals
from layoutsim.experiments.advice.donations import find_donations
from layoutsim.experiments.advice.scan_outputs import find_scan_outputs
from layoutsim.experiments.advice.selects import find_selects
from layoutsim.experiments.advice.squeezes import find_squeezes
from layoutsim.experiments.advice.up_casts import find_up_casts
from layoutsim.interp import Interpreter, compare_values
from layoutsim.interp.literals import seeded_value
from layoutsim.ir import Module
from layoutsim.ir.clone import clone_module
from layoutsim.verify import verify

COUNTING = """
cond {{
  st = {state} parameter(0)
  i = s32[] get-tuple-element(st), index=0
  n = s32[] constant(4)
  ROOT lt = pred[] compare(i, n), direction=LT
}}
"""

GATHER = (
    """
HloModule jit_step, entry_computation_layout={(f32[4,8,16]{2,1,0}, f32[4,16]{1,0})->f32[4,16]{1,0}}, replica_count=2

body {
  st = (s32[], f32[4,16], f32[4,8,16]) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  x = f32[4,16] get-tuple-element(st), index=1
  w = f32[4,8,16] get-tuple-element(st), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  shard = f32[1,8,16] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,8,16}
  whole = f32[1,16,16] all-gather(shard), replica_groups={{0,1}}, dimensions={1}
  matrix = f32[16,16] reshape(whole)
  y = f32[4,16] dot(x, matrix), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i1 = s32[] add(i, one)
  ROOT out = (s32[], f32[4,16], f32[4,8,16]) tuple(i1, y, w)
}
"""
    + COUNTING.format(state="(s32[], f32[4,16], f32[4,8,16])")
    + """
ENTRY main {
  w = f32[4,8,16] parameter(0)
  x = f32[4,16] parameter(1)
  z = s32[] constant(0)
  init = (s32[], f32[4,16], f32[4,8,16]) tuple(z, x, w)
  loop = (s32[], f32[4,16], f32[4,8,16]) while(init), condition=cond, body=body
  ROOT y = f32[4,16] get-tuple-element(loop), index=1
}
"""
)

RESTACK = (
    """
HloModule jit_step, entry_computation_layout={(f32[4,64,64]{2,1,0}, f32[8,64]{1,0})->f32[64]{0}}

body {
  st = (s32[], f32[8,64], f32[4,64,64], f32[4,64,64]) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  x = f32[8,64] get-tuple-element(st), index=1
  stacked = f32[4,64,64] get-tuple-element(st), index=2
  w = f32[4,64,64] get-tuple-element(st), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  slice = f32[1,64,64] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,64,64}
  matrix = f32[64,64] reshape(slice)
  y = f32[8,64] dot(x, matrix), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  stacked1 = f32[4,64,64] dynamic-update-slice(stacked, slice, i, zero, zero)
  i1 = s32[] add(i, one)
  ROOT out = (s32[], f32[8,64], f32[4,64,64], f32[4,64,64]) tuple(i1, y, stacked1, w)
}
"""
    + COUNTING.format(state="(s32[], f32[8,64], f32[4,64,64], f32[4,64,64])")
    + """
ENTRY main {
  w = f32[4,64,64] parameter(0)
  x = f32[8,64] parameter(1)
  z = s32[] constant(0)
  fz = f32[] constant(0)
  blank = f32[4,64,64] broadcast(fz), dimensions={}
  init = (s32[], f32[8,64], f32[4,64,64], f32[4,64,64]) tuple(z, x, blank, w)
  loop = (s32[], f32[8,64], f32[4,64,64], f32[4,64,64]) while(init), condition=cond, body=body
  y = f32[8,64] get-tuple-element(loop), index=1
  used = f32[4,64,64] get-tuple-element(loop), index=2
  last = f32[1,1,64] slice(used), slice={[3:4], [0:1], [0:64]}
  first = f32[1,64] slice(y), slice={[0:1], [0:64]}
  a = f32[64] reshape(last)
  b = f32[64] reshape(first)
  ROOT r = f32[64] add(a, b)
}
"""
)
UNREAD = RESTACK.replace("stacked, slice", "stacked, doubled").replace("slice(used)", "slice(w)")
UNREAD = UNREAD.replace("  matrix =", "  doubled = f32[1,64,64] add(slice, slice)\n  matrix =")

SELECT = """
HloModule jit_collect, entry_computation_layout={(f32[4,64,64]{2,1,0}, f32[4,64]{1,0}, pred[4]{0})->f32[4,64,64]{2,1,0}}

ENTRY main {
  cache = f32[4,64,64] parameter(0)
  rows = f32[4,64] parameter(1)
  wanted = pred[4] parameter(2)
  old = f32[4,64,64] negate(cache)
  part = f32[4,1,64] reshape(rows)
  two = s32[] constant(2)
  zero = s32[] constant(0)
  new = f32[4,64,64] dynamic-update-slice(old, part, zero, two, zero)
  mask = pred[4,64,64] broadcast(wanted), dimensions={0}
  ROOT chosen = f32[4,64,64] select(mask, OPERANDS)
}
"""

SCATTER = """
HloModule jit_collect

put {
  before = f32[] parameter(0)
  ROOT update = f32[] parameter(1)
}

ENTRY main {
  cache = f32[4,64,64] parameter(0)
  rows = f32[4,64] parameter(1)
  places = s32[4,2] parameter(2)
  wanted = pred[4] parameter(3)
  old = f32[4,64,64] negate(cache)
  new = f32[4,64,64] scatter(old, places, rows), update_window_dims={1}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=put
  mask = pred[4,64,64] broadcast(wanted), dimensions={0}
  ROOT chosen = f32[4,64,64] select(mask, new, old)
}
"""

CONDITIONAL = (
    """
HloModule jit_write, entry_computation_layout={(f32[64,64]{1,0}, f32[4,64]{1,0}, pred[4]{0})->f32[64,64]{1,0}}

write {
  a = (s32[], f32[64,64], f32[1,64]) parameter(0)
  b = f32[64,64] get-tuple-element(a), index=1
  row = f32[1,64] get-tuple-element(a), index=2
  twice = f32[1,64] add(row, row)
  i = s32[] get-tuple-element(a), index=0
  zero = s32[] constant(0)
  new = f32[64,64] dynamic-update-slice(b, twice, i, zero)
  ROOT t = (f32[64,64]) tuple(new)
}

leave {
  ROOT a = (f32[64,64]) parameter(0)
}

body {
  st = (s32[], f32[64,64], f32[4,64], pred[4]) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  cache = f32[64,64] get-tuple-element(st), index=1
  rows = f32[4,64] get-tuple-element(st), index=2
  wanted = pred[4] get-tuple-element(st), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  flag = pred[1] dynamic-slice(wanted, i), dynamic_slice_sizes={1}
  now = pred[] reshape(flag)
  row = f32[1,64] dynamic-slice(rows, i, zero), dynamic_slice_sizes={1,64}
  with = (s32[], f32[64,64], f32[1,64]) tuple(i, cache, row)
  without = (f32[64,64]) tuple(cache)
  c = (f32[64,64]) conditional(now, BRANCHES
  next = f32[64,64] get-tuple-element(c), index=0
  i1 = s32[] add(i, one)
  ROOT out = (s32[], f32[64,64], f32[4,64], pred[4]) tuple(i1, next, rows, wanted)
}
"""
    + COUNTING.format(state="(s32[], f32[64,64], f32[4,64], pred[4])")
    + """
ENTRY main {
  cache = f32[64,64] parameter(0)
  rows = f32[4,64] parameter(1)
  wanted = pred[4] parameter(2)
  start = f32[64,64] negate(cache)
  z = s32[] constant(0)
  init = (s32[], f32[64,64], f32[4,64], pred[4]) tuple(z, start, rows, wanted)
  loop = (s32[], f32[64,64], f32[4,64], pred[4]) while(init), condition=cond, body=body
  ROOT r = f32[64,64] get-tuple-element(loop), index=1
}
"""
)
IF_TRUE = "with, without), true_computation=write, false_computation=leave"
IF_FALSE = "without, with), true_computation=leave, false_computation=write"

CAST = (
    """
HloModule jit_step, entry_computation_layout={(bf16[4,64,64]{2,1,0}, f32[8,64]{1,0})->f32[8,64]{1,0}}

inner {
  st = (s32[], f32[8,64], f32[4,64,64]) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  x = f32[8,64] get-tuple-element(st), index=1
  w = f32[4,64,64] get-tuple-element(st), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  slice = f32[1,64,64] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,64,64}
  matrix = f32[64,64] reshape(slice)
  y = f32[8,64] dot(x, matrix), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i1 = s32[] add(i, one)
  ROOT out = (s32[], f32[8,64], f32[4,64,64]) tuple(i1, y, w)
}
"""
    + COUNTING.format(state="(s32[], f32[8,64], f32[4,64,64])")
    + COUNTING.format(state="(s32[], f32[8,64], f32[4,64,64])").replace("cond", "outer_cond")
    + """
outer {
  st = (s32[], f32[8,64], f32[4,64,64]) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  x = f32[8,64] get-tuple-element(st), index=1
  w = f32[4,64,64] get-tuple-element(st), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  init = (s32[], f32[8,64], f32[4,64,64]) tuple(zero, x, w)
  loop = (s32[], f32[8,64], f32[4,64,64]) while(init), condition=cond, body=inner
  y = f32[8,64] get-tuple-element(loop), index=1
  i1 = s32[] add(i, one)
  ROOT out = (s32[], f32[8,64], f32[4,64,64]) tuple(i1, y, w)
}

ENTRY main {
  w = bf16[4,64,64] parameter(0)
  x = f32[8,64] parameter(1)
  z = s32[] constant(0)
  wide = f32[4,64,64] convert(w), metadata={op_name="jit(step)/convert_element_type"}
  init = (s32[], f32[8,64], f32[4,64,64]) tuple(z, x, wide)
  loop = (s32[], f32[8,64], f32[4,64,64]) while(init), condition=outer_cond, body=outer
  ROOT y = f32[8,64] get-tuple-element(loop), index=1
}
"""
)

TRAIN = """
HloModule jit_train

ENTRY main {
  weights = f32[64,64] parameter(0), metadata={op_name="state.params[\\'w\\']"}
  momentum = f32[64,64] parameter(1), metadata={op_name="state.momentum[\\'w\\']"}
  x = f32[8,64] parameter(2), metadata={op_name="x"}
  y = f32[8,64] dot(x, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  gradient = f32[64,64] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  next = f32[64,64] add(momentum, gradient)
  stepped = f32[64,64] subtract(weights, next)
  ROOT t = (f32[64,64], f32[64,64]) tuple(stepped, next)
}
"""

Finder = Callable[[Module], list[ProgramChange]]
CHANGES = {
    "squeeze": (GATHER, find_squeezes),
    "scan output": (RESTACK, find_scan_outputs),
    "scan output that nothing reads": (UNREAD, find_scan_outputs),
    "select new or old": (SELECT.replace("OPERANDS", "new, old"), find_selects),
    "select old or new": (SELECT.replace("OPERANDS", "old, new"), find_selects),
    "select by a mask that varies along the cut": (
        SELECT.replace("OPERANDS", "new, old")
        .replace("broadcast(wanted), dimensions={0}", "broadcast(wanted), dimensions={1}")
        .replace("pred[4]", "pred[64]"),
        find_selects,
    ),
    "select of a scatter": (SCATTER, find_selects),
    "conditional that writes if true": (CONDITIONAL.replace("BRANCHES", IF_TRUE), find_conditionals),
    "conditional that writes if false": (CONDITIONAL.replace("BRANCHES", IF_FALSE), find_conditionals),
    "cast before two loops": (CAST, find_up_casts),
    "donation": (TRAIN, find_donations),
}


def changed(text: str, find: Finder) -> tuple[Module, Module]:
    """A module before and after the one change that is found."""
    before = layoutsim.parse(text)
    (change,) = find(before)
    after = clone_module(before)
    change.apply(after)
    return before, after


def titled(text: str, start: str, preset: str = "xla-gpu-0.10.2") -> list[Advice]:
    return [a for a in advise(layoutsim.parse(text), preset).advice if a.title.startswith(start)]


@pytest.mark.parametrize(("text", "find"), CHANGES.values(), ids=CHANGES)
def test_the_changed_module_is_valid_and_computes_the_same(text: str, find: Finder) -> None:
    before, after = changed(text, find)

    assert verify(after) == []
    interpreter = Interpreter(before)
    given = [
        [seeded_value(p.shape, f"{p.name}/{d}") for p in before.entry.parameters] for d in range(interpreter.devices.count)
    ]
    for actual, expected in zip(Interpreter(after).run(given), interpreter.run(given), strict=True):
        assert compare_values(actual, expected, before.entry.root.shape) == []


@pytest.mark.parametrize(("text", "find"), CHANGES.values(), ids=CHANGES)
def test_the_given_module_stays_as_it_is(text: str, find: Finder) -> None:
    before, _ = changed(text, find)

    assert before.to_text() == layoutsim.parse(text).to_text()


@pytest.mark.parametrize(("text", "find"), CHANGES.values(), ids=CHANGES)
def test_nothing_is_left_to_change(text: str, find: Finder) -> None:
    _, after = changed(text, find)

    assert find(after) == []


def test_a_squeeze_saves_the_copy_of_the_stack_under_0_6_1_only() -> None:
    (advice,) = titled(GATHER, "squeeze", "xla-gpu-0.6.1")

    # f32[4,8,16]: 4*8*16*4 = 2,048 bytes
    assert (advice.saved_temp_bytes, advice.remaining_copy_bytes) == (2_048, 0)
    assert advice.code.startswith("shard = jnp.squeeze(shard, axis=0)")
    assert titled(GATHER, "squeeze") == []


def test_a_dropped_scan_output_saves_the_stack() -> None:
    (advice,) = titled(RESTACK, "drop a scan output that equals the scan's input %w")

    # f32[4,64,64]: 4*64*64*4 = 65,536 bytes
    assert advice.saved_temp_bytes >= 65_536
    assert "return carry, None" in advice.code


def test_a_dropped_scan_output_that_nothing_reads_saves_the_stack() -> None:
    (advice,) = titled(UNREAD, "drop a scan output that nothing reads, f32[4,64,64]")

    # f32[4,64,64]: 65,536 bytes, and what was stacked, f32[1,64,64]: 16,384
    assert advice.saved_temp_bytes >= 65_536
    assert "return carry, None" in advice.code


def test_a_scan_output_that_only_the_condition_reads_stays() -> None:
    seen = "seen = f32[4,64,64] get-tuple-element(st), index=2\n  part = f32[4,64,64] negate(seen)\n  ROOT lt = "
    read = UNREAD.replace("ROOT lt = ", seen)

    assert find_scan_outputs(layoutsim.parse(read)) == []


def test_a_scan_output_that_the_loop_reads_stays() -> None:
    read = RESTACK.replace("reshape(slice)", "reshape(again)").replace(
        "  matrix", "  again = f32[1,64,64] dynamic-slice(stacked, i, zero, zero), dynamic_slice_sizes={1,64,64}\n  matrix"
    )

    assert find_scan_outputs(layoutsim.parse(read)) == []


def test_a_scan_output_that_is_not_written_to_its_end_stays() -> None:
    assert find_scan_outputs(layoutsim.parse(RESTACK.replace("constant(4)", "constant(3)"))) == []


def test_selecting_a_slice_saves_the_array_and_the_mask() -> None:
    (advice,) = titled(SELECT.replace("OPERANDS", "new, old"), "select what is written")

    # f32[4,64,64] 65,536, pred[4,64,64] 16,384; instead two f32[4,1,64] of 1,024 and pred[4,1,64] 256
    assert advice.saved_temp_bytes == 65_536 + 16_384 - 2 * 1_024 - 256
    assert "jnp.where(condition, part, here)" in advice.code


def test_selecting_what_a_scatter_writes_saves_the_array_and_the_mask() -> None:
    (advice,) = titled(SCATTER, "select what is written")

    # f32[4,64,64] 65,536, pred[4,64,64] 16,384, read before the peak now; instead f32[4,64] 1,024 and pred[4,64] 256
    assert advice.saved_temp_bytes == 65_536 + 16_384 - 1_024 - 256
    assert "buffer.at[places].set(jnp.where(condition, part, here))" in advice.code


def test_a_select_with_another_array_stays() -> None:
    assert find_selects(layoutsim.parse(SELECT.replace("OPERANDS", "new, cache"))) == []


def test_a_scatter_that_adds_stays() -> None:
    adding = SCATTER.replace(
        "ROOT update = f32[] parameter(1)", "update = f32[] parameter(1)\n  ROOT sum = f32[] add(before, update)"
    )

    assert find_selects(layoutsim.parse(adding)) == []


def test_choosing_the_part_in_a_conditional_saves_the_array() -> None:
    (advice,) = titled(CONDITIONAL.replace("BRANCHES", IF_TRUE), "choose what is written in the conditional")

    # f32[64,64]: 16,384 bytes
    assert advice.saved_temp_bytes == pytest.approx(16_384, rel=0.1)
    assert "lax.cond(condition, make_part, lambda: lax.dynamic_slice(buffer, starts, part.shape))" in advice.code


def test_the_branches_of_the_advised_conditional_keep_their_order() -> None:
    (change,) = find_conditionals(layoutsim.parse(CONDITIONAL.replace("BRANCHES", IF_FALSE)))

    assert "lax.cond(condition, lambda: lax.dynamic_slice(buffer, starts, part.shape), make_part)" in change.code


def test_casting_slices_saves_the_wide_array_in_nested_loops() -> None:
    (advice,) = titled(CAST, "cast slices of bf16[4,64,64] from bf16 to f32")

    # f32[4,64,64] 65,536; the new bf16 slice takes memory that is free at its time
    assert advice.saved_temp_bytes == 65_536
    assert "x = x.astype(jnp.float32)" in advice.code


def test_a_wide_array_that_is_used_as_a_whole_stays() -> None:
    read = CAST.replace("matrix = f32[64,64] reshape(slice)", "matrix = f32[64,64] reduce(w, zf), dimensions={0}, to_apply=sum")
    read = read.replace("  zero = s32[] constant(0)\n", "  zero = s32[] constant(0)\n  zf = f32[] constant(0)\n")
    adding = "\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\ninner"

    assert find_up_casts(layoutsim.parse(read.replace("\ninner", adding, 1))) == []


@pytest.mark.parametrize("scope", ["", "jit(step)/while/body/dot_general"], ids=["made by XLA", "moved by XLA"])
def test_a_cast_that_is_not_the_users_is_for_xla(scope: str) -> None:
    (advice,) = titled(CAST.replace("jit(step)/convert_element_type", scope), "cast slices of bf16[4,64,64]")

    assert advice.audience == "xla"
    assert "while-loop-invariant-code-motion" in advice.code


def test_a_donated_argument_saves_a_result() -> None:
    (advice,) = titled(TRAIN, "donate state")

    # two results f32[64,64] of 16,384; what was computed in them, the gradient and y (f32[8,64]), are temporaries now
    assert advice.saved_bytes == 2 * 16_384 - 16_384 - 2_048
    assert advice.code == "train = jax.jit(train, donate_argnames=('state',))"
    assert advice.warnings == ("the caller cannot read state after the call",)


def test_an_argument_is_donated_only_if_all_its_arrays_come_out_again() -> None:
    assert find_donations(layoutsim.parse(TRAIN.replace('op_name="x"', 'op_name="state.x"'))) == []


def test_an_argument_that_is_donated_already_is_not_named() -> None:
    donated = TRAIN.replace("jit_train", "jit_train, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }")

    assert find_donations(layoutsim.parse(donated)) == []


def test_arguments_without_names_are_donated_by_number() -> None:
    nameless = "\n".join(line.partition(", metadata")[0] for line in TRAIN.splitlines())

    assert [c.code for c in find_donations(layoutsim.parse(nameless))] == [
        "train = jax.jit(train, donate_argnums=(0,))  # counted without unused arguments",
        "train = jax.jit(train, donate_argnums=(1,))  # counted without unused arguments",
    ]


def test_all_donations_together_are_one_call() -> None:
    two = TRAIN.replace("state.params", "weights").replace("state.momentum", "momentum")
    (advice,) = titled(two, "donate every")

    assert advice.code == "train = jax.jit(train, donate_argnames=('weights', 'momentum'))"
