"""Windows that slide over an array: which element stands under each position of a window (text spec, section 3.10).

An array is first dilated (``base_dilation - 1`` holes between elements) and padded (negative padding crops); the window's
positions are ``window_dilation`` apart and the window moves by ``stride``. Holes and padding hold no element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from layoutsim.interp.values import Array
from layoutsim.ir.payloads import Window, WindowDimension


def output_size(size: int, of: WindowDimension) -> int:
    """How many places the window takes along one dimension."""
    dilated = 0 if size == 0 else (size - 1) * of.base_dilation + 1
    base = of.padding_low + dilated + of.padding_high
    window = 0 if of.size == 0 else (of.size - 1) * of.window_dilation + 1
    return 0 if base <= 0 or window > base else (base - window) // of.stride + 1


def positions(window: Window) -> Iterator[tuple[int, ...]]:
    """Positions inside the window in row-major order."""
    return product(*(range(of.size) for of in window.dimensions))


def under(position: Sequence[int], sizes: Sequence[int], window: Window) -> tuple[list[Array], list[Array]]:
    """For each dimension: the index of the element under ``position`` for every place of the window, and whether there is one.

    Where there is none the index is 0.
    """
    indices: list[Array] = []
    present: list[Array] = []
    for at, size, of in zip(position, sizes, window.dimensions, strict=True):
        place = np.arange(output_size(size, of)) * of.stride + at * of.window_dilation - of.padding_low
        inside = (place >= 0) & (place % of.base_dilation == 0) & (place // of.base_dilation < size)
        indices.append(np.where(inside, place // of.base_dilation, 0))
        present.append(inside)
    return indices, present


def grid(present: Sequence[Array]) -> Array:
    """Whether all dimensions have an element, for every place: the outer "and" of the parts."""
    result = np.ones((), bool)
    for axis, part in enumerate(present):
        result = result[..., None] & part.reshape([1] * axis + [-1])
    return result
