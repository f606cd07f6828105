"""Which transposes XLA:GPU moves through shared memory in tiles (``GetDescriptionForTiledTransposeEmitter``).

The transpose is *normalized* first: dimensions of size 1 are dropped and dimensions that stay neighbours are merged. It is
tiled if at least two dimensions move and

1. its elements are narrower than 32 bits and fill the banks of the packed emitter, or
2. the minor dimension stays, is at most 64 bits wide, and the two next ones are at least 16 bytes, or
3. the minor dimension moves, and the two that swap are at least 16 long (or 8, with 64 x 128 elements); not for 4-bit types.

Source: ``xla/service/gpu/ir_emission_utils.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from layoutsim.ir.element_type import ElementType
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import DimensionsPayload
from layoutsim.ir.shape import ArrayShape, order_or_default

_BANKS = 32
_BANK_BITS = 32
_MIN_TILED = 16
_MIN_TILED_BOTH = 8
_MIN_TILED_PRODUCT = 64 * 128
_MAX_MINOR_BITS = 64


@frozen
class TiledTranspose:
    """A normalized transpose: output dimension ``i`` is input dimension ``permutation[i]``."""

    dimensions: tuple[int, ...]
    permutation: tuple[int, ...]
    bits: int

    @property
    def input_dimensions(self) -> tuple[int, ...]:
        sizes = [0] * len(self.dimensions)
        for output, source in enumerate(self.permutation):
            sizes[source] = self.dimensions[output]
        return tuple(sizes)


def tiled_transpose(instruction: Instruction) -> TiledTranspose | None:
    """The normalized transpose, if the tiled emitter takes it."""
    if instruction.opcode is not Opcode.TRANSPOSE:
        return None
    found = _normalized(instruction)
    if found is None or len(found.permutation) < 2:
        return None
    return found if _fills_packed_banks(found) or _is_worth_tiling(found) else None


def _normalized(transpose: Instruction) -> TiledTranspose | None:
    source, result = transpose.operand(0).shape, transpose.shape
    assert isinstance(source, ArrayShape) and isinstance(result, ArrayShape), transpose
    if not _is_row_major(source) or not _is_row_major(result):
        return None
    kept = [i for i, size in enumerate(source.dimensions) if size != 1]
    rank_of = {dimension: rank for rank, dimension in enumerate(kept)}
    moves = [rank_of[d] for d in transpose.payload_as(DimensionsPayload).dimensions if d in rank_of]
    runs: list[list[int]] = []
    for source_rank in moves:
        if runs and runs[-1][-1] + 1 == source_rank:
            runs[-1].append(source_rank)
        else:
            runs.append([source_rank])
    order = {first: rank for rank, first in enumerate(sorted(run[0] for run in runs))}
    sizes = tuple(_product([source.dimensions[kept[rank]] for rank in run]) for run in runs)
    return TiledTranspose(sizes, tuple(order[run[0]] for run in runs), _bits(result.element_type))


def _is_worth_tiling(transpose: TiledTranspose) -> bool:
    """Rules (2) and (3)."""
    sizes, source = transpose.dimensions, transpose.input_dimensions
    if transpose.permutation[-1] == len(sizes) - 1:
        row_bits = transpose.bits * sizes[-1]
        return row_bits <= _MAX_MINOR_BITS and row_bits * min(source[-2], sizes[-2]) >= 8 * _MIN_TILED
    shorter = min(source[-1], sizes[-1])
    is_long = shorter >= _MIN_TILED or (shorter >= _MIN_TILED_BOTH and source[-1] * sizes[-1] >= _MIN_TILED_PRODUCT)
    return is_long and transpose.bits != 4


def _fills_packed_banks(transpose: TiledTranspose) -> bool:
    """Rule (1)."""
    if transpose.bits >= _BANK_BITS:
        return False
    per_bank = _BANK_BITS // transpose.bits
    tile = _BANKS * per_bank
    first, second, between, minor = _packed_dimensions(transpose)
    columns = min(between, tile // min(first, tile)) * min(first, tile)
    rows = min(second, tile)
    if min(columns, rows) < 10 * per_bank:
        return False
    return minor == 1 and rows % per_bank == 0 and second % rows % per_bank == 0


def _packed_dimensions(transpose: TiledTranspose) -> tuple[int, int, int, int]:
    """Sizes of the input dimension that becomes second to last but one, of the one that moves away, between, and minor."""
    sizes, moves = list(transpose.dimensions), list(transpose.permutation)
    if moves[-1] != len(sizes) - 1:
        moves.append(len(sizes))
        sizes.append(1)
    rank = len(sizes)
    if moves[rank - 3] != rank - 3:
        sizes.insert(rank - 2, 1)
        moves = [move + 1 if move > rank - 3 else move for move in moves]
        moves.insert(rank - 2, rank - 2)
    source = TiledTranspose(tuple(sizes), tuple(moves), transpose.bits).input_dimensions
    return source[-2], source[moves[-2]], source[-3], source[-1]


def _bits(element_type: ElementType) -> int:
    return element_type.bits


def _is_row_major(shape: ArrayShape) -> bool:
    return order_or_default(shape) == tuple(range(shape.rank - 1, -1, -1))


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
