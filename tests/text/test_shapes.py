import pytest

from layoutsim.errors import ParseError
from layoutsim.ir import UNBOUNDED, ArrayShape, ElementType, Layout
from layoutsim.text import parse_shape
from tests.text.asking import body_complaint, in_entry, printed, root_of


@pytest.mark.parametrize(
    "text",
    [
        "f32[8,128]{1,0:T(8,128)(2,1)S(5)}",
        "f32[8,4]{1,0:T(*,4)}",
        "s4[8,4]{1,0:L(1024)E(4)}",
        "f32[8,128]{1,0:SC(0:4)(1:64)}",
        "f32[<=8,4]{1,0:M(32)}",
        "f32[8,4]{1,0:#(u32)*(u8)}",
        "f32[]{:T(128)}",
        "f32[<=8,?,4]{2,1,0}",
        "()",
        "token[]",
        "opaque[]",
        "b(f32[4]{0})",
        "((), (f32[2]{0}, token[]), s32[])",
        "(s32[], s32[], s32[], s32[], s32[], /*index=5*/s32[])",
        "f32[0,3]{1,0}",
    ],
)
def test_shapes_print_as_they_are_written(text: str) -> None:
    assert str(parse_shape(text)) == text
    assert printed(f"x = {text} parameter(0)") == f"x = {text} parameter(0)"


@pytest.mark.parametrize("element_type", list(ElementType))
def test_every_element_type_is_read(element_type: ElementType) -> None:
    assert parse_shape(f"{element_type}[3]") == ArrayShape(element_type, (3,), Layout((0,)))


def test_a_layout_that_is_not_written_is_the_default() -> None:
    assert str(parse_shape("(f32[2,3], b(f32[4,4]))")) == "(f32[2,3]{1,0}, b(f32[4,4]{1,0}))"


def test_blanks_inside_shapes_mean_nothing() -> None:
    assert parse_shape("f32 [ 2 , 3 ] { 0 , 1 : T ( 8 ) }") == parse_shape("f32[2,3]{0,1:T(8)}")


def test_unbounded_dimensions_are_dynamic() -> None:
    shape = parse_shape("f32[?,<=4,2]")

    assert isinstance(shape, ArrayShape)
    assert (shape.dimensions, shape.dynamic) == ((UNBOUNDED, 4, 2), (True, True, False))


def test_levels_of_sparse_arrays_are_read_and_dropped() -> None:
    assert str(parse_shape("f32[2,3]{1,0:D(D,C+~)T(8)}")) == "f32[2,3]{1,0:T(8)}"


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("f32[8,4]{1,0:S(1)T(8,128)}", 18, "expected '}' or a layout property in the order D T L # * E S SC M, got 'T'"),
        ("f32[8,4]{0}", 9, "expected a layout of rank 2, got rank 1"),
        ("f32[8,4]{1,1}", 9, "minor_to_major must be a permutation of 0..1, got (1, 1)"),
        ("f32[-1]", 5, "expected a dimension size of at least 0, got -1"),
        ("f32[2,", 7, "expected a dimension size, got the end of the text"),
        ("F32[2]", 1, "expected a shape, got 'F32'"),
        ("token[2]", 6, "expected no dimensions in token[]"),
        ("b(token[])", 3, "expected an array inside b(...), got token[]"),
        ("f32[2]{0:P(s32[2])}", 10, "expected no physical shape P(...), which only sparse arrays had, got 'P'"),
        ("f32[2]{0:#(s32)}", 12, "expected an unsigned element type, got 's32'"),
        ("f32[2] x", 8, "expected the end of the text behind a shape, got 'x'"),
        ("f32[4294967296,4294967296]", 4, "expected fewer than 2**63 bytes, got f32[4294967296, 4294967296]"),
    ],
)
def test_what_is_no_shape_is_refused_at_its_place(text: str, column: int, reason: str) -> None:
    with pytest.raises(ParseError) as error:
        parse_shape(text)

    assert (error.value.column, error.value.reason) == (column, reason)


def test_empty_braces_are_no_layout() -> None:
    assert body_complaint("x = f32[8]{} parameter(0)") == (1, 11, "expected an opcode, got '{'")


def test_a_brace_behind_a_result_shape_opens_the_body() -> None:
    assert in_entry("  x = f32[8] parameter(0)").to_text().count("-> f32[8] {") == 1


def test_equal_shapes_of_one_text_are_one_object() -> None:
    root = root_of("x = f32[8,4]{0,1:T(8)} parameter(0)\ny = f32[8,4]{0,1:T(8)} negate(x)")

    assert root.shape is root.operand(0).shape
