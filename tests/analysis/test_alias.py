import pytest

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.alias_rules import DEFAULT_RULES, GPU_RULES, AliasRules
from layoutsim.analysis.in_place import InPlacePair
from layoutsim.errors import UnsupportedError
from layoutsim.ir import ShapeIndex
from layoutsim.text import parse_module


class _Aliases:
    """Buffers with positions looked up by instruction name."""

    def __init__(self, text: str, rules: AliasRules = DEFAULT_RULES) -> None:
        self.module = parse_module(text)
        self.aliases = Aliases.run(self.module, rules)
        self._by_name = {i.name: i for c in self.module.computations for i in c.instructions}

    def buffer(self, name: str, index: ShapeIndex = ()) -> int:
        return self.aliases.buffer_at(self._by_name[name], index).id

    def pairs(self, name: str) -> list[tuple[int, ShapeIndex, ShapeIndex]]:
        found = self.aliases.sharing.pairs(self._by_name[name])
        assert all(isinstance(pair, InPlacePair) for pair in found)
        return [(p.operand_number, p.operand_index, p.output_index) for p in found]

    def lives_out(self, name: str) -> bool:
        return self.aliases.lives_out(self.aliases.dataflow.value_at(self._by_name[name]))


def _entry(body: str, header: str = "") -> str:
    return f"HloModule m{header}\n\nENTRY main {{\n{body}\n}}\n"


def _fusion(body: str, call: str, extra: str = "") -> str:
    return f"HloModule m\n\nfused {{\n{body}\n}}\n{extra}\nENTRY main {{\n{call}\n}}\n"


@pytest.mark.checklist(14)
def test_all_reduce_start_works_in_place() -> None:
    add = "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n"
    a = _Aliases(
        f"HloModule m\n\n{add}\nENTRY main {{\n p = f32[4] parameter(0)\n"
        " st = f32[4] all-reduce-start(p), replica_groups={}, to_apply=add\n ROOT d = f32[4] all-reduce-done(st)\n}\n"
    )

    assert a.pairs("st") == [(0, (), ())]
    assert a.buffer("p") == a.buffer("st") == a.buffer("d")


@pytest.mark.checklist(14)
def test_all_reduce_start_of_two_operands_pairs_them_in_order() -> None:
    add = "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\n"
    a = _Aliases(
        f"HloModule m\n\n{add}\nENTRY main {{\n p = f32[4] parameter(0)\n q = f32[8] parameter(1)\n"
        " st = (f32[4], f32[8]) all-reduce-start(p, q), replica_groups={}, to_apply=add\n"
        " ROOT d = (f32[4], f32[8]) all-reduce-done(st)\n}\n"
    )

    assert a.pairs("st") == [(0, (), (0,)), (1, (), (1,))]


@pytest.mark.checklist(17)
def test_a_donated_parameter_and_its_output_are_one_live_out_buffer() -> None:
    a = _Aliases(
        _entry("p = f32[4] parameter(0)\nROOT r = f32[4] negate(p)", ", input_output_alias={ {}: (0, {}, may-alias) }")
    )

    assert a.buffer("p") == a.buffer("r")
    assert a.lives_out("p")


@pytest.mark.checklist(18)
def test_crossed_donations_of_passed_through_parameters_are_one_buffer() -> None:
    a = _Aliases(
        _entry(
            "p = f32[4] parameter(0)\nq = f32[4] parameter(1)\nROOT t = (f32[4], f32[4]) tuple(p, q)",
            ", input_output_alias={ {0}: (1, {}, may-alias), {1}: (0, {}, may-alias) }",
        )
    )

    assert a.buffer("p") == a.buffer("q")


@pytest.mark.checklist(19)
def test_dynamic_update_slice_writes_into_operand_0() -> None:
    a = _Aliases(
        _entry(
            "p = f32[8] parameter(0)\nu = f32[2] parameter(1)\ni = s32[] parameter(2)\n"
            "a = f32[8] dynamic-update-slice(p, u, i)\nROOT b = f32[8] dynamic-update-slice(a, u, i)"
        )
    )

    assert a.pairs("a") == [(0, (), ())]
    assert a.buffer("p") == a.buffer("a") == a.buffer("b") != a.buffer("u")


def test_a_scatter_writes_into_its_inputs() -> None:
    text = """
HloModule m

update {
  a0 = f32[] parameter(0)
  b0 = f32[] parameter(1)
  ROOT s = f32[] add(a0, b0)
}

ENTRY main {
  p = f32[8,2] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3,2] parameter(2)
  ROOT sc = f32[8,2] scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=update
}
"""
    a = _Aliases(text)

    assert a.pairs("sc") == [(0, (), ())]
    assert a.buffer("sc") == a.buffer("p")


def test_set_dimension_size_works_in_place() -> None:
    a = _Aliases(
        _entry("p = f32[8] parameter(0)\nn = s32[] parameter(1)\nROOT d = f32[<=8] set-dimension-size(p, n), dimensions={0}")
    )

    assert a.buffer("d") == a.buffer("p")


FUSED_UPDATE = """
  x = f32[8] parameter(0)
  u = f32[2] parameter(1)
  i = s32[] parameter(2)
  {update}
"""
FUSED_CALL = "p = f32[8] parameter(0)\nv = f32[2] parameter(1)\nn = s32[] parameter(2)\n"


def test_a_fused_update_of_a_parameter_is_found() -> None:
    body = FUSED_UPDATE.format(update="ROOT d = f32[8] dynamic-update-slice(x, u, i)")
    a = _Aliases(_fusion(body, FUSED_CALL + "ROOT f = f32[8] fusion(p, v, n), kind=kLoop, calls=fused"))

    assert a.pairs("f") == [(0, (), ())]


@pytest.mark.checklist(19)
def test_the_update_is_found_behind_a_tuple_for_its_output_only() -> None:
    body = FUSED_UPDATE.format(
        update="d = f32[8] dynamic-update-slice(x, u, i)\nm = f32[2] negate(u)\nROOT t = (f32[2], f32[8]) tuple(m, d)"
    )
    a = _Aliases(_fusion(body, FUSED_CALL + "ROOT f = (f32[2], f32[8]) fusion(p, v, n), kind=kLoop, calls=fused"))

    assert a.pairs("f") == [(0, (), (1,))]
    assert a.buffer("f", (1,)) == a.buffer("p") and a.buffer("f", (0,)) != a.buffer("v")


@pytest.mark.checklist(21)
def test_the_update_is_found_behind_a_bitcast() -> None:
    body = FUSED_UPDATE.format(update="d = f32[8] dynamic-update-slice(x, u, i)\nROOT b = f32[2,4] bitcast(d)")
    a = _Aliases(_fusion(body, FUSED_CALL + "ROOT f = f32[2,4] fusion(p, v, n), kind=kLoop, calls=fused"))

    assert a.pairs("f") == [(0, (), ())]


@pytest.mark.parametrize(("rules", "expected"), [(DEFAULT_RULES, []), (GPU_RULES, [(0, (), ())])])
@pytest.mark.checklist(21)
def test_the_update_is_found_behind_a_reshape_on_gpus_only(
    rules: AliasRules, expected: list[tuple[int, ShapeIndex, ShapeIndex]]
) -> None:
    body = FUSED_UPDATE.format(update="d = f32[8] dynamic-update-slice(x, u, i)\nROOT b = f32[2,4] reshape(d)")
    a = _Aliases(_fusion(body, FUSED_CALL + "ROOT f = f32[2,4] fusion(p, v, n), kind=kLoop, calls=fused"), rules)

    assert a.pairs("f") == expected


@pytest.mark.checklist(19)
def test_fused_updates_in_a_chain_are_one_buffer() -> None:
    body = FUSED_UPDATE.format(update="ROOT d = f32[8] dynamic-update-slice(x, u, i)")
    calls = "f = f32[8] fusion(p, v, n), kind=kLoop, calls=fused\nROOT g = f32[8] fusion(f, v, n), kind=kLoop, calls=fused"
    a = _Aliases(_fusion(body, FUSED_CALL + calls))

    assert a.buffer("p") == a.buffer("f") == a.buffer("g")


@pytest.mark.checklist(20)
@pytest.mark.parametrize(("said", "expected"), [("", []), (", output_to_operand_aliasing={{}: (0, {})}", [(0, (), ())])])
def test_a_fusion_without_update_has_what_it_says(said: str, expected: list[tuple[int, ShapeIndex, ShapeIndex]]) -> None:
    text = _fusion("x = f32[8] parameter(0)\nROOT n = f32[8] negate(x)", "p = f32[8] parameter(0)\nROOT f = f32[8] fusion(p)")
    a = _Aliases(text.replace("fusion(p)", f"fusion(p), kind=kLoop, calls=fused{said}"))

    assert a.pairs("f") == expected


@pytest.mark.checklist(20)
def test_an_update_of_something_computed_in_the_fusion_is_no_pair() -> None:
    body = FUSED_UPDATE.format(update="nx = f32[8] negate(x)\nROOT d = f32[8] dynamic-update-slice(nx, u, i)")
    a = _Aliases(_fusion(body, FUSED_CALL + "ROOT f = f32[8] fusion(p, v, n), kind=kLoop, calls=fused"))

    assert a.pairs("f") == []


@pytest.mark.checklist(20)
def test_what_a_fusion_says_comes_after_what_is_found() -> None:
    body = FUSED_UPDATE.format(
        update="d = f32[8] dynamic-update-slice(x, u, i)\nm = f32[2] negate(u)\nROOT t = (f32[2], f32[8]) tuple(m, d)"
    )
    call = "ROOT f = (f32[2], f32[8]) fusion(p, v, n), kind=kLoop, calls=fused, output_to_operand_aliasing={{0}: (1, {})}"
    a = _Aliases(_fusion(body, FUSED_CALL + call))

    assert a.pairs("f") == [(0, (), (1,)), (1, (), (0,))]


@pytest.mark.checklist(22)
def test_what_a_nested_fusion_says_is_no_source_but_what_its_body_does_is() -> None:
    inner = "inner {\n a = f32[8] parameter(0)\n ROOT n = f32[8] negate(a)\n}\n\n"
    text = (
        f"HloModule m\n\n{inner}fused {{\n x = f32[8] parameter(0)\n"
        " ROOT g = f32[8] fusion(x), kind=kLoop, calls=inner, output_to_operand_aliasing={{}: (0, {})}\n}\n\n"
        "ENTRY main {\n p = f32[8] parameter(0)\n ROOT f = f32[8] fusion(p), kind=kLoop, calls=fused\n}\n"
    )
    updating = (
        "HloModule m\n\ninner {\n a = f32[8] parameter(0)\n b = f32[2] parameter(1)\n c = s32[] parameter(2)\n"
        " ROOT d = f32[8] dynamic-update-slice(a, b, c)\n}\n\nfused {\n x = f32[8] parameter(0)\n u = f32[2] parameter(1)\n"
        " i = s32[] parameter(2)\n g = f32[8] fusion(x, u, i), kind=kLoop, calls=inner\n ROOT bc = f32[2,4] bitcast(g)\n}\n\n"
        f"ENTRY main {{\n {FUSED_CALL} ROOT f = f32[2,4] fusion(p, v, n), kind=kLoop, calls=fused\n}}\n"
    )

    assert _Aliases(text).pairs("f") == []
    assert _Aliases(updating).pairs("f") == [(0, (), ())]


def test_a_custom_call_has_what_it_says() -> None:
    a = _Aliases(
        _entry(
            "p = f32[4] parameter(0)\nn = f32[4] negate(p)\n"
            'ROOT c = f32[4] custom-call(p, n), custom_call_target="x", output_to_operand_aliasing={{}: (1, {})}'
        )
    )

    assert a.pairs("c") == [(1, (), ())]
    assert a.buffer("c") == a.buffer("n")


LOOPS = """
HloModule m

body {
  s = (f32[], f32[]) parameter(0)
  e0 = f32[] get-tuple-element(s), index=0
  e1 = f32[] get-tuple-element(s), index=1
  n1 = f32[] add(e0, e1)
  ROOT t = (f32[], f32[]) tuple(e0, n1)
}

go {
  sc = (f32[], f32[]) parameter(0)
  ROOT g = pred[] constant(false)
}

body.1 {
  r = (f32[], f32[]) parameter(0)
  r0 = f32[] get-tuple-element(r), index=0
  r1 = f32[] get-tuple-element(r), index=1
  m1 = f32[] add(r0, r1)
  ROOT u = (f32[], f32[]) tuple(r0, m1)
}

go.1 {
  rc = (f32[], f32[]) parameter(0)
  ROOT h = pred[] constant(false)
}

ENTRY main {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  init = (f32[], f32[]) tuple(p, q)
  w = (f32[], f32[]) while(init), condition=go, body=body
  ROOT w2 = (f32[], f32[]) while(w), condition=go.1, body=body.1
}
"""


@pytest.mark.checklist(23)
def test_loops_one_after_the_other_carry_one_buffer_for_what_they_pass_on() -> None:
    a = _Aliases(LOOPS)

    assert a.buffer("p") == a.buffer("w", (0,)) == a.buffer("w2", (0,)) == a.buffer("u", (0,))


def test_a_loop_carries_one_buffer_for_what_it_changes() -> None:
    a = _Aliases(LOOPS)

    assert a.buffer("q") == a.buffer("s", (1,)) == a.buffer("sc", (1,)) == a.buffer("n1") == a.buffer("w", (1,))
    assert a.buffer("init") == a.buffer("t") == a.buffer("w")


def test_branch_roots_share_with_the_conditional_and_operands_do_not() -> None:
    a = _Aliases(
        "HloModule m\n\none {\n x = f32[] parameter(0)\n nx = f32[] negate(x)\n}\n\n"
        "two {\n y = f32[] parameter(0)\n ny = f32[] exponential(y)\n}\n\n"
        "ENTRY main {\n w = pred[] parameter(0)\n p = f32[] parameter(1)\n"
        " ROOT c = f32[] conditional(w, p, p), true_computation=one, false_computation=two\n}\n"
    )

    assert a.buffer("nx") == a.buffer("ny") == a.buffer("c") != a.buffer("p")


def test_buffers_are_numbered_by_the_slot_of_the_largest_class() -> None:
    # q (id 1) joins the class of w{1}; the class of six values keeps the slot of its own smallest one when it is the largest.
    a = _Aliases(LOOPS)
    ids = [buffer.id for buffer in a.aliases.buffers]

    assert ids == list(range(len(ids)))
    assert all([v.id for v in b.values] == sorted(v.id for v in b.values) for b in a.aliases.buffers)


def test_a_body_called_twice_is_refused() -> None:
    text = LOOPS.replace("condition=go.1, body=body.1", "condition=go.1, body=body")
    with pytest.raises(UnsupportedError, match="body is called by w and others; flatten the call graph first"):
        Aliases.run(parse_module(text), DEFAULT_RULES)
