"""Constant values: a shape and its elements in logical order, whatever the layout (``xla/literal.h``; text spec, section 4).

A literal read from text keeps the text and builds the array when it is asked for: dumps hold megabytes of constants that
nobody looks at. A literal printed as ``{...}`` is *elided*: its shape is known, its content is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from attrs import define, evolve, field

from layoutsim.errors import LayoutsimError
from layoutsim.ir.float_format import numpy_dtype
from layoutsim.ir.shape import ArrayShape, Shape, map_arrays

Array = np.ndarray[Any, np.dtype[Any]]


class ElidedLiteralError(LayoutsimError):
    """The text holds ``{...}`` where the elements should stand; print the module with large constants to keep them."""


def holds_array(shape: ArrayShape) -> bool:
    """Whether numpy has arrays of these dimensions: one without elements may still be too large in its other dimensions."""
    sizes = [size for size in shape.dimensions if size]
    return math.prod(sizes) * numpy_dtype(shape.element_type).itemsize < 1 << 63


@cache
def _one_element_a_byte(shape: Shape) -> Shape:
    """``shape`` without element sizes: the compiler does not pack what it holds itself (``Literal::Literal``)."""

    def unpacked(leaf: ArrayShape) -> ArrayShape:
        packed = leaf.layout is not None and leaf.layout.element_size_bits
        return leaf.with_layout(evolve(leaf.layout, element_size_bits=0)) if packed else leaf

    return map_arrays(shape, unpacked)


@define(eq=False)
class Literal:
    """A constant of an array or tuple shape.

    Attributes:
        shape: with a layout that states no element size; :meth:`with_shape` changes only how the elements are stored, never
            which they are.
        text: as written (``{1, 2}``), or ``None`` when built from values.
        is_elided: the elements are unknown.
        formatted: the elements as the printer writes them, once it has.
    """

    shape: Shape = field(converter=_one_element_a_byte)
    text: str | None = None
    is_elided: bool = False
    elements: tuple[Literal, ...] = ()
    formatted: str | None = field(default=None, repr=False)
    _array: Array | None = field(default=None, repr=False, alias="values")
    _reader: Callable[[str, ArrayShape], Array] | None = field(default=None, repr=False, alias="reader")

    @staticmethod
    def of(array: Array, shape: ArrayShape) -> Literal:
        """A literal that holds ``array``, whose dimensions are the shape's."""
        assert tuple(array.shape) == shape.dimensions, f"{array.shape} != {shape}"
        return Literal(shape, values=array)

    def array(self) -> Array:
        """The elements as a numpy array with the shape's logical dimensions.

        Raises:
            ElidedLiteralError: the elements are unknown.
        """
        if self._array is None:
            if self.is_elided:
                raise ElidedLiteralError(f"constant of shape {self.shape} was printed without its elements")
            assert self._reader is not None and self.text is not None and isinstance(self.shape, ArrayShape)
            self._array = self._reader(self.text, self.shape)
        return self._array

    def with_shape(self, shape: Shape) -> Literal:
        """The same elements under a shape that differs in layouts only."""
        return evolve(self, shape=shape)
