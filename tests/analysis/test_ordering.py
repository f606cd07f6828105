import pytest

from layoutsim.analysis.alias_rules import DEFAULT_RULES, Sharing
from layoutsim.analysis.call_graph import CallGraph
from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.ordering import Constraint, DependencyOrder, Ordering, SequentialOrder, ValueOrdering
from layoutsim.ir import Instruction, Module
from layoutsim.text import parse_module

NESTED = """
HloModule m, is_scheduled=true

body {
  b = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  v = f32[4] get-tuple-element(b), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[4] negate(v)
  ROOT next = (s32[], f32[4]) tuple(j, w)
}

condition {
  c = (s32[], f32[4]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(k, ten), direction=LT
}

yes {
  y = f32[4] parameter(0)
  ROOT ny = f32[4] negate(y)
}

no {
  z = f32[4] parameter(0)
  ROOT nz = f32[4] exponential(z)
}

ENTRY main {
  p = f32[4] parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, p)
  loop = (s32[], f32[4]) while(init), condition=condition, body=body
  out = f32[4] get-tuple-element(loop), index=1
  which = pred[] constant(true)
  both = f32[4] conditional(which, out, p), true_computation=yes, false_computation=no
  late = f32[4] negate(p)
  ROOT sum = f32[4] add(both, late)
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(NESTED)


def _named(module: Module) -> dict[str, Instruction]:
    return {i.name: i for c in module.computations for i in c.instructions}


def _constraint(module: Module, a: str, b: str) -> Constraint:
    assert module.schedule is not None
    named = _named(module)
    return Ordering(CallGraph(module), SequentialOrder(module.schedule)).constraint(named[a], named[b])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("init", "init", Constraint.SAME),
        ("init", "loop", Constraint.BEFORE_START),
        ("j", "out", Constraint.BEFORE_START),
        ("out", "w", Constraint.AFTER),
        ("less", "w", Constraint.BEFORE_END),
        ("w", "less", Constraint.UNORDERED),
        ("ny", "nz", Constraint.EXCLUSIVE_BEFORE),
        ("nz", "ny", Constraint.EXCLUSIVE_AFTER),
        ("nz", "both", Constraint.BEFORE_END),
        ("both", "nz", Constraint.AFTER),
        ("sum", "late", Constraint.AFTER),
    ],
)
def test_instructions_are_ordered_across_computations(module: Module, a: str, b: str, expected: Constraint) -> None:
    assert _constraint(module, a, b) is expected


def test_a_root_never_runs_before_what_follows_it() -> None:
    module = parse_module(
        "HloModule m, is_scheduled=true\n\nENTRY main {\n p = f32[] parameter(0)\n ROOT r = f32[] negate(p)\n"
        " dead = f32[] negate(p)\n}\n"
    )

    assert _constraint(module, "r", "dead") is Constraint.UNORDERED


def test_without_a_schedule_dependencies_order() -> None:
    module = parse_module(
        "HloModule m\n\nENTRY main {\n p = f32[] parameter(0)\n a = f32[] negate(p)\n b = f32[] exponential(p)\n"
        " c = f32[] negate(p), control-predecessors={b}\n d = f32[] add(a, b)\n ROOT t = (f32[], f32[]) tuple(c, d)\n}\n"
    )
    named = _named(module)
    order = DependencyOrder(module)

    assert order.runs_before(named["a"], named["d"]) and order.runs_before(named["b"], named["c"])
    assert not order.runs_before(named["a"], named["b"]) and not order.runs_before(named["a"], named["c"])
    assert not order.runs_before(named["a"], named["a"])


def _interfere(text: str, a: str, b: str) -> bool:
    module = parse_module(text)
    flow = Dataflow(module)
    order = DependencyOrder(module) if module.schedule is None else SequentialOrder(module.schedule)
    named = _named(module)
    ordering = ValueOrdering(flow, Sharing(flow, DEFAULT_RULES), order)
    return ordering.may_interfere(flow.value_at(named[a]), flow.value_at(named[b]))


CHAIN = (
    "HloModule m\n\nENTRY main {{\n p = f32[4] parameter(0)\n a = f32[4] negate(p)\n b = f32[4] {b}\n ROOT r = f32[4] {r}\n}}\n"
)


def test_values_do_not_interfere_if_the_last_use_can_share() -> None:
    assert not _interfere(CHAIN.format(b="exponential(a)", r="negate(b)"), "a", "b")


def test_values_interfere_if_the_last_use_cannot_share() -> None:
    assert _interfere(CHAIN.format(b="reverse(a), dimensions={0}", r="negate(b)"), "a", "b")


def test_values_interfere_if_one_is_used_again_later() -> None:
    assert _interfere(CHAIN.format(b="exponential(a)", r="add(a, b)"), "a", "b")


def test_values_do_not_interfere_over_an_operation_in_between() -> None:
    assert not _interfere(CHAIN.format(b="reverse(a), dimensions={0}", r="reverse(b), dimensions={0}"), "a", "r")


def test_values_in_exclusive_branches_do_not_interfere() -> None:
    text = (
        "HloModule m\n\nyes {\n y = f32[4] parameter(0)\n ny = f32[4] reverse(y), dimensions={0}\n"
        " ROOT ry = f32[4] negate(ny)\n}\n\nno {\n z = f32[4] parameter(0)\n nz = f32[4] reverse(z), dimensions={0}\n"
        " ROOT rz = f32[4] negate(nz)\n}\n\nENTRY main {\n w = pred[] parameter(0)\n p = f32[4] parameter(1)\n"
        " ROOT c = f32[4] conditional(w, p, p), true_computation=yes, false_computation=no\n}\n"
    )

    assert not _interfere(text, "ny", "nz")
