"""What ``layoutsim memory`` says of a module beyond its allocations."""

from layoutsim.experiments.memory import view_memory
from layoutsim.passes.presets import DEFAULT_PRESET
from layoutsim.text import parse_module

WIDE_IN_THE_MIDDLE = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[4]{0} parameter(0)
  a = f32[4]{0} reverse(p), dimensions={0}
  b = f32[16]{0} concatenate(a, a, a, a), dimensions={0}
  c = f32[16]{0} reverse(b), dimensions={0}
  ROOT d = f32[1]{0} slice(c), slice={[0:1]}
}
"""


def test_the_peak_is_when_the_second_wide_array_begins() -> None:
    # p and d count all the time: 16 + 4 bytes. b and c are alive together at c: 2 * 16*4 = 128 bytes more.
    view = view_memory(parse_module(WIDE_IN_THE_MIDDLE), DEFAULT_PRESET)

    assert view.to_json()["peak_instruction"] == "c"
    assert view.summary.peak_bytes == 148
    assert [buffer.name for buffer in view.peak] == ["b", "c", "p", "d"]
    assert view.rows()[1].title == "alive at the peak, when c begins in e"


def test_without_temporaries_the_peak_has_no_moment() -> None:
    view = view_memory(
        parse_module("HloModule m, is_scheduled=true\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}"), DEFAULT_PRESET
    )

    assert view.to_json()["peak_instruction"] is None
    assert view.rows()[1].title == "alive at the peak"
