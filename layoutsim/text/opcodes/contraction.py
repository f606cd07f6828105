"""Attributes of contractions, reductions, windows and linear algebra (text spec, section 3.6)."""

from __future__ import annotations

from layoutsim.ir import ArrayShape, Computation
from layoutsim.ir.payloads import (
    BatchNormPayload,
    CholeskyPayload,
    ConvolutionDimensionNumbers,
    ConvolutionPayload,
    DimensionsPayload,
    DotPayload,
    FftPayload,
    Payload,
    RaggedDotPayload,
    ScanPayload,
    SortPayload,
    TopKPayload,
    TriangularSolvePayload,
    Window,
    WindowPayload,
)
from layoutsim.text.device_syntax import read_ints
from layoutsim.text.lexer import Lexer
from layoutsim.text.opcodes.base import APPLY, COMPUTATION, Forms, Given, declare, read_flag, read_float, read_integer
from layoutsim.text.opcodes.movement import DIMENSIONS, dimensions
from layoutsim.text.shape_syntax import read_list
from layoutsim.text.value_syntax import read_dim_labels, read_sparsity, read_window, upper, word

DOT_ALGORITHMS = (
    "dot_any_f8_any_f8_f32",
    "dot_any_f8_any_f8_f32_fast_accum",
    "dot_f16_f16_f16",
    "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16",
    "dot_bf16_bf16_f32",
    "dot_bf16_bf16_f32_x3",
    "dot_bf16_bf16_f32_x6",
    "dot_bf16_bf16_f32_x9",
    "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3",
    "dot_f32_f32_f32",
    "dot_f64_f64_f64",
)


def read_precisions(lexer: Lexer) -> tuple[str, ...]:
    """``{highest,default}``; all default is the same as nothing."""
    found = tuple(read_list(lexer, "{", "}", word("default", "high", "highest", lower=True)))
    return () if all(precision == "default" for precision in found) else found


def _read_algorithm(lexer: Lexer) -> str:
    found = word("unset", *DOT_ALGORITHMS, lower=True)(lexer)
    return "" if found == "unset" else found


def _dot(given: Given) -> DotPayload:
    return DotPayload(
        given.ints("lhs_contracting_dims"),
        given.ints("rhs_contracting_dims"),
        given.ints("lhs_batch_dims"),
        given.ints("rhs_batch_dims"),
        given.words("operand_precision"),
        given.word("algorithm"),
    )


def _ragged_dot(given: Given) -> Payload:
    return RaggedDotPayload(_dot(given), given.ints("lhs_ragged_dims"), given.ints("rhs_group_dims"))


def _convolution(given: Given) -> Payload:
    labels = given.optional("dim_labels", ConvolutionDimensionNumbers)
    assert labels is not None
    kind = given.word("convolution_kind")
    return ConvolutionPayload(
        given.get("window", Window()),
        labels,
        given.integer("feature_group_count", 1),
        given.integer("batch_group_count", 1),
        "" if kind == "unset" else kind,
        given.words("operand_precision"),
        given.word("sparsity_config"),
    )


def _window(given: Given) -> Payload:
    return WindowPayload(given.get("window", Window()))


def _check_even(given: Given) -> None:
    if len(given.operands) % 2:
        given.refuse("", f"expected an even number of operands of {given.opcode}, got {len(given.operands)}")


def _reduce(given: Given) -> Payload:
    _check_even(given)
    return dimensions(given)


def _reduce_window(given: Given) -> Payload:
    _check_even(given)
    return _window(given)


def _map(given: Given) -> Payload:
    if "dimensions" in given:
        return dimensions(given)
    if not isinstance(given.shape, ArrayShape):
        given.refuse("", "expected attribute dimensions or an array shape on map, got neither")
    return DimensionsPayload(tuple(range(given.shape.rank)))


def _scan(given: Given) -> Payload:
    carries, body = given.integer("num_carries"), given.optional("to_apply", Computation)
    if body is not None and len(body.parameters) != len(given.operands):
        got = len(given.operands)
        given.refuse("to_apply", f"expected {len(body.parameters)} operands, one for each parameter of %{body.name}, got {got}")
    if len(given.operands) < carries:
        given.refuse("num_carries", f"expected at least {carries} operands, one for each carry, got {len(given.operands)}")
    associative = given.optional("is_associative", bool)
    return ScanPayload(given.one("dimensions"), carries, given.flag("is_reverse"), associative)


def _fft(given: Given) -> Payload:
    return FftPayload(given.word("fft_type"), given.ints("fft_length"))


def _triangular_solve(given: Given) -> Payload:
    return TriangularSolvePayload(
        given.flag("left_side"), given.flag("lower"), given.flag("unit_diagonal"), given.word("transpose_a")
    )


def _batch_norm(given: Given) -> Payload:
    return BatchNormPayload(given.get("epsilon", 0.0), given.integer("feature_index"))


_DOT: Forms = {
    "lhs_contracting_dims": read_ints,
    "rhs_contracting_dims": read_ints,
    "lhs_batch_dims": read_ints,
    "rhs_batch_dims": read_ints,
    "operand_precision": read_precisions,
}
declare("dot scaled-dot", _dot, optional={**_DOT, "algorithm": _read_algorithm})
declare("ragged-dot", _ragged_dot, optional={**_DOT, "lhs_ragged_dims": read_ints, "rhs_group_dims": read_ints})
declare(
    "convolution",
    _convolution,
    required={"dim_labels": read_dim_labels},
    optional={
        "window": read_window,
        "feature_group_count": read_integer,
        "batch_group_count": read_integer,
        "convolution_kind": word("fprop", "wgrad", "dgrad", "unset", lower=True),
        "operand_precision": read_precisions,
        "sparsity_config": read_sparsity,
    },
)
declare("reduce", _reduce, required={**DIMENSIONS, **APPLY}, looks_at_operands=True)
declare("reduce-window", _reduce_window, required=APPLY, optional={"window": read_window}, looks_at_operands=True)
declare(
    "select-and-scatter",
    _window,
    required={"select": COMPUTATION, "scatter": COMPUTATION},
    optional={"window": read_window},
)
declare("map", _map, required=APPLY, optional=DIMENSIONS, looks_at_operands=True)
declare(
    "scan",
    _scan,
    required={**DIMENSIONS, **APPLY, "num_carries": read_integer},
    optional={"is_reverse": read_flag, "is_associative": read_flag},
    looks_at_operands=True,
)
declare("fft", _fft, required={"fft_type": upper("FFT", "IFFT", "RFFT", "IRFFT"), "fft_length": read_ints})
declare("cholesky", lambda given: CholeskyPayload(given.flag("lower")), optional={"lower": read_flag})
declare(
    "triangular-solve",
    _triangular_solve,
    optional={
        "left_side": read_flag,
        "lower": read_flag,
        "unit_diagonal": read_flag,
        "transpose_a": word("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    },
)
declare(
    "sort",
    lambda given: SortPayload(given.one("dimensions"), given.flag("is_stable")),
    required={**DIMENSIONS, **APPLY},
    optional={"is_stable": read_flag},
)
declare(
    "topk",
    lambda given: TopKPayload(given.integer("k"), given.flag("largest", True), given.flag("is_stable", True)),
    required={"k": read_integer},
    optional={"largest": read_flag, "is_stable": read_flag},
)
declare(
    "batch-norm-training batch-norm-inference batch-norm-grad",
    _batch_norm,
    required={"epsilon": read_float, "feature_index": read_integer},
)
