"""Higher types and window arithmetic."""

import pytest

from layoutsim.errors import ShapeError
from layoutsim.infer import compatible_up_to_precision, higher_type, new_array, window_size
from layoutsim.ir import TOKEN, UNBOUNDED, ElementType, array_shape, shape_text, tuple_shape
from layoutsim.ir.payloads import WindowDimension


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("f32", "bf16", "f32"),
        ("bf16", "f16", "bf16"),  # bf16 has the wider range
        ("bf16", "s8", "bf16"),
        ("s8", "u8", "s8"),
        ("s8", "u16", "u16"),
        ("f64", "c64", "c64"),
        ("f8e4m3fn", "f8e4m3", "f8e4m3fn"),
        ("f8e5m2", "f8e4m3fn", "f8e5m2"),
        ("f8e8m0fnu", "bf16", "bf16"),  # equal ranges, bf16 has the wider significand
    ],
)
def test_the_higher_type_does_not_depend_on_the_order(a: str, b: str, expected: str) -> None:
    assert expected == higher_type(ElementType(a), ElementType(b)) == higher_type(ElementType(b), ElementType(a))


def test_types_of_equal_rank_have_no_higher_one() -> None:
    with pytest.raises(ShapeError, match="neither f8e5m2 nor f8e5m2fnuz is the higher type"):
        higher_type(ElementType.F8E5M2, ElementType.F8E5M2FNUZ)


@pytest.mark.parametrize(
    ("size", "dimension", "expected"),
    [
        (8, WindowDimension(3), 6),
        (8, WindowDimension(3, stride=2), 3),
        (8, WindowDimension(3, padding_low=1, padding_high=1), 8),
        (8, WindowDimension(3, padding_low=-6), 0),  # 2 are left
        (0, WindowDimension(1), 0),
        (3, WindowDimension(1, base_dilation=2), 5),
        (8, WindowDimension(3, window_dilation=3), 2),  # spans 7
        (UNBOUNDED, WindowDimension(3), UNBOUNDED),
    ],
)
def test_window_sizes(size: int, dimension: WindowDimension, expected: int) -> None:
    assert expected == window_size(size, dimension)


def test_an_unbounded_size_is_dynamic() -> None:
    assert shape_text(new_array(ElementType.F32, (UNBOUNDED, 2))) == "f32[?,2]{1,0}"


def test_compatibility_up_to_precision_looks_into_tuples() -> None:
    f32, bf16, s32 = (array_shape(t, (2,)) for t in (ElementType.F32, ElementType.BF16, ElementType.S32))

    assert compatible_up_to_precision(tuple_shape((f32, TOKEN)), tuple_shape((bf16, TOKEN)))
    assert not compatible_up_to_precision(tuple_shape((f32, f32)), tuple_shape((bf16, s32)))
    assert not compatible_up_to_precision(f32, tuple_shape((f32,)))
