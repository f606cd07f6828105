"""Values in memory: codes of elements, physical order by layout, strided views, tiles, packed sub-byte elements.

1. A *code* is what memory holds for an element: a float's bits, an integer, ``pred`` as a byte.
2. An array without tiles lies in the order of its layout; :func:`strided_view` shows any such place in memory in logical
   dimensions, without copying.
3. Tiles cut the most minor physical dimensions; padding elements are part of memory but of no value
   (:func:`physical_slots`).
4. Elements with ``E(n)`` below eight bits are packed, the first of a byte in its low bits.
5. ``bitcast`` reads the bytes of one shape as another (:func:`reinterpret`), so a wrong one changes values.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from layoutsim.errors import LayoutError, UnsupportedError
from layoutsim.ir import ArrayShape, ElementType, Layout, default_layout
from layoutsim.ir.float_bits import code_dtype, from_bits, to_bits
from layoutsim.ir.float_format import numpy_dtype

Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]

PADDING = -1
"""Slot of :func:`physical_slots` that belongs to no element."""


def memory_dtype(element_type: ElementType) -> np.dtype[Any]:
    """The dtype of codes (1)."""
    return code_dtype(element_type) if element_type.is_floating else numpy_dtype(element_type)


def to_codes(values: Array, element_type: ElementType) -> Array:
    """What memory holds for ``values``, same dimensions."""
    if not element_type.is_floating:
        return values
    return to_bits(values, element_type).reshape(values.shape)


def from_codes(codes: Array, element_type: ElementType) -> Array:
    """The values that codes stand for; codes of the element's size in any dtype."""
    if element_type.is_floating:
        contiguous = np.ascontiguousarray(codes)
        return np.array(from_bits(contiguous.view(code_dtype(element_type)), element_type)).reshape(codes.shape)
    values = np.ascontiguousarray(codes).view(np.uint8 if element_type.is_pred else numpy_dtype(element_type))
    values = values.reshape(codes.shape)
    if element_type.is_pred:
        return values != 0
    unused = 8 * element_type.storage_bytes - element_type.bits
    return ((values << unused) >> unused).astype(values.dtype) if unused else values.copy()


def layout_of(shape: ArrayShape) -> Layout:
    """The shape's layout, or the default one where it has none."""
    return shape.layout if shape.layout is not None else default_layout(shape.rank)


def is_packed(shape: ArrayShape) -> bool:
    """Whether several elements share a byte (4)."""
    bits = layout_of(shape).element_size_bits
    return 0 < bits < 8


def strided_view(memory: Array, offset: int, shape: ArrayShape) -> Array:
    """The codes of an array at ``offset`` of a byte arena, in logical dimensions, writable (2).

    Raises:
        UnsupportedError: the layout has tiles or packed elements, which no strided view can show.
    """
    layout = layout_of(shape)
    if layout.tiles or is_packed(shape):
        raise UnsupportedError(f"{shape}: tiles and packed elements have no strided view")
    dtype = memory_dtype(shape.element_type)
    order = layout.major_to_minor
    size = shape.element_count * dtype.itemsize
    flat = memory[offset : offset + size].view(dtype)
    return flat.reshape([shape.dimensions[d] for d in order]).transpose(np.argsort(order))


@cache
def physical_bytes(shape: ArrayShape) -> int:
    """Bytes that :func:`to_memory` produces, tile padding included."""
    layout = layout_of(shape)
    slots = len(physical_slots(shape)) if layout.tiles else shape.element_count
    if is_packed(shape):
        return -(-slots * layout.element_size_bits // 8)
    return slots * memory_dtype(shape.element_type).itemsize


def to_memory(values: Array, shape: ArrayShape) -> Array:
    """The bytes of ``values`` laid out by ``shape``, as a flat ``uint8`` array; padding is zero."""
    codes = to_codes(values, shape.element_type)
    if layout_of(shape).tiles:
        slots = physical_slots(shape)
        flat = codes.reshape(-1)
        ordered = np.where(slots == PADDING, np.zeros((), codes.dtype), flat[np.maximum(slots, 0)] if flat.size else 0)
        ordered = ordered.astype(codes.dtype)
    else:
        ordered = np.ascontiguousarray(codes.transpose(layout_of(shape).major_to_minor)).reshape(-1)
    return _pack(ordered, shape) if is_packed(shape) else ordered.view(np.uint8)


def from_memory(data: Array, shape: ArrayShape) -> Array:
    """The values in bytes laid out by ``shape``; inverse of :func:`to_memory`."""
    codes = _unpack(data, shape) if is_packed(shape) else np.ascontiguousarray(data).view(memory_dtype(shape.element_type))
    if layout_of(shape).tiles:
        slots = physical_slots(shape)
        flat = np.empty(shape.element_count, codes.dtype)
        flat[slots[slots != PADDING]] = codes[slots != PADDING]
        return from_codes(flat.reshape(shape.dimensions), shape.element_type)
    order = layout_of(shape).major_to_minor
    physical = codes[: shape.element_count].reshape([shape.dimensions[d] for d in order])
    return from_codes(physical.transpose(np.argsort(order)), shape.element_type)


def _pack(codes: Array, shape: ArrayShape) -> Array:
    bits = layout_of(shape).element_size_bits
    per_byte = 8 // bits
    raw = codes.view(np.uint8) & np.uint8((1 << bits) - 1)
    padded = np.zeros(-(-len(raw) // per_byte) * per_byte, np.uint8)
    padded[: len(raw)] = raw
    groups = padded.reshape(-1, per_byte)
    packed = np.zeros(len(groups), np.uint8)
    for i in range(per_byte):
        packed |= groups[:, i] << np.uint8(i * bits)
    return packed


def _unpack(data: Array, shape: ArrayShape) -> Array:
    bits = layout_of(shape).element_size_bits
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    raw = (data[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    return raw.reshape(-1).view(memory_dtype(shape.element_type))


@cache
def physical_slots(shape: ArrayShape) -> Array:
    """For each element slot of memory, the row-major index of the element there, or :data:`PADDING` (3).

    Raises:
        UnsupportedError: a tile dimension ``*``, which merges dimensions.
    """
    layout = layout_of(shape)
    order = layout.major_to_minor
    slots = np.arange(shape.element_count, dtype=np.int64).reshape(shape.dimensions).transpose(order)
    for tile in layout.tiles:
        if any(size is None for size in tile):
            raise UnsupportedError(f"{shape}: tiles with '*' are not modelled")
        slots = _tiled(slots, tuple(size or 1 for size in tile))
    return np.ascontiguousarray(slots).reshape(-1)


def _tiled(slots: Array, tile: tuple[int, ...]) -> Array:
    """Cut the last dimensions into tiles: first the grid of tiles, then the inside of one, where a further tile applies."""
    while slots.ndim < len(tile):
        slots = slots[None]
    kept = slots.ndim - len(tile)
    counts = [-(-size // t) for size, t in zip(slots.shape[kept:], tile, strict=True)]
    padding = [(0, 0)] * kept + [(0, c * t - s) for c, t, s in zip(counts, tile, slots.shape[kept:], strict=True)]
    padded = np.pad(slots, padding, constant_values=PADDING)
    split = padded.reshape((*padded.shape[:kept], *(n for pair in zip(counts, tile, strict=True) for n in pair)))
    outer = [kept + 2 * i for i in range(len(tile))]
    order = [*range(kept), *outer, *(axis + 1 for axis in outer)]
    return split.transpose(order)


def reinterpret(values: Array, source: ArrayShape, target: ArrayShape) -> Array:
    """The memory of ``values`` laid out by ``source`` read as ``target`` (5).

    Raises:
        LayoutError: the two shapes take different numbers of bytes.
    """
    if source.element_type is target.element_type and not (layout_of(source).tiles or layout_of(target).tiles):
        return _reordered(values, source, target)
    data = to_memory(values, source)
    if len(data) != physical_bytes(target):
        raise LayoutError(f"bitcast from {source} ({len(data)} bytes) to {target} ({physical_bytes(target)} bytes)")
    return from_memory(data, target)


def _reordered(values: Array, source: ArrayShape, target: ArrayShape) -> Array:
    if math.prod(source.dimensions) != math.prod(target.dimensions):
        raise LayoutError(f"bitcast from {source} to {target}: different numbers of elements")
    order = layout_of(target).major_to_minor
    flat = values.transpose(layout_of(source).major_to_minor).reshape([target.dimensions[d] for d in order])
    return flat.transpose(np.argsort(order))
