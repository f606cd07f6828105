"""Bit patterns of narrow floats against ml_dtypes, for every code."""

import ml_dtypes
import numpy as np
import pytest

from layoutsim.ir import ElementType
from layoutsim.ir.float_bits import from_bits, to_bits

FORMATS = {
    ElementType.BF16: ml_dtypes.bfloat16,
    ElementType.F8E5M2: ml_dtypes.float8_e5m2,
    ElementType.F8E4M3: ml_dtypes.float8_e4m3,
    ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    ElementType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    ElementType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    ElementType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    ElementType.F8E3M4: ml_dtypes.float8_e3m4,
    ElementType.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    ElementType.F6E2M3FN: ml_dtypes.float6_e2m3fn,
    ElementType.F6E3M2FN: ml_dtypes.float6_e3m2fn,
    ElementType.F4E2M1FN: ml_dtypes.float4_e2m1fn,
}


def codes_of(element_type: ElementType) -> np.ndarray:
    return np.arange(1 << element_type.bits, dtype=np.uint16 if element_type.bits > 8 else np.uint8)


@pytest.mark.parametrize("element_type", FORMATS)
def test_every_code_has_its_value(element_type: ElementType) -> None:
    codes = codes_of(element_type)

    actual = from_bits(codes, element_type)

    expected = codes.view(FORMATS[element_type]).astype(np.float32)
    np.testing.assert_array_equal(actual, expected)
    is_number = ~np.isnan(expected)
    assert np.signbit(actual[is_number]).tolist() == np.signbit(expected[is_number]).tolist()


@pytest.mark.parametrize("element_type", FORMATS)
def test_every_value_gives_back_its_code(element_type: ElementType) -> None:
    codes = codes_of(element_type)
    values = from_bits(codes, element_type)
    is_number = ~np.isnan(values)

    assert to_bits(values, element_type)[is_number].tolist() == codes[is_number].tolist()


@pytest.mark.parametrize(("element_type", "dtype"), [(ElementType.F16, np.float16), (ElementType.F64, np.float64)])
def test_wide_floats_are_numpys_own(element_type: ElementType, dtype: type) -> None:
    values = np.array([1.5, -0.0, np.inf], dtype)

    assert to_bits(values, element_type).tobytes() == values.tobytes()
    assert from_bits(to_bits(values, element_type), element_type).tobytes() == values.tobytes()
