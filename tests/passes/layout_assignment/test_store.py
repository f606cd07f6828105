"""How requests change constraints (layout spec, section 3)."""

import pytest

from layoutsim.analysis.points_to import PointsTo
from layoutsim.errors import LayoutError
from layoutsim.ir import layout
from layoutsim.passes.layout_assignment.graph import Graph
from layoutsim.passes.layout_assignment.reasons import DEFAULT
from layoutsim.passes.layout_assignment.rules import keeps_layout
from layoutsim.passes.layout_assignment.store import Store
from layoutsim.text import parse_module

TEXT = """
HloModule m
ENTRY e {
  p = f32[8,16] parameter(0)
  v = f32[8] parameter(1)
  i = s32[] parameter(2)
  u = f32[2,16] parameter(3)
  d = f32[8,16] dynamic-update-slice(p, u, i, i)
  s = f32[2,16] dynamic-slice(d, i, i), dynamic_slice_sizes={2,16}
  r = f32[32] reshape(s)
  ROOT t = (f32[8,16], f32[8], f32[32]) tuple(d, v, r)
}"""

ROW, COLUMN = layout((1, 0)), layout((0, 1))


class Bench:
    def __init__(self) -> None:
        module = parse_module(TEXT)
        self.graph = Graph(PointsTo(module), keeps_layout)
        self.graph.add(module.entry, [])
        self.store = Store(self.graph)
        self.store.start_round()
        self.named = {i.name: i for i in module.entry.instructions}

    def node(self, name: str):
        return self.graph.nodes[self.named[name]]

    def buffer(self, name: str):
        return self.graph.points_to.at(self.named[name], ())[0]

    def set(self, name: str, wanted, **options) -> None:
        self.store.set_buffer(wanted, self.buffer(name), DEFAULT, None, **options)

    def set_operand(self, name: str, number: int, wanted, **options) -> None:
        self.store.set_array_operand(wanted, self.node(name), number, DEFAULT, None, **options)

    def layout(self, name: str):
        constraint = self.store.buffers[self.buffer(name).id]
        assert constraint is not None
        return constraint.layout


def test_the_first_of_two_soft_requests_wins() -> None:
    bench = Bench()
    bench.set("p", ROW, mandatory=False)
    bench.set("p", COLUMN, mandatory=False)

    assert bench.layout("p") is ROW


def test_the_last_of_two_mandatory_requests_wins() -> None:
    bench = Bench()
    bench.set("p", ROW)
    bench.set("p", COLUMN)

    assert bench.layout("p") is COLUMN


def test_a_mandatory_request_beats_a_higher_priority() -> None:
    bench = Bench()
    bench.set("p", ROW, priority=3)
    bench.set("p", COLUMN, priority=0)

    assert bench.layout("p") is COLUMN


def test_a_soft_request_of_higher_priority_makes_a_mandatory_constraint_soft() -> None:
    bench = Bench()
    bench.set("p", ROW)
    bench.set("p", COLUMN, mandatory=False, priority=1)
    constraint = bench.store.buffers[bench.buffer("p").id]

    assert constraint is not None
    assert (constraint.layout, constraint.mandatory) == (COLUMN, False)


def test_a_buffer_takes_two_changes_before_soft_requests_are_refused() -> None:
    bench = Bench()
    for priority, wanted in enumerate([ROW, COLUMN, ROW, COLUMN]):
        bench.set("p", wanted, mandatory=False, priority=priority)

    assert bench.layout("p") is ROW


def test_the_same_layout_again_only_raises_flags() -> None:
    bench = Bench()
    bench.set("p", ROW, mandatory=False, depth_first=False)
    bench.store.take_added()
    bench.set("p", ROW, mandatory=False, depth_first=False)
    assert bench.store.take_added() == []
    bench.set("p", ROW)
    (constraint,) = bench.store.take_added()

    assert (constraint.mandatory, constraint.depth_first) == (True, True)


def test_changed_vectors_are_not_queued() -> None:
    bench = Bench()
    bench.set("v", layout((0,)), mandatory=False)
    assert len(bench.store.take_added()) == 1
    bench.set("v", layout((0,)))

    assert bench.store.take_added() == []


def test_a_soft_request_never_replaces_an_operand_layout() -> None:
    bench = Bench()
    bench.set_operand("d", 0, ROW, mandatory=False)
    bench.set_operand("d", 0, COLUMN, mandatory=False, priority=9)

    assert bench.node("d").constraints[0].layout is ROW


def test_a_mandatory_request_gives_way_to_an_operand_layout_of_higher_priority() -> None:
    bench = Bench()
    bench.set_operand("d", 0, ROW, priority=1)
    bench.set_operand("d", 0, COLUMN, priority=0)
    assert bench.node("d").constraints[0].layout is ROW
    bench.set_operand("d", 0, COLUMN, priority=1)

    assert bench.node("d").constraints[0].layout is COLUMN


def test_scalar_operands_are_not_constrained() -> None:
    bench = Bench()
    bench.set_operand("d", 2, layout(()))

    assert bench.node("d").constraints[2] is None


def test_soft_requests_on_updates_and_reshapes_of_slices_count_less() -> None:
    bench = Bench()
    bench.set_operand("d", 1, ROW, mandatory=False)
    bench.set_operand("d", 0, ROW, mandatory=False)
    bench.set_operand("r", 0, ROW, mandatory=False)
    seen = {
        (name, number): (c.priority, c.depth_first)
        for name, number in [("d", 0), ("d", 1), ("r", 0)]
        if (c := bench.node(name).constraints[number]) is not None
    }

    assert seen == {("d", 0): (0, True), ("d", 1): (-1, False), ("r", 0): (-1, False)}


def test_depth_first_constraints_queue_at_the_end_and_others_by_priority() -> None:
    bench = Bench()
    bench.set("p", ROW, depth_first=False, priority=0)
    bench.set("u", ROW, depth_first=True, priority=0)
    bench.set("d", ROW, depth_first=False, priority=1)
    bench.set("s", ROW, depth_first=False, priority=0)
    names = [c.buffer.instruction.name for c in bench.store.take_added()]

    assert names == ["d", "p", "u", "s"]


def test_tuples_have_no_layout() -> None:
    bench = Bench()
    with pytest.raises(LayoutError, match="is not an array and cannot have layout"):
        bench.set("t", layout(()))


def test_a_layout_must_have_the_rank_of_its_array() -> None:
    bench = Bench()
    with pytest.raises(LayoutError, match=r"layout \{2,1,0\} does not fit f32\[8,16\]\{1,0\}, which has rank 2"):
        bench.set("p", layout((2, 1, 0)))
