"""Kernels of reductions: reduce, reduce-window, select-and-scatter, map, scan (text spec, section 8.5).

A reducer is called as ``to_apply(accumulators..., elements...)`` and the initial value is used once for each result element.
Reducers that are one operation on their two parameters go through numpy; floats narrower than 32 bits then accumulate in
``float32`` and are rounded once, unless the run is ``strict_sequential``.
"""

from __future__ import annotations

import math

import numpy as np

from layoutsim.interp.bodies import Body, simple_operation
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.rounding import finish, widen
from layoutsim.interp.values import Array, Value, as_array, as_tuple
from layoutsim.interp.windows import grid, positions, under
from layoutsim.ir import ArrayShape, Instruction, TupleShape
from layoutsim.ir.payloads import DimensionsPayload, ScanPayload, Window, WindowPayload

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_PRED_UFUNCS: dict[str, np.ufunc] = {"add": np.logical_or, "multiply": np.logical_and}


def _ufunc(call: Call) -> np.ufunc | None:
    """The numpy operation that one-operand reducers of this instruction stand for."""
    if len(call.operands) != 2 or call.options.strict_sequential:
        return None
    operation = simple_operation(call.instruction.to_apply)
    if call.element_type.is_pred:
        return _PRED_UFUNCS.get(operation) or _UFUNCS.get(operation)
    return _UFUNCS.get(operation)


def _one_or_tuple(call: Call, results: tuple[Array, ...]) -> Value:
    return results if isinstance(call.instruction.shape, TupleShape) else results[0]


@kernel("reduce")
def _reduce(call: Call) -> Value:
    dimensions = call.instruction.payload_as(DimensionsPayload).dimensions
    count = len(call.operands) // 2
    if isinstance(call.instruction.shape, ArrayShape) and (ufunc := _ufunc(call)) is not None:
        x, start = call.arrays
        with np.errstate(all="ignore"):
            wide = widen(x)
            folded = ufunc.reduce(wide, axis=dimensions, dtype=wide.dtype) if x.size or ufunc.identity is not None else None
            result = start if folded is None else ufunc(widen(start), folded)
        return finish(np.broadcast_to(result, call.shape.dimensions), call.element_type)
    inputs = [_reduced_first(x, dimensions) for x in call.arrays[:count]]
    return _one_or_tuple(call, _fold(call, inputs, call.arrays[count:]))


def _reduced_first(x: Array, dimensions: tuple[int, ...]) -> Array:
    """``[reduced elements in row-major order, kept...]``."""
    reduced, kept = sorted(dimensions), [d for d in range(x.ndim) if d not in dimensions]
    count = math.prod(x.shape[d] for d in reduced)
    return x.transpose([*reduced, *kept]).reshape(count, *(x.shape[d] for d in kept))


def _fold(call: Call, inputs: list[Array], starts: tuple[Array, ...]) -> tuple[Array, ...]:
    body = Body(call.instruction.to_apply, call.runner)
    accumulators = tuple(np.broadcast_to(start, inputs[0].shape[1:]) for start in starts)
    for number in range(len(inputs[0])):
        accumulators = body.apply(*accumulators, *(x[number] for x in inputs))
    return accumulators


@kernel("reduce-window")
def _reduce_window(call: Call) -> Value:
    window = call.instruction.payload_as(WindowPayload).window
    count = len(call.operands) // 2
    inputs, starts = call.arrays[:count], call.arrays[count:]
    if isinstance(call.instruction.shape, ArrayShape) and (ufunc := _ufunc(call)) is not None:
        return finish(_slide(inputs[0], starts[0], window, ufunc), call.element_type)
    body = Body(call.instruction.to_apply, call.runner)
    accumulators: tuple[Array, ...] | None = None
    for position in positions(window):
        indices, present = under(position, inputs[0].shape, window)
        found = [x[np.ix_(*indices)] if indices else x for x in inputs]
        if accumulators is None:
            accumulators = tuple(np.broadcast_to(start, found[0].shape) for start in starts)
        there = grid(present)
        new = body.apply(*accumulators, *found)
        accumulators = tuple(np.where(there, n, old) for n, old in zip(new, accumulators, strict=True))
    assert accumulators is not None, call.instruction
    return _one_or_tuple(call, accumulators)


def _slide(x: Array, start: Array, window: Window, ufunc: np.ufunc) -> Array:
    result: Array | None = None
    wide = widen(x)
    for position in positions(window):
        indices, present = under(position, x.shape, window)
        found = wide[np.ix_(*indices)] if indices else wide
        if result is None:
            result = np.broadcast_to(widen(start), found.shape)
        with np.errstate(all="ignore"):
            result = np.where(grid(present), ufunc(result, found), result)
    assert result is not None
    return result


@kernel("select-and-scatter")
def _select_and_scatter(call: Call) -> Value:
    """Each source element goes where its window's selected element is; that of a window in padding alone goes nowhere.

    Windows are looked through in row-major order, which decides between elements that ``select`` takes for equal. XLA's CPU
    compiler decides otherwise in some padded windows.
    """
    window = call.instruction.payload_as(WindowPayload).window
    operand, source, start = call.arrays
    select, combine = (Body(c, call.runner) for c in call.instruction.called_computations)
    kept, place = _selected(operand, window, select)
    result = np.full(operand.shape, start, operand.dtype).reshape(-1)
    flat_place, flat_source = place.reshape(-1), source.reshape(-1)
    operation = simple_operation(combine.computation)
    exact = result.dtype.kind in "iu" or call.element_type.bits >= 32
    if operation in ("add", "maximum", "minimum", "multiply") and exact:
        with np.errstate(all="ignore"):
            _UFUNCS[operation].at(result, flat_place[kept.reshape(-1)], flat_source[kept.reshape(-1)])
    else:
        for at, value in zip(flat_place[kept.reshape(-1)], flat_source[kept.reshape(-1)], strict=True):
            result[at] = as_array(combine.apply(np.asarray(value), np.asarray(result[at]))[0])
    return result.reshape(operand.shape)


def _selected(operand: Array, window: Window, select: Body) -> tuple[Array, Array]:
    """For every place of the window: whether it stands over any element, and the selected one's row-major index."""
    numbers = np.arange(operand.size).reshape(operand.shape)
    kept: Array | None = None
    value = place = np.zeros(())
    for position in positions(window):
        indices, present = under(position, operand.shape, window)
        there = grid(present)
        candidate, number = operand[np.ix_(*indices)], numbers[np.ix_(*indices)]
        if kept is None:
            kept, value, place = there, candidate, number
            continue
        stays = select.apply(value, candidate)[0]
        replaced = there & (~kept | ~stays)
        value, place = np.where(replaced, candidate, value), np.where(replaced, number, place)
        kept = kept | there
    assert kept is not None
    return kept, place


@kernel("map")
def _map(call: Call) -> Value:
    (result,) = Body(call.instruction.to_apply, call.runner).apply(*call.arrays)
    return result


@kernel("scan")
def _scan(call: Call) -> Value:
    """Slices of the inputs and the carries through the body, one step after the other."""
    payload = call.instruction.payload_as(ScanPayload)
    input_count = len(call.operands) - payload.num_carries
    inputs, carries = call.arrays[:input_count], tuple(call.operands[input_count:])
    steps = range(inputs[0].shape[payload.dimension]) if inputs else range(_scan_length(call.instruction, payload))
    output_count = len(_result_shapes(call.instruction)) - payload.num_carries
    rows: list[tuple[Value, ...]] = []
    for step in reversed(steps) if payload.is_reverse else steps:
        slices = tuple(np.asarray(x.take(step, axis=payload.dimension)) for x in inputs)
        results = call.runner.run(call.instruction.to_apply, (*slices, *carries))
        parts = as_tuple(results) if isinstance(results, tuple) else (results,)
        rows.append(parts[:output_count])
        carries = parts[output_count:]
    if payload.is_reverse:
        rows.reverse()
    outputs = [np.stack([as_array(row[i]) for row in rows], axis=payload.dimension) for i in range(output_count)]
    whole = (*outputs, *carries)
    return whole if isinstance(call.instruction.shape, TupleShape) else whole[0]


def _result_shapes(instruction: Instruction) -> tuple[object, ...]:
    return instruction.shape.elements if isinstance(instruction.shape, TupleShape) else (instruction.shape,)


def _scan_length(instruction: Instruction, payload: ScanPayload) -> int:
    first = _result_shapes(instruction)[0]
    assert isinstance(first, ArrayShape), instruction
    return first.dimensions[payload.dimension]
