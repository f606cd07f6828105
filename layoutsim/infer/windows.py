"""Window arithmetic (text spec, section 3.10; ``xla/window_util.h``).

1. ``dilated(n, f)``: ``n`` elements with ``f - 1`` holes between neighbours.
2. A window covers ``(base - window) // stride + 1`` places, none if it does not fit; the base is padded (also negatively).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutsim.infer.registry import Site
from layoutsim.ir import UNBOUNDED
from layoutsim.ir.payloads import Window, WindowDimension


def dilated(size: int, factor: int) -> int:
    """Rule (1)."""
    return 0 if size == 0 else (size - 1) * factor + 1


def window_size(size: int, dimension: WindowDimension) -> int:
    """Rule (2): number of places of a window over ``size`` elements."""
    if size == UNBOUNDED:
        return UNBOUNDED
    base = dimension.padding_low + dilated(size, dimension.base_dilation) + dimension.padding_high
    window = dilated(dimension.size, dimension.window_dilation)
    return 0 if base == 0 or window > base else (base - window) // dimension.stride + 1


def window_sizes(site: Site, sizes: Sequence[int], window: Window) -> list[int]:
    """Result sizes of ``window`` over ``sizes``.

    Raises:
        ShapeError: the ranks differ, or a size, stride or dilation is not positive.
    """
    if len(window.dimensions) != len(sizes):
        site.fail(f"has a window of {len(window.dimensions)} dimensions, expected {len(sizes)}")
    for d, dimension in enumerate(window.dimensions):
        for name in ("size", "stride", "window_dilation", "base_dilation"):
            value: int = getattr(dimension, name)
            if value < 1:
                site.fail(f"has window {name} {value} in dimension {d}, expected at least 1")
    return list(map(window_size, sizes, window.dimensions))
