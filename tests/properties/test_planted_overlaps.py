"""The heap machine sees every placement that lets one live value overwrite another (:mod:`tests.properties.overlaps`)."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutsim.interp.arena import Arena
from layoutsim.interp.places import Places
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.testing.execution import inputs_for
from layoutsim.text import parse_module
from tests.properties.overlaps import Overlap, Tracer, harmful_overlaps, missed


@given(st.integers(0, 1 << 30), st.sampled_from([1, 4]))
def test_every_harmful_overlap_is_caught(seed: int, devices: int) -> None:
    planted, not_seen = missed(seed, count=8, devices=devices)
    assume(planted)

    assert not_seen == []


def test_a_machine_that_does_not_look_at_owners_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arena, "foreign", lambda *_: None)

    assert any(missed(seed, count=8)[1] for seed in range(4))


BRANCHES = """HloModule m, is_scheduled=true
yes { a = f32[4] parameter(0)  n = f32[4] negate(a)  ROOT e = f32[4] exponential(n) }
no { b = f32[4] parameter(0)  c = f32[4] cosine(b)  ROOT s = f32[4] sine(c) }
ENTRY e {
  p = pred[] constant(true)
  x = f32[4] parameter(0)
  y = f32[4] abs(x)
  z = f32[4] floor(x)
  unread = (f32[4], f32[4]) tuple(y, z)
  r = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no
  ROOT t = f32[4] add(r, y)
}
"""


def test_only_what_runs_and_is_read_later_counts() -> None:
    module = parse_module(BRANCHES)
    places = Places.of_assignment(assign_buffers(module, GPU))
    inputs = inputs_for(module, 0)

    pairs = {(o.victim.name, o.writer.name) for o in _all(places, inputs)}

    # y is read at the end, past n and e of the branch that is taken; nobody reads z; x is read last where y, z and n are made.
    assert pairs <= {("y", "n"), ("y", "e"), ("y", "z"), ("x", "y"), ("x", "z")}
    assert {("y", "n"), ("x", "z")} <= pairs
    assert {i.name for i, _, _ in Tracer(module, inputs).computed}.isdisjoint({"c", "s", "b"})


def _all(places: Places, inputs: object) -> list[Overlap]:
    """Every fault that can be planted: bytes that are hit are drawn anew each time."""
    return [overlap for seed in range(20) for overlap in harmful_overlaps(places, inputs, random.Random(seed), 100)]
