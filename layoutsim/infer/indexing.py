"""Shape rules of gather and scatter (text spec, 3.9).

1. The indices hold vectors along ``index_vector_dim`` (one past the last dimension: of length 1); their other dimensions are
   the *batch*.
2. A gather's result has the batch, and at ``offset_dims`` the kept dimensions of the slice; a scatter's updates have the same
   form, with ``update_window_dims``.
3. Collapsed (inserted) and batching dimensions of the operand are not kept.
"""

from __future__ import annotations

from layoutsim.infer.reducer import check_reducer
from layoutsim.infer.registry import Site, shape_rule
from layoutsim.infer.shapes import dynamic_flags, new_array, scalar, sizes_agree
from layoutsim.ir import UNBOUNDED, ArrayShape, Opcode, Shape, TupleShape
from layoutsim.ir.payloads import GatherPayload, ScatterPayload

Ints = tuple[int, ...]


def _index_batch(site: Site, number: int, vector_dim: int) -> tuple[int, list[int], list[bool]]:
    """Length of the index vectors, and sizes and dynamic flags of the dimensions that batch them."""
    indices = site.array(number)
    if not indices.element_type.is_integral:
        site.fail(f"operand {number} has shape {indices}, expected an integral type")
    if not 0 <= vector_dim <= indices.rank:
        site.fail(f"has index_vector_dim {vector_dim}, expected 0..{indices.rank} for operand {number}, {indices}")
    length = 1 if vector_dim == indices.rank else indices.dimensions[vector_dim]
    batch = [d for d in range(indices.rank) if d != vector_dim]
    flags = dynamic_flags(indices)
    return length, [indices.dimensions[d] for d in batch], [flags[d] for d in batch]


def _check_index_map(site: Site, name: str, mapped: Ints, length: int, rank: int) -> None:
    if not sizes_agree(len(mapped), length):
        site.fail(f"has {len(mapped)} numbers in {name}, expected {length}, the length of an index vector")
    site.distinct(name, mapped, rank)


def _check_batching(site: Site, names: tuple[str, str], operand: Ints, indices: Ints, ranks: tuple[int, int]) -> None:
    site.distinct(names[0], operand, ranks[0], ascending=True)
    site.distinct(names[1], indices, ranks[1])
    if len(operand) != len(indices):
        site.fail(f"has {len(operand)} {names[0]} and {len(indices)} {names[1]}, expected as many")


@shape_rule(Opcode.GATHER)
def _gather(site: Site) -> Shape:
    operand, numbers = site.array(0), site.payload_as(GatherPayload)
    length, batch, batch_flags = _index_batch(site, 1, numbers.index_vector_dim)
    _check_gather(site, operand, numbers, length, len(batch))
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [d for d in range(operand.rank) if d not in dropped]
    flags = dynamic_flags(operand)
    # Gathering a whole dynamic dimension gives a dynamic dimension.
    window = iter([(numbers.slice_sizes[d], flags[d] and numbers.slice_sizes[d] == operand.dimensions[d]) for d in kept])
    indexed = iter(zip(batch, batch_flags, strict=True))
    offsets = set(numbers.offset_dims)
    result = [next(window if d in offsets else indexed) for d in range(len(kept) + len(batch))]
    return new_array(operand.element_type, (size for size, _ in result), (flag for _, flag in result))


def _check_gather(site: Site, operand: ArrayShape, numbers: GatherPayload, length: int, batch_rank: int) -> None:
    rank, sizes = operand.rank, numbers.slice_sizes
    site.distinct("offset_dims", numbers.offset_dims, len(numbers.offset_dims) + batch_rank, ascending=True)
    _check_index_map(site, "start_index_map", numbers.start_index_map, length, rank)
    site.distinct("collapsed_slice_dims", numbers.collapsed_slice_dims, rank, ascending=True)
    names = ("operand_batching_dims", "start_indices_batching_dims")
    indices_rank = max(site.array(1).rank, numbers.index_vector_dim + 1)
    batching = numbers.operand_batching_dims
    _check_batching(site, names, batching, numbers.start_indices_batching_dims, (rank, indices_rank))
    if len(sizes) != rank:
        site.fail(f"has {len(sizes)} slice_sizes, expected {rank}, the rank of operand 0")
    counted = len(numbers.offset_dims) + len(numbers.collapsed_slice_dims) + len(batching)
    if counted != rank:
        site.fail(f"offset, collapsed and batching dimensions are {counted}, expected {rank}, the rank of operand 0")
    for d, (size, whole) in enumerate(zip(sizes, operand.dimensions, strict=True)):
        if size < 0 or (whole != UNBOUNDED and size > whole):
            site.fail(f"has slice size {size} in dimension {d}, expected 0..{whole}")
        if size > 1 and (d in numbers.collapsed_slice_dims or d in batching):
            site.fail(f"has slice size {size} in dimension {d}, expected at most 1 where it is collapsed or batched")


@shape_rule(Opcode.SCATTER)
def _scatter(site: Site) -> Shape:
    if len(site.operands) % 2 == 0:
        site.fail(f"has {len(site.operands)} operands, expected an odd number: operands, indices, updates")
    count, numbers = len(site.operands) // 2, site.payload_as(ScatterPayload)
    length, batch, _ = _index_batch(site, count, numbers.index_vector_dim)
    operands, updates = site.arrays()[:count], site.arrays()[count + 1 :]
    for operand, update in zip(operands, updates, strict=True):
        _check_scatter(site, operand, update, numbers, length, batch)
    check_reducer(
        site,
        site.program(),
        [scalar(operand.element_type) for operand in operands],
        [update.element_type for update in updates],
    )
    return operands[0] if count == 1 else TupleShape(tuple(operands))


def _check_scatter(
    site: Site, operand: ArrayShape, update: ArrayShape, numbers: ScatterPayload, length: int, batch: list[int]
) -> None:
    windows, inserted, batching = numbers.update_window_dims, numbers.inserted_window_dims, numbers.input_batching_dims
    if update.rank != len(batch) + len(windows):
        site.fail(f"updates have shape {update}, expected rank {len(batch) + len(windows)}")
    site.distinct("update_window_dims", windows, update.rank, ascending=True)
    site.distinct("inserted_window_dims", inserted, operand.rank, ascending=True)
    if len(windows) + len(inserted) + len(batching) != operand.rank:
        counted = len(windows) + len(inserted) + len(batching)
        site.fail(f"window, inserted and batching dimensions are {counted}, expected {operand.rank}, the rank of {operand}")
    _check_index_map(site, "scatter_dims_to_operand_dims", numbers.scatter_dims_to_operand_dims, length, operand.rank)
    names = ("input_batching_dims", "scatter_indices_batching_dims")
    indices_rank = max(len(batch) + 1, numbers.index_vector_dim + 1)
    _check_batching(site, names, batching, numbers.scatter_indices_batching_dims, (operand.rank, indices_rank))
    whole = [operand.dimensions[d] for d in range(operand.rank) if d not in inserted and d not in batching]
    for d, limit in zip(windows, whole, strict=True):
        if update.dimensions[d] > limit:
            site.fail(f"updates have size {update.dimensions[d]} in window dimension {d}, expected at most {limit}")
    for d, size in zip([d for d in range(update.rank) if d not in windows], batch, strict=True):
        if not sizes_agree(update.dimensions[d], size):
            site.fail(f"updates have size {update.dimensions[d]} in dimension {d}, expected {size} of the indices")
