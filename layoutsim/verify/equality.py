"""Equality of shapes up to chosen parts, the verifier's yardstick (``Shape::Equal`` of ``xla/shape.h``; text spec, 2.4)."""

from __future__ import annotations

from enum import Flag, auto
from functools import cache

from attrs import evolve

from layoutsim.ir import BufferShape, Layout, Shape, array_shape, layout, map_arrays, tuple_shape
from layoutsim.ir.shape import ArrayShape, TupleShape


class Ignoring(Flag):
    """Parts of a shape that a comparison leaves out."""

    NOTHING = 0
    TILES = auto()
    MEMORY_SPACE = auto()
    ELEMENT_SIZE = auto()
    TAIL_PADDING = auto()
    SPLIT_CONFIGS = auto()
    ALL_BUT_ORDER = auto()
    """Of layouts, everything but ``minor_to_major``."""
    LAYOUTS = auto()
    DYNAMIC = auto()
    BUFFERS = auto()
    """A buffer counts as the array it holds."""


def equal(a: Shape, b: Shape, ignoring: Ignoring = Ignoring.NOTHING) -> bool:
    """Whether two shapes are the same but for what is ignored."""
    return a is b or a == b or (bool(ignoring) and _reduced(a, ignoring) == _reduced(b, ignoring))


def equal_layouts(a: Layout, b: Layout, ignoring: Ignoring) -> bool:
    """Whether two layouts are the same but for what is ignored."""
    return a is b or a == b or _reduced_layout(a, ignoring) == _reduced_layout(b, ignoring)


@cache
def _reduced(shape: Shape, ignoring: Ignoring) -> Shape:
    """``shape`` with every ignored part at its default."""
    if Ignoring.BUFFERS in ignoring:
        shape = _without_buffers(shape)
    return map_arrays(shape, lambda leaf: _reduced_array(leaf, ignoring))


def _without_buffers(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return tuple_shape(tuple(map(_without_buffers, shape.elements)))
    return shape.array if isinstance(shape, BufferShape) else shape


def _reduced_array(shape: ArrayShape, ignoring: Ignoring) -> ArrayShape:
    dynamic = () if Ignoring.DYNAMIC in ignoring else shape.dynamic
    kept = shape.layout
    if kept is not None:
        kept = None if Ignoring.LAYOUTS in ignoring else _reduced_layout(kept, ignoring)
    return array_shape(shape.element_type, shape.dimensions, None, dynamic).with_layout(kept)


def _reduced_layout(of: Layout, ignoring: Ignoring) -> Layout:
    if Ignoring.ALL_BUT_ORDER in ignoring:
        return layout(of.minor_to_major)
    return evolve(
        of,
        tiles=() if Ignoring.TILES in ignoring else of.tiles,
        memory_space=0 if Ignoring.MEMORY_SPACE in ignoring else of.memory_space,
        element_size_bits=0 if Ignoring.ELEMENT_SIZE in ignoring else of.element_size_bits,
        tail_padding_alignment=1 if Ignoring.TAIL_PADDING in ignoring else of.tail_padding_alignment,
        split_configs=() if Ignoring.SPLIT_CONFIGS in ignoring else of.split_configs,
    )
