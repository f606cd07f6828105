"""The tree of call stacks of what is alive at the peak."""

import pytest

from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.memory.report_format_live_range import StackNode
from layoutsim.memory.report_format_stacks import split_label, with_stacks
from layoutsim.memory.reported import live_range_report
from layoutsim.text import parse_module


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("add.3", ("add.3",)),
        ("params['w']", ("params", "w")),
        ("params['layer/fc'].attr", ("params", "layer", "fc", "attr")),
        ("state.params['a']['b']", ("state", "params", "a", "b")),
        ("params.w", ("params.w",)),
        ("jit(f)/params['w']", ("jit(f)/params['w']",)),
        ("params['w'] ", ("params['w'] ",)),
        ("['w']", ("['w']",)),
    ],
)
def test_a_label_is_split_only_if_it_is_a_name_with_keys(label: str, parts: tuple[str, ...]):
    assert split_label(label) == parts


def test_values_stand_under_their_computation_and_its_caller():
    module = parse_module("""
HloModule m, is_scheduled=true

callee {
  q = f32[64]{0} parameter(0)
  a = f32[64]{0} reverse(q), dimensions={0}, metadata={op_name="rev"}
  ROOT b = f32[64]{0} reverse(a), dimensions={0}
}

ENTRY main {
  p = f32[64]{0} parameter(0), metadata={op_name="params['w']"}
  ROOT c = f32[64]{0} call(p), to_apply=callee, metadata={op_name="jit(f)/call"}
}
""")
    assignment = assign_buffers(module, GPU)
    report = with_stacks(live_range_report(assignment.ranges), assignment.ranges, module)

    callee = StackNode("callee", 0, (StackNode("b", 256), StackNode("rev", 256)))
    params = StackNode("params", 0, (StackNode("w", 256),))
    assert report.stacks == (StackNode("main", 0, (StackNode("jit(f)/call", 0, (callee,)), params)),)
