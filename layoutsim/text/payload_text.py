"""Opcode-specific attributes as text, in XLA's print order (text spec, sections 3 and 6.2).

:func:`payload_texts` gives the attributes of a payload; called computations are the printer's business.
"""

from __future__ import annotations

from functools import lru_cache

from layoutsim.ir import Opcode, index_text, shape_text
from layoutsim.ir.payloads import (
    Aliasing,
    AsyncPayload,
    BatchNormPayload,
    CallPayload,
    CholeskyPayload,
    CollectivePayload,
    CollectivePermutePayload,
    ComparePayload,
    ConstantPayload,
    ConvolutionDimensionNumbers,
    ConvolutionPayload,
    CopyStartPayload,
    CustomCallPayload,
    DimensionsPayload,
    DomainPayload,
    DotPayload,
    DynamicSlicePayload,
    FftPayload,
    FusionPayload,
    GatherPayload,
    InfeedPayload,
    IotaPayload,
    OutfeedPayload,
    PadPayload,
    ParameterPayload,
    Payload,
    RaggedDotPayload,
    ReducePrecisionPayload,
    ReplicaGroups,
    ReshapePayload,
    RngBitGeneratorPayload,
    RngGetAndUpdateStatePayload,
    RngPayload,
    ScanPayload,
    ScatterPayload,
    SendRecvPayload,
    SlicePayload,
    SortPayload,
    TopKPayload,
    TriangularSolvePayload,
    TupleIndexPayload,
    Window,
    WindowPayload,
)
from layoutsim.ir.replica_groups import ListReplicaGroups
from layoutsim.text.literal_format import typed_literal_text
from layoutsim.text.print_options import PrintOptions, ReplicaGroupForm
from layoutsim.text.quoting import quote

Ints = tuple[int, ...]


def payload_texts(opcode: Opcode, payload: Payload | None, options: PrintOptions) -> tuple[str, ...]:
    """``("dimensions={0}", ...)`` in print order."""
    if payload is None or isinstance(payload, (ConstantPayload, ParameterPayload)):
        return ()
    if isinstance(payload, CustomCallPayload) and payload.literal is not None:
        return _custom_call(payload)  # literals have identity and do not go into a cache
    return _cached(opcode, payload, options)


@lru_cache(maxsize=1 << 16)
def _cached(opcode: Opcode, payload: Payload, options: PrintOptions) -> tuple[str, ...]:
    match payload:
        case CollectivePayload():
            return _collective(opcode, payload, options)
        case TopKPayload():
            stable = (f"is_stable={_bool(payload.is_stable)}",) if options.newer_xla or not payload.is_stable else ()
            return (f"k={payload.k}", f"largest={_bool(payload.largest)}", *stable)
        case OutfeedPayload():
            shape = shape_text(payload.outfeed_shape)
            return (f"outfeed_shape={shape}", *_unless(payload.outfeed_config, "", "outfeed_config", quote))
        case _:
            return _simple(payload)


def _simple(payload: Payload) -> tuple[str, ...]:  # one case for each payload; splitting it would only hide the order
    match payload:
        case ComparePayload():
            return (f"direction={payload.direction}", *([f"type={payload.type}"] if payload.type else []))
        case DimensionsPayload():
            return (f"dimensions={ints(payload.dimensions)}",)
        case IotaPayload():
            return (f"iota_dimension={payload.iota_dimension}",)
        case ReshapePayload():
            return _unless(payload.inferred_dimension, -1, "inferred_dimension")
        case SlicePayload():
            return (f"slice={_slice(payload)}",)
        case DynamicSlicePayload():
            return (f"dynamic_slice_sizes={ints(payload.dynamic_slice_sizes)}",)
        case PadPayload():
            return (f"padding={_padding(payload)}",)
        case TupleIndexPayload():
            return (f"index={payload.index}",)
        case ReducePrecisionPayload():
            return (f"exponent_bits={payload.exponent_bits}", f"mantissa_bits={payload.mantissa_bits}")
        case DomainPayload():
            return (f'domain={{kind="{payload.kind}", entry={payload.entry}, exit={payload.exit}}}',)
        case GatherPayload():
            return _gather(payload)
        case ScatterPayload():
            return _scatter(payload)
        case DotPayload():
            return _dot(payload)
        case RaggedDotPayload():
            return _ragged_dot(payload)
        case ConvolutionPayload():
            return _convolution(payload)
        case WindowPayload():
            return _window_if_any(payload.window)
        case ScanPayload():
            return _scan(payload)
        case FftPayload():
            return (f"fft_type={payload.fft_type}", f"fft_length={ints(payload.fft_length)}")
        case CholeskyPayload():
            return _if_set(payload.lower, "lower")
        case TriangularSolvePayload():
            return _triangular_solve(payload)
        case SortPayload():
            return (f"dimensions={{{payload.dimension}}}", *_if_set(payload.is_stable, "is_stable"))
        case BatchNormPayload():
            return (f"epsilon={_float(payload.epsilon)}", f"feature_index={payload.feature_index}")
        case FusionPayload():
            return (f"kind={payload.kind}", *_aliasing(payload.output_to_operand_aliasing))
        case CustomCallPayload():
            return _custom_call(payload)
        case AsyncPayload():
            thread = _unless(payload.async_execution_thread, "main", "async_execution_thread", quote)
            return (*thread, *_aliasing(payload.output_to_operand_aliasing))
        case InfeedPayload():
            return _unless(payload.infeed_config, "", "infeed_config", quote)
        case SendRecvPayload():
            return (*_channel(payload.channel_id), *_if_set(payload.is_host_transfer, "is_host_transfer"))
        case CopyStartPayload():
            return _unless(payload.cross_program_prefetch_index, None, "cross_program_prefetch_index")
        case RngPayload():
            return (f"distribution={payload.distribution}",)
        case RngBitGeneratorPayload():
            return (f"algorithm={payload.algorithm}",)
        case RngGetAndUpdateStatePayload():
            return (f"delta={payload.delta}",)
        case CollectivePermutePayload():
            return _permute(payload)
        case CallPayload():
            return ()  # is_composite stands behind the computation
        case _:
            raise AssertionError(f"no text for {payload!r}")


# -- pieces ------------------------------------------------------------------------------------------------------------


def ints(values: Ints) -> str:
    """``{0,1}``."""
    return "{" + ",".join(map(str, values)) + "}"


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _unless(value: object, default: object, name: str, write: object = str) -> tuple[str, ...]:
    assert callable(write)
    return () if value == default else (f"{name}={write(value)}",)


def _if_set(value: bool, name: str) -> tuple[str, ...]:
    return (f"{name}=true",) if value else ()


def _float(value: float) -> str:
    return f"{value:.6g}" if float(f"{value:.6g}") == value else repr(value)


def _precision(values: tuple[str, ...]) -> tuple[str, ...]:
    return (f"operand_precision={{{','.join(values)}}}",) if values else ()


def _aliasing(entries: tuple[Aliasing, ...]) -> tuple[str, ...]:
    if not entries:
        return ()
    texts = (f"{index_text(e.output_index)}: ({e.operand_number}, {index_text(e.operand_index)})" for e in entries)
    return (f"output_to_operand_aliasing={{{', '.join(texts)}}}",)


def _channel(channel_id: int | None) -> tuple[str, ...]:
    return () if channel_id is None else (f"channel_id={channel_id}",)


def _slice(payload: SlicePayload) -> str:
    ranges = zip(payload.starts, payload.limits, payload.strides, strict=True)
    if all(stride == 1 for stride in payload.strides):
        return "{" + ", ".join(f"[{start}:{limit}]" for start, limit, _ in ranges) + "}"
    return "{" + ", ".join(f"[{start}:{limit}:{stride}]" for start, limit, stride in ranges) + "}"


def _padding(payload: PadPayload) -> str:
    groups = zip(payload.low, payload.high, payload.interior, strict=True)
    if any(payload.interior):
        return "x".join(f"{low}_{high}_{interior}" for low, high, interior in groups)
    return "x".join(f"{low}_{high}" for low, high, _ in groups)


def window_text(window: Window) -> str:
    """``{size=3x3 stride=2x2 ...}``; fields that are everywhere at their default are left out."""
    dimensions = window.dimensions

    def joined(name: str, values: list[str], default: str) -> list[str]:
        return [] if all(value == default for value in values) else [f"{name}={'x'.join(values)}"]

    parts = [f"size={'x'.join(str(d.size) for d in dimensions)}"]
    parts += joined("stride", [str(d.stride) for d in dimensions], "1")
    parts += joined("pad", [f"{d.padding_low}_{d.padding_high}" for d in dimensions], "0_0")
    parts += joined("lhs_dilate", [str(d.base_dilation) for d in dimensions], "1")
    parts += joined("rhs_dilate", [str(d.window_dilation) for d in dimensions], "1")
    parts += joined("rhs_reversal", [str(int(d.reversal)) for d in dimensions], "0")
    return "{" + " ".join(parts) + "}"


def _window_if_any(window: Window | None) -> tuple[str, ...]:
    return (f"window={window_text(window)}",) if window is not None and window.dimensions else ()


def dim_labels_text(numbers: ConvolutionDimensionNumbers) -> str:
    """``b01f_01io->b01f``."""
    if numbers.text:
        return numbers.text
    lhs = _labels("bf", numbers.input_batch, numbers.input_feature, numbers.input_spatial)
    rhs = _labels("io", numbers.kernel_input_feature, numbers.kernel_output_feature, numbers.kernel_spatial)
    output = _labels("bf", numbers.output_batch, numbers.output_feature, numbers.output_spatial)
    return f"{lhs}_{rhs}->{output}"


def _labels(letters: str, first: int, second: int, spatial: Ints) -> str:
    at = {first: letters[0], second: letters[1]} | {position: str(i) for i, position in enumerate(spatial)}
    return "".join(at.get(position, "?") for position in range(max(at) + 1))


# -- families ----------------------------------------------------------------------------------------------------------


def _gather(payload: GatherPayload) -> tuple[str, ...]:
    return (
        f"offset_dims={ints(payload.offset_dims)}",
        f"collapsed_slice_dims={ints(payload.collapsed_slice_dims)}",
        f"start_index_map={ints(payload.start_index_map)}",
        *_unless(payload.operand_batching_dims, (), "operand_batching_dims", ints),
        *_unless(payload.start_indices_batching_dims, (), "start_indices_batching_dims", ints),
        f"index_vector_dim={payload.index_vector_dim}",
        f"slice_sizes={ints(payload.slice_sizes)}",
        *_if_set(payload.indices_are_sorted, "indices_are_sorted"),
    )


def _scatter(payload: ScatterPayload) -> tuple[str, ...]:
    return (
        f"update_window_dims={ints(payload.update_window_dims)}",
        f"inserted_window_dims={ints(payload.inserted_window_dims)}",
        f"scatter_dims_to_operand_dims={ints(payload.scatter_dims_to_operand_dims)}",
        *_unless(payload.input_batching_dims, (), "input_batching_dims", ints),
        *_unless(payload.scatter_indices_batching_dims, (), "scatter_indices_batching_dims", ints),
        f"index_vector_dim={payload.index_vector_dim}",
        *_if_set(payload.indices_are_sorted, "indices_are_sorted"),
        *_if_set(payload.unique_indices, "unique_indices"),
    )


def _dot_dimensions(payload: DotPayload) -> tuple[str, ...]:
    return (
        *_unless(payload.lhs_batch_dims, (), "lhs_batch_dims", ints),
        f"lhs_contracting_dims={ints(payload.lhs_contracting_dims)}",
        *_unless(payload.rhs_batch_dims, (), "rhs_batch_dims", ints),
        f"rhs_contracting_dims={ints(payload.rhs_contracting_dims)}",
    )


def _dot(payload: DotPayload) -> tuple[str, ...]:
    algorithm = _unless(payload.algorithm, "", "algorithm")
    return (*_dot_dimensions(payload), *_precision(payload.operand_precision), *algorithm)


def _ragged_dot(payload: RaggedDotPayload) -> tuple[str, ...]:
    return (
        *_dot_dimensions(payload.dot),
        *_unless(payload.lhs_ragged_dims, (), "lhs_ragged_dims", ints),
        *_unless(payload.rhs_group_dims, (), "rhs_group_dims", ints),
        *_precision(payload.dot.operand_precision),
    )


def _convolution(payload: ConvolutionPayload) -> tuple[str, ...]:
    return (
        *_window_if_any(payload.window),
        f"dim_labels={dim_labels_text(payload.dimension_numbers)}",
        *_unless(payload.feature_group_count, 1, "feature_group_count"),
        *_unless(payload.batch_group_count, 1, "batch_group_count"),
        *_unless(payload.convolution_kind, "", "convolution_kind"),
        *_precision(payload.operand_precision),
        *_unless(payload.sparsity_config, "", "sparsity_config"),
    )


def _scan(payload: ScanPayload) -> tuple[str, ...]:
    associative = () if payload.is_associative is None else (f"is_associative={_bool(payload.is_associative)}",)
    return (
        f"dimensions={{{payload.dimension}}}",
        f"num_carries={payload.num_carries}",
        *_if_set(payload.is_reverse, "is_reverse"),
        *associative,
    )


def _triangular_solve(payload: TriangularSolvePayload) -> tuple[str, ...]:
    return (
        *_if_set(payload.left_side, "left_side"),
        *_if_set(payload.lower, "lower"),
        *_if_set(payload.unit_diagonal, "unit_diagonal"),
        *_unless(payload.transpose_a, "", "transpose_a"),
    )


def _custom_call(payload: CustomCallPayload) -> tuple[str, ...]:
    labels, constraints = payload.dimension_numbers, payload.operand_layout_constraints
    return (
        *_window_if_any(payload.window),
        *([f"dim_labels={dim_labels_text(labels)}"] if labels is not None else []),
        *_unless(payload.feature_group_count, 1, "feature_group_count"),
        *_unless(payload.batch_group_count, 1, "batch_group_count"),
        *_precision(payload.operand_precision),
        *_unless(payload.padding_type, "", "padding_type"),
        f"custom_call_target={quote(payload.custom_call_target)}",
        *([] if constraints is None else [f"operand_layout_constraints={{{', '.join(map(shape_text, constraints))}}}"]),
        *_if_set(payload.custom_call_has_side_effect, "custom_call_has_side_effect"),
        *([f"literal={typed_literal_text(payload.literal)}"] if payload.literal is not None else []),
        *_aliasing(payload.output_to_operand_aliasing),
        *_unless(payload.schedule, "", "schedule"),
        *_unless(payload.api_version, "", "api_version"),
    )


def _groups_text(groups: ReplicaGroups, options: PrintOptions) -> str:
    if options.replica_groups is ReplicaGroupForm.FULL_LIST:
        return ListReplicaGroups(groups.groups()).to_text()
    return groups.to_text()


def _collective(opcode: Opcode, payload: CollectivePayload, options: PrintOptions) -> tuple[str, ...]:
    dimension = () if payload.dimension is None else (f"dimensions={{{payload.dimension}}}",)
    global_ids = _if_set(payload.use_global_device_ids, "use_global_device_ids")
    gathers = opcode in (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START)
    return (
        *_channel(payload.channel_id),
        f"replica_groups={_groups_text(payload.replica_groups, options)}",
        *_if_set(payload.constrain_layout, "constrain_layout"),
        *((*dimension, *global_ids) if gathers else (*global_ids, *dimension)),
    )


def _permute(payload: CollectivePermutePayload) -> tuple[str, ...]:
    pairs = ",".join(f"{{{source},{target}}}" for source, target in payload.source_target_pairs)
    sizes = (f"slice_sizes={{{','.join(map(ints, payload.slice_sizes))}}}",) if payload.slice_sizes else ()
    return (*_channel(payload.channel_id), f"source_target_pairs={{{pairs}}}", *sizes)
