"""Schedules, attributes that the parser already refuses, and the raising form."""

import pytest
from attrs import evolve

from layoutsim.errors import VerificationError
from layoutsim.ir import Attributes, ElementType, Module, array_shape
from layoutsim.ir.payloads import CustomCallPayload
from layoutsim.text import ParseOptions, parse_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, VerifyOptions, check, verify

SCHEDULED = """
HloModule m, is_scheduled=true

inner {
  p = f32[4] parameter(0)
  ROOT q = f32[4] negate(p)
}

fused {
  r = f32[4] parameter(0)
  ROOT s = f32[4] negate(r)
}

ENTRY main {
  x = f32[4] parameter(0)
  a = f32[4] call(x), to_apply=inner
  b = f32[4] fusion(a), kind=kLoop, calls=fused
  ROOT c = f32[4] negate(b)
}
"""


def _scheduled() -> tuple[Module, list]:
    module = parse_module(SCHEDULED)
    assert module.schedule is not None
    return module, module.schedule.sequences[module.entry]


def _findings(module: Module) -> list[str]:
    return [str(finding) for finding in verify(module)]


def test_a_schedule_needs_no_sequence_for_a_fusion() -> None:
    module, _ = _scheduled()
    assert module.schedule is not None
    module.schedule.sequences.pop(module.find_computation("fused"), None)

    assert _findings(module) == []


def test_a_missing_sequence_is_found() -> None:
    module, _ = _scheduled()
    assert module.schedule is not None
    del module.schedule.sequences[module.find_computation("inner")]

    assert _findings(module) == ["inner: the schedule has no sequence for this computation [H1]"]


def test_a_missing_instruction_is_found() -> None:
    module, sequence = _scheduled()
    sequence.pop()

    assert _findings(module) == ["main/c: is not scheduled [H2]"]


def test_an_instruction_scheduled_twice_is_found() -> None:
    module, sequence = _scheduled()
    sequence.append(sequence[-1])

    assert _findings(module) == ["main/c: is scheduled twice, expected once [H2]"]


def test_an_instruction_of_another_computation_is_found() -> None:
    module, sequence = _scheduled()
    sequence.append(module.find("inner", "q"))

    assert _findings(module) == ["main: its sequence lists q, which is not in the computation [H2]"]


def test_a_user_before_its_operand_is_found() -> None:
    module, sequence = _scheduled()
    sequence[1], sequence[2] = sequence[2], sequence[1]

    assert _findings(module) == ["main/b: is scheduled at 1, its operand a at 2 [H3]"]


def test_an_instruction_before_its_control_predecessor_is_found() -> None:
    module, sequence = _scheduled()
    main = module.entry
    free = main.add(main.find("c").opcode, main.find("c").shape, [main.find("x")], name="free")
    sequence.insert(1, free)
    free.add_control_predecessor(main.find("a"))

    assert _findings(module) == ["main/free: is scheduled at 1, its control predecessor a at 2 [H3]"]


CALL = """
HloModule m

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  y = f32[4,8]{1,0} custom-call(x), custom_call_target="foo", operand_layout_constraints={f32[4,8]{0,1}}
  ROOT z = f32[4,8]{1,0} negate(y)
}
"""


def test_layout_constraints_must_fit_the_operands() -> None:
    module = parse_module(CALL)
    call = module.find("main", "y")
    call.payload = evolve(
        call.payload_as(CustomCallPayload), operand_layout_constraints=(array_shape(ElementType.F32, (8, 4)),)
    )

    assert _findings(module) == [
        "main/y: constrains operand 0 to f32[8,4]{1,0}, expected f32[4,8]{1,0} with a layout [T6]",
    ]


def test_layout_constraints_are_as_many_as_operands() -> None:
    module = parse_module(CALL)
    call = module.find("main", "y")
    call.payload = evolve(call.payload_as(CustomCallPayload), operand_layout_constraints=())

    assert _findings(module) == ["main/y: constrains 0 operands, expected 1 [T6]"]


def test_result_accuracy_stands_on_transcendental_functions_only() -> None:
    module = parse_module(CALL)
    module.find("main", "z").attributes = Attributes(result_accuracy="{mode=highest}")

    assert _findings(module) == ["main/z: has result_accuracy {mode=highest}, which negate does not take [T9]"]


def test_a_layout_sensitive_run_wants_a_layout_on_every_array() -> None:
    module = parse_module(CALL)
    module.find("main", "z").set_layout(None)
    module.entry_layout = None

    assert verify(module) == []
    assert [str(finding) for finding in verify(module, VerifyOptions(layout_sensitive=True))] == [
        "main/z: has shape f32[4,8], expected a layout on every array [L1]"
    ]


def test_check_raises_every_finding_and_names_the_pass() -> None:
    module = parse_module(CALL)
    module.find("main", "z").shape = array_shape(ElementType.F32, (2,))

    with pytest.raises(VerificationError, match=r"after copy-sinking \(2 findings\)") as caught:
        check(module, after="copy-sinking")

    assert [str(finding) for finding in caught.value.diagnostics] == [
        "main/z: has shape f32[2], expected f32[4,8] [T2]",
        "main/z: has shape f32[2]{0}, expected f32[4,8]{1,0} of entry_computation_layout [L6]",
    ]


def test_check_accepts_a_valid_module() -> None:
    check(parse_module(CALL), VerifyOptions(layout_sensitive=True))


EMPTY = """
HloModule m, num_partitions=2

ENTRY main {
  x = f32[4] parameter(0)
  c = () custom-call(x), custom_call_target="print", sharding=%s
  ROOT y = f32[4] negate(x)
}
"""


@pytest.mark.parametrize(("sharding", "count"), [("{}", 0), ("{{maximal device=0}}", 0), ("{{replicated}, {replicated}}", 1)])
def test_an_empty_tuple_has_no_sharding_or_one(sharding: str, count: int) -> None:
    assert len(verify(parse_module(EMPTY % sharding))) == count


PACKED = """
HloModule m

ENTRY main {
  x = s4[4,8]{1,0:E(4)} parameter(0)
  y = s4[4,8]{1,0} negate(x)
  ROOT t = (s4[4,8]{1,0:E(4)}) tuple(y)
}
"""


def test_element_sizes_need_not_agree_until_xla_has_set_them() -> None:
    settled = evolve(AFTER_LAYOUT_ASSIGNMENT, element_sizes_agree=True)

    assert verify(parse_module(PACKED), AFTER_LAYOUT_ASSIGNMENT) == []
    assert [finding.invariant for finding in verify(parse_module(PACKED), settled)] == ["L3", "L2"]


BARE_ROOT = """
HloModule m

f {
  p = f32[4,8]{1,0} parameter(0)
  ROOT n = f32[4,8] negate(p)
}

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT y = f32[4,8]{1,0} fusion(x), kind=kLoop, calls=f
}
"""


def test_a_layout_missing_at_a_root_is_one_finding_and_not_also_one_at_the_fusion() -> None:
    module = parse_module(BARE_ROOT, options=ParseOptions(fill_missing_layouts=False))

    assert [(finding.where, finding.invariant) for finding in verify(module, AFTER_LAYOUT_ASSIGNMENT)] == [("f/n", "L1")]
