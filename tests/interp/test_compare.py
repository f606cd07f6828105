"""Comparing values by element type."""

import numpy as np
import pytest

from layoutsim.interp import compare_values, tolerance
from layoutsim.ir import ElementType
from layoutsim.text import parse_shape


def test_integers_must_be_equal() -> None:
    (found,) = compare_values(np.int32([1, 2, 3]), np.int32([1, 5, 3]), parse_shape("s32[3]"))

    assert str(found) == "element [1]: 2, expected 5 (1 elements differ)"


@pytest.mark.parametrize(("text", "off"), [("f32[2]", 1e-5), ("bf16[2]", 1e-2), ("f16[2]", 2e-3), ("f8e4m3fn[2]", 0.1)])
def test_floats_may_differ_by_rounding(text: str, off: float) -> None:
    shape = parse_shape(text)
    expected = np.float32([1, 100])

    assert compare_values(expected * np.float32(1 + off), expected, shape) == []
    assert len(compare_values(expected * np.float32(1 + 20 * off), expected, shape)) == 1


def test_sums_that_cancel_are_measured_against_the_largest_value() -> None:
    assert compare_values(np.float32([1e-6, 1]), np.float32([0, 1]), parse_shape("f32[2]")) == []


def test_nan_equals_nan_and_infinities_have_a_sign() -> None:
    shape = parse_shape("f32[3]")
    expected = np.float32([np.nan, np.inf, 1])

    assert compare_values(expected.copy(), expected, shape) == []
    assert len(compare_values(np.float32([1, np.inf, 1]), expected, shape)) == 1
    assert len(compare_values(np.float32([np.nan, -np.inf, 1]), expected, shape)) == 1


def test_parts_of_tuples_are_named() -> None:
    shape = parse_shape("(f32[1], (s32[]))")

    (found,) = compare_values((np.float32([1]), (np.array(3),)), (np.float32([1]), (np.array(4),)), shape)

    assert str(found) == "part {1,0}, element []: 3, expected 4 (1 elements differ)"


def test_every_element_type_has_a_tolerance() -> None:
    assert all(tolerance(t) >= 0 for t in ElementType)
    assert tolerance(ElementType.S8) == tolerance(ElementType.PRED) == 0
