"""Graphs that text cannot say: broken edges, cycles, foreign operands, missing roots."""

from layoutsim.ir import TOKEN, Computation, ElementType, Instruction, Module, Opcode, array_shape
from layoutsim.text import parse_module
from layoutsim.verify import VerifyOptions, verify

F32_4 = array_shape(ElementType.F32, (4,))

TEXT = """
HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  ROOT b = f32[4] negate(a)
}
"""


def _module() -> tuple[Module, Computation, dict[str, Instruction]]:
    module = parse_module(TEXT)
    return module, module.entry, {i.name: i for i in module.entry.instructions}


def _findings(module: Module) -> list[str]:
    return [str(finding) for finding in verify(module)]


def test_a_valid_module_has_no_findings() -> None:
    assert _findings(_module()[0]) == []


def test_an_operand_of_another_computation_is_found() -> None:
    module, _, i = _module()
    other = module.add_computation(Computation("other"))
    i["b"]._operands[0] = other.add(Opcode.IOTA, F32_4, name="far")
    other.root = other.find("far")

    assert "main/b: operand 0, far, is in other, expected main [S3]" in _findings(module)


def test_an_operand_that_was_erased_is_found() -> None:
    module, _, i = _module()
    i["b"]._operands[0] = Instruction("gone", Opcode.IOTA, F32_4)

    assert "main/b: operand 0, gone, is in no computation, expected main [S3]" in _findings(module)


def test_a_lost_use_edge_is_found() -> None:
    module, _, i = _module()
    i["x"]._users.clear()

    assert _findings(module) == ["main/x: its recorded users are nobody, expected a, which have it as an operand [S4]"]


def test_a_repeated_use_edge_is_found() -> None:
    module, _, i = _module()
    i["x"]._users.append(i["a"])

    assert _findings(module) == ["main/x: its recorded users are a, a, expected a, which have it as an operand [S4]"]


def test_a_cycle_through_operands_is_found() -> None:
    module, _, i = _module()
    i["a"].replace_operand(0, i["b"])

    assert _findings(module) == ["main: instructions wait for one another or for themselves: a, b [S5]"]


def test_a_cycle_through_a_control_edge_is_found() -> None:
    module, _, i = _module()
    i["a"].add_control_predecessor(i["b"])

    assert _findings(module) == ["main: instructions wait for one another or for themselves: a, b [S5]"]


def test_an_instruction_that_uses_itself_is_found() -> None:
    module, _, i = _module()
    i["a"].replace_operand(0, i["a"])

    assert _findings(module) == ["main: instructions wait for one another or for themselves: a, b [S5]"]


def test_users_may_stand_before_their_operands() -> None:
    module, main, i = _module()
    main.reorder([i["b"], i["x"], i["a"]])

    assert _findings(module) == []


def test_a_computation_without_a_root_is_found() -> None:
    module, _, _ = _module()
    module.add_computation(Computation("empty"))

    assert _findings(module) == ["empty: the root None is not in the computation [S2]"]


def test_a_module_without_an_entry_is_found() -> None:
    assert _findings(Module("m")) == ["m: the module has no entry computation [S2]"]


def test_a_foreign_parent_is_found() -> None:
    module, _, i = _module()
    i["a"].parent = Computation("elsewhere")

    assert (
        "elsewhere/a: its parent is <computation %elsewhere, 0 instructions>, expected <computation %main, 3 instructions>, "
        "which lists it [S1]"
    ) in _findings(module)


def test_parameter_numbers_with_a_gap_are_found() -> None:
    module, main, _ = _module()
    extra = parse_module("HloModule n\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n").entry.root
    main.add(Opcode.PARAMETER, F32_4, payload=extra.payload, name="y")

    assert _findings(module) == ["main: parameters are numbered [0, 0], expected 0..1 once each [S7]"]


def test_a_callee_outside_the_module_is_found() -> None:
    module, main, _ = _module()
    stranger = Computation("stranger")
    stranger.root = stranger.add(Opcode.IOTA, F32_4)
    main.add(Opcode.CALL, F32_4, name="call", called_computations=(stranger,))

    assert _findings(module) == ["main/call: calls stranger, which is not in the module [S8]"]


def test_recursion_is_found() -> None:
    module, main, i = _module()
    main.add(Opcode.CALL, F32_4, [i["x"]], name="call", called_computations=(main,))

    assert _findings(module) == ["main: calls main, through which it was reached [S8]"]


def test_a_call_from_an_opcode_that_cannot_is_found() -> None:
    module, _, i = _module()
    helper = Computation("helper")
    helper.root = helper.add(Opcode.IOTA, F32_4)
    module.add_computation(helper)
    i["a"].called_computations = (helper,)

    assert _findings(module) == ["main/a: negate calls a computation, and no negate can [S8]"]


def test_two_computations_of_one_name_are_found() -> None:
    module, _, _ = _module()
    other = Computation("main")
    other.adopt(Instruction("c", Opcode.AFTER_ALL, TOKEN))
    other.root = other.find("c")
    module.add_computation(other)

    assert _findings(module) == ["main: another computation has the same name [S6]"]


def test_two_instructions_of_one_name_in_a_computation_are_found() -> None:
    module, _, i = _module()
    i["a"].name = "x"

    assert _findings(module) == ["main/x: an instruction of main has the same name [S6]"]


def test_a_broken_graph_hides_the_other_findings() -> None:
    module, _, i = _module()
    i["b"].shape = array_shape(ElementType.F32, (8,))
    i["x"]._users.clear()

    assert [finding.invariant for finding in verify(module, VerifyOptions())] == ["S4"]
