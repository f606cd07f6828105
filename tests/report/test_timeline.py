"""Memory over time."""

from pathlib import Path

import pytest

import layoutsim
from layoutsim.experiments.memory import view_memory
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.memory.summary import find_peak
from layoutsim.report.timeline import Timeline, timeline

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"

# Logical times: p 0, a 1, d 2, n 3, b 4, r 5. Packed are d, n and b; a lies in the memory of the result. n works in the place
# of d.
MODULE = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[100] parameter(0)
  a = f32[100] exponential(p)
  d = f32[10] slice(a), slice={[0:10]}
  n = f32[10] negate(d)
  b = f32[100] reverse(a), dimensions={0}
  ROOT r = f32[110] concatenate(b, n), dimensions={0}
}
"""


@pytest.fixture
def line() -> Timeline:
    return timeline(assign_buffers(layoutsim.parse(MODULE), GPU))


def test_a_span_ends_after_the_last_use_or_where_its_place_is_taken_over(line: Timeline) -> None:
    # r reads b and n at 5, so they are there until 6; n takes over the place of d.
    assert {s.name: (s.start, s.end, s.size_bytes) for s in line.spans} == {
        "d": (2, 3, 40),
        "n": (3, 6, 40),
        "b": (4, 6, 400),
    }
    offsets = {s.name: s.offset for s in line.spans}
    assert offsets["d"] == offsets["n"]


def test_the_curve_is_the_sum_of_the_spans(line: Timeline) -> None:
    # 40 for d or n, then 40 + 400 with b.
    assert line.live_bytes == (0, 0, 40, 40, 440, 440, 0)
    assert line.peak_time == 4
    assert [s.name for s in line.alive_at(4)] == ["b", "n"]


def test_parameters_and_outputs_are_static(line: Timeline) -> None:
    assert line.static_bytes == 400 + 440


def test_what_is_alive_at_the_peak_has_a_class(line: Timeline) -> None:
    assert {s.name: s.waste for s in line.spans} == {"b": "needed", "d": "needed", "n": "needed"}


@pytest.mark.parametrize("case", ["lora_axis0/gpu-0.6.1", "lora_minor/gpu-0.10.2", "scan_transposed/cpu-0.10.2"])
def test_the_highest_point_of_the_curve_is_the_reported_peak(case: str) -> None:
    # In these modules the temporaries are one allocation that holds a table of pointers too.
    (path,) = (FIXTURES / case).glob("final*")
    assignment = view_memory(layoutsim.load(path), "xla-cpu-0.10.2" if "cpu" in case else "xla-gpu-0.10.2").assignment
    found, peak = timeline(assignment), find_peak(assignment)

    assert found.static_bytes + max(found.live_bytes) == peak.bytes
    assert peak.at is not None
    assert assignment.ranges.schedule.times[peak.at] == found.peak_time
