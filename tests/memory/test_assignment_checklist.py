"""Facts of the memory spec's checklist on whole programs: loops one behind the other, options, and its worked example."""

import pytest
from attrs import evolve

from layoutsim.ir import ShapeIndex
from layoutsim.memory.assignment import OrderingKind, assign_buffers
from layoutsim.memory.buffers import Allocation, BufferAssignment
from layoutsim.memory.heaps import BestFit, Order
from layoutsim.memory.profile import CPU, GPU, BufferOrder, MemoryProfile
from layoutsim.memory.summary import find_peak
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.schedule import Algorithm, ScheduleModule
from layoutsim.passes.sharing_rules import SharingRules
from layoutsim.text import parse_module

TIGHT = evolve(CPU, alignment=1)


class _Assigned:
    """An assignment with places looked up by instruction name."""

    def __init__(self, text: str, profile: MemoryProfile = TIGHT, *, copies: bool = False) -> None:
        self.module = parse_module(text)
        if copies:
            CopyInsertion(rules=SharingRules.DEFAULT).run(self.module)
        kind = OrderingKind.DEPENDENCY if self.module.schedule is None else OrderingKind.SCHEDULE
        self.assignment: BufferAssignment = assign_buffers(self.module, profile, ordering=kind)
        self._by_name = {i.name: i for c in self.module.computations for i in c.instructions}

    def at(self, name: str, index: ShapeIndex = ()) -> Allocation:
        return self.assignment.slice_at(self._by_name[name], index)[0]

    def place(self, name: str, index: ShapeIndex = ()) -> tuple[int, int, int]:
        allocation, offset, size = self.assignment.slice_at(self._by_name[name], index)
        return allocation.index, offset, size

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return self.assignment.allocations


def _entry(body: str, header: str = "") -> str:
    return f"HloModule m{header}\n\nENTRY main {{\n{body}\n}}\n"


# -- reuse --------------------------------------------------------------------------------------------------------------------


@pytest.mark.checklist(58)
def test_the_peak_of_an_output_is_the_value_it_was_made_for() -> None:
    a = _Assigned(
        _entry(
            "a = f32[100] parameter(0)\nx = f32[100] parameter(1)\nm = f32[100] multiply(a, x)\n"
            "s = f32[100] add(m, x)\nROOT r = f32[100] subtract(s, x)"
        )
    )

    assert [value.instruction.name for value in a.at("r").peak_values] == ["r"]


@pytest.mark.checklist(62)
def test_what_a_tuple_of_the_result_holds_is_not_reused() -> None:
    a = _Assigned(
        _entry(
            "p = f32[100] parameter(0)\nn = f32[100] negate(p)\nt = (f32[100]) tuple(n)\n"
            "g = f32[100] get-tuple-element(t), index=0\ns = f32[10] slice(g), slice={[0:10]}\n"
            "b = f32[100,10] broadcast(s), dimensions={1}\nROOT r = ((f32[100]), f32[100,10]) tuple(t, b)"
        )
    )

    assert len({a.at(name).index for name in ("n", "s", "b")}) == 3


_MAP = """HloModule m

plus {
  x = f32[] parameter(0)
  c = f32[] constant(1)
  ROOT y = f32[] add(x, c)
}

ENTRY main {
  p = f32[100] parameter(0)
  ROOT r = f32[100] map(p), dimensions={0}, to_apply=plus
}
"""


@pytest.mark.checklist(63)
def test_values_of_a_map_are_thread_local_and_its_parameters_not_the_entrys() -> None:
    a = _Assigned(_MAP)

    assert all(a.at(name).is_thread_local and not a.at(name).is_live_out for name in ("x", "y"))
    assert a.at("x").parameter is None
    assert a.at("p").parameter is not None and not a.at("p").is_thread_local and a.at("r").is_live_out


@pytest.mark.checklist(64)
def test_a_call_that_returns_a_tuple_of_its_parameter_has_two_allocations() -> None:
    a = _Assigned(
        "HloModule m\n\nf {\n x = f32[4] parameter(0)\n ROOT t = (f32[4]) tuple(x)\n}\n\n"
        "ENTRY main {\n p = f32[4] parameter(0)\n ROOT c = (f32[4]) call(p), to_apply=f\n}\n"
    )

    # The parameter, and the table.
    assert len(a.allocations) == 2
    assert a.at("c", (0,)).parameter is not None and a.at("c").is_tuple


# -- loops --------------------------------------------------------------------------------------------------------------------


_STATE = "(f32[4], f32[4], f32[4])"


def _loop(n: int) -> str:
    """A loop over an input, weights and an output that is added to."""
    names = ("input", "weight", "output")
    parts = "".join(f"  {name}{n} = f32[4] get-tuple-element(state{n}), index={k}\n" for k, name in enumerate(names))
    return (
        f"body{n} {{\n  state{n} = {_STATE} parameter(0)\n{parts}  product{n} = f32[4] multiply(input{n}, weight{n})\n"
        f"  sum{n} = f32[4] add(product{n}, output{n})\n  ROOT next{n} = {_STATE} tuple(input{n}, weight{n}, sum{n})\n}}\n\n"
        f"cond{n} {{\n  tested{n} = {_STATE} parameter(0)\n  ROOT go{n} = pred[] constant(false)\n}}\n\n"
    )


def _while(n: int, init: str, *, root: bool = False) -> str:
    return (
        f"init{n} = {_STATE} tuple({init})\n  {'ROOT ' if root else ''}loop{n} = {_STATE} while(init{n}), "
        f"condition=cond{n}, body=body{n}"
    )


def _two_loops(*lines: str, header: str = "") -> str:
    entry = "\n  ".join(lines)
    return f"HloModule m{header}\n\n{_loop(0)}{_loop(1)}ENTRY main {{\n  {entry}\n}}\n"


_ZEROS = "zero = f32[] constant(0)\n  o = f32[4] broadcast(zero), dimensions={}\n  o.1 = f32[4] broadcast(zero), dimensions={}"


@pytest.mark.checklist(70)
def test_what_chained_loops_read_is_in_its_parameter_and_the_output_of_one_is_the_input_of_the_next() -> None:
    text = _two_loops(
        "x = f32[4] parameter(0)",
        "w = f32[4] parameter(1)",
        "w.1 = f32[4] parameter(2)",
        _ZEROS,
        _while(0, "x, w, o"),
        "y = f32[4] get-tuple-element(loop0), index=2",
        _while(1, "y, w.1, o.1"),
        "ROOT r = f32[4] get-tuple-element(loop1), index=2",
    )
    a = _Assigned(text, copies=True)

    assert a.place("x") == a.place("loop0", (0,)) and a.place("w") == a.place("loop0", (1,))
    assert a.place("loop0", (2,)) == a.place("loop1", (0,)) and a.place("w.1") == a.place("loop1", (1,))


@pytest.mark.checklist(71)
def test_a_loop_that_forwards_a_parameter_is_in_it_and_one_that_changes_a_product_of_it_is_not() -> None:
    text = """HloModule m
go {
  c = s32[] parameter(0)
  ROOT g = pred[] constant(true)
}
go.1 {
  c.1 = s32[] parameter(0)
  ROOT g.1 = pred[] constant(true)
}
forward {
  ROOT x = s32[] parameter(0)
}
double {
  y = s32[] parameter(0)
  ROOT d = s32[] add(y, y)
}
ENTRY main {
  p = s32[] parameter(0)
  first = s32[] while(p), condition=go, body=forward
  m = s32[] multiply(first, first)
  second = s32[] while(m), condition=go.1, body=double
  ROOT r = s32[16] broadcast(second), dimensions={}
}
"""
    before = parse_module(text).instruction_count
    a = _Assigned(text, copies=True)

    assert a.module.instruction_count == before  # no copies
    assert a.place("p") == a.place("first") != a.place("second")


@pytest.mark.checklist(72)
def test_loops_whose_results_are_live_together_are_apart() -> None:
    text = _two_loops(
        "x = f32[4] parameter(0)",
        "w = f32[4] parameter(1)",
        "x.1 = f32[4] parameter(2)",
        "w.1 = f32[4] parameter(3)",
        _ZEROS,
        # The second loop runs first, and its result waits for the first.
        _while(1, "x.1, w.1, o.1"),
        _while(0, "x, w, o"),
        "a = f32[4] get-tuple-element(loop0), index=2",
        "b = f32[4] get-tuple-element(loop1), index=2",
        "ROOT r = f32[4] add(a, b)",
    )
    module = parse_module(text)
    CopyInsertion(rules=SharingRules.DEFAULT).run(module)
    ScheduleModule(algorithm=Algorithm.POST_ORDER, rules=SharingRules.DEFAULT).run(module)
    a = _Assigned(module.to_text())

    assert a.place("loop0", (2,)) != a.place("loop1", (2,))


@pytest.mark.checklist(72)
def test_the_result_of_a_second_loop_lives_out_and_is_no_parameter() -> None:
    text = _two_loops(
        "x = f32[4] parameter(0)",
        "w = f32[4] parameter(1)",
        _ZEROS,
        _while(0, "x, w, o"),
        "y = f32[4] get-tuple-element(loop0), index=2",
        _while(1, "y, w, o.1"),
        "ROOT r = f32[4] get-tuple-element(loop1), index=2",
    )
    a = _Assigned(text, copies=True)

    assert a.at("loop1", (2,)).is_live_out and a.at("loop1", (2,)).parameter is None


@pytest.mark.checklist(73)
def test_two_updates_of_what_a_loop_carries_have_one_place() -> None:
    text = """HloModule m
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  f = f32[] constant(0)
  u = f32[2] broadcast(f), dimensions={}
  z = s32[] constant(0)
  d = f32[8] dynamic-update-slice(v, u, z)
  e = f32[8] dynamic-update-slice(d, u, z)
  ROOT t = (s32[], f32[8]) tuple(n, e)
}
cond {
  c = (s32[], f32[8]) parameter(0)
  ci = s32[] get-tuple-element(c), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(ci, three), direction=LT
}
ENTRY main {
  zero = s32[] constant(0)
  start = s32[] copy(zero)
  g = f32[] constant(0)
  b = f32[8] broadcast(g), dimensions={}
  init = (s32[], f32[8]) tuple(start, b)
  w = (s32[], f32[8]) while(init), condition=cond, body=body
  ROOT r = s32[] get-tuple-element(w), index=0
}
"""
    a = _Assigned(text, copies=True)

    assert a.place("d") == a.place("e") == a.place("s", (1,)) == a.place("w", (1,))


# -- options and colours ------------------------------------------------------------------------------------------------------


@pytest.mark.checklist(74)
def test_what_must_not_be_live_out_is_apart_from_outputs() -> None:
    text = _entry("a = f32[100] parameter(0)\nx = f32[100] parameter(1)\ns = f32[100] add(a, x)\nROOT n = f32[100] negate(s)")
    forbidding = evolve(TIGHT, may_live_out=lambda value: value.instruction.name != "s")

    assert _Assigned(text).place("s") == _Assigned(text).place("n")
    a = _Assigned(text, forbidding)
    assert a.at("s") is not a.at("n")


@pytest.mark.checklist(75)
def test_a_buffer_never_enters_a_parameter_of_another_colour() -> None:
    a = _Assigned(
        _entry(
            "p = f32[100]{0:S(1)} parameter(0)\nn = f32[100]{0} negate(p)\nROOT m = f32[100]{0:S(1)} negate(n)",
            ", is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }",
        ),
        GPU,
    )

    assert a.at("p").color == 1 and a.at("p").parameter is not None
    assert a.at("p") is a.at("m") and a.at("n") is not a.at("p")


@pytest.mark.checklist(76)
@pytest.mark.parametrize(("order", "first"), [(BufferOrder.BIGGEST_FIRST, "large"), (BufferOrder.TOPOLOGICAL, "small")])
def test_buffers_get_places_by_size_or_by_the_order_of_instructions(order: BufferOrder, first: str) -> None:
    a = _Assigned(
        _entry(
            "p = f32[] parameter(0)\nsmall = f32[] negate(p)\nlarge = f32[100] broadcast(small), dimensions={}\n"
            "ROOT t = (f32[], f32[100]) tuple(small, large)"
        ),
        evolve(TIGHT, order=order),
    )

    assert min(("small", "large"), key=lambda name: a.at(name).index) == first


# -- peaks --------------------------------------------------------------------------------------------------------------------

_PEAK = _entry(
    "p = f32[100] parameter(0)\nlog = f32[100] log(p)\nrev = f32[100] reverse(log), dimensions={0}\n"
    "neg = f32[100] negate(p)\nboth = f32[200] concatenate(rev, neg), dimensions={0}\n"
    "ROOT part = f32[1] slice(both), slice={[0:1]}",
    ", is_scheduled=true",
)


@pytest.mark.checklist(57)
@pytest.mark.parametrize(
    ("heap", "both", "others"),
    [
        (BestFit(Order.SPATIAL), 0, [800, 1200]),
        (BestFit(Order.TEMPORAL), 400, [0, 1200]),
        (TIGHT.heap, 0, [800, 1200]),  # the best of both; the spatial one at a tie
    ],
)
def test_the_heap_of_the_peak_example(heap: BestFit, both: int, others: list[int]) -> None:
    a = _Assigned(_PEAK, evolve(TIGHT, heap=heap))
    offsets = {name: a.place(name)[1] for name in ("log", "rev", "neg", "both")}

    # 800 bytes for the concatenation and for the logarithm, which is over by then; twice 400 for what is concatenated.
    assert a.assignment.temp_bytes == 1600
    assert (offsets["both"], offsets["log"], sorted((offsets["rev"], offsets["neg"]))) == (both, both, others)
    assert [value.instruction.name for value in a.at("both").peak_values] == ["rev", "neg", "both"]


def _peak(body: str, header: str = "") -> int:
    return find_peak(_Assigned(_entry(body, f", is_scheduled=true{header}")).assignment).bytes


@pytest.mark.checklist(78)
def test_sharing_adds_nothing_to_the_peak_and_another_buffer_does() -> None:
    chain = "p = f32[100] parameter(0)\na = f32[100] reverse(p), dimensions={0}\n"
    shared = f"{chain}b = f32[100] negate(a)\nROOT r = f32[1] slice(b), slice={{[0:1]}}"
    apart = f"{chain}b = f32[100] reverse(a), dimensions={{0}}\nROOT r = f32[1] slice(b), slice={{[0:1]}}"

    # The parameter 400, the output 4; b takes a's place, or has another 400.
    assert (_peak(shared), _peak(apart)) == (400 + 4 + 400, 400 + 4 + 400 + 400)


@pytest.mark.checklist(78)
def test_a_parameter_that_outputs_share_counts_once_and_nothing_needs_nothing() -> None:
    donated = ", input_output_alias={ {}: (0, {}, may-alias) }"

    assert _peak("p = f32[100] parameter(0)\nROOT n = f32[100] negate(p)", donated) == 400
    assert _peak("ROOT t = () tuple()") == 0
