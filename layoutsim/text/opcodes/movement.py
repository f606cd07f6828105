"""Attributes of opcodes that move or construct data (text spec, section 3.5)."""

from __future__ import annotations

from layoutsim.ir import ArrayShape, Shape, TupleShape
from layoutsim.ir.payloads import (
    DimensionsPayload,
    DynamicSlicePayload,
    GatherPayload,
    IotaPayload,
    PadPayload,
    Payload,
    ReshapePayload,
    ScatterPayload,
    SlicePayload,
    TupleIndexPayload,
)
from layoutsim.text.device_syntax import read_ints
from layoutsim.text.opcodes.base import COMPUTATION, Forms, Given, declare, is_scalar, read_flag, read_integer
from layoutsim.text.value_syntax import read_padding_config, read_slice

DIMENSIONS: Forms = {"dimensions": read_ints}


def dimensions(given: Given) -> DimensionsPayload:
    """``dimensions={...}`` as a payload."""
    return DimensionsPayload(given.ints("dimensions"))


def _one_dimension(given: Given) -> Payload:
    return DimensionsPayload((given.one("dimensions"),))


def _broadcast(given: Given) -> Payload:
    if "dimensions" not in given and given.operands and not is_scalar(given.operands[0].shape):
        given.refuse("", f"expected attribute dimensions on a broadcast of {given.operands[0].shape}, got none")
    if given.shape is None:
        given.refuse("", "expected a result shape on broadcast: its dimensions do not determine one")
    return dimensions(given)


def _tuple(given: Given) -> None:
    if given.shape is None:
        return
    if not isinstance(given.shape, TupleShape):
        given.refuse("", f"expected a tuple shape on tuple, got {given.shape}")
    expected = len(given.shape.elements)
    if len(given.operands) != expected:
        given.refuse("", f"expected {expected} operands as in the shape of the tuple, got {len(given.operands)}")


def _rank(shape: Shape) -> int:
    return shape.rank if isinstance(shape, ArrayShape) else 0


def _check_indices(given: Given, before: int) -> None:
    """Behind ``before`` operands stands one index for each dimension of the first, or one array with all of them."""
    count = len(given.operands)
    if count < before:
        given.refuse("", f"expected at least {before} operands of {given.opcode}, got {count}")
    as_array = count == before + 1 and _rank(given.operands[before].shape) == 1
    expected = before + _rank(given.operands[0].shape)
    if count != expected and not as_array:
        given.refuse("", f"expected {expected} operands of {given.opcode}, an index for each dimension, got {count}")


def _dynamic_slice(given: Given) -> Payload:
    _check_indices(given, 1)
    return DynamicSlicePayload(given.ints("dynamic_slice_sizes"))


def _dynamic_update_slice(given: Given) -> None:
    _check_indices(given, 2)


def _dynamic_reshape(given: Given) -> None:
    if not given.operands:
        given.refuse("", "expected at least one operand of dynamic-reshape, got none")


def _gather(given: Given) -> Payload:
    return GatherPayload(
        given.ints("offset_dims"),
        given.ints("collapsed_slice_dims"),
        given.ints("start_index_map"),
        given.integer("index_vector_dim"),
        given.ints("slice_sizes"),
        given.ints("operand_batching_dims"),
        given.ints("start_indices_batching_dims"),
        given.flag("indices_are_sorted"),
    )


def _scatter(given: Given) -> Payload:
    if len(given.operands) % 2 == 0:
        given.refuse("", f"expected an odd number of operands of scatter, got {len(given.operands)}")
    return ScatterPayload(
        given.ints("update_window_dims"),
        given.ints("inserted_window_dims"),
        given.ints("scatter_dims_to_operand_dims"),
        given.integer("index_vector_dim"),
        given.ints("input_batching_dims"),
        given.ints("scatter_indices_batching_dims"),
        given.flag("indices_are_sorted"),
        given.flag("unique_indices"),
    )


declare("iota", lambda given: IotaPayload(given.integer("iota_dimension")), required={"iota_dimension": read_integer})
declare("broadcast", _broadcast, optional=DIMENSIONS, looks_at_operands=True)
declare("transpose reverse", dimensions, required=DIMENSIONS)
declare("concatenate get-dimension-size set-dimension-size", _one_dimension, required=DIMENSIONS)
declare(
    "reshape",
    lambda given: ReshapePayload(given.integer("inferred_dimension", -1)),
    optional={"inferred_dimension": read_integer},
)
declare("dynamic-reshape", _dynamic_reshape, looks_at_operands=True)
declare("slice", lambda given: given.optional("slice", SlicePayload), required={"slice": read_slice})
declare("dynamic-slice", _dynamic_slice, required={"dynamic_slice_sizes": read_ints}, looks_at_operands=True)
declare("dynamic-update-slice", _dynamic_update_slice, looks_at_operands=True)
declare("pad", lambda given: given.optional("padding", PadPayload), required={"padding": read_padding_config})
declare(
    "gather",
    _gather,
    required={
        "offset_dims": read_ints,
        "collapsed_slice_dims": read_ints,
        "start_index_map": read_ints,
        "index_vector_dim": read_integer,
        "slice_sizes": read_ints,
    },
    optional={
        "operand_batching_dims": read_ints,
        "start_indices_batching_dims": read_ints,
        "indices_are_sorted": read_flag,
    },
)
declare(
    "scatter",
    _scatter,
    required={
        "update_window_dims": read_ints,
        "inserted_window_dims": read_ints,
        "scatter_dims_to_operand_dims": read_ints,
        "index_vector_dim": read_integer,
        "to_apply": COMPUTATION,
    },
    optional={
        "input_batching_dims": read_ints,
        "scatter_indices_batching_dims": read_ints,
        "indices_are_sorted": read_flag,
        "unique_indices": read_flag,
    },
    looks_at_operands=True,
)
declare("tuple", _tuple, looks_at_operands=True)
declare("get-tuple-element", lambda given: TupleIndexPayload(given.integer("index")), required={"index": read_integer})
