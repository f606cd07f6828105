"""Where copies go and stay (memory spec, checklist 80 to 99). Counts are XLA's, with the default rules on sharing."""

from collections import Counter
from collections.abc import Mapping

import pytest
from _pytest.mark import ParameterSet

from layoutsim.analysis.alias import Aliases
from layoutsim.errors import PassError
from layoutsim.ir import Module, Opcode
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.sharing_rules import SharingRules
from layoutsim.text import parse_module
from layoutsim.verify import verify
from tests.passes import copy_insertion_modules as modules


def _inserted(text: str, *, region_analysis: bool = False) -> Module:
    module = parse_module(text)
    CopyInsertion(rules=SharingRules.DEFAULT, region_analysis=region_analysis).run(module)
    return module


def _copies(module: Module) -> dict[str, int]:
    return dict(Counter(c.name for c in module.computations for i in c.instructions if i.opcode is Opcode.COPY))


def _control_edges(module: Module) -> list[tuple[str, str]]:
    return sorted(
        (before.name, i.name) for c in module.computations for i in c.instructions for before in i.control_predecessors
    )


DONATED = modules.donated
EXPECTED: dict[str, tuple[int, str, dict[str, int]]] = {
    "parameter in a tuple": (80, modules.PARAMETER_IN_TUPLE, {"e": 1}),
    "constant in a tuple": (80, modules.CONSTANT_IN_TUPLE, {"e": 1}),
    "bitcast of a parameter": (80, modules.BITCAST_OF_PARAMETER, {"e": 1}),
    "three leaves of a parameter": (80, modules.NESTED_PARAMETER_AS_ROOT, {"e": 3}),
    "copies that change layouts stay, the plain one goes": (81, modules.LAYOUT_CHANGING_COPIES, {"e": 2}),
    "independent body: initial values only": (82, modules.INDEPENDENT_ADDS, {"e": 2}),
    "counter read by the other element": (82, modules.DEPENDENT_ADDS, {"body": 1, "e": 2}),
    "vector read by the other element": (82, modules.DEPENDENT_VECTORS, {"body": 1, "e": 2}),
    "read-only element": (83, modules.READ_ONLY_ELEMENT, {}),
    "two loops each copy what they change": (83, modules.TWO_LOOPS_FROM_ONE_PARAMETER, {"e": 2}),
    "reverse cannot run in place": (84, modules.NESTED_CARRY_WITH_REVERSE, {"body": 1, "e": 3}),
    "initial value used after the loop": (85, modules.INITIAL_VALUE_USED_AFTER_LOOP, {"e": 1}),
    "one initial value for two elements": (85, modules.SAME_INITIAL_VALUE_TWICE, {"body": 1, "e": 1}),
    "swapped carries": (86, modules.SWIZZLE, {"body": 4, "e": 2}),
    "swapped carries, one negated": (86, modules.SWIZZLE_WITH_NEGATE, {"body": 4, "e": 2}),
    "swapping one constant": (86, modules.SWIZZLE_OF_ONE_CONSTANT, {"e": 2}),
    "pass-through, both donated": (87, DONATED(modules.STRAIGHT), {}),
    "pass-through, donated crosswise": (87, DONATED(modules.CROSSED), {"e": 4}),
    "pass-through, not donated": (87, DONATED(""), {"e": 2}),
    "pass-through, one donated": (87, DONATED(modules.ONLY_SECOND), {"e": 1}),
    "negated, one donated": (87, DONATED(modules.ONLY_SECOND, "na", "nb"), {}),
    "bitcast beside the donated parameter": (88, modules.BITCAST_BESIDE_DONATED, {"e": 1}),
    "body returns a constant": (90, modules.CONSTANT_BODY_ROOT, {"body": 1, "e": 1}),
    "tokens are never copied": (90, modules.TOKEN_CARRY, {"e": 1}),
    "update of a computed value": (91, modules.update("n"), {}),
    "update of a parameter": (91, modules.update("p"), {"e": 1}),
    "two updates of a parameter": (91, modules.TWO_UPDATES_OF_A_PARAMETER, {"e": 1}),
    "updated value read later": (91, modules.READ_AFTER_UPDATE, {"e": 1}),
    "scatter that updates with its own input": (92, modules.SCATTER_OF_ITS_OWN_UPDATES, {"e": 1}),
    "custom call overwrites a parameter": (93, modules.custom_call("p", "c"), {"e": 1}),
    "custom call overwrites a value read later": (93, modules.custom_call("n", "s"), {"e": 1}),
    "custom call overwrites a dying value": (93, modules.custom_call("n", "c"), {}),
    "branch returns its reversed operand": (94, modules.PASS_THROUGH_BESIDE_REVERSE, {"second": 1}),
    "receive in flight across iterations": (98, modules.RECEIVE_IN_LOOP, {"e": 1}),
}


def _marked(cases: Mapping[str, tuple[int, str, Mapping[str, int]]]) -> list[ParameterSet]:
    return [pytest.param(case, marks=pytest.mark.checklist(number)) for case, (number, *_) in cases.items()]


@pytest.mark.parametrize("case", _marked(EXPECTED))
def test_number_of_copies(case: str) -> None:
    _, text, expected = EXPECTED[case]

    assert expected == _copies(_inserted(text))


@pytest.mark.parametrize("case", EXPECTED)
def test_result_is_valid_and_no_read_only_value_shares_its_buffer(case: str) -> None:
    module = _inserted(EXPECTED[case][1])

    aliases = Aliases.run(module, SharingRules.DEFAULT.rules)
    constants = [v for b in aliases.buffers if len(b.values) > 1 for v in b.values if v.instruction.opcode is Opcode.CONSTANT]
    assert constants == []
    assert tuple(verify(module)) == ()


REGIONS: dict[str, tuple[int, str, dict[str, int]]] = {
    "counter read by the other element": (82, modules.DEPENDENT_ADDS, {"e": 2}),
    "vector read by the other element": (82, modules.DEPENDENT_VECTORS, {"e": 2}),
    "swapped carries": (86, modules.SWIZZLE, {"body": 3, "e": 2}),
    "swapped carries, one negated": (86, modules.SWIZZLE_WITH_NEGATE, {"body": 2, "e": 2}),
    "pass-through, donated crosswise": (87, DONATED(modules.CROSSED), {"e": 3}),
    "branch copies what it returns": (94, modules.CONDITIONAL_ROOT, {"e": 1}),
}


@pytest.mark.parametrize("case", _marked(REGIONS))
def test_region_analysis_removes_more(case: str) -> None:
    _, text, expected = REGIONS[case]

    assert expected == _copies(_inserted(text, region_analysis=True))


def test_region_analysis_orders_by_control_edges_what_it_lets_share() -> None:
    module = _inserted(modules.DEPENDENT_VECTORS, region_analysis=True)

    # b + a reads what -a overwrites.
    assert _control_edges(module) == [("b2", "a2")]


@pytest.mark.checklist(86)
def test_swapped_carries_are_read_before_they_are_written() -> None:
    module = _inserted(modules.SWIZZLE)

    body = module.find_computation("body")
    edges = _control_edges(module)
    assert len(edges) == 2
    entering = {i.operand(0).name for name, _ in edges for i in [body.find(name)]}
    assert {i.name for i in body.parameters[0].users} == entering


@pytest.mark.checklist(98)
def test_start_waits_for_the_done_of_the_iteration_before() -> None:
    assert _control_edges(_inserted(modules.RECEIVE_IN_LOOP)) == [("done", "start")]


def test_operand_of_a_send_is_copied_behind_the_done_of_the_iteration_before() -> None:
    module = _inserted(modules.SEND_IN_LOOP)

    start = module.find("body", "start")
    copied = start.operand(0)
    assert copied.opcode is Opcode.COPY
    assert ("done", copied.name) in _control_edges(module)
    assert ("done", "start") in _control_edges(module)


def test_every_copy_says_why_it_is_there() -> None:
    module = parse_module(modules.DEPENDENT_VECTORS)

    remarks = CopyInsertion().run(module).remarks

    assert [str(remark) for remark in remarks] == [
        "copy.2: added: state of w as its body gets it at {0}; "
        "kept: live ranges meet: <1 copy.2> is not over before <2 a2> is defined",
        "copy.6: added: parameter x shares its buffer with what is written",
        "copy.7: added: parameter y shares its buffer with what is written",
    ]


def test_unchanged_module_is_reported_as_such() -> None:
    text = """
HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p)
}
"""
    module = parse_module(text)
    before = module.to_text()

    result = CopyInsertion().run(module)

    assert not result.changed
    assert before == module.to_text()


def test_second_run_adds_nothing() -> None:
    for _, text, expected in EXPECTED.values():
        module = _inserted(text)
        CopyInsertion(rules=SharingRules.DEFAULT).run(module)
        assert expected == _copies(module)


def test_shared_loop_body_is_refused() -> None:
    module = parse_module(
        modules.TWO_LOOPS_FROM_ONE_PARAMETER.replace("condition=cond2, body=body2", "condition=cond, body=body")
    )

    with pytest.raises(PassError, match="run flatten-call-graph first"):
        CopyInsertion().run(module)


def test_disjoint_regions_need_no_copy() -> None:
    text = """
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  u = f32[2] slice(p), slice={[0:2]}
  i = s32[] parameter(1)
  n = f32[8] negate(p)
  ROOT d = f32[8] dynamic-update-slice(n, u, i), frontend_attributes={_xla_disjoint_read_write_regions="true"}
}
"""
    assert _copies(_inserted(text)) == {}


def test_operand_that_is_also_the_update_keeps_its_copy() -> None:
    module = _inserted("""
HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  i = s32[] parameter(1)
  x = f32[8] negate(p)
  c = f32[8] copy(x)
  ROOT d = f32[8] dynamic-update-slice(x, c, i)
}
""")
    # The copy that was there goes first; then the operand to be overwritten is the update too.
    assert _copies(module) == {"e": 1}
    assert [o.name for o in module.entry.root.operands[:2]] == ["copy", "x"]
