"""Kernels of orders: sort and topk (text spec, section 8.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from layoutsim.interp.bodies import Body, comparison_of_first_pair
from layoutsim.interp.kernels_elementwise import total_order
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.values import Array, Value
from layoutsim.ir import TupleShape
from layoutsim.ir.payloads import SortPayload, TopKPayload

Before = Callable[[Sequence[Array], Sequence[Array]], Array]
"""Whether the elements of the first list go before those of the second, element by element."""


@kernel("sort")
def _sort(call: Call) -> Value:
    """All operands permuted by one stable order along the dimension."""
    axis = call.instruction.payload_as(SortPayload).dimension
    moved = [np.moveaxis(x, axis, -1) for x in call.arrays]
    lines = [x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) for x in moved]
    order = _order(call, lines)
    results = tuple(
        np.moveaxis(np.take_along_axis(line, order, axis=-1).reshape(x.shape), -1, axis)
        for line, x in zip(lines, moved, strict=True)
    )
    return results if isinstance(call.instruction.shape, TupleShape) else results[0]


def _order(call: Call, lines: list[Array]) -> Array:
    """For each line the stable order of its elements."""
    comparison = comparison_of_first_pair(call.instruction.to_apply)
    keys = lines[0]
    is_total = keys.dtype.kind in "iub" or (comparison is not None and comparison.type == "TOTALORDER")
    if comparison is not None and comparison.direction in ("LT", "GT") and is_total:
        ordered = total_order(keys) if keys.dtype.kind == "f" else keys.astype(np.uint8) if keys.dtype.kind == "b" else keys
        return np.argsort(ordered if comparison.direction == "LT" else ~ordered, axis=-1, kind="stable")
    body = Body(call.instruction.to_apply, call.runner)

    def before(left: Sequence[Array], right: Sequence[Array]) -> Array:
        pairs = [x for pair in zip(left, right, strict=True) for x in pair]
        return body.apply(*pairs)[0]

    return merge_sort(lines, before)


def merge_sort(lines: list[Array], before: Before) -> Array:
    """Stable order of every line by ``before``, all lines at once.

    Runs of one element are merged in pairs. An element of the left run moves behind the elements of the right run that go
    before it, one of the right run behind those of the left run that it does not go before; both counts come from a binary
    search in the other run, for all elements of all lines together.
    """
    count: int
    size: int
    count, size = lines[0].shape
    order: Array = np.broadcast_to(np.arange(size), (count, size)).copy()
    run = 1
    while run < size:
        sorted_lines = [np.take_along_axis(line, order, axis=-1) for line in lines]
        position = _merged_positions(sorted_lines, run, before)
        merged: Array = np.empty_like(order)
        np.put_along_axis(merged, position, order, axis=-1)
        order = merged
        run *= 2
    return order


def _merged_positions(lines: list[Array], run: int, before: Before) -> Array:
    """Where each element stands after neighbouring runs of length ``run`` are merged."""
    count: int
    size: int
    count, size = lines[0].shape
    index: Array = np.arange(size)
    base = index // (2 * run) * (2 * run)
    is_left = index - base < run
    other_start = np.where(is_left, np.minimum(base + run, size), base)
    other_stop = np.where(is_left, np.minimum(base + 2 * run, size), np.minimum(base + run, size))
    low: Array = np.broadcast_to(other_start, (count, size)).copy()
    high: Array = np.broadcast_to(other_stop, (count, size)).copy()
    while (low < high).any():
        middle = (low + high) // 2
        probes = [np.take_along_axis(line, np.minimum(middle, size - 1), axis=-1) for line in lines]
        # Left elements pass right ones strictly before them; right elements pass left ones they are not before.
        passes = np.where(is_left, before(probes, lines), ~before(lines, probes))
        active = low < high
        low = np.where(active & passes, middle + 1, low)
        high = np.where(active & ~passes, middle, high)
    own = index - np.where(is_left, base, base + run)
    return base + own + (low - other_start)


@kernel("topk")
def _topk(call: Call) -> Value:
    """The k largest (or smallest) of the last dimension in order; equal ones by index; NaN is the greatest."""
    payload = call.instruction.payload_as(TopKPayload)
    x = call.array(0)
    keys = total_order(x) if x.dtype.kind == "f" else x.astype(np.uint8) if x.dtype.kind == "b" else x
    order = np.argsort(~keys if payload.largest else keys, axis=-1, kind="stable")[..., : payload.k]
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)
