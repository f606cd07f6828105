import math

import numpy as np
import pytest

from layoutsim.ir import ElementType, ElidedLiteralError
from layoutsim.ir.literal import Array
from layoutsim.ir.payloads import ConstantPayload
from layoutsim.text import DEFAULT, ROUND_TRIP, parse_module, print_module
from tests.text.asking import body_complaint, in_entry, printed, root_of


def _constant(shape: str, text: str) -> ConstantPayload:
    payload = root_of(f"c = {shape} constant({text})").payload
    assert isinstance(payload, ConstantPayload)
    return payload


def _values(shape: str, text: str) -> Array:
    return _constant(shape, text).literal.array()


def _printed(shape: str, text: str) -> str:
    line = printed(f"c = {shape} constant({text})")
    return line[line.index("constant(") + len("constant(") : -1]


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "text", "values"),
    [
        ("s32[]", "-7", -7),
        ("pred[]", "true", True),
        ("pred[3]", "{1, 0, true}", [True, False, True]),
        ("pred[]", "7", True),
        ("f32[3]", "{1, 2.5, -1e-5}", [1, 2.5, -1e-5]),
        ("f32[2]", "{inf, -inf}", [math.inf, -math.inf]),
        ("s32[2,3]{0,1}", "{{1,2,3},{4,5,6}}", [[1, 2, 3], [4, 5, 6]]),
        ("s32[2,1]", "{ {1}, {2} }", [[1], [2]]),
        ("u64[]", "18446744073709551615", 2**64 - 1),
        ("s64[]", "-9223372036854775808", -(2**63)),
        ("c64[2]", "{(1,2), (0.5,-inf)}", [1 + 2j, complex(0.5, -math.inf)]),
        ("f32[2,2]", "{{1,2,},{3 4}}", [[1, 2], [3, 4]]),
        ("s32[1,1,1,2]", "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }", [[[[1, 2]]]]),
        ("s32[2]", "{/* one */ 1, 2}", [1, 2]),
    ],
)
def test_values_are_read_exactly(shape: str, text: str, values: object) -> None:
    assert np.allclose(_values(shape, text), np.array(values), rtol=1e-7, atol=0)


def test_empty_arrays_still_have_braces() -> None:
    assert _values("f32[0]", "{}").shape == (0,)
    assert _values("f32[2,0]", "{{},{}}").shape == (2, 0)
    assert _values("s32[0,3]", "{}").shape == (0, 3)


def test_values_are_rounded_to_nearest_even() -> None:
    # bf16 has 8 significant bits: 1 + 2^-8 lies halfway between 1 and 1 + 2^-7, 1 + 3 * 2^-8 halfway above that.
    assert _values("bf16[3]", "{1.0001, 1.00390625, 1.01171875}").tolist() == [1.0, 1.0, 1.015625]
    assert _values("f16[]", "0.3333").item() == np.float16(0.3333)
    # f8e4m3fn: 3 fraction bits and subnormals of 2^-9; 17 lies halfway between 16 and 18.
    assert _values("f8e4m3fn[4]", "{17, 19, 0.001953125, 448}").tolist() == [16.0, 20.0, 2**-9, 448.0]


def test_negative_zero_is_a_decimal_and_integer_zero_is_not() -> None:
    assert math.copysign(1, _values("f32[]", "-0.0").item()) == -1
    assert math.copysign(1, _values("f32[]", "-0").item()) == 1
    assert math.copysign(1, _values("f32[100]", "{" + ", ".join(["-0"] * 100) + "}")[7]) == 1


def test_nans_keep_sign_and_payload() -> None:
    bits = _values("f32[4]", "{nan, -nan, nan(0x7fc01), -nan(0x1)}").view(np.uint32).tolist()

    assert bits == [0x7FC00000, 0xFFC00000, 0x7F87FC01, 0xFF800001]


def test_layouts_do_not_move_values() -> None:
    assert np.array_equal(_values("s32[2,3]{0,1}", "{{1,2,3},{4,5,6}}"), _values("s32[2,3]{1,0}", "{{1,2,3},{4,5,6}}"))


def test_a_constant_of_dynamic_size_has_its_bound() -> None:
    root = root_of("c = f32[<=2] constant({1,2})")

    assert str(root.shape) == "f32[2]{0}"


def test_large_literals_stay_text_until_asked_for() -> None:
    literal = _constant("s32[1000]", "{" + ", ".join(map(str, range(1000))) + "}").literal

    assert literal._array is None
    assert literal.array()[999] == 999
    assert literal._array is not None


# -- printing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "text", "out"),
    [
        ("f32[]", "1.0", "1"),
        ("f32[]", "0.1", "0.1"),
        ("f32[]", "0.333333343", "0.333333343"),
        ("f32[]", "1e-5", "1e-05"),
        ("f32[]", "-0.0", "-0.0"),
        ("f64[]", "0.1", "0.1"),
        ("f64[]", "0.30000000000000004", "0.30000000000000004"),
        ("f16[]", "0.3333", "0.33325"),
        ("bf16[]", "0.333", "0.332"),
        ("f8e5m2[]", "0.3", "0.31"),
        ("pred[]", "1", "true"),
        ("pred[2]", "{true,false}", "{1, 0}"),
        ("s32[1]", "{5}", "{5}"),
        ("s32[2,2]", "{{1,2},{3,4}}", "{ { 1, 2 }, { 3, 4 } }"),
        ("s32[2,1]", "{{1},{2}}", "{ {1}, {2} }"),
        ("f32[2,0]", "{{},{}}", "{ {}, {} }"),
        ("s32[1,1,1,2]", "{{{{1,2}}}}", "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } } }"),
        ("s32[1,1,2]", "{{{1,2}}}", "{ { { 1, 2 } } }"),
        ("c64[]", "(1,-0.5)", "(1, -0.5)"),
        ("f32[3]", "{nan, -nan, nan(0x7fc01)}", "{nan, -nan, nan(0x7fc01)}"),
        ("(s32[], f32[2])", "(1, {2,3})", "( 1, {2, 3} )"),
        ("f32[9,9]", "{...}", "{...}"),
    ],
)
def test_literals_print_as_xla_prints_them(shape: str, text: str, out: str) -> None:
    assert _printed(shape, text) == out
    assert _printed(shape, out) == out


def test_large_constants_are_elided_on_demand() -> None:
    module = in_entry("a = s32[10] constant({0,1,2,3,4,5,6,7,8,9})\n b = s32[11] constant({0,1,2,3,4,5,6,7,8,9,10})")

    assert "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})" in print_module(module, DEFAULT)
    assert "b = s32[11]{0} constant({...})" in print_module(module, DEFAULT)
    assert "9, 10})" in print_module(module, ROUND_TRIP)


def test_elided_constants_have_a_shape_and_no_values() -> None:
    literal = _constant("f32[100,100]", "{...}").literal

    assert literal.is_elided
    with pytest.raises(ElidedLiteralError):
        literal.array()


@pytest.mark.parametrize("element_type", [e for e in ElementType if e.is_floating])
def test_every_value_of_a_narrow_type_survives_printing(element_type: ElementType) -> None:
    if element_type.bits > 8:
        values = np.random.default_rng(1).standard_normal(200) * 2.0 ** np.arange(-100, 100) / 2**20
        values = values[np.abs(values) < 60000] if element_type is ElementType.F16 else values
    else:
        values = np.arange(-6, 6, 0.0625)
        values = np.abs(values) + 0.5 if element_type is ElementType.F8E8M0FNU else values
    text = "{" + ", ".join(repr(float(v)) for v in values) + "}"
    first = _printed(f"{element_type}[{len(values)}]", text)

    assert _printed(f"{element_type}[{len(values)}]", first) == first
    assert np.array_equal(_values(f"{element_type}[{len(values)}]", first), _values(f"{element_type}[{len(values)}]", text))


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("s8[]", "128"),
        ("u32[]", "-1"),
        ("s4[]", "8"),
        ("u2[]", "4"),
        ("f16[]", "70000"),
        ("f32[]", "3.5e38"),
        ("f64[]", "1e400"),
        ("bf16[]", "3.4e38"),
        ("f8e4m3fn[]", "480"),
        ("f8e8m0fnu[]", "0"),
        ("s64[]", "9223372036854775808"),
        ("u64[]", "18446744073709551616"),
    ],
)
def test_values_out_of_range_are_refused_where_they_stand(shape: str, text: str) -> None:
    line, column, reason = body_complaint(f"c = {shape} constant({text})")

    assert (line, column) == (1, len(f"c = {shape} constant(") + 1)
    assert text in reason


def test_types_without_infinity_and_nan_saturate() -> None:
    assert _values("f4e2m1fn[2]", "{6.5, -100}").tolist() == [6.0, -6.0]


@pytest.mark.parametrize(("shape", "text"), [("f16[]", "65519"), ("f32[]", "3.4028235e38"), ("bf16[]", "3.39e38")])
def test_values_that_round_back_into_range_are_fine(shape: str, text: str) -> None:
    assert np.isfinite(_values(shape, text))


@pytest.mark.parametrize(
    ("shape", "text", "reason"),
    [
        ("f32[3]", "{1,2}", "expected 3 elements of dimension 0 behind 2 of them, got '}'"),
        ("f32[3]", "{1,2,3,4}", "expected '}' behind 3 elements of dimension 0, got '4'"),
        ("f32[2,1]", "{1,2}", "expected '{' of dimension 1 (of 2), got '1'"),
        ("f32[2]", "{{1,2}}", "expected a number for f32, got '{'"),
        ("f32[]", "{1}", "expected a number for f32, got '{'"),
        ("s32[]", "1.5", "expected an integer for s32, got '1.5'"),
        ("s32[]", "true", "expected an integer for s32, got 'true'"),
        ("f32[]", "(1,2)", "expected a number for f32, got '('"),
        ("c64[]", "1", "expected (real, imaginary), got '1'"),
        ("f32[2,2]", "{{...}}", "expected a number for f32, got '...'"),
        ("f32[]", "{...}", "expected a number for f32, got '{'"),
        ("token[]", "1", "expected a constant of an array or tuple shape, got token[]"),
        ("(s32[], s32[])", "(1)", "expected ',', got ')'"),
        ("f8e4m3fn[]", "nan(0x1)", "expected a NaN payload below 0x1 for f8e4m3fn, got 'nan(0x1)'"),
        ("f16[]", "nan(0x400)", "expected a NaN payload below 0x400 for f16, got 'nan(0x400)'"),
        ("f6e2m3fn[]", "nan", "expected a number for f6e2m3fn, which has no NaN, got 'nan'"),
    ],
)
def test_literals_that_do_not_fit_are_refused(shape: str, text: str, reason: str) -> None:
    assert body_complaint(f"c = {shape} constant({text})")[2] == reason


def test_bad_values_in_long_literals_are_found() -> None:
    numbers = ", ".join(map(str, range(300)))
    line, column, reason = body_complaint(f"c = u8[300] constant({{{numbers}}})")

    assert (line, reason) == (1, "expected u8 from 0 to 255, got 256")
    assert column == len("c = u8[300] constant({") + numbers.index("256") + 1


def test_an_elided_text_reads_back() -> None:
    text = print_module(in_entry("c = f32[100] constant({...})"))

    assert parse_module(text).to_text() == text
