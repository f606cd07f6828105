"""Memory over time."""

import pytest

import layoutsim
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.report.timeline import Timeline, timeline

# Logical times: p 0, a 1, b 2, d 3, r 4. Packed are b and d, until r reads them; a is over before r begins and lies in the
# memory of the result.
MODULE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[100] parameter(0)
  a = f32[100] exponential(p)
  b = f32[100] reverse(a), dimensions={0}
  d = f32[10] slice(p), slice={[0:10]}
  ROOT r = f32[110] concatenate(b, d), dimensions={0}
}
"""


@pytest.fixture
def line() -> Timeline:
    return timeline(assign_buffers(layoutsim.parse(MODULE), GPU))


def test_spans_are_half_open(line: Timeline) -> None:
    assert {s.name: (s.start, s.end, s.size_bytes) for s in line.spans} == {
        "b": (2, 4, 400),
        "d": (3, 4, 40),
    }


def test_the_curve_is_the_sum_of_the_spans(line: Timeline) -> None:
    # 400 for b, 400 + 40 for b and d.
    assert line.live_bytes[:5] == (0, 0, 400, 440, 0)
    assert line.peak_time == 3
    assert [s.name for s in line.alive_at(3)] == ["b", "d"]


def test_parameters_and_outputs_are_static(line: Timeline) -> None:
    assert line.static_bytes == 400 + 440
