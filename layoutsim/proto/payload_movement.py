"""Payloads of elementwise, constant and data-moving opcodes as protos (text spec, sections 3.2 to 3.5 and 7.4)."""

from __future__ import annotations

from layoutsim.errors import ParseError
from layoutsim.ir import ArrayShape
from layoutsim.ir import payloads as ir
from layoutsim.proto import enums
from layoutsim.proto.literals import read_literal, write_literal
from layoutsim.proto.payload_registry import Source, reads, writes
from layoutsim.proto.schema import Message
from layoutsim.proto.sharding import sharding_text, write_sharding

# -- elementwise and constants --------------------------------------------------------------------------------------------


@reads("compare")
def _read_compare(source: Source) -> ir.Payload:
    direction: str = source.proto.comparison_direction
    if direction not in enums.COMPARISON_DIRECTIONS:
        raise ParseError(f"unknown comparison direction {direction!r}")
    written: str = source.proto.comparison_type
    if written not in ("", *enums.COMPARISON_TYPES):
        raise ParseError(f"unknown comparison type {written!r}")
    first = source.operands[0].shape if source.operands else None
    default = _default_comparison(first) if isinstance(first, ArrayShape) else ""
    return ir.ComparePayload(direction, None if written in ("", default) else written)


def _default_comparison(shape: ArrayShape) -> str:
    element_type = shape.element_type
    if element_type.is_floating or element_type.is_complex:
        return "FLOAT"
    return "SIGNED" if element_type.is_signed else "UNSIGNED"


@writes(ir.ComparePayload)
def _write_compare(payload: ir.ComparePayload, proto: Message) -> None:
    proto.comparison_direction = payload.direction
    proto.comparison_type = payload.type or ""


@reads("reduce-precision")
def _read_reduce_precision(source: Source) -> ir.Payload:
    return ir.ReducePrecisionPayload(source.proto.exponent_bits, source.proto.mantissa_bits)


@writes(ir.ReducePrecisionPayload)
def _write_reduce_precision(payload: ir.ReducePrecisionPayload, proto: Message) -> None:
    proto.exponent_bits, proto.mantissa_bits = payload.exponent_bits, payload.mantissa_bits


@reads("domain")
def _read_domain(source: Source) -> ir.Payload:
    proto = source.proto
    return ir.DomainPayload("sharding", sharding_text(proto.domain_entry_sharding), sharding_text(proto.domain_exit_sharding))


@writes(ir.DomainPayload)
def _write_domain(payload: ir.DomainPayload, proto: Message) -> None:
    write_sharding(payload.entry, proto.domain_entry_sharding)
    write_sharding(payload.exit, proto.domain_exit_sharding)


@reads("parameter")
def _read_parameter(source: Source) -> ir.Payload:
    return ir.ParameterPayload(source.proto.parameter_number)


@writes(ir.ParameterPayload)
def _write_parameter(payload: ir.ParameterPayload, proto: Message) -> None:
    proto.parameter_number = payload.number


@reads("constant")
def _read_constant(source: Source) -> ir.Payload:
    return ir.ConstantPayload(read_literal(source.proto.literal, source.shape, source.shapes))


@writes(ir.ConstantPayload)
def _write_constant(payload: ir.ConstantPayload, proto: Message) -> None:
    write_literal(payload.literal, proto.literal)


# -- data movement --------------------------------------------------------------------------------------------------------


@reads("iota")
def _read_iota(source: Source) -> ir.Payload:
    return ir.IotaPayload(source.one_dimension)


@writes(ir.IotaPayload)
def _write_iota(payload: ir.IotaPayload, proto: Message) -> None:
    proto.dimensions.append(payload.iota_dimension)


@reads("broadcast transpose reverse concatenate reduce map get-dimension-size set-dimension-size")
def _read_dimensions(source: Source) -> ir.Payload:
    return ir.DimensionsPayload(tuple(source.proto.dimensions))


@writes(ir.DimensionsPayload)
def _write_dimensions(payload: ir.DimensionsPayload, proto: Message) -> None:
    proto.dimensions.extend(payload.dimensions)


@reads("reshape")
def _read_reshape(source: Source) -> ir.Payload:
    return ir.ReshapePayload(source.proto.dimensions[0] if source.proto.dimensions else -1)


@writes(ir.ReshapePayload)
def _write_reshape(payload: ir.ReshapePayload, proto: Message) -> None:
    if payload.inferred_dimension != -1:
        proto.dimensions.append(payload.inferred_dimension)


@reads("slice")
def _read_slice(source: Source) -> ir.Payload:
    ranges = source.proto.slice_dimensions
    return ir.SlicePayload(tuple(r.start for r in ranges), tuple(r.limit for r in ranges), tuple(r.stride for r in ranges))


@writes(ir.SlicePayload)
def _write_slice(payload: ir.SlicePayload, proto: Message) -> None:
    for start, limit, stride in zip(payload.starts, payload.limits, payload.strides, strict=True):
        proto.slice_dimensions.add(start=start, limit=limit, stride=stride)


@reads("dynamic-slice")
def _read_dynamic_slice(source: Source) -> ir.Payload:
    return ir.DynamicSlicePayload(tuple(source.proto.dynamic_slice_sizes))


@writes(ir.DynamicSlicePayload)
def _write_dynamic_slice(payload: ir.DynamicSlicePayload, proto: Message) -> None:
    proto.dynamic_slice_sizes.extend(payload.dynamic_slice_sizes)


@reads("pad")
def _read_pad(source: Source) -> ir.Payload:
    dims = source.proto.padding_config.dimensions
    low, high = tuple(d.edge_padding_low for d in dims), tuple(d.edge_padding_high for d in dims)
    return ir.PadPayload(low, high, tuple(d.interior_padding for d in dims))


@writes(ir.PadPayload)
def _write_pad(payload: ir.PadPayload, proto: Message) -> None:
    proto.padding_config.SetInParent()
    for low, high, interior in zip(payload.low, payload.high, payload.interior, strict=True):
        proto.padding_config.dimensions.add(edge_padding_low=low, edge_padding_high=high, interior_padding=interior)


@reads("gather")
def _read_gather(source: Source) -> ir.Payload:
    proto = source.proto
    dims = proto.gather_dimension_numbers
    return ir.GatherPayload(
        tuple(dims.offset_dims),
        tuple(dims.collapsed_slice_dims),
        tuple(dims.start_index_map),
        dims.index_vector_dim,
        tuple(proto.gather_slice_sizes),
        tuple(dims.operand_batching_dims),
        tuple(dims.start_indices_batching_dims),
        proto.indices_are_sorted,
    )


@writes(ir.GatherPayload)
def _write_gather(payload: ir.GatherPayload, proto: Message) -> None:
    dims = proto.gather_dimension_numbers
    dims.SetInParent()
    dims.index_vector_dim = payload.index_vector_dim
    for name in (
        "offset_dims",
        "collapsed_slice_dims",
        "start_index_map",
        "operand_batching_dims",
        "start_indices_batching_dims",
    ):
        getattr(dims, name).extend(getattr(payload, name))
    proto.gather_slice_sizes.extend(payload.slice_sizes)
    proto.indices_are_sorted = payload.indices_are_sorted


@reads("scatter")
def _read_scatter(source: Source) -> ir.Payload:
    proto = source.proto
    dims = proto.scatter_dimension_numbers
    return ir.ScatterPayload(
        tuple(dims.update_window_dims),
        tuple(dims.inserted_window_dims),
        tuple(dims.scatter_dims_to_operand_dims),
        dims.index_vector_dim,
        tuple(dims.input_batching_dims),
        tuple(dims.scatter_indices_batching_dims),
        proto.indices_are_sorted,
        proto.unique_indices,
    )


@writes(ir.ScatterPayload)
def _write_scatter(payload: ir.ScatterPayload, proto: Message) -> None:
    dims = proto.scatter_dimension_numbers
    dims.SetInParent()
    dims.index_vector_dim = payload.index_vector_dim
    for name in (
        "update_window_dims",
        "inserted_window_dims",
        "scatter_dims_to_operand_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
    ):
        getattr(dims, name).extend(getattr(payload, name))
    proto.indices_are_sorted, proto.unique_indices = payload.indices_are_sorted, payload.unique_indices


@reads("get-tuple-element")
def _read_tuple_index(source: Source) -> ir.Payload:
    return ir.TupleIndexPayload(source.proto.tuple_index)


@writes(ir.TupleIndexPayload)
def _write_tuple_index(payload: ir.TupleIndexPayload, proto: Message) -> None:
    proto.tuple_index = payload.index
