import pytest

from layoutsim.analysis.dataflow import Dataflow
from layoutsim.errors import UnsupportedError
from layoutsim.ir import Instruction, ShapeIndex
from layoutsim.text import parse_module


def _entry(body: str) -> str:
    return f"HloModule m\n\nENTRY main {{\n{body}\n}}\n"


class _Flow:
    """A dataflow with instructions looked up by name."""

    def __init__(self, text: str) -> None:
        self.module = parse_module(text)
        self.flow = Dataflow(self.module)
        self._by_name = {i.name: i for c in self.module.computations for i in c.instructions}

    def __getitem__(self, name: str) -> Instruction:
        return self._by_name[name]

    def at(self, name: str, index: ShapeIndex = ()) -> list[str]:
        return [str(v.definition) for v in self.flow.value_set(self[name], index)]

    def same(self, a: str, b: str, index_a: ShapeIndex = (), index_b: ShapeIndex = ()) -> bool:
        return self.flow.value_at(self[a], index_a) is self.flow.value_at(self[b], index_b)

    def defines(self, name: str) -> list[ShapeIndex]:
        return [v.index for v in self.flow.values if v.instruction is self[name] and not v.is_phi]

    def phis(self) -> list[str]:
        return [str(v.definition) for v in self.flow.values if v.is_phi]


LOOP = """
HloModule m

body {{
  state = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(state), index=0
  b = f32[] get-tuple-element(state), index=1
  c = f32[] add(a, b)
  ROOT next = (f32[], f32[]) tuple({next})
}}

condition {{
  state.1 = (f32[], f32[]) parameter(0)
  ROOT go = pred[] constant(false)
}}

ENTRY main {{
  zero = f32[] constant(0)
  one = f32[] constant(1)
  init = (f32[], f32[]) tuple({init})
  ROOT loop = (f32[], f32[]) while(init), condition=condition, body=body
}}
"""


@pytest.mark.checklist(1)
def test_a_binary_operation_defines_one_value() -> None:
    f = _Flow(_entry("a = f32[] constant(1)\nb = f32[] constant(2)\nROOT c = f32[] add(a, b)"))

    assert [v.short_text for v in f.flow.values] == ["<0 a>", "<1 b>", "<2 c>"]
    assert [str(use) for use in f.flow.value_at(f["a"]).uses] == ["c, operand 0"]
    assert f.flow.value_at(f["c"]).uses == () and f.flow.value_at(f["c"]).is_live_out


@pytest.mark.checklist(2)
def test_tuples_and_their_elements_pass_values_on() -> None:
    f = _Flow(
        _entry(
            "p = f32[] parameter(0)\nq = f32[] parameter(1)\nt = (f32[], f32[]) tuple(p, q)\n"
            "x = f32[] get-tuple-element(t), index=0\ny = f32[] get-tuple-element(t), index=1\nROOT s = f32[] add(x, y)"
        )
    )

    assert f.at("x") == ["p"] and f.at("y") == ["q"]
    assert f.defines("t") == [()] and f.defines("x") == []
    assert [str(p) for p in f.flow.value_at(f["p"]).positions] == ["p", "t {0}", "x"]
    assert [str(u) for u in f.flow.value_at(f["p"]).uses] == ["s, operand 0"]


@pytest.mark.checklist(3)
def test_a_copy_of_a_tuple_defines_only_its_table() -> None:
    f = _Flow(
        _entry(
            "p = f32[] parameter(0)\nq = f32[] parameter(1)\nt = (f32[], f32[]) tuple(p, q)\nROOT c = (f32[], f32[]) copy(t)"
        )
    )

    assert f.defines("c") == [()]
    assert f.at("c", (1,)) == ["q"]
    assert len(f.flow.values) == 4


@pytest.mark.checklist(4)
def test_a_barrier_forwards_everything() -> None:
    f = _Flow(
        _entry(
            "p = f32[] parameter(0)\nq = f32[] parameter(1)\nt = (f32[], f32[]) tuple(p, q)\n"
            "ROOT b = (f32[], f32[]) opt-barrier(t)"
        )
    )

    assert f.at("b") == ["t {}"] and f.at("b", (0,)) == ["p"]
    assert len(f.flow.values) == 3


@pytest.mark.checklist(5)
def test_a_bitcast_keeps_the_value_which_lives_out() -> None:
    f = _Flow(_entry("c = f32[2] constant({1, 2})\nROOT b = f32[2] bitcast(c)"))

    assert f.at("b") == ["c"]
    assert f.flow.value_at(f["c"]).is_live_out


@pytest.mark.checklist(6)
def test_a_call_passes_operands_in_and_the_root_out() -> None:
    f = _Flow(
        "HloModule m\n\ncallee {\n x = f32[] parameter(0)\n ROOT n = f32[] negate(x)\n}\n\n"
        "ENTRY main {\n p = f32[] parameter(0)\n ROOT c = f32[] call(p), to_apply=callee\n}\n"
    )

    assert f.at("x") == ["p"] and f.at("c") == ["n"]
    assert [str(u) for u in f.flow.value_at(f["p"]).uses] == ["c, operand 0", "n, operand 0"]


@pytest.mark.checklist(7)
def test_what_a_loop_changes_needs_phis_and_what_it_passes_on_does_not() -> None:
    f = _Flow(LOOP.format(next="a, c", init="zero, one"))

    # Condition and body come first with what meets there at once; what the body adds meets the initial value later.
    assert f.phis() == ["state.1 {}", "state {}", "state.1 {1}", "state {1}", "loop {}", "loop {1}"]
    assert f.at("loop", (0,)) == ["zero"] and f.at("state", (0,)) == ["zero"]
    assert [str(p) for p in f.flow.value_at(f["zero"]).positions] == [
        "zero",
        "state {0}",
        "a",
        "next {0}",
        "state.1 {0}",
        "init {0}",
        "loop {0}",
    ]


def test_phis_have_the_last_ids() -> None:
    f = _Flow(LOOP.format(next="a, c", init="zero, one"))

    first_phi = min(v.id for v in f.flow.values if v.is_phi)
    assert first_phi > max(v.id for v in f.flow.values if not v.is_phi)


@pytest.mark.checklist(9)
def test_swapped_carries_with_distinct_values_need_phis() -> None:
    f = _Flow(LOOP.format(next="b, a", init="zero, one"))

    assert {f"{name} {{{k}}}" for name in ("state", "state.1", "loop") for k in (0, 1)} <= set(f.phis())
    assert not f.flow.value_at(f["zero"]).is_live_out


@pytest.mark.checklist(10)
def test_swapped_carries_with_one_value_need_none() -> None:
    f = _Flow(LOOP.format(next="b, a", init="zero, zero"))

    assert f.at("loop", (0,)) == ["zero"] and f.at("loop", (1,)) == ["zero"]
    assert f.phis() == ["state.1 {}", "state {}", "loop {}"]  # tables only
    assert f.flow.value_at(f["zero"]).is_live_out


NESTED = """
HloModule m

inner {
  i = (f32[], f32[]) parameter(0)
  i0 = f32[] get-tuple-element(i), index=0
  i1 = f32[] get-tuple-element(i), index=1
  n = f32[] negate(i1)
  ROOT it = (f32[], f32[]) tuple(i0, n)
}

inner_go {
  ic = (f32[], f32[]) parameter(0)
  ROOT g0 = pred[] constant(false)
}

middle {
  m = (f32[], f32[]) parameter(0)
  ROOT iw = (f32[], f32[]) while(m), condition=inner_go, body=inner
}

middle_go {
  mc = (f32[], f32[]) parameter(0)
  ROOT g2 = pred[] constant(false)
}

outer {
  o = (f32[], f32[]) parameter(0)
  ROOT mw = (f32[], f32[]) while(o), condition=middle_go, body=middle
}

outer_go {
  oc = (f32[], f32[]) parameter(0)
  ROOT g1 = pred[] constant(false)
}

ENTRY main {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  t = (f32[], f32[]) tuple(p, q)
  ROOT ow = (f32[], f32[]) while(t), condition=outer_go, body=outer
}
"""


@pytest.mark.checklist(8)
def test_nested_loops_need_phis_at_every_level_for_what_the_innermost_changes() -> None:
    f = _Flow(NESTED)

    loops = ("i", "ic", "iw", "m", "mc", "mw", "o", "oc", "ow")
    assert {f"{name} {{1}}" for name in loops} <= set(f.phis())
    assert all(f.at(name, (0,)) == ["p"] for name in loops)


CONDITIONAL = """
HloModule m

first {{
  x = f32[] parameter(0)
  nx = f32[] negate(x)
  ROOT rx = f32[] {first}
}}

second {{
  y = f32[] parameter(0)
  ny = f32[] negate(y)
  ROOT ry = f32[] {second}
}}

ENTRY main {{
  which = pred[] parameter(0)
  p = f32[] parameter(1)
  ROOT c = f32[] conditional(which, p, p), true_computation=first, false_computation=second
}}
"""


@pytest.mark.checklist(11)
def test_branches_that_return_the_same_operand_need_no_phi() -> None:
    f = _Flow(CONDITIONAL.format(first="bitcast(x)", second="bitcast(y)"))

    assert f.at("c") == ["p"] and f.phis() == []


def test_branches_that_return_different_values_need_a_phi() -> None:
    f = _Flow(CONDITIONAL.format(first="bitcast(nx)", second="bitcast(y)"))

    assert f.phis() == ["c"]


@pytest.mark.checklist(12)
def test_copy_start_defines_destination_and_context_and_forwards_its_operand() -> None:
    f = _Flow(_entry("p = f32[4] parameter(0)\ns = (f32[4], f32[4], u32[]) copy-start(p)\nROOT d = f32[4] copy-done(s)"))

    assert f.defines("s") == [(), (0,), (2,)]
    assert f.at("s", (1,)) == ["p"] and f.at("d") == ["s {0}"]


@pytest.mark.checklist(13)
def test_send_forwards_its_operand_and_recv_done_the_data() -> None:
    f = _Flow(
        _entry(
            "p = f32[4] parameter(0)\ntk = token[] after-all()\n"
            "s = (f32[4], u32[], token[]) send(p, tk), channel_id=1\nsd = token[] send-done(s), channel_id=1\n"
            "r = (f32[4], u32[], token[]) recv(tk), channel_id=2\nROOT rd = (f32[4], token[]) recv-done(r), channel_id=2"
        )
    )

    assert f.at("s", (0,)) == ["p"] and f.defines("s") == [(), (1,), (2,)]
    assert f.at("rd", (0,)) == ["r {0}"] and f.defines("rd") == [(), (1,)]


@pytest.mark.checklist(13)
def test_set_dimension_size_defines_a_new_value() -> None:
    f = _Flow(
        _entry("p = f32[8] parameter(0)\nn = s32[] parameter(1)\nROOT d = f32[<=8] set-dimension-size(p, n), dimensions={0}")
    )

    assert f.at("d") == ["d"]


@pytest.mark.checklist(14)
def test_the_done_of_an_all_reduce_is_the_value_of_its_start() -> None:
    f = _Flow(
        "HloModule m\n\nsum {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n\n"
        "ENTRY main {\n p = f32[4] parameter(0)\n st = f32[4] all-reduce-start(p), replica_groups={}, to_apply=sum\n"
        " ROOT d = f32[4] all-reduce-done(st)\n}\n"
    )

    assert f.at("d") == ["st"]


@pytest.mark.checklist(15)
def test_all_gather_start_with_two_operands() -> None:
    f = _Flow(
        _entry(
            "p = f32[4] parameter(0)\nq = f32[4] parameter(1)\n"
            "s = ((f32[4], f32[4]), (f32[8], f32[8])) all-gather-start(p, q), replica_groups={{0,1}}, dimensions={0}\n"
            "ROOT d = (f32[8], f32[8]) all-gather-done(s)"
        )
    )

    assert f.at("s", (0, 1)) == ["q"]
    assert f.defines("s") == [(), (0,), (1,), (1, 0), (1, 1)]
    assert f.defines("d") == [()] and f.at("d", (0,)) == ["s {1,0}"]


@pytest.mark.checklist(16)
def test_async_start_forwards_operands_and_the_wrapped_root() -> None:
    f = _Flow(
        "HloModule m\n\nwrapped {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n\n"
        "ENTRY main {\n p = f32[4] parameter(0)\n"
        " s = ((f32[4]), f32[4], s32[]) async-start(p), calls=wrapped\n"
        " u = ((f32[4]), f32[4], s32[]) async-update(s)\n ROOT d = f32[4] async-done(u)\n}\n"
    )

    assert f.at("x") == ["p"] and f.at("s", (0, 0)) == ["p"]
    assert f.at("s", (1,)) == ["n"] and f.at("u", (1,)) == ["n"] and f.at("d") == ["n"]
    assert f.defines("s") == [(), (0,), (2,)]


def test_unused_parameters_of_a_loop_body_have_values() -> None:
    f = _Flow(LOOP.format(next="a, b", init="zero, one"))

    assert f.phis() == ["state.1 {}", "state {}", "loop {}"]


def test_a_computation_called_both_ways_is_refused() -> None:
    text = (
        "HloModule m\n\nf {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n\n"
        "ENTRY main {\n p = f32[] parameter(0)\n v = f32[4] parameter(1)\n c = f32[] call(p, p), to_apply=f\n"
        " ROOT r = f32[] reduce(v, c), dimensions={0}, to_apply=f\n}\n"
    )
    with pytest.raises(UnsupportedError, match="computation f is called both as control flow and embedded"):
        Dataflow(parse_module(text))
