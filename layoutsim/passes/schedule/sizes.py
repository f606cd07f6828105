"""How many bytes schedulers count for a buffer (memory spec, section 0).

* Tuples are tables of 8-byte pointers, tokens take nothing.
* In GPU scheduling, what lives in host memory (memory space 5) takes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from layoutsim.ir import HOST_MEMORY_SPACE, ArrayShape, Shape, byte_size

SizeFunction = Callable[[Shape], int]


@cache
def device_bytes(shape: Shape) -> int:
    """Bytes in device memory."""
    if isinstance(shape, ArrayShape) and shape.layout is not None and shape.layout.memory_space == HOST_MEMORY_SPACE:
        return 0
    return byte_size(shape)
