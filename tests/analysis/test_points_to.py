"""Points-to analysis: which buffers there are, in which order, and what forwards them (layout spec, 1.2 and 13.3)."""

import pytest

from layoutsim.analysis.points_to import PointsTo, position
from layoutsim.ir import Instruction, Module, index_text
from layoutsim.text import parse_module


class Found:
    def __init__(self, text: str) -> None:
        self.module: Module = parse_module(text)
        self.points_to = PointsTo(self.module)

    def __getitem__(self, name: str) -> Instruction:
        (found,) = [i for c in self.module.computations for i in c.instructions if i.name == name]
        return found

    def set(self, name: str) -> list[str]:
        """The buffers of every index: ``p{0}``."""
        sets = self.points_to.points_to(self[name])
        return ["+".join(f"{b.instruction.name}{index_text(b.index)}" for b in buffers) for buffers in sets]

    @property
    def ids(self) -> list[str]:
        return [f"{b.instruction.name}{index_text(b.index)}" for b in self.points_to.buffers]


TUPLES = """
HloModule m
ENTRY e {
  p = (f32[4], (s32[], f32[2])) parameter(0)
  g = (s32[], f32[2]) get-tuple-element(p), index=1
  a = f32[4] get-tuple-element(p), index=0
  n = f32[4] negate(a)
  t = (f32[4], (s32[], f32[2])) tuple(n, g)
  c = (f32[4], (s32[], f32[2])) copy(t)
  ROOT b = (f32[4], (s32[], f32[2])) opt-barrier(c)
}"""


def test_tuples_and_elements_forward_and_copies_define_their_top() -> None:
    found = Found(TUPLES)

    assert found.set("p") == ["p{}", "p{0}", "p{1}", "p{1,0}", "p{1,1}"]
    assert found.set("g") == ["p{1}", "p{1,0}", "p{1,1}"]
    assert found.set("t") == ["t{}", "n{}", "p{1}", "p{1,0}", "p{1,1}"]
    assert found.set("c") == ["c{}", "n{}", "p{1}", "p{1,0}", "p{1,1}"]
    assert found.set("b") == found.set("c")


def test_aliases_come_in_list_order_then_index_order() -> None:
    found = Found(TUPLES)
    buffer = found.points_to.at(found["p"], (1, 1))[0]

    aliases = [(i.name, index) for i, index in found.points_to.aliases(buffer)]
    assert aliases == [("p", (1, 1)), ("g", (1,)), ("t", (1, 1)), ("c", (1, 1)), ("b", (1, 1))]


def test_a_barriers_own_buffers_have_ids_but_nobody_points_to_them() -> None:
    found = Found(TUPLES)

    assert found.ids[-5:] == ["b{}", "b{0}", "b{1}", "b{1,0}", "b{1,1}"]
    assert found.points_to.defined_by(found["b"]) == ()


def test_ids_follow_the_visitor_from_unreachable_roots_first() -> None:
    found = Found(
        """
HloModule m
ENTRY e {
  unused = f32[4] parameter(1)
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  dead = f32[4] abs(n)
  c = f32[4] constant({1,2,3,4})
  ROOT r = f32[4] add(c, n)
}"""
    )

    assert found.ids == ["unused{}", "p{}", "n{}", "dead{}", "c{}", "r{}"]


def test_loops_and_calls_define_all_of_their_result() -> None:
    found = Found(
        """
HloModule m
f {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  ROOT c = f32[4] call(p), to_apply=f
}"""
    )

    assert found.set("c") == ["c{}"]
    assert found.ids == ["x{}", "n{}", "p{}", "c{}"]


def test_fusion_bodies_come_last_and_listed_outputs_forward() -> None:
    found = Found(
        """
HloModule m
f {
  x = f32[4] parameter(0)
  ROOT t = (f32[4], f32[4]) tuple(x, x)
}
ENTRY e {
  p = f32[4] parameter(0)
  ROOT u = (f32[4], f32[4]) fusion(p), kind=kLoop, calls=f, output_to_operand_aliasing={{1}: (0, {})}
}"""
    )

    assert found.set("u") == ["u{}", "u{0}", "p{}"]
    assert found.ids == ["p{}", "u{}", "u{0}", "x{}", "t{}"]


def test_an_in_place_custom_call_defines_its_output_all_the_same() -> None:
    found = Found(
        """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(p), custom_call_target="x", output_to_operand_aliasing={{}: (0, {})}
}"""
    )

    assert found.set("c") == ["c{}"]


def test_transfers_forward_their_data() -> None:
    found = Found(
        """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  k = token[] after-all()
  s = (f32[4], u32[], token[]) send(p, k), channel_id=1
  sd = token[] send-done(s), channel_id=1
  v = (f32[4], u32[], token[]) recv(k), channel_id=2
  vd = (f32[4], token[]) recv-done(v), channel_id=2
  ROOT r = f32[4] get-tuple-element(vd), index=0
}"""
    )

    assert found.set("s") == ["s{}", "p{}", "s{1}", "s{2}"]
    assert found.set("vd") == ["vd{}", "v{0}", "vd{1}"]
    assert found.set("r") == ["v{0}"]


def test_asynchronous_copies_and_computations_forward() -> None:
    found = Found(
        """
HloModule m
f {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
ENTRY e {
  p = f32[4] parameter(0)
  cs = (f32[4], f32[4], u32[]) copy-start(p)
  cd = f32[4] copy-done(cs)
  as = ((f32[4]), f32[4], s32[]) async-start(cd), calls=f
  au = ((f32[4]), f32[4], s32[]) async-update(as)
  ROOT ad = f32[4] async-done(au)
}"""
    )

    assert found.set("cs") == ["cs{}", "cs{0}", "p{}", "cs{2}"]
    assert found.set("cd") == ["cs{0}"]
    assert found.set("as") == ["as{}", "as{0}", "cs{0}", "as{1}", "as{2}"]
    assert found.set("ad") == ["as{1}"]


def test_an_index_has_a_position_in_preorder() -> None:
    shape = Found(TUPLES)["p"].shape

    assert [position(shape, index) for index in [(), (0,), (1,), (1, 0), (1, 1)]] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("name", "defined"), [("n", True), ("g", False)])
def test_only_makers_define_a_buffer(name: str, defined: bool) -> None:
    found = Found(TUPLES)

    assert (found.points_to.defined_at(found[name], ()) is not None) is defined
