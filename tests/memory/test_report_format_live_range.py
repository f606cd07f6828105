"""Reading and printing ``live-range.txt``."""

import pytest

from layoutsim.errors import ParseError
from layoutsim.memory.report_format_live_range import (
    LiveBuffer,
    StackNode,
    build_stacks,
    parse_live_range_report,
    print_live_range,
    sorted_peak,
)

REPORT = """\
HloLiveRange (max 3):
  InstructionSequence:
    0:p
    1:while.1
    2:jit(f)/odd:name
  BufferLiveRange:
    p{}:0-3
    while.1{0,1}:1-2
  Live ranges at 1 (peak):
    while.1{0,1}: 2000000 bytes (cumulative: 2000000 bytes)
    p{}: 1000 bytes (cumulative: 2001000 bytes)
  Stack trace breakdown for peak usage: 2 001 000 bytes
    main (100.0%, total: 2 001 000 bytes, current: 0 bytes, remaining: 2 001 000 bytes)
      ├── jit(f)/while (100.0%, total: 2 000 000 bytes, current: 500 bytes, remaining: 2 000 500 bytes)
      │   └── body (99.9%, total: 1 999 500 bytes, current: 0 bytes, remaining: 2 000 500 bytes)
      │       └── x (total){0,1} (99.9%, total: 1 999 500 bytes, current: 1 999 500 bytes, remaining: 1 000 bytes)
      └── p (0.0%, total: 1 000 bytes, current: 1 000 bytes, remaining: 0 bytes)
"""


def test_reading_and_printing_gives_the_same_text():
    assert print_live_range(parse_live_range_report(REPORT)) == REPORT


def test_the_tree_is_read_with_its_shape():
    report = parse_live_range_report(REPORT)

    leaf = StackNode("x (total){0,1}", 1_999_500)
    loop = StackNode("jit(f)/while", 500, (StackNode("body", 0, (leaf,)),))
    assert report.stacks == (StackNode("main", 0, (loop, StackNode("p", 1000))),)
    assert report.instructions == ("p", "while.1", "jit(f)/odd:name")


def test_a_report_without_a_tree_is_read_and_printed():
    older = REPORT[: REPORT.index("  Stack trace")]

    assert parse_live_range_report(older).stacks is None
    assert print_live_range(parse_live_range_report(older)) == older


def test_several_topmost_nodes_keep_their_columns():
    tree = (StackNode("main", 0, (StackNode("a", 60),)), StackNode("other", 0, (StackNode("b", 40),)))
    text = print_live_range(parse_live_range_report(REPORT).__class__(0, (), (), 0, (LiveBuffer("a", (), 100),), tree))

    assert [line.split(" (")[0] for line in text.splitlines()[-4:]] == ["    main", "  │   └── a", "    other", "      └── b"]
    assert parse_live_range_report(text).stacks == tree


def test_the_peak_is_sorted_by_size_name_and_index():
    buffers = [LiveBuffer("b", (), 8), LiveBuffer("a", (1,), 8), LiveBuffer("a", (0,), 8), LiveBuffer("c", (), 9)]

    assert [(b.name, b.index) for b in sorted_peak(buffers)] == [("c", ()), ("a", (0,)), ("a", (1,)), ("b", ())]


def test_traces_with_common_beginnings_become_one_tree():
    tree = build_stacks([(("main", "a"), 5), (("main", "while", "b"), 7), (("main", "while"), 1), (("main", "z"), 0)])

    assert tree == (StackNode("main", 0, (StackNode("while", 1, (StackNode("b", 7),)), StackNode("a", 5))),)


def test_a_line_that_xla_does_not_print_is_refused():
    with pytest.raises(ParseError, match="expected a live range") as caught:
        parse_live_range_report(REPORT.replace("p{}:0-3", "p{}:0"))

    assert caught.value.line == 7
