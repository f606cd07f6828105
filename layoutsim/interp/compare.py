"""Comparing values with a tolerance that the element type sets.

Integers and flags must be equal. Floats may differ by rounding: a module after its passes, or the real compiler, sums in
another order and keeps intermediate values wider or narrower. The tolerance is relative to the largest value of the array
(sums cancel), plus relative to each element:

=========================== ============
element type                tolerance
=========================== ============
f64, c128                   1e-10
f32, c64                    2e-5
f16                         4e-3
bf16                        3e-2
f8e4m3*, f8e3m4             2e-1
f8e5m2*, f6*, f4*, f8e8m0   4e-1
=========================== ============

NaN equals NaN, infinities must agree in sign.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from layoutsim.interp.values import Array, Value
from layoutsim.ir import ArrayShape, BufferShape, ElementType, Shape, ShapeIndex, index_text, leaves

_TOLERANCES = {
    ElementType.F64: 1e-10,
    ElementType.C128: 1e-10,
    ElementType.F32: 2e-5,
    ElementType.C64: 2e-5,
    ElementType.F16: 4e-3,
    ElementType.BF16: 3e-2,
    ElementType.F8E4M3: 2e-1,
    ElementType.F8E4M3FN: 2e-1,
    ElementType.F8E4M3FNUZ: 2e-1,
    ElementType.F8E4M3B11FNUZ: 2e-1,
    ElementType.F8E3M4: 2e-1,
}
_COARSE = 4e-1


@frozen
class Difference:
    """Where two values differ most.

    Attributes:
        index: which part of a tuple.
        element: logical index of the worst element.
        count: how many elements are out of tolerance.
    """

    index: ShapeIndex
    element: tuple[int, ...]
    actual: object
    expected: object
    count: int

    def __str__(self) -> str:
        where = f"part {index_text(self.index)}, " if self.index else ""
        return f"{where}element {list(self.element)}: {self.actual}, expected {self.expected} ({self.count} elements differ)"


def tolerance(element_type: ElementType) -> float:
    """The tolerance of the table above; 0 for integers and flags."""
    if element_type.is_integral or element_type.is_pred:
        return 0.0
    return _TOLERANCES.get(element_type, _COARSE)


def compare_values(
    actual: Value, expected: Value, shape: Shape, *, factor: float = 1.0, each: bool = False
) -> list[Difference]:
    """The parts of two values of ``shape`` that differ by more than ``factor`` times the tolerance.

    Args:
        each: elements have nothing to do with each other, so that a large one excuses nothing (above 1).
    """
    out: list[Difference] = []
    for index, leaf in leaves(shape):
        array_shape = leaf.array if isinstance(leaf, BufferShape) else leaf
        if isinstance(array_shape, ArrayShape):
            a, b = _part(actual, index), _part(expected, index)
            found = _compare_arrays(a, b, index, factor * tolerance(array_shape.element_type), each)
            out += [found] if found is not None else []
    return out


def _part(value: Value, index: ShapeIndex) -> Array:
    for i in index:
        assert isinstance(value, tuple), value
        value = value[i]
    assert isinstance(value, np.ndarray), value
    return value


def _compare_arrays(actual: Array, expected: Array, index: ShapeIndex, allowed: float, each: bool) -> Difference | None:
    if not allowed:
        wrong = actual != expected
        distance = wrong.astype(np.float64)
    else:
        distance, limit = _distances(actual, expected, allowed, each)
        wrong = distance > limit
    if not wrong.any():
        return None
    worst = np.unravel_index(int(np.argmax(np.where(wrong, distance, -1))), actual.shape)
    element = tuple(int(i) for i in worst)
    return Difference(index, element, actual[element].item(), expected[element].item(), int(wrong.sum()))


def _distances(actual: Array, expected: Array, allowed: float, each: bool) -> tuple[Array, Array]:
    """Distance of each pair of elements (infinite where only one is NaN or an infinity), and what is allowed."""
    kind = np.complex128 if actual.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, b = actual.astype(kind), expected.astype(kind)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        distance = np.where(same, 0.0, np.abs(a - b))
        distance = np.where(np.isnan(distance), np.inf, distance)
        size = np.abs(np.where(np.isfinite(b), b, 0))
    largest = float(size.max()) if size.size else 0.0
    return distance, allowed * (size + (min(largest, 1.0) if each else largest) * 0.5)
