import pytest
from attrs import evolve

from layoutsim.analysis.values import Value
from layoutsim.errors import InputError, UnsupportedError
from layoutsim.ir import ShapeIndex
from layoutsim.memory.assignment import OrderingKind, assign_buffers
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.profile import CPU, GPU, MemoryProfile
from layoutsim.text import parse_module

TIGHT = evolve(CPU, alignment=1)
"""Sizes as they are, so that sums of bytes can be written down."""


class _Assigned:
    """An assignment with allocations looked up by instruction name. Modules with a schedule are packed."""

    def __init__(self, text: str, profile: MemoryProfile = TIGHT) -> None:
        self.module = parse_module(text)
        kind = OrderingKind.DEPENDENCY if self.module.schedule is None else OrderingKind.SCHEDULE
        self.assignment: BufferAssignment = assign_buffers(self.module, profile, ordering=kind)
        self._by_name = {i.name: i for c in self.module.computations for i in c.instructions}

    def value(self, name: str, index: ShapeIndex = ()) -> Value:
        return self.assignment.aliases.dataflow.value_at(self._by_name[name], index)

    def at(self, name: str, index: ShapeIndex = ()) -> Allocation:
        return self.assignment.slice_at(self._by_name[name], index)[0]

    def place(self, name: str, index: ShapeIndex = ()) -> tuple[int, int, int]:
        allocation, offset, size = self.assignment.slice_at(self._by_name[name], index)
        return allocation.index, offset, size

    def share(self, *names: str) -> bool:
        return len({self.place(name) for name in names}) == 1

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return self.assignment.allocations


def _entry(body: str, header: str = "") -> str:
    return f"HloModule m{header}\n\nENTRY main {{\n{body}\n}}\n"


def _scheduled(body: str, header: str = "") -> str:
    return _entry(body, f", is_scheduled=true{header}")


CHAIN = """
  a = f32[100] parameter(0)
  x = f32[100] parameter(1)
  y = f32[100] parameter(2)
  m = f32[100] multiply(a, x)
  s = f32[100] add(m, y)
  ROOT r = f32[100] subtract({r})
"""


@pytest.mark.checklist(58)
def test_a_result_takes_the_place_of_an_operand_that_dies() -> None:
    a = _Assigned(_entry(CHAIN.format(r="s, y")))

    assert a.share("m", "s", "r")
    assert len({a.place(name)[0] for name in ("a", "x", "y")}) == 3
    assert a.at("r").is_live_out and a.at("r").kind == "output"


@pytest.mark.checklist(59)
def test_a_result_does_not_take_the_place_of_an_operand_used_later() -> None:
    a = _Assigned(_entry(CHAIN.format(r="s, m")))

    assert not a.share("m", "s")


def test_parameters_have_allocations_of_their_own() -> None:
    a = _Assigned(_entry(CHAIN.format(r="s, y")))
    parameters = [allocation.parameter for allocation in a.allocations if allocation.parameter is not None]

    assert sorted(p.number for p in parameters) == [0, 1, 2]
    assert all(p.index == () and not p.is_donated for p in parameters)
    assert all(a.at(name).is_read_only for name in ("a", "x", "y"))


@pytest.mark.checklist(60)
def test_a_donated_parameter_holds_the_whole_chain() -> None:
    donate = ", input_output_alias={ {}: (0, {}, may-alias) }"
    a = _Assigned(_entry("p = f32[100] parameter(0)\nn = f32[100] negate(p)\nROOT m = f32[100] negate(n)", donate))

    assert a.share("p", "n", "m")
    assert len(a.allocations) == 1
    assert a.at("p").parameter is not None and a.at("p").is_live_out and not a.at("p").is_read_only


@pytest.mark.checklist(61)
def test_a_chain_of_elementwise_operations_is_one_allocation() -> None:
    a = _Assigned(
        _entry(
            "p = f32[100] parameter(0)\ne = f32[100] exponential(p)\nt = f32[100] tanh(e)\n"
            "f = f32[100] exponential(t)\nROOT n = f32[100] negate(f)"
        )
    )

    assert a.share("e", "t", "f", "n")


SLICED = """
  p = f32[100] parameter(0)
  n = f32[100] negate(p)
  s = f32[10] slice(n), slice={{[0:10]}}
  {root}
"""


@pytest.mark.parametrize(
    ("root", "shares"),
    [
        ("ROOT b = f32[100,10] broadcast(s), dimensions={1}", True),
        ("ROOT b = f32[10,10] broadcast(s), dimensions={0}", True),
        ("ROOT b = f32[10,4] broadcast(s), dimensions={0}", False),
        ("b = f32[100,10] broadcast(s), dimensions={1}\nROOT t = (f32[100,10], f32[100]) tuple(b, n)", False),
    ],
)
@pytest.mark.checklist(61, 62)
def test_a_dead_value_joins_an_output_that_is_large_enough(root: str, shares: bool) -> None:
    a = _Assigned(_entry(SLICED.format(root=root)))

    assert (a.at("n") is a.at("b")) is shares
    assert a.at("s") is not a.at("b")


def test_an_output_joins_only_an_allocation_of_its_own_size() -> None:
    # The parameter is donated to the small output; the large one may not be put into something else either.
    donate = ", input_output_alias={ {0}: (0, {}, may-alias) }"
    a = _Assigned(
        _entry(
            "p = f32[100] parameter(0)\nn = f32[100] negate(p)\ns = f32[10] slice(n), slice={[0:10]}\n"
            "ROOT t = (f32[100], f32[10]) tuple(n, s)",
            donate,
        )
    )

    assert a.share("p", "n") and a.at("s").size == 40


REDUCE = """
HloModule m{header}

add {{
  q = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT z = f32[] add(q, r)
}}

ENTRY main {{
  p = f32[10,10] parameter(0)
  n = f32[10,10] negate(p)
  zero = f32[] constant(0)
  red = f32[10] reduce(n, zero), dimensions={{1}}, to_apply=add
  ROOT b = f32[10,10] broadcast(red), dimensions={{0}}
}}
"""


def test_values_of_reducers_are_thread_local() -> None:
    a = _Assigned(REDUCE.format(header=", is_scheduled=true"))
    local = [allocation for allocation in a.allocations if allocation.is_thread_local]

    assert {v.instruction.name for allocation in local for v in allocation.places} == {"q", "r", "z"}
    assert all(not allocation.is_live_out and allocation.parameter is None and not allocation.is_temp for allocation in local)


@pytest.mark.checklist(63)
def test_the_input_of_a_reduction_is_not_its_output() -> None:
    a = _Assigned(REDUCE.format(header=""))

    assert not a.share("n", "red")


CALLED = """
HloModule m

callee {
  x = f32[100] parameter(0)
  ROOT e = f32[100] exponential(x)
}

ENTRY main {
  p = f32[100] parameter(0)
  ROOT c = f32[100] call(p), to_apply=callee
}
"""


@pytest.mark.checklist(64)
def test_a_call_passes_places_in_and_out() -> None:
    a = _Assigned(CALLED)

    assert a.share("x", "p") and a.share("e", "c")
    assert len(a.allocations) == 2


@pytest.mark.checklist(65)
def test_a_copy_of_a_tuple_element_is_not_put_into_the_table() -> None:
    a = _Assigned(
        _entry(
            "p = f32[2] parameter(0)\nt = (f32[2]) tuple(p)\ng = f32[2] get-tuple-element(t), index=0\nROOT c = f32[2] copy(g)"
        )
    )

    assert len(a.allocations) == 3
    assert a.at("t").is_tuple and a.at("c") is not a.at("t")


TWO_DOTS = """
  a = f32[3,4] parameter(0)
  b = f32[4,4] parameter(1)
  c = f32[4,2] parameter(2)
  d = f32[3,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[4,2] dot(b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  x = f32[12] bitcast(d)
  y = f32[8] bitcast(e)
  ROOT r = f32[20] concatenate(x, y), dimensions={0}
"""


@pytest.mark.parametrize("header", ["", ", is_scheduled=true"])
@pytest.mark.checklist(66)
def test_temporaries_are_joined_into_one_allocation(header: str) -> None:
    a = _Assigned(_entry(TWO_DOTS, header))

    # 12 and 8 floats: 48 + 32 bytes.
    assert len(a.allocations) == 5 and a.assignment.temp_bytes == 80
    (_, offset_d, size_d), (_, offset_e, size_e) = a.place("d"), a.place("e")
    assert (size_d, size_e) == (48, 32)
    assert offset_d + size_d <= offset_e or offset_e + size_e <= offset_d


@pytest.mark.checklist(66)
def test_offsets_of_temporaries_are_aligned() -> None:
    a = _Assigned(_scheduled(TWO_DOTS), evolve(TIGHT, alignment=64))

    # 48 bytes, then 32 at 64.
    assert a.assignment.temp_bytes == 96


@pytest.mark.checklist(67)
def test_a_limit_splits_the_temporaries() -> None:
    body = (
        "".join(f"p{n} = f32[10,10] parameter({n})\n" for n in range(5))
        + "".join(
            f"d{n} = f32[10,10] dot(p{n}, p{n + 1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n" for n in range(4)
        )
        + "ROOT r = f32[40,10] concatenate(d0, d1, d2, d3), dimensions={0}"
    )
    profile = evolve(TIGHT, temp_limit_bytes=801)
    a = _Assigned(_entry(body), profile)

    assert [allocation.size for allocation in a.allocations if allocation.is_temp] == [800, 800]


LOOP = """
HloModule m, is_scheduled=true

body {
  b = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  v = f32[100] get-tuple-element(b), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[100] negate(v)
  ROOT next = (s32[], f32[100]) tuple(j, w)
}

condition {
  c = (s32[], f32[100]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(k, ten), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  p = f32[100] parameter(0)
  copy = f32[100] copy(p)
  start = s32[] copy(zero)
  init = (s32[], f32[100]) tuple(start, copy)
  loop = (s32[], f32[100]) while(init), condition=condition, body=body
  ROOT out = f32[100] get-tuple-element(loop), index=1
}
"""


@pytest.mark.checklist(68)
def test_a_loop_carries_each_element_in_one_place() -> None:
    a = _Assigned(LOOP)

    assert a.place("copy") == a.place("b", (1,)) == a.place("w") == a.place("loop", (1,))
    assert a.place("start") == a.place("b", (0,)) == a.place("j") == a.place("loop", (0,))
    assert a.at("copy").kind == "output" and a.at("start").kind == "temp"
    assert a.place("init") == a.place("next") == a.place("loop")


def test_constants_have_allocations_of_their_own() -> None:
    a = _Assigned(LOOP)

    assert {v.instruction.name for x in a.allocations if x.is_constant for v in x.places} == {"zero", "one", "ten"}


def test_constants_get_none_where_the_backend_embeds_them() -> None:
    a = _Assigned(LOOP, evolve(TIGHT, allocate_constants=False))

    assert not any(x.is_constant for x in a.allocations)
    with pytest.raises(InputError, match="zero at \\(\\) is in 0 places, expected one"):
        a.at("zero")


CONDITIONAL = """
HloModule m

yes {
  y = f32[] parameter(0)
  ny = f32[] negate(y)
  ROOT ty = f32[] copy(ny)
}

no {
  z = f32[] parameter(0)
  nz = f32[] exponential(z)
  ROOT tz = f32[] copy(nz)
}

ENTRY main {
  w = pred[] parameter(0)
  one = f32[] constant(1)
  two = f32[] constant(2)
  c = f32[] conditional(w, one, two), true_computation=yes, false_computation=no
  ROOT r = f32[] negate(c)
}
"""


@pytest.mark.checklist(69)
def test_branch_roots_are_in_the_place_of_the_conditional() -> None:
    a = _Assigned(CONDITIONAL)

    assert a.share("ty", "tz", "c")
    assert a.share("y", "one") and a.share("z", "two")
    assert set(a.at("one").places) == {a.value("one")}


def test_chained_updates_of_a_carry_have_one_place() -> None:
    a = _Assigned(
        _scheduled(
            "p = f32[8] parameter(0)\nu = f32[2] parameter(1)\ni = s32[] parameter(2)\nn = f32[8] negate(p)\n"
            "d = f32[8] dynamic-update-slice(n, u, i)\nROOT e = f32[8] dynamic-update-slice(d, u, i)"
        )
    )

    assert a.share("n", "d", "e")


@pytest.mark.checklist(73)
def test_outputs_of_a_sort_join_the_operands_at_their_number() -> None:
    text = """
HloModule m

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT
}

ENTRY main {
  p = f32[100] parameter(0)
  q = f32[100] parameter(1)
  keys = f32[100] add(p, q)
  numbers = s32[100] iota(), iota_dimension=0
  sorted = (f32[100], s32[100]) sort(keys, numbers), dimensions={0}, to_apply=less
  ROOT out = f32[100] get-tuple-element(sorted), index=0
}
"""
    a = _Assigned(text)

    assert a.place("keys") == a.place("sorted", (0,)) and a.place("numbers") == a.place("sorted", (1,))


@pytest.mark.checklist(74)
def test_an_in_place_custom_call_is_in_its_operand() -> None:
    a = _Assigned(
        _scheduled(
            "p = f32[8] parameter(0)\nn = f32[8] negate(p)\n"
            'ROOT c = f32[8] custom-call(n), custom_call_target="x", output_to_operand_aliasing={{}: (0, {})}'
        )
    )

    assert a.share("n", "c")


@pytest.mark.checklist(77)
def test_async_temporaries_are_apart_from_all_that_is_live_until_the_done() -> None:
    a = _Assigned(
        "HloModule m, is_scheduled=true\n\nwrapped {\n x = f32[100] parameter(0)\n n = f32[100] reverse(x), dimensions={0}\n"
        " ROOT r = f32[100] reverse(n), dimensions={0}\n}\n\nENTRY main {\n p = f32[100] parameter(0)\n"
        " s = ((f32[100]), f32[100], s32[]) async-start(p), calls=wrapped\n o = f32[100] negate(p)\n"
        " d = f32[100] async-done(s)\n ROOT t = f32[100] add(d, o)\n}\n"
    )

    assert a.share("r", "d") and a.share("x", "p")
    assert len({a.place(name) for name in ("n", "o", "r")}) == 3


def test_tuple_tables_are_temporaries() -> None:
    a = _Assigned(LOOP)

    assert a.at("init").is_temp
    # The counter's 4 bytes and the comparison's byte in the heap, two pointers of the loop's table behind it.
    assert a.assignment.temp_bytes == 21


@pytest.mark.checklist(75)
def test_values_of_another_colour_use_free_space_of_collective_memory_on_gpus() -> None:
    body = (
        "p = f32[2048] parameter(0)\nspecial = f32[2048]{0:S(1)} negate(p)\nsum = f32[8] slice(special), slice={[0:8]}\n"
        "zero = f32[] constant(0)\nplain = f32[1024] pad(sum, zero), padding=0_1016\n"
        "part = f32[8] slice(plain), slice={[8:16]}\nROOT r = f32[8] reverse(part), dimensions={0}"
    )
    a = _Assigned(_scheduled(body), GPU)

    assert a.at("special").color == 1 and a.at("special").size == 8192
    assert a.at("plain") is a.at("special")
    assert a.value("plain") in a.at("special").cross_color


@pytest.mark.checklist(75)
def test_larger_values_of_another_colour_have_their_own_allocation() -> None:
    body = (
        "p = f32[1024] parameter(0)\nspecial = f32[1024]{0:S(1)} negate(p)\nsum = f32[8] slice(special), slice={[0:8]}\n"
        "zero = f32[] constant(0)\nplain = f32[2048] pad(sum, zero), padding=0_2040\n"
        "part = f32[8] slice(plain), slice={[8:16]}\nROOT r = f32[8] reverse(part), dimensions={0}"
    )
    a = _Assigned(_scheduled(body), GPU)

    assert a.at("plain") is not a.at("special")
    assert (a.at("plain").color, a.at("special").color) == (0, 1)


def test_values_that_must_share_are_in_one_memory_space() -> None:
    body = (
        "p = f32[8] parameter(0)\nu = f32[2] parameter(1)\ni = s32[] parameter(2)\nn = f32[8]{0:S(5)} negate(p)\n"
        "ROOT d = f32[8]{0:S(1)} dynamic-update-slice(n, u, i)"
    )
    with pytest.raises(InputError, match=r"values that share memory are in different memory spaces \[1, 5\]"):
        _Assigned(_scheduled(body), GPU)


def test_a_module_without_a_schedule_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="computation main is not scheduled"):
        assign_buffers(parse_module(_entry("ROOT p = f32[] parameter(0)")), GPU)


def test_values_inside_fusions_have_no_allocation() -> None:
    a = _Assigned(
        "HloModule m, is_scheduled=true\n\nfused {\n x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)\n}\n\n"
        "ENTRY main {\n p = f32[4] parameter(0)\n ROOT f = f32[4] fusion(p), kind=kLoop, calls=fused\n}\n"
    )

    with pytest.raises(InputError, match="<1 n> has no allocation"):
        a.assignment.slice_of(a.value("n"))
