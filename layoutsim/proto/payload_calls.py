"""Payloads of calls, effects and collectives as protos (text spec, sections 3.7, 3.8 and 7.4)."""

from __future__ import annotations

from layoutsim.errors import ParseError
from layoutsim.ir import ArrayShape, TupleShape
from layoutsim.ir import payloads as ir
from layoutsim.proto import enums
from layoutsim.proto.devices import read_replica_groups, write_replica_groups
from layoutsim.proto.enums import name_of, number_of
from layoutsim.proto.literals import read_literal, write_literal
from layoutsim.proto.payload_contraction import (
    read_dimension_numbers,
    read_precisions,
    read_window,
    write_dimension_numbers,
    write_precisions,
    write_window,
)
from layoutsim.proto.payload_registry import Source, reads, writes
from layoutsim.proto.schema import Message
from layoutsim.proto.shapes import write_shape

# -- calls and effects ----------------------------------------------------------------------------------------------------


def _aliasing(proto: Message) -> tuple[ir.Aliasing, ...]:
    return tuple(
        ir.Aliasing(tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index))
        for a in proto.output_operand_aliasing
    )


def _write_aliasing(aliasing: tuple[ir.Aliasing, ...], proto: Message) -> None:
    for alias in aliasing:
        proto.output_operand_aliasing.add(
            output_shape_index=alias.output_index, operand_index=alias.operand_number, operand_shape_index=alias.operand_index
        )


@reads("call")
def _read_call(source: Source) -> ir.Payload:
    return ir.CallPayload(source.proto.is_composite)


@writes(ir.CallPayload)
def _write_call(payload: ir.CallPayload, proto: Message) -> None:
    proto.is_composite = payload.is_composite


@reads("fusion")
def _read_fusion(source: Source) -> ir.Payload:
    kind: str = source.proto.fusion_kind
    if kind not in enums.FUSION_KINDS:
        raise ParseError(f"unknown fusion kind {kind!r}")
    return ir.FusionPayload(kind, _aliasing(source.proto))


@writes(ir.FusionPayload)
def _write_fusion(payload: ir.FusionPayload, proto: Message) -> None:
    proto.fusion_kind = payload.kind
    _write_aliasing(payload.output_to_operand_aliasing, proto)


@reads("custom-call")
def _read_custom_call(source: Source) -> ir.Payload:
    proto = source.proto
    shapes = source.shapes
    numbers = proto.convolution_dimension_numbers
    return ir.CustomCallPayload(
        proto.custom_call_target,
        read_window(proto.window) if proto.HasField("window") else None,
        read_dimension_numbers(numbers) if proto.HasField("convolution_dimension_numbers") else None,
        max(1, proto.feature_group_count),
        max(1, proto.batch_group_count),
        read_precisions(proto),
        name_of(enums.PADDING_TYPES, proto.padding_type, "padding type"),
        tuple(map(shapes.read, proto.operand_shapes_with_layout)) if proto.constrain_layout else None,
        proto.custom_call_has_side_effect,
        read_literal(proto.literal, None, shapes) if proto.HasField("literal") else None,
        _aliasing(proto),
        name_of(enums.CUSTOM_CALL_SCHEDULES, proto.custom_call_schedule, "custom call schedule"),
        name_of(enums.CUSTOM_CALL_API_VERSIONS, max(1, proto.custom_call_api_version), "custom call api version"),
    )


@writes(ir.CustomCallPayload)
def _write_custom_call(payload: ir.CustomCallPayload, proto: Message) -> None:
    proto.custom_call_target = payload.custom_call_target
    if payload.window is not None:
        write_window(payload.window, proto.window)
    if payload.dimension_numbers is not None:
        write_dimension_numbers(payload.dimension_numbers, proto.convolution_dimension_numbers)
    proto.feature_group_count, proto.batch_group_count = payload.feature_group_count, payload.batch_group_count
    write_precisions(payload.operand_precision, proto)
    proto.padding_type = number_of(enums.PADDING_TYPES, payload.padding_type)
    if payload.operand_layout_constraints is not None:
        proto.constrain_layout = True
        proto.operand_shapes_with_layout.extend(map(write_shape, payload.operand_layout_constraints))
    proto.custom_call_has_side_effect = payload.custom_call_has_side_effect
    if payload.literal is not None:
        write_literal(payload.literal, proto.literal)
    _write_aliasing(payload.output_to_operand_aliasing, proto)
    proto.custom_call_schedule = number_of(enums.CUSTOM_CALL_SCHEDULES, payload.schedule)
    proto.custom_call_api_version = number_of(enums.CUSTOM_CALL_API_VERSIONS, payload.api_version)


@reads("async-start async-update async-done")
def _read_async(source: Source) -> ir.Payload:
    return ir.AsyncPayload(source.proto.async_execution_thread or "main", _aliasing(source.proto))


@writes(ir.AsyncPayload)
def _write_async(payload: ir.AsyncPayload, proto: Message) -> None:
    proto.async_execution_thread = payload.async_execution_thread
    _write_aliasing(payload.output_to_operand_aliasing, proto)


@reads("infeed")
def _read_infeed(source: Source) -> ir.Payload:
    return ir.InfeedPayload(_text(source.proto.infeed_config))


@writes(ir.InfeedPayload)
def _write_infeed(payload: ir.InfeedPayload, proto: Message) -> None:
    proto.infeed_config = _bytes(payload.infeed_config)


@reads("outfeed")
def _read_outfeed(source: Source) -> ir.Payload:
    return ir.OutfeedPayload(source.shapes.read(source.proto.outfeed_shape), _text(source.proto.outfeed_config))


@writes(ir.OutfeedPayload)
def _write_outfeed(payload: ir.OutfeedPayload, proto: Message) -> None:
    proto.outfeed_shape.CopyFrom(write_shape(payload.outfeed_shape))
    proto.outfeed_config = _bytes(payload.outfeed_config)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@reads("send send-done recv recv-done")
def _read_send_recv(source: Source) -> ir.Payload:
    return ir.SendRecvPayload(_channel(source.proto), source.proto.is_host_transfer)


@writes(ir.SendRecvPayload)
def _write_send_recv(payload: ir.SendRecvPayload, proto: Message) -> None:
    proto.channel_id, proto.is_host_transfer = payload.channel_id or 0, payload.is_host_transfer


@reads("copy-start")
def _read_copy_start(source: Source) -> ir.Payload:
    proto = source.proto
    return ir.CopyStartPayload(proto.cross_program_prefetch_index if proto.HasField("cross_program_prefetch_index") else None)


@writes(ir.CopyStartPayload)
def _write_copy_start(payload: ir.CopyStartPayload, proto: Message) -> None:
    if payload.cross_program_prefetch_index is not None:
        proto.cross_program_prefetch_index = payload.cross_program_prefetch_index


@reads("rng")
def _read_rng(source: Source) -> ir.Payload:
    return ir.RngPayload(name_of(enums.DISTRIBUTIONS, source.proto.distribution, "distribution"))


@writes(ir.RngPayload)
def _write_rng(payload: ir.RngPayload, proto: Message) -> None:
    proto.distribution = number_of(enums.DISTRIBUTIONS, payload.distribution)


@reads("rng-bit-generator")
def _read_rng_bits(source: Source) -> ir.Payload:
    return ir.RngBitGeneratorPayload(name_of(enums.RNG_ALGORITHMS, source.proto.rng_algorithm, "rng algorithm"))


@writes(ir.RngBitGeneratorPayload)
def _write_rng_bits(payload: ir.RngBitGeneratorPayload, proto: Message) -> None:
    proto.rng_algorithm = number_of(enums.RNG_ALGORITHMS, payload.algorithm)


@reads("rng-get-and-update-state")
def _read_rng_state(source: Source) -> ir.Payload:
    return ir.RngGetAndUpdateStatePayload(source.proto.delta)


@writes(ir.RngGetAndUpdateStatePayload)
def _write_rng_state(payload: ir.RngGetAndUpdateStatePayload, proto: Message) -> None:
    proto.delta = payload.delta


# -- collectives ----------------------------------------------------------------------------------------------------------


def _channel(proto: Message) -> int | None:
    """The channel; 0 means none, and old writers kept an all-reduce's in a field of its own."""
    return proto.channel_id or proto.all_reduce_id or None


@reads(
    "all-gather all-gather-start all-reduce all-reduce-start reduce-scatter all-to-all collective-broadcast ragged-all-to-all"
)
def _read_collective(source: Source) -> ir.Payload:
    proto = source.proto
    return ir.CollectivePayload(
        read_replica_groups(proto),
        _channel(proto),
        proto.constrain_layout,
        proto.use_global_device_ids,
        proto.dimensions[0] if proto.dimensions else None,
    )


@writes(ir.CollectivePayload)
def _write_collective(payload: ir.CollectivePayload, proto: Message) -> None:
    write_replica_groups(payload.replica_groups, proto)
    proto.channel_id, proto.constrain_layout = payload.channel_id or 0, payload.constrain_layout
    proto.use_global_device_ids = payload.use_global_device_ids
    if payload.dimension is not None:
        proto.dimensions.append(payload.dimension)


@reads("collective-permute collective-permute-start")
def _read_permute(source: Source) -> ir.Payload:
    pairs = tuple((pair.source, pair.target) for pair in source.proto.source_target_pairs)
    return ir.CollectivePermutePayload(pairs, _channel(source.proto), _slice_sizes(source))


def _slice_sizes(source: Source) -> tuple[tuple[int, ...], ...]:
    """Field 20 holds the sizes one list behind the other; the operand's rank tells where one ends."""
    flat = list(source.proto.dynamic_slice_sizes)
    if not flat:
        return ()
    shape = source.operands[0].shape if source.operands else source.shape
    inputs = shape.elements if isinstance(shape, TupleShape) else (shape,)
    ranks = [part.rank for part in inputs if isinstance(part, ArrayShape)]
    per_input = len(flat) // max(1, sum(ranks))
    if not ranks or per_input * sum(ranks) != len(flat):
        raise ParseError(f"{len(flat)} slice sizes do not fit operands of ranks {ranks}")
    out: list[tuple[int, ...]] = []
    for rank in ranks:
        for _ in range(per_input):
            out.append(tuple(flat[:rank]))
            del flat[:rank]
    return tuple(out)


@writes(ir.CollectivePermutePayload)
def _write_permute(payload: ir.CollectivePermutePayload, proto: Message) -> None:
    for start, target in payload.source_target_pairs:
        proto.source_target_pairs.add(source=start, target=target)
    proto.channel_id = payload.channel_id or 0
    proto.dynamic_slice_sizes.extend(size for sizes in payload.slice_sizes for size in sizes)
