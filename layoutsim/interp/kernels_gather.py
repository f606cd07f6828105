"""Gather and scatter (text spec, sections 3.9 and 8.3).

Both compute, for each index vector of the indices, the start of a window in the operand. Gather moves windows inside the
operand; scatter skips a window that does not fit as a whole.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from layoutsim.interp.bodies import Body, simple_operation
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.values import Array, Value, as_array
from layoutsim.ir.payloads import GatherPayload, ScatterPayload


@frozen
class _Addressing:
    """What gather and scatter call the same things.

    Attributes:
        start_map: operand dimension for each component of an index vector.
        batching: pairs (operand dimension, indices dimension) that run in step.
    """

    start_map: tuple[int, ...]
    index_vector_dim: int
    batching: tuple[tuple[int, int], ...]

    def starts(self, indices: Array, operand_rank: int) -> Array:
        """Start of each window: ``[batch..., operand_rank]``."""
        if self.index_vector_dim == indices.ndim:
            indices = indices[..., None]
        vectors = np.moveaxis(indices, self.index_vector_dim, -1)
        out = np.zeros((*vectors.shape[:-1], operand_rank), np.int64)
        for component, dimension in enumerate(self.start_map):
            out[..., dimension] = _as_int64(vectors[..., component])
        for dimension, index_dimension in self.batching:
            axis = index_dimension - (index_dimension > self.index_vector_dim)
            along = np.arange(out.shape[axis]).reshape([-1 if d == axis else 1 for d in range(out.ndim - 1)])
            out[..., dimension] = along
        return out


def _as_int64(values: Array) -> Array:
    """Unsigned indices beyond the signed range stay beyond every bound."""
    if values.dtype == np.uint64:
        return np.minimum(values, np.uint64(2**63 - 1)).astype(np.int64)
    return values.astype(np.int64)


def _places(starts: Array, sizes: tuple[int, ...]) -> tuple[Array, ...]:
    """Index arrays of shape ``[batch..., window...]`` (broadcastable), one for each operand dimension."""
    batch_rank, rank = starts.ndim - 1, len(sizes)
    out: list[Array] = []
    for dimension, size in enumerate(sizes):
        base = starts[..., dimension].reshape((*starts.shape[:-1], *[1] * rank))
        offset = np.arange(size).reshape([1] * batch_rank + [-1 if d == dimension else 1 for d in range(rank)])
        out.append(base + offset)
    return tuple(out)


@kernel("gather")
def _gather(call: Call) -> Value:
    payload = call.instruction.payload_as(GatherPayload)
    operand, indices = call.arrays
    batching = tuple(zip(payload.operand_batching_dims, payload.start_indices_batching_dims, strict=True))
    dropped = {*payload.collapsed_slice_dims, *payload.operand_batching_dims}
    addressing = _Addressing(payload.start_index_map, payload.index_vector_dim, batching)
    starts = addressing.starts(indices, operand.ndim)
    limits = np.array(operand.shape, np.int64) - np.array(payload.slice_sizes, np.int64)
    starts = np.clip(starts, 0, limits)
    if 0 in call.shape.dimensions:
        return np.zeros(call.shape.dimensions, operand.dtype)
    found = operand[_places(starts, payload.slice_sizes)]
    batch_rank = starts.ndim - 1
    squeezed = found.squeeze(tuple(batch_rank + d for d in sorted(dropped)))
    return _to_output(squeezed, batch_rank, payload.offset_dims)


def _to_output(x: Array, batch_rank: int, offset_dims: tuple[int, ...]) -> Array:
    """``[batch..., window...]`` with window dimensions moved to ``offset_dims``, batch dimensions to the others in order."""
    rank = x.ndim
    batch_at = [d for d in range(rank) if d not in offset_dims]
    order = [0] * rank
    for source, target in enumerate([*batch_at, *offset_dims]):
        order[target] = source
    assert len(batch_at) == batch_rank, (x.shape, offset_dims)
    return x.transpose(order)


@kernel("scatter")
def _scatter(call: Call) -> Value:
    payload = call.instruction.payload_as(ScatterPayload)
    count = len(call.operands) // 2
    operands, indices, updates = call.arrays[:count], call.array(count), call.arrays[count + 1 :]
    batching = tuple(zip(payload.input_batching_dims, payload.scatter_indices_batching_dims, strict=True))
    dropped = {*payload.inserted_window_dims, *payload.input_batching_dims}
    rank = operands[0].ndim
    addressing = _Addressing(payload.scatter_dims_to_operand_dims, payload.index_vector_dim, batching)
    starts = addressing.starts(indices, rank)
    moved = [_to_batch_and_window(update, payload.update_window_dims, dropped, rank) for update in updates]
    batch_rank = starts.ndim - 1
    sizes = moved[0].shape[batch_rank:]
    fits = ((starts >= 0) & (starts + np.array(sizes, np.int64) <= np.array(operands[0].shape, np.int64))).all(axis=-1)
    results = [operand.copy() for operand in operands]
    kept_starts = starts[fits]
    kept_updates = [update[fits] for update in moved]
    if kept_starts.size or not rank:
        _apply(call, results, kept_starts.reshape(-1, rank), kept_updates, sizes)
    return results[0] if count == 1 else tuple(results)


def _to_batch_and_window(update: Array, window_dims: tuple[int, ...], dropped: set[int], rank: int) -> Array:
    """``[batch..., one dimension for each operand dimension]``; dropped dimensions have size 1."""
    batch = [d for d in range(update.ndim) if d not in window_dims]
    x = update.transpose([*batch, *window_dims])
    sizes = iter(x.shape[len(batch) :])
    return x.reshape((*x.shape[: len(batch)], *(1 if d in dropped else next(sizes) for d in range(rank))))


_AT = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and}


def _apply(call: Call, results: list[Array], starts: Array, updates: list[Array], sizes: tuple[int, ...]) -> None:
    """Apply the windows in order; a known combiner without rounding between steps goes all at once."""
    operation = simple_operation(call.instruction.to_apply)
    exact = results[0].dtype.kind in "iuc" or call.operand_shape(0).element_type.bits >= 32
    if len(results) == 1 and operation == "second":
        results[0][_places(starts, sizes)] = updates[0]
    elif len(results) == 1 and operation in _AT and exact:
        with np.errstate(all="ignore"):
            _AT[operation].at(results[0], _places(starts, sizes), updates[0])
    else:
        _apply_one_by_one(call, results, starts, updates, sizes)


def _apply_one_by_one(call: Call, results: list[Array], starts: Array, updates: list[Array], sizes: tuple[int, ...]) -> None:
    body = Body(call.instruction.to_apply, call.runner)
    for number, start in enumerate(starts.tolist()):
        window = tuple(slice(s, s + n) for s, n in zip(start, sizes, strict=True))
        new = body.apply(*(r[window] for r in results), *(u[number] for u in updates))
        for result, value in zip(results, new, strict=True):
            result[window] = as_array(value)
