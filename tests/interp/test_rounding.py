"""Rounding to narrow floats against ml_dtypes, and conversions at the ends of ranges."""

import ml_dtypes
import numpy as np
import pytest

from layoutsim.interp.rounding import convert, round_floats
from layoutsim.ir import ElementType

NARROW = {
    ElementType.BF16: ml_dtypes.bfloat16,
    ElementType.F8E5M2: ml_dtypes.float8_e5m2,
    ElementType.F8E4M3: ml_dtypes.float8_e4m3,
    ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    ElementType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    ElementType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    ElementType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    ElementType.F8E3M4: ml_dtypes.float8_e3m4,
}


def floats() -> np.ndarray:
    """Numbers of all magnitudes, halfway cases among them."""
    random = np.random.default_rng(3)
    bits = random.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    small = np.arange(-4096, 4096, dtype=np.float32) / 256
    return np.concatenate([bits, small, small * 1e-3, np.float32([0, -0.0, np.inf, -np.inf, np.nan])])


@pytest.mark.parametrize("element_type", NARROW)
def test_rounding_is_to_nearest_even(element_type: ElementType) -> None:
    values = floats()

    with np.errstate(all="ignore"):
        expected = values.astype(NARROW[element_type]).astype(np.float32)
    np.testing.assert_array_equal(round_floats(values, element_type), expected)


@pytest.mark.parametrize(
    ("element_type", "expected"),
    [
        (ElementType.S8, [127, -128, 0, -1, 1, 127]),
        (ElementType.U8, [255, 0, 0, 0, 1, 255]),
        (ElementType.S4, [7, -8, 0, -1, 1, 7]),
        (ElementType.S64, [300, -300, 0, -1, 1, 2**63 - 1]),
        (ElementType.U64, [300, 0, 0, 0, 1, 2**64 - 1]),
    ],
)
def test_floats_to_integers_truncate_and_saturate(element_type: ElementType, expected: list[int]) -> None:
    assert convert(np.float32([300, -300, np.nan, -1.5, 1.9, 1e30]), element_type).tolist() == expected


def test_integers_to_narrower_ones_wrap() -> None:
    assert convert(np.int32([300, -129, 255]), ElementType.S8).tolist() == [44, 127, -1]
    assert convert(np.int32([8, -9, 15]), ElementType.S4).tolist() == [-8, 7, -1]
