"""Constants as values."""

from __future__ import annotations

import zlib

import numpy as np

from layoutsim.interp.options import Elided
from layoutsim.interp.rounding import convert
from layoutsim.interp.values import Value, zeros
from layoutsim.ir import ArrayShape, Literal, Shape, TupleShape


def literal_value(literal: Literal, elided: Elided, name: str) -> Value:
    """The value of a constant.

    Args:
        elided: what a literal without elements is worth.
        name: of the constant; seeds :attr:`Elided.SEEDED`.

    Raises:
        ElidedLiteralError: the elements are unknown and ``elided`` refuses.
    """
    if literal.elements:
        return tuple(literal_value(part, elided, f"{name}.{i}") for i, part in enumerate(literal.elements))
    if isinstance(literal.shape, TupleShape) and not literal.is_elided:
        return ()
    if literal.is_elided and elided is not Elided.REFUSE:
        return zeros(literal.shape) if elided is Elided.ZEROS else seeded_value(literal.shape, name)
    return literal.array()


def seeded_value(shape: Shape, name: str, scale: float = 1.0) -> Value:
    """Small values that depend on ``name`` only: integers from 0 to 7, floats from -1 to 1 in steps of 1/8, mixed flags.

    Args:
        scale: multiplies floats; deep networks overflow on weights around 1.
    """
    if isinstance(shape, TupleShape):
        return tuple(seeded_value(part, f"{name}.{i}", scale) for i, part in enumerate(shape.elements))
    if not isinstance(shape, ArrayShape):
        return zeros(shape)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if shape.element_type.is_integral or shape.element_type.is_pred:
        small = random.integers(0, 2 if shape.element_type.is_pred or shape.element_type.bits < 4 else 8, shape.dimensions)
        return np.asarray(convert(np.asarray(small), shape.element_type))
    eighths = np.asarray(random.integers(-8, 9, shape.dimensions) / 8 * scale)
    return np.asarray(convert(eighths, shape.element_type))
