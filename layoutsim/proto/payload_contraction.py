"""Payloads of contractions, windows, reductions and linear algebra as protos (text spec, sections 3.6 and 7.4)."""

from __future__ import annotations

import numpy as np

from layoutsim.errors import ParseError
from layoutsim.ir import payloads as ir
from layoutsim.proto import enums
from layoutsim.proto.enums import name_of, number_of
from layoutsim.proto.payload_registry import Source, reads, writes
from layoutsim.proto.schema import Message

# -- contractions and windows ---------------------------------------------------------------------------------------------


def read_precisions(proto: Message) -> tuple[str, ...]:
    """The operand precisions, empty when all are default."""
    numbers = list(proto.precision_config.operand_precision)
    return tuple(name_of(enums.PRECISIONS, n, "operand precision") for n in numbers) if any(numbers) else ()


def write_precisions(precisions: tuple[str, ...], proto: Message) -> None:
    """Set the operand precisions of an instruction."""
    proto.precision_config.operand_precision.extend(number_of(enums.PRECISIONS, p) for p in precisions)


def _dot(dims: Message, proto: Message) -> ir.DotPayload:
    return ir.DotPayload(
        tuple(dims.lhs_contracting_dimensions),
        tuple(dims.rhs_contracting_dimensions),
        tuple(dims.lhs_batch_dimensions),
        tuple(dims.rhs_batch_dimensions),
        read_precisions(proto),
        name_of(enums.DOT_ALGORITHMS, proto.precision_config.algorithm, "dot algorithm"),
    )


@reads("dot scaled-dot")
def _read_dot(source: Source) -> ir.Payload:
    return _dot(source.proto.dot_dimension_numbers, source.proto)


@writes(ir.DotPayload)
def _write_dot(payload: ir.DotPayload, proto: Message) -> None:
    proto.dot_dimension_numbers.SetInParent()
    _write_dot_dimensions(payload, proto.dot_dimension_numbers)
    write_precisions(payload.operand_precision or ("default", "default"), proto)
    proto.precision_config.algorithm = number_of(enums.DOT_ALGORITHMS, payload.algorithm)


def _write_dot_dimensions(payload: ir.DotPayload, dims: Message) -> None:
    dims.lhs_contracting_dimensions.extend(payload.lhs_contracting_dims)
    dims.rhs_contracting_dimensions.extend(payload.rhs_contracting_dims)
    dims.lhs_batch_dimensions.extend(payload.lhs_batch_dims)
    dims.rhs_batch_dimensions.extend(payload.rhs_batch_dims)


@reads("ragged-dot")
def _read_ragged_dot(source: Source) -> ir.Payload:
    dims = source.proto.ragged_dot_dimension_numbers
    dot = _dot(dims.dot_dimension_numbers, source.proto)
    return ir.RaggedDotPayload(dot, tuple(dims.lhs_ragged_dimensions), tuple(dims.rhs_group_dimensions))


@writes(ir.RaggedDotPayload)
def _write_ragged_dot(payload: ir.RaggedDotPayload, proto: Message) -> None:
    dims = proto.ragged_dot_dimension_numbers
    dims.dot_dimension_numbers.SetInParent()
    _write_dot_dimensions(payload.dot, dims.dot_dimension_numbers)
    dims.lhs_ragged_dimensions.extend(payload.lhs_ragged_dims)
    dims.rhs_group_dimensions.extend(payload.rhs_group_dims)
    write_precisions(payload.dot.operand_precision or ("default", "default"), proto)


def read_window(proto: Message) -> ir.Window:
    """The window of a ``WindowProto``."""
    return ir.Window(
        tuple(
            ir.WindowDimension(
                d.size, d.stride, d.padding_low, d.padding_high, d.window_dilation, d.base_dilation, d.window_reversal
            )
            for d in proto.dimensions
        )
    )


def write_window(window: ir.Window, proto: Message) -> None:
    """Fill a ``WindowProto``."""
    proto.SetInParent()
    for d in window.dimensions:
        proto.dimensions.add(
            size=d.size,
            stride=d.stride,
            padding_low=d.padding_low,
            padding_high=d.padding_high,
            window_dilation=d.window_dilation,
            base_dilation=d.base_dilation,
            window_reversal=d.reversal,
        )


_MOST_DIMENSIONS = 64
"""An array of more than these numpy does not have."""


def read_dimension_numbers(proto: Message) -> ir.ConvolutionDimensionNumbers:
    """The dimension numbers of a convolution.

    Raises:
        ParseError: one is no dimension of any array.
    """
    numbers = ir.ConvolutionDimensionNumbers(
        proto.input_batch_dimension,
        proto.input_feature_dimension,
        tuple(proto.input_spatial_dimensions),
        proto.kernel_input_feature_dimension,
        proto.kernel_output_feature_dimension,
        tuple(proto.kernel_spatial_dimensions),
        proto.output_batch_dimension,
        proto.output_feature_dimension,
        tuple(proto.output_spatial_dimensions),
    )
    for _, value in proto.ListFields():
        for number in (value,) if isinstance(value, int) else value:
            if not -1 <= number < _MOST_DIMENSIONS:
                raise ParseError(f"{number} in the dimension numbers of a convolution, expected less than {_MOST_DIMENSIONS}")
    return numbers


def write_dimension_numbers(numbers: ir.ConvolutionDimensionNumbers, proto: Message) -> None:
    """Fill a ``ConvolutionDimensionNumbersProto``."""
    proto.SetInParent()
    for part in (
        "input_batch",
        "input_feature",
        "kernel_input_feature",
        "kernel_output_feature",
        "output_batch",
        "output_feature",
    ):
        setattr(proto, f"{part}_dimension", getattr(numbers, part))
    proto.output_batch_dimension, proto.output_feature_dimension = numbers.output_batch, numbers.output_feature
    for part in ("input_spatial", "kernel_spatial", "output_spatial"):
        getattr(proto, f"{part}_dimensions").extend(getattr(numbers, part))


@reads("convolution")
def _read_convolution(source: Source) -> ir.Payload:
    proto = source.proto
    return ir.ConvolutionPayload(
        read_window(proto.window),
        read_dimension_numbers(proto.convolution_dimension_numbers),
        proto.feature_group_count or 1,
        proto.batch_group_count or 1,
        name_of(enums.CONVOLUTION_KINDS, proto.conv_kind, "convolution kind"),
        read_precisions(proto),
        _sparsity_text(proto),
    )


@writes(ir.ConvolutionPayload)
def _write_convolution(payload: ir.ConvolutionPayload, proto: Message) -> None:
    write_window(payload.window, proto.window)
    write_dimension_numbers(payload.dimension_numbers, proto.convolution_dimension_numbers)
    proto.feature_group_count, proto.batch_group_count = payload.feature_group_count, payload.batch_group_count
    proto.conv_kind = number_of(enums.CONVOLUTION_KINDS, payload.convolution_kind)
    write_precisions(payload.operand_precision or ("default", "default"), proto)
    _write_sparsity(payload.sparsity_config, proto)


def _sparsity_text(proto: Message) -> str:
    """``{lhs={sparsity=1x4 dimension=2 stride=1}}``."""
    config = proto.sparsity_config
    sides = [(side, getattr(config, side)) for side in ("lhs", "rhs") if config.HasField(side)]
    parts = (f"{s}={{sparsity={m.num_non_zero}x{m.block_size} dimension={m.dimension} stride={m.stride}}}" for s, m in sides)
    return "{" + " ".join(parts) + "}" if sides else ""


def _write_sparsity(text: str, proto: Message) -> None:
    for side, count, block, dimension, stride in enums.SPARSITY.findall(text):
        message = getattr(proto.sparsity_config, side)
        message.num_non_zero, message.block_size = int(count), int(block)
        message.dimension, message.stride = int(dimension), int(stride)


@reads("reduce-window select-and-scatter")
def _read_window_payload(source: Source) -> ir.Payload:
    return ir.WindowPayload(read_window(source.proto.window))


@writes(ir.WindowPayload)
def _write_window_payload(payload: ir.WindowPayload, proto: Message) -> None:
    write_window(payload.window, proto.window)


# -- reductions, linear algebra, normalisation ----------------------------------------------------------------------------


@reads("scan")
def _read_scan(source: Source) -> ir.Payload:
    proto = source.proto
    associative = {0: None, 1: True, 2: False}.get(proto.is_associative)
    return ir.ScanPayload(source.one_dimension, proto.num_carries, proto.is_reverse, associative)


@writes(ir.ScanPayload)
def _write_scan(payload: ir.ScanPayload, proto: Message) -> None:
    proto.dimensions.append(payload.dimension)
    proto.num_carries, proto.is_reverse = payload.num_carries, payload.is_reverse
    proto.is_associative = {None: 0, True: 1, False: 2}[payload.is_associative]


@reads("fft")
def _read_fft(source: Source) -> ir.Payload:
    return ir.FftPayload(name_of(enums.FFT_TYPES, source.proto.fft_type, "fft type"), tuple(source.proto.fft_length))


@writes(ir.FftPayload)
def _write_fft(payload: ir.FftPayload, proto: Message) -> None:
    proto.fft_type = number_of(enums.FFT_TYPES, payload.fft_type)
    proto.fft_length.extend(payload.fft_length)


@reads("cholesky")
def _read_cholesky(source: Source) -> ir.Payload:
    return ir.CholeskyPayload(source.proto.cholesky_options.lower)


@writes(ir.CholeskyPayload)
def _write_cholesky(payload: ir.CholeskyPayload, proto: Message) -> None:
    proto.cholesky_options.SetInParent()
    proto.cholesky_options.lower = payload.lower


@reads("triangular-solve")
def _read_triangular_solve(source: Source) -> ir.Payload:
    options = source.proto.triangular_solve_options
    transpose = name_of(enums.TRANSPOSES, options.transpose_a, "transpose_a")
    return ir.TriangularSolvePayload(options.left_side, options.lower, options.unit_diagonal, transpose)


@writes(ir.TriangularSolvePayload)
def _write_triangular_solve(payload: ir.TriangularSolvePayload, proto: Message) -> None:
    options = proto.triangular_solve_options
    options.SetInParent()
    options.left_side, options.lower, options.unit_diagonal = payload.left_side, payload.lower, payload.unit_diagonal
    options.transpose_a = number_of(enums.TRANSPOSES, payload.transpose_a)


@reads("sort")
def _read_sort(source: Source) -> ir.Payload:
    return ir.SortPayload(source.one_dimension, source.proto.is_stable)


@writes(ir.SortPayload)
def _write_sort(payload: ir.SortPayload, proto: Message) -> None:
    proto.dimensions.append(payload.dimension)
    proto.is_stable = payload.is_stable


@reads("topk")
def _read_topk(source: Source) -> ir.Payload:
    return ir.TopKPayload(source.proto.k, source.proto.largest)  # older writers leave is_stable out and mean true


@writes(ir.TopKPayload)
def _write_topk(payload: ir.TopKPayload, proto: Message) -> None:
    proto.k, proto.largest, proto.is_stable = payload.k, payload.largest, payload.is_stable


@reads("batch-norm-training batch-norm-inference batch-norm-grad")
def _read_batch_norm(source: Source) -> ir.Payload:
    epsilon = float(str(np.float32(source.proto.epsilon)))  # the shortest decimal that is this float, as text has it
    return ir.BatchNormPayload(epsilon, source.proto.feature_index)


@writes(ir.BatchNormPayload)
def _write_batch_norm(payload: ir.BatchNormPayload, proto: Message) -> None:
    proto.epsilon, proto.feature_index = payload.epsilon, payload.feature_index
