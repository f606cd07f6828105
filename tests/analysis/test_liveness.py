import pytest

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.alias_rules import DEFAULT_RULES
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.errors import UnsupportedError
from layoutsim.text import parse_module


def _ranges(text: str) -> dict[str, tuple[int, int]]:
    ranges = LiveRanges(Aliases.run(parse_module(text), DEFAULT_RULES))
    return {str(value.definition): (live.start, live.end) for value, live in ranges.ranges.items()}


def _entry(body: str, header: str = "") -> str:
    return f"HloModule m, is_scheduled=true{header}\n\nENTRY main {{\n{body}\n}}\n"


MULTIPLY = (
    "a = f32[] parameter(0)\nx = f32[4] parameter(1)\nb = f32[4] broadcast(a), dimensions={}\nROOT m = f32[4] multiply(b, x)"
)
ADD = """
  a = f32[4] parameter(0)
  x = f32[4] parameter(1)
  m = f32[4] multiply(a, x)
  y = f32[4] parameter(2)
"""


def test_parameters_live_throughout_and_the_root_to_the_end() -> None:
    ranges = _ranges(_entry(MULTIPLY))

    assert ranges == {"a": (0, 4), "x": (0, 4), "b": (2, 3), "m": (3, 4)}


@pytest.mark.checklist(35)
def test_parameters_of_a_product_live_throughout() -> None:
    ranges = _ranges(_entry("a = f32[4] parameter(0)\nx = f32[4] parameter(1)\nROOT m = f32[4] multiply(a, x)"))

    assert ranges == {"a": (0, 3), "x": (0, 3), "m": (2, 3)}


@pytest.mark.checklist(36)
def test_parameters_are_live_from_the_start_wherever_they_stand() -> None:
    ranges = _ranges(_entry(ADD + "ROOT s = f32[4] add(m, y)"))

    assert ranges == {"a": (0, 5), "x": (0, 5), "y": (0, 5), "m": (2, 4), "s": (4, 5)}


@pytest.mark.checklist(37)
def test_elements_of_the_root_tuple_live_to_the_end() -> None:
    ranges = _ranges(_entry(ADD + "s = f32[4] add(m, y)\nROOT t = (f32[4], f32[4]) tuple(m, s)"))

    assert ranges["m"] == (2, 6) and ranges["s"] == (4, 6) and ranges["t {}"] == (5, 6)


@pytest.mark.checklist(38)
def test_what_runs_after_the_root_extends_the_program() -> None:
    ranges = _ranges(_entry(ADD + "s = f32[4] add(m, y)\nROOT t = (f32[4], f32[4]) tuple(m, s)\ndead = f32[4] add(m, y)"))

    assert ranges["dead"] == (6, 6) and ranges["t {}"] == (5, 7) and ranges["m"] == (2, 7) and ranges["a"] == (0, 7)


@pytest.mark.checklist(39)
def test_a_donated_parameter_ends_with_its_last_use() -> None:
    ranges = _ranges(_entry(ADD + "ROOT s = f32[4] add(m, y)", ", input_output_alias={ {}: (0, {}, may-alias) }"))

    assert ranges == {"a": (0, 2), "x": (0, 5), "y": (0, 5), "m": (2, 4), "s": (4, 5)}


LOOP = """
HloModule m, is_scheduled=true

body {
  b = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  v = f32[4] get-tuple-element(b), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[4] negate(v)
  ROOT next = (s32[], f32[4]) tuple(j, w)
}

condition {
  c = (s32[], f32[4]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(k, ten), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  p = f32[4] parameter(0)
  copy = f32[4] copy(p)
  start = s32[] copy(zero)
  init = (s32[], f32[4]) tuple(start, copy)
  loop = (s32[], f32[4]) while(init), condition=condition, body=body
  ROOT out = f32[4] get-tuple-element(loop), index=1
}
"""


@pytest.mark.checklist(40)
def test_the_values_of_a_loop_carry_follow_one_another() -> None:
    # Times: entry 0-4 (init 4), condition 5-8, body 9-15, loop 16, out 17; the program ends at 18.
    ranges = _ranges(LOOP)

    assert ranges["start"] == (3, 5)  # until the condition's parameter takes over
    assert ranges["c {0}"] == (5, 9)
    assert ranges["b {0}"] == (9, 13)
    assert ranges["j"] == (13, 16)
    assert ranges["loop {0}"] == (16, 16)
    assert [ranges[v] for v in ("copy", "c {1}", "b {1}", "w", "loop {1}")] == [(2, 5), (5, 9), (9, 14), (14, 16), (16, 18)]


def test_condition_and_body_run_before_the_loop_in_time() -> None:
    schedule = LiveRanges(Aliases.run(parse_module(LOOP), DEFAULT_RULES)).schedule

    assert {c.name: span for c, span in schedule.spans.items()} == {"condition": (5, 9), "body": (9, 16), "main": (0, 18)}


@pytest.mark.checklist(41)
def test_a_call_is_timed_after_what_it_calls() -> None:
    # a 0, b 1, callee's parameter 2 and negation 3, c 4, d 5, e 6.
    ranges = _ranges(
        "HloModule m, is_scheduled=true\n\ncallee {\n x = f32[4] parameter(0)\n ROOT inner = f32[4] negate(x)\n}\n\n"
        "ENTRY main {\n a = f32[4] parameter(0)\n b = f32[4] negate(a)\n c = f32[4] call(b), to_apply=callee\n"
        " d = f32[4] negate(c)\n ROOT e = f32[4] add(c, d)\n}\n"
    )

    assert ranges == {"a": (0, 7), "b": (1, 3), "inner": (3, 6), "d": (5, 6), "e": (6, 7)}


@pytest.mark.checklist(42)
def test_async_values_live_until_the_done() -> None:
    # Wrapped: x 1, n 2, r 3; start 4, other 5, done 6, sum 7.
    ranges = _ranges(
        "HloModule m, is_scheduled=true\n\nwrapped {\n x = f32[4] parameter(0)\n n = f32[4] negate(x)\n"
        " ROOT r = f32[4] exponential(n)\n}\n\nENTRY main {\n p = f32[4] parameter(0)\n"
        " s = ((f32[4]), f32[4], s32[]) async-start(p), calls=wrapped\n other = f32[4] negate(p)\n"
        " d = f32[4] async-done(s)\n ROOT sum = f32[4] add(d, other)\n}\n"
    )

    assert ranges["n"] == (2, 6) and ranges["r"] == (3, 7)
    assert ranges["other"] == (5, 7) and ranges["p"] == (0, 8)


@pytest.mark.checklist(43)
def test_ranges_are_the_same_every_time() -> None:
    assert all(_ranges(LOOP) == _ranges(LOOP) for _ in range(20))


def test_values_of_fusions_have_no_range() -> None:
    ranges = _ranges(
        "HloModule m, is_scheduled=true\n\nfused {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n\n"
        "ENTRY main {\n p = f32[4] parameter(0)\n ROOT f = f32[4] fusion(p), kind=kLoop, calls=fused\n}\n"
    )

    assert ranges == {"p": (0, 2), "f": (1, 2)}


def test_the_last_position_is_remembered_and_uses_do_not_count() -> None:
    module = parse_module(
        _entry("p = f32[4] parameter(0)\nn = f32[4] negate(p)\nb = f32[2,2] bitcast(n)\nROOT e = f32[2,2] exponential(b)")
    )
    ranges = LiveRanges(Aliases.run(module, DEFAULT_RULES))
    live = next(r for v, r in ranges.ranges.items() if v.instruction.name == "n")

    assert (live.start, live.end, live.end_position.instruction.name) == (1, 3, "b")


def test_a_module_without_a_schedule_is_refused() -> None:
    module = parse_module("HloModule m\n\nENTRY main {\n ROOT p = f32[] parameter(0)\n}\n")
    with pytest.raises(UnsupportedError, match="module m has no schedule; run a scheduler first"):
        LiveRanges(Aliases.run(module, DEFAULT_RULES))
