"""Attributes of control flow, calls, effects and random numbers (text spec, section 3.7)."""

from __future__ import annotations

from layoutsim.ir import ArrayShape, ElementType, Literal, Opcode, Shape, TupleShape, compatible, has_layout
from layoutsim.ir.payloads import (
    AsyncPayload,
    CallPayload,
    ConvolutionDimensionNumbers,
    CopyStartPayload,
    CustomCallPayload,
    FusionPayload,
    InfeedPayload,
    OutfeedPayload,
    Payload,
    RngBitGeneratorPayload,
    RngGetAndUpdateStatePayload,
    RngPayload,
    SendRecvPayload,
    Window,
)
from layoutsim.ir.shape import BufferShape, OpaqueShape, TokenShape
from layoutsim.text.lexer import Lexer
from layoutsim.text.literal_syntax import read_typed_literal
from layoutsim.text.opcodes.base import (
    APPLY,
    COMPUTATION,
    COMPUTATIONS,
    Forms,
    Given,
    declare,
    fill_layouts,
    is_scalar,
    read_flag,
    read_int32,
    read_integer,
    read_string,
)
from layoutsim.text.opcodes.contraction import read_precisions
from layoutsim.text.shape_syntax import read_list, read_shape
from layoutsim.text.value_syntax import read_aliasing, read_dim_labels, read_window, upper, word

_SHAPES = (ArrayShape, TupleShape, TokenShape, OpaqueShape, BufferShape)


def _read_default_shape(lexer: Lexer) -> Shape:
    return fill_layouts(read_shape(lexer))


def _read_shapes(lexer: Lexer) -> tuple[Shape, ...]:
    return tuple(read_list(lexer, "{", "}", _read_default_shape))


# -- branches and calls ------------------------------------------------------------------------------------------------


def _conditional(given: Given) -> None:
    """The type of the index decides which attributes are legal."""
    if not given.operands:
        given.refuse("", "expected a branch index as the first operand of conditional, got none")
    index = given.operands[0].shape
    kind = index.element_type if isinstance(index, ArrayShape) and is_scalar(index) else None
    if kind not in (ElementType.PRED, ElementType.S32):
        given.refuse("", f"expected a branch index of shape pred[] or s32[], got {index}")
    count = _branch_count(given, kind is ElementType.PRED)
    if not count or len(given.operands) != count + 1:
        got = f"{len(given.operands)} operands"
        given.refuse("", f"expected a branch index and an operand for each of {count} branches, got {got}")


def _branch_count(given: Given, two_way: bool) -> int:
    pair = "true_computation" in given and "false_computation" in given
    if two_way:
        if "branch_computations" in given or not pair:
            given.refuse("branch_computations", "expected true_computation and false_computation for an index pred[]")
        return 2
    if "branch_computations" not in given or "true_computation" in given or "false_computation" in given:
        given.refuse("true_computation", "expected branch_computations for an index s32[]")
    return len(given.items("branch_computations", object))


def _fusion(given: Given) -> Payload:
    return FusionPayload(given.word("kind"), given.aliasing())


def _async(given: Given) -> Payload:
    return AsyncPayload(given.word("async_execution_thread", "main"), given.aliasing())


ALIASING: Forms = {"output_to_operand_aliasing": read_aliasing}
_THREAD: Forms = {"async_execution_thread": read_string}
declare("call", lambda given: CallPayload(given.flag("is_composite")), required=APPLY, optional={"is_composite": read_flag})
declare(
    "fusion",
    _fusion,
    required={"kind": word("kLoop", "kInput", "kOutput", "kCustom"), "calls": COMPUTATION},
    optional=ALIASING,
)
declare("while", required={"condition": COMPUTATION, "body": COMPUTATION})
declare(
    "conditional",
    _conditional,
    optional={
        "true_computation": COMPUTATION,
        "false_computation": COMPUTATION,
        "branch_computations": COMPUTATIONS,
    },
    looks_at_operands=True,
)
declare("async-start", _async, required={"calls": COMPUTATION}, optional={**_THREAD, **ALIASING}, looks_at_operands=True)
declare("async-update async-done", _async, optional={**_THREAD, "calls": COMPUTATION}, looks_at_operands=True)


# -- custom calls ------------------------------------------------------------------------------------------------------


def _custom_call(given: Given) -> Payload:
    constraints = given.items("operand_layout_constraints", object) if "operand_layout_constraints" in given else None
    if constraints is not None:
        _check_layout_constraints(given)
    if "to_apply" in given and "called_computations" in given:
        given.refuse("called_computations", "expected to_apply or called_computations, got both")
    schedule, version = given.word("schedule"), given.word("api_version")
    return CustomCallPayload(
        given.word("custom_call_target"),
        window=given.optional("window", Window),
        dimension_numbers=given.optional("dim_labels", ConvolutionDimensionNumbers),
        feature_group_count=given.integer("feature_group_count", 1),
        batch_group_count=given.integer("batch_group_count", 1),
        operand_precision=given.words("operand_precision"),
        padding_type=given.word("padding_type"),
        operand_layout_constraints=None if constraints is None else _layout_constraints(given),
        custom_call_has_side_effect=given.flag("custom_call_has_side_effect"),
        literal=given.optional("literal", Literal),
        output_to_operand_aliasing=given.aliasing(),
        schedule="" if schedule == "SCHEDULE_NONE" else schedule,
        api_version="" if version == "API_VERSION_ORIGINAL" else version,
    )


def _layout_constraints(given: Given) -> tuple[Shape, ...]:
    return tuple(shape for shape in given.items("operand_layout_constraints", object) if isinstance(shape, _SHAPES))


def _check_layout_constraints(given: Given) -> None:
    name, shapes = "operand_layout_constraints", _layout_constraints(given)
    if given.shape is not None and not has_layout(given.shape):
        given.refuse("", f"expected a layout on a custom call that constrains layouts, got {given.shape}")
    if len(shapes) != len(given.operands):
        given.refuse(name, f"expected a layout constraint for each of {len(given.operands)} operands, got {len(shapes)}")
    for operand, shape in zip(given.operands, shapes, strict=True):
        if not compatible(operand.shape, shape):
            given.refuse(name, f"expected a constraint compatible with operand {operand.name} of {operand.shape}, got {shape}")


declare(
    "custom-call",
    _custom_call,
    required={"custom_call_target": read_string},
    optional={
        "window": read_window,
        "dim_labels": read_dim_labels,
        "feature_group_count": read_integer,
        "batch_group_count": read_integer,
        "operand_precision": read_precisions,
        "padding_type": upper("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"),
        "operand_layout_constraints": _read_shapes,
        "custom_call_has_side_effect": read_flag,
        "literal": read_typed_literal,
        "schedule": upper("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
        "api_version": upper(
            "API_VERSION_ORIGINAL",
            "API_VERSION_STATUS_RETURNING",
            "API_VERSION_STATUS_RETURNING_UNIFIED",
            "API_VERSION_TYPED_FFI",
        ),
        "to_apply": COMPUTATION,
        "called_computations": COMPUTATIONS,
        **ALIASING,
    },
    looks_at_operands=True,
)


# -- effects and random numbers ----------------------------------------------------------------------------------------


def _infeed(given: Given) -> Payload:
    if not isinstance(given.shape, TupleShape) or not given.shape.elements:
        given.refuse("", f"expected a shape (data, token[]) on infeed, got {given.shape}")
    return InfeedPayload(given.word("infeed_config"))


def _outfeed(given: Given) -> Payload:
    shape = given.values.get("outfeed_shape", given.operands[0].shape)
    assert isinstance(shape, _SHAPES)
    return OutfeedPayload(shape, given.word("outfeed_config"))


def _send_recv(given: Given) -> Payload:
    channel = given.optional("channel_id", int)
    operand = given.operands[0]
    if given.opcode in (Opcode.SEND_DONE, Opcode.RECV_DONE) and isinstance(operand.payload, SendRecvPayload):
        expected = operand.payload.channel_id
        if channel != expected:
            given.refuse("channel_id", f"expected the channel {expected} of {operand.name}, got {channel}")
    if given.opcode is Opcode.RECV and not (isinstance(given.shape, TupleShape) and given.shape.elements):
        given.refuse("", f"expected a shape (data, u32[], token[]) on recv, got {given.shape}")
    return SendRecvPayload(channel, given.flag("is_host_transfer"))


declare("infeed", _infeed, optional={"infeed_config": read_string}, looks_at_operands=True)
declare(
    "outfeed",
    _outfeed,
    optional={"outfeed_shape": _read_default_shape, "outfeed_config": read_string},
    looks_at_operands=True,
)
declare(
    "send send-done recv recv-done",
    _send_recv,
    optional={"channel_id": read_integer, "is_host_transfer": read_flag},
    looks_at_operands=True,
)
declare(
    "copy-start",
    lambda given: CopyStartPayload(given.optional("cross_program_prefetch_index", int)),
    optional={"cross_program_prefetch_index": read_int32},
)
declare(
    "rng",
    lambda given: RngPayload(given.word("distribution")),
    required={"distribution": word("rng_uniform", "rng_normal", lower=True)},
)
declare(
    "rng-bit-generator",
    lambda given: RngBitGeneratorPayload(given.word("algorithm")),
    required={"algorithm": word("rng_default", "rng_three_fry", "rng_philox", lower=True)},
)
declare(
    "rng-get-and-update-state",
    lambda given: RngGetAndUpdateStatePayload(given.integer("delta")),
    required={"delta": read_integer},
)
