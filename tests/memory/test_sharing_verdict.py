"""Whether two values share memory, and what keeps them apart."""

import pytest

from layoutsim.errors import InputError
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.memory.sharing_verdict import SharingVerdict, Verdict, find_value, why_shared
from layoutsim.text import parse_module

STRAIGHT = """
HloModule m, is_scheduled=true

fused {
  q = f32[100]{0} parameter(0)
  ROOT f = f32[100]{0} exponential(q)
}

ENTRY e {
  p = f32[100]{0} parameter(0)
  k = f32[100]{0} constant({...})
  a = f32[100]{0} negate(p)
  b = f32[100]{0} negate(a)
  c = f32[100]{0} reverse(b), dimensions={0}
  d = f32[100]{0} fusion(c), kind=kLoop, calls=fused
  h = f32[100]{0:S(5)} negate(d)
  e = f32[200]{0} concatenate(d, k), dimensions={0}
  ROOT r = f32[1]{0} slice(e), slice={[0:1]}
}
"""

LOOP = """
HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

body {
  st = (s32[], f32[100]{0}) parameter(0)
  i = s32[] get-tuple-element(st), index=0
  x = f32[100]{0} get-tuple-element(st), index=1
  one = s32[] constant(1)
  i1 = s32[] add(i, one)
  y = f32[100]{0} negate(x)
  ROOT out = (s32[], f32[100]{0}) tuple(i1, y)
}

cond {
  st2 = (s32[], f32[100]{0}) parameter(0)
  j = s32[] get-tuple-element(st2), index=0
  n = s32[] constant(8)
  ROOT lt = pred[] compare(j, n), direction=LT
}

ENTRY e {
  p = f32[100]{0} parameter(0)
  z = s32[] constant(0)
  zc = s32[] copy(z)
  init = (s32[], f32[100]{0}) tuple(zc, p)
  loop = (s32[], f32[100]{0}) while(init), condition=cond, body=body
  ROOT y2 = f32[100]{0} get-tuple-element(loop), index=1
}
"""


def verdict(text: str, first: str, second: str) -> SharingVerdict:
    assignment = assign_buffers(parse_module(text), GPU)
    return why_shared(assignment, find_value(assignment, first), find_value(assignment, second))


def test_values_that_follow_one_another_share_bytes():
    found = verdict(STRAIGHT, "a", "b")

    assert found.verdict is Verdict.SAME_BYTES
    assert found.to_text().startswith(
        "a and b share memory: a is live 2..3, from a to b; b is live 3..4, from b to c; both 3..3, at b; allocation "
    )


def test_an_instruction_that_reads_while_it_writes_does_not_share_with_its_operand():
    found = verdict(STRAIGHT, "b", "c")

    assert found.verdict is Verdict.CANNOT_TAKE_OVER
    assert found.reason.startswith(
        "c (reverse) cannot be written over b while it reads it; b is live 3..4, from b to c; c is live 4..5, from c to d"
    )


def test_values_live_together_do_not_share():
    found = verdict(STRAIGHT, "d", "e")

    assert not found.shares


@pytest.mark.parametrize(
    ("first", "second", "expected", "reason"),
    [
        ("k", "a", Verdict.NEVER_SHARES, "k is a constant"),
        ("a", "p", Verdict.NEVER_SHARES, "p is a parameter that is not donated"),
        ("h", "a", Verdict.MEMORY_SPACES, "they are in memory spaces 5 and 0"),
        ("f", "a", Verdict.NO_PLACE, "f has no memory of its own (inside a fusion, or not reachable)"),
    ],
)
def test_what_never_shares_is_said(first: str, second: str, expected: Verdict, reason: str):
    found = verdict(STRAIGHT, first, second)

    assert (found.verdict, found.reason) == (expected, reason)


def test_a_donated_loop_carry_is_one_buffer_from_parameter_to_result():
    found = verdict(LOOP, "p", "y")

    assert found.verdict is Verdict.SAME_BUFFER
    assert "they are one buffer (p is donated, carried by loop{1})" in found.reason


def test_values_are_found_by_name_and_index():
    assignment = assign_buffers(parse_module(LOOP), GPU)

    assert find_value(assignment, "%loop{1}") is find_value(assignment, "y2")
    assert find_value(assignment, "init {0}").instruction.name == "zc"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "no instruction of the module is named 'nothing'"),
        ("loop{7}", "has no part at that index"),
        ("loop{x}", "has no part at that index"),
    ],
)
def test_a_name_that_means_nothing_is_refused(text: str, message: str):
    assignment = assign_buffers(parse_module(LOOP), GPU)

    with pytest.raises(InputError, match=message):
        find_value(assignment, text)
