"""TPU dumps: what tiles cost each buffer, and how much lies in which memory space.

The passes of the TPU compiler are not public, but its scheduled modules can be read:

1. A module is a TPU module if an entry parameter or the result is stored in tiles.
2. Sizes are padded (:mod:`layoutsim.memory.tiles`); arguments and outputs then have exactly the bytes the compiler reports.
   A table of pointers takes whole blocks of 512 bytes, as every buffer does.
3. Values of different memory spaces never share. Where the compiler put temporaries within a space is not in the dump, so
   offsets of temporaries, VMEM's above all, are those that XLA's common heap gives them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from attrs import frozen

from layoutsim.analysis.alias_rules import CPU_RULES
from layoutsim.analysis.values import Value
from layoutsim.ir.module import Module
from layoutsim.ir.shape import ArrayShape, Shape, array_leaves, subshapes
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.heaps import align_up
from layoutsim.memory.profile import MemoryProfile
from layoutsim.memory.tiles import TilePadding, has_tiles, memory_space_name, padded_bytes, tile_padding

_BLOCK = 512

TPU = MemoryProfile("tpu", CPU_RULES, alignment=_BLOCK, size=padded_bytes)
"""TPU modules; rule (3)."""


@frozen(eq=False)
class PaddedValue:
    """A value stored in tiles, with what they add."""

    value: Value
    padding: TilePadding

    @property
    def memory_space(self) -> str:
        layout = self.padding.shape.layout
        return memory_space_name(layout.memory_space if layout is not None else 0)


def is_tpu_module(module: Module) -> bool:
    """Rule (1)."""
    return any(has_tiles(parameter.shape) for parameter in module.entry.parameters) or has_tiles(module.entry.root.shape)


def argument_bytes(module: Module) -> int:
    """Bytes of the entry's parameters, as the compiler reports them."""
    return sum(padded_bytes(leaf) for parameter in module.entry.parameters for _, leaf in array_leaves(parameter.shape))


def output_bytes(module: Module) -> int:
    """Bytes of the result with its tables of pointers, as the compiler reports them."""
    return sum(_block_bytes(part) for _, part in subshapes(module.entry.root.shape))


def padding_table(assignment: BufferAssignment) -> tuple[PaddedValue, ...]:
    """Values in tiles that have a place in memory, the most padding first, equals by id."""
    found = [
        PaddedValue(value, tile_padding(value.shape))
        for allocation in assignment.allocations
        if not allocation.is_thread_local
        for value in allocation.places
        if isinstance(value.shape, ArrayShape) and has_tiles(value.shape)
    ]
    return tuple(sorted(found, key=lambda row: (-row.padding.padding_bytes, row.value.id)))


def bytes_by_memory_space(assignment: BufferAssignment) -> Mapping[str, int]:
    """Bytes of all allocations by memory space, HBM first."""
    sums: defaultdict[int, int] = defaultdict(int)
    for allocation in assignment.allocations:
        sums[allocation.color] += allocation.size
    return {memory_space_name(color): sums[color] for color in sorted(sums)}


def _block_bytes(shape: Shape) -> int:
    size = padded_bytes(shape)
    return size if isinstance(shape, ArrayShape) else align_up(size, _BLOCK)
