"""The judge of layouts, by hand: modules as they might come out of a layout assignment, and what it says."""

import pytest

from layoutsim.passes.layout_assignment import BackendName, LayoutAssignment
from layoutsim.testing.layout_judge import layout_faults
from layoutsim.text import ParseOptions, parse_module

HEADER = "HloModule m, replica_count=2\n"
CASES = [
    (
        "a dot whose batch dimension is most minor",
        "ENTRY e {\n a = f32[2,3,4]{0,2,1} parameter(0)\n b = f32[2,4,5]{2,1,0} parameter(1)\n"
        " ROOT d = f32[2,3,5]{2,1,0} dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},"
        " rhs_contracting_dims={1} }",
        ["e/d: the batch dimensions [0] of f32[2,3,4]{0,2,1} must not be most minor"],
    ),
    (
        "a dot whose free dimensions are apart",
        "ENTRY e {\n a = f32[2,3,4]{0,2,1} parameter(0)\n b = f32[4,5]{1,0} parameter(1)\n"
        " ROOT d = f32[2,3,5]{2,1,0} dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0} }",
        ["e/d: dimensions [0, 1] of f32[2,3,4]{0,2,1} must lie together, in this order"],
    ),
    (
        "an fp8 product that contracts a major dimension",
        "ENTRY e {\n a = f8e4m3fn[3,4]{1,0} parameter(0)\n b = f8e4m3fn[4,5]{1,0} parameter(1)\n"
        " ROOT d = f32[3,5]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
        ["e/d: the contracting dimensions [0] of f8e4m3fn[4,5]{1,0} must be most minor"],
    ),
    (
        "a gather along a dimension below one of size 1",
        "ENTRY e {\n p = f32[1,3]{1,0} parameter(0)\n"
        " ROOT g = f32[1,6]{1,0} all-gather(p), replica_groups={{0,1}}, dimensions={1} }",
        [],
    ),
    (
        "a transform of column-major data",
        "ENTRY e {\n p = c64[3,4]{0,1} parameter(0)\n ROOT f = c64[3,4]{0,1} fft(p), fft_type=FFT, fft_length={4} }",
        ["e/f: c64[3,4]{0,1} must be row-major"] * 2,
    ),
    (
        "a sort of arrays in two orders",
        "c {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
        "ENTRY e {\n p = f32[3,4]{0,1} parameter(0)\n"
        " ROOT s = f32[3,4]{1,0} sort(p), dimensions={1}, to_apply=c }",
        ["e/s: operands and results must have one order, got f32[3,4]{0,1}, f32[3,4]{1,0}"],
    ),
    (
        "a constrained call that does not get what it asks for",
        "ENTRY e {\n p = f32[3,4]{1,0} parameter(0)\n"
        ' ROOT c = f32[3,4]{1,0} custom-call(p), custom_call_target="x", operand_layout_constraints={f32[3,4]{0,1}} }',
        ["e/c: operand 0 has order {1,0}, expected {0,1} of operand_layout_constraints"],
    ),
    (
        "a conditional whose branches return two orders",
        "b0 {\n ROOT x = f32[3,4]{1,0} parameter(0) }\nb1 {\n ROOT y = f32[3,4]{0,1} parameter(0) }\n"
        "ENTRY e {\n s = pred[] parameter(0)\n p = f32[3,4]{1,0} parameter(1)\n q = f32[3,4]{0,1} parameter(2)\n"
        " ROOT r = f32[3,4]{1,0} conditional(s, p, q), true_computation=b0, false_computation=b1 }",
        ["e/r: root of b1 has order {0,1}, expected {1,0} of the conditional"],
    ),
]


@pytest.mark.parametrize(("text", "faults"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_faults_of_a_module(text: str, faults: list[str]) -> None:
    module = parse_module(HEADER + text)

    assert layout_faults(module, module, "gpu") == faults


def test_missing_layouts_are_faults() -> None:
    module = parse_module("ENTRY e {\n ROOT p = f32[3] parameter(0) }", options=ParseOptions(fill_missing_layouts=False))

    assert layout_faults(module, module) == ["e/p has no layout"]


def test_given_entry_layout_must_be_kept() -> None:
    before = parse_module(
        "HloModule m, entry_computation_layout={(f32[3,4]{0,1})->f32[3,4]}\nENTRY e {\n ROOT p = f32[3,4] parameter(0) }",
        options=ParseOptions(keep_module_auto_layouts=True),
    )
    after = parse_module("ENTRY e {\n ROOT p = f32[3,4]{1,0} parameter(0) }")

    assert layout_faults(before, after) == ["parameter p has order {1,0}, expected {0,1} of the entry layout"]


def test_only_copies_and_tuples_may_be_new() -> None:
    before = parse_module("ENTRY e {\n p = f32[3] parameter(0)\n ROOT n = f32[3] negate(p) }")
    after = parse_module(
        "ENTRY e {\n p = f32[3] parameter(0)\n c = f32[3] copy(p)\n m = f32[3] abs(c)\n ROOT k = f32[3] tanh(m) }"
    )

    assert layout_faults(before, after) == [
        "e/n is gone",
        "e/m is new, expected only copies, and tuples around them",
        "e/k is new, expected only copies, and tuples around them",
    ]


def test_gather_of_several_arrays_loses_its_dimension_as_in_the_real_compiler() -> None:
    """Found by ``check_pass`` (seed 5121), and what XLA 0.10.2 makes of it: the other gather decides, for both."""
    module = parse_module(
        "HloModule m, entry_computation_layout={(f16[1,8,1]{2,1,0})->(f16[2,4,8]{2,1,0}, f16[2,4,8]{2,1,0})}, replica_count=4\n"
        "ENTRY e {\n p = f16[1,8,1] parameter(0)\n"
        " g = f16[4,8,1] all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true\n"
        " t = f16[1,4,8] transpose(g), dimensions={2,0,1}\n"
        " ROOT both = (f16[2,4,8], f16[2,4,8]) all-gather(t, t), replica_groups={{0,1},{2,3}}, dimensions={0}\n}"
    )
    LayoutAssignment(backend=BackendName.GPU).run(module)

    assert str(module.entry.find("t").shape) == "f16[1,4,8]{0,2,1}"
    assert str(module.entry.find("both").shape) == "(f16[2,4,8]{0,2,1}, f16[2,4,8]{0,2,1})"
