"""What counts as transposing."""

import pytest

from layoutsim.ir import ElementType, array_shape
from layoutsim.report.copies import is_transposing
from layoutsim.report.units import exact_bytes, human_bytes, signed_bytes


@pytest.mark.parametrize(
    ("dimensions", "source", "target", "transposing"),
    [
        ((2, 3), (1, 0), (0, 1), True),
        ((1, 3), (1, 0), (0, 1), False),
        ((1, 3, 4), (2, 1, 0), (2, 0, 1), False),  # the gathered slice of openxla/xla#26987
        ((8, 3, 4), (2, 1, 0), (2, 0, 1), True),  # and its stack
        ((2, 1, 3), (2, 1, 0), (0, 1, 2), True),
        ((0, 3), (1, 0), (0, 1), False),  # nothing to move
    ],
)
def test_only_dimensions_larger_than_one_count(
    dimensions: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], transposing: bool
) -> None:
    shape = array_shape(ElementType.F32, dimensions)

    assert is_transposing(shape.with_order(source), shape.with_order(target)) is transposing


@pytest.mark.parametrize(
    ("count", "human", "exact", "signed"),
    [
        (0, "0 B", "0 B", "="),
        (1023, "1023 B", "1,023 B", "+1023 B"),
        (1536, "1.50 KiB", "1,536 B (1.50 KiB)", "+1.50 KiB"),
        (-167_772_160, "-160.00 MiB", "-167,772,160 B (-160.00 MiB)", "-160.00 MiB"),
    ],
)
def test_units(count: int, human: str, exact: str, signed: str) -> None:
    assert human_bytes(count) == human
    assert exact_bytes(count) == exact
    assert signed_bytes(count) == signed
