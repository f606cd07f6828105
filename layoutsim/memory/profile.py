"""What buffer assignment has to know of a backend (memory spec, section 0): an object of data and small functions.

1. *Sizes*: arrays by their elements, 4 bytes for each dimension of a dynamic shape on top, tuples as a table of pointers.
2. *Colours* are memory spaces. By default a value has the one of its layout. On GPUs a whole buffer has the one that any of
   its values asks for by layout or by an instruction that makes or reads it (:mod:`layoutsim.analysis.collective_memory`).
3. *Use of other colours*: GPU buffers of colour 0 may use free space of temporaries of colour 1, nothing else.
4. *Options of XLA's pass* that these backends leave alone: another order of buffers, values that must not be live-out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial

from attrs import evolve, field, frozen

from layoutsim.analysis.alias import AliasedValues, Aliases
from layoutsim.analysis.alias_rules import CPU_RULES, NVIDIA_0_6_RULES, NVIDIA_RULES, AliasRules
from layoutsim.analysis.collective_memory import COLLECTIVE_SPACE, DEFAULT_SPACE, space_of_definition, space_of_use
from layoutsim.analysis.values import Value
from layoutsim.errors import InputError
from layoutsim.ir.shape import ArrayShape, Shape, byte_size
from layoutsim.memory.heaps import HeapAlgorithm, xla_heap

DEFAULT_COLOR = DEFAULT_SPACE
COLLECTIVE_COLOR = COLLECTIVE_SPACE

Colorer = Callable[[Aliases], Mapping[Value, int]]


def size_in_bytes(shape: Shape) -> int:
    """Rule (1)."""
    if isinstance(shape, ArrayShape) and shape.is_dynamic:
        return byte_size(shape) + 4 * shape.rank
    return byte_size(shape)


def color_of_layout(value: Value) -> int:
    """Memory space of the value's layout."""
    shape = value.shape
    return shape.layout.memory_space if isinstance(shape, ArrayShape) and shape.layout is not None else DEFAULT_COLOR


def colors_by_layout(aliases: Aliases) -> Mapping[Value, int]:
    """Each value has the memory space of its layout.

    Raises:
        InputError: values that must share memory are in different memory spaces.
    """
    colors = {value: color_of_layout(value) for value in aliases.dataflow.values}
    for buffer in aliases.buffers:
        if len(buffer.values) > 1:
            _require_one(buffer, [colors[value] for value in buffer.values])
    return colors


def colors_on_gpu_0_6(aliases: Aliases) -> Mapping[Value, int]:
    """Each buffer has the memory space that the layout of one of its values has; instructions ask for none up to jaxlib 0.6.2.

    Raises:
        InputError: values of one buffer have different memory spaces.
    """
    return _colors(aliases, lambda value: (color_of_layout(value),))


def colors_on_gpu(aliases: Aliases, *, all_collectives: bool = False) -> Mapping[Value, int]:
    """Each buffer has the memory space that one of its values asks for.

    Args:
        all_collectives: every collective asks for collective memory (NCCL user buffers or symmetric buffers).

    Raises:
        InputError: values of one buffer ask for different memory spaces.
    """
    return _colors(aliases, lambda value: _wishes(value, all_collectives))


def _colors(aliases: Aliases, wishes_of: Callable[[Value], Iterable[int]]) -> Mapping[Value, int]:
    colors: dict[Value, int] = {}
    for buffer in aliases.buffers:
        wishes = [color for value in buffer.values for color in wishes_of(value) if color != DEFAULT_COLOR]
        color = _require_one(buffer, wishes) if wishes else DEFAULT_COLOR
        for value in buffer.values:
            colors[value] = color
    return colors


def _require_one(buffer: AliasedValues, colors: list[int]) -> int:
    if len(set(colors)) > 1:
        names = ", ".join(f"{value.short_text}" for value in buffer.values)
        raise InputError(f"values that share memory are in different memory spaces {sorted(set(colors))}: {names}")
    return colors[0]


def _wishes(value: Value, all_collectives: bool) -> list[int]:
    """Rule (2)."""
    asked = [color_of_layout(value), space_of_definition(value, all_collectives=all_collectives)]
    return asked + [space_of_use(value, use, all_collectives=all_collectives) for use in value.uses]


def same_color_only(buffer_color: int, allocation_color: int) -> bool:
    """Buffers use allocations of their own colour."""
    return buffer_color == allocation_color


def gpu_may_use(buffer_color: int, allocation_color: int) -> bool:
    """Rule (3)."""
    if buffer_color == DEFAULT_COLOR and allocation_color == COLLECTIVE_COLOR:
        return True
    return buffer_color == allocation_color


class BufferOrder(Enum):
    """Which buffers get a place first: the largest, or those whose first instruction comes first in post-order."""

    BIGGEST_FIRST = "biggest-first"
    TOPOLOGICAL = "topological"


def may_live_out(value: Value) -> bool:
    """Values that outputs may share an allocation with: all."""
    return True


@frozen
class MemoryProfile:
    """A backend's side of buffer assignment.

    Attributes:
        name: for reports and the command line.
        rules: what must and may share.
        alignment: bytes; offsets of temporaries are multiples of it.
        size: bytes of a value of some shape.
        colors: memory space of every value.
        may_use: whether a buffer of one colour may be in a temporary allocation of another.
        allocate_constants: whether constants get allocations.
        heap: packs the temporaries.
        order: of buffers; XLA's backends use the default.
        may_live_out: whether outputs may share an allocation with a value; XLA's backends allow it for all.
        temp_limit_bytes: no combined temporary allocation reaches this size; ``None`` for no limit.
    """

    name: str
    rules: AliasRules
    alignment: int
    size: Callable[[Shape], int] = size_in_bytes
    colors: Colorer = colors_by_layout
    may_use: Callable[[int, int], bool] = same_color_only
    allocate_constants: bool = True
    heap: HeapAlgorithm = field(factory=xla_heap)
    order: BufferOrder = BufferOrder.BIGGEST_FIRST
    may_live_out: Callable[[Value], bool] = may_live_out
    temp_limit_bytes: int | None = None


GPU = MemoryProfile("gpu", NVIDIA_RULES, alignment=256, colors=colors_on_gpu, may_use=gpu_may_use)
"""XLA for NVIDIA GPUs."""

GPU_NCCL_BUFFERS = evolve(GPU, name="gpu-nccl-buffers", colors=partial(colors_on_gpu, all_collectives=True))
"""The same with ``--xla_gpu_enable_nccl_user_buffers`` or ``--xla_gpu_experimental_enable_nccl_symmetric_buffers``."""

GPU_0_6_2 = evolve(GPU, name="gpu-0.6.2", rules=NVIDIA_0_6_RULES, colors=colors_on_gpu_0_6)
"""XLA for NVIDIA GPUs in jaxlib 0.6.2, which shares memory through horizontal fusions."""

GPU_0_6_1 = evolve(GPU_0_6_2, name="gpu-0.6.1", alignment=128)
"""XLA for NVIDIA GPUs up to jaxlib 0.6.1, which aligns to 128 bytes."""

CPU = MemoryProfile("cpu", CPU_RULES, alignment=64)
"""XLA for CPUs, as in the jaxlib wheels."""
