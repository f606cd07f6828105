"""Which attributes an opcode takes in HLO text, and how they become its payload (text spec, sections 1.8 and 3).

:data:`SYNTAX` has an entry for every opcode. An entry names required and optional attributes with their readers, and the
function that builds the payload. Computation-valued attributes have the markers :data:`COMPUTATION` and
:data:`COMPUTATIONS`: reading them needs the module, so the parser does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NoReturn, TypeVar

from attrs import field, frozen

from layoutsim.ir import ArrayShape, Computation, ElementType, Instruction, Literal, Opcode, Shape, TupleShape, has_layout
from layoutsim.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_TERNARY, ELEMENTWISE_UNARY
from layoutsim.ir.payloads import (
    NO_GROUPS,
    Aliasing,
    AsyncPayload,
    BatchNormPayload,
    CallPayload,
    CholeskyPayload,
    CollectivePayload,
    CollectivePermutePayload,
    ComparePayload,
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
from layoutsim.ir.shape import with_default_layout
from layoutsim.text.annotation_syntax import (
    read_frontend_attributes,
    read_metadata,
    read_origin,
    read_parameter_replication,
    read_result_accuracy,
    read_statistics,
    read_string_or_json,
)
from layoutsim.text.device_syntax import read_ints, read_replica_groups, read_sharding
from layoutsim.text.lexer import Kind, Lexer
from layoutsim.text.literal_syntax import read_typed_literal
from layoutsim.text.shape_syntax import read_list, read_shape
from layoutsim.text.value_syntax import (
    read_aliasing,
    read_dim_labels,
    read_domain,
    read_padding_config,
    read_slice,
    read_sparsity,
    read_window,
    word,
)

T = TypeVar("T")
Ints = tuple[int, ...]
Form = Callable[[Lexer], object]


class Reference(Enum):
    """Values that name other parts of the module."""

    COMPUTATION = "computation"
    COMPUTATIONS = "computations"
    INSTRUCTIONS = "instructions"


COMPUTATION = Reference.COMPUTATION
COMPUTATIONS = Reference.COMPUTATIONS

CALL_ORDER = (
    "body",
    "condition",
    "select",
    "scatter",
    "true_computation",
    "false_computation",
    "branch_computations",
    "to_apply",
    "called_computations",
    "calls",
)
"""Computation-valued attributes in the order of ``Instruction.called_computations``."""

COMMON: dict[str, Form | Reference] = {
    "sharding": read_sharding,
    "frontend_attributes": read_frontend_attributes,
    "statistics": read_statistics,
    "parameter_replication": read_parameter_replication,
    "control-predecessors": Reference.INSTRUCTIONS,
    "origin": read_origin,
    "metadata": read_metadata,
    "backend_config": read_string_or_json,
}
"""Attributes that every opcode takes."""

MAIN = "main"


@frozen
class Given:
    """What has been read of an instruction when its payload is built.

    Attributes:
        shape: as written, ``None`` where left out.
        refuse: raises a ParseError at an attribute, or at the opcode when the name is unknown there.
    """

    opcode: Opcode
    values: dict[str, object]
    operands: Sequence[Instruction]
    shape: Shape | None
    refuse: Callable[[str, str], NoReturn]

    def get(self, name: str, kind: type[T], default: T) -> T:
        value = self.values.get(name, default)
        assert isinstance(value, kind), f"{name}={value!r}"
        return value

    def ints(self, name: str) -> Ints:
        value = self.values.get(name, ())
        assert isinstance(value, tuple), f"{name}={value!r}"
        return value  # pyright: ignore[reportUnknownVariableType]

    def integer(self, name: str, default: int = 0) -> int:
        return self.get(name, int, default)

    def number_or_none(self, name: str) -> int | None:
        return self.integer(name) if name in self.values else None

    def flag(self, name: str, default: bool = False) -> bool:
        return self.get(name, bool, default)

    def word(self, name: str, default: str = "") -> str:
        return self.get(name, str, default)

    def one(self, name: str) -> int:
        """The only entry of a list that must have exactly one."""
        values = self.ints(name)
        if len(values) != 1:
            self.refuse(name, f"expected exactly one entry in {name}, got {len(values)}")
        return values[0]

    def groups(self) -> ReplicaGroups:
        value = self.values.get("replica_groups", NO_GROUPS)
        return value  # pyright: ignore[reportReturnType]

    def aliasing(self) -> tuple[Aliasing, ...]:
        return self.values.get("output_to_operand_aliasing", ())  # pyright: ignore[reportReturnType]


Builder = Callable[[Given], Payload | None]


def _nothing(_given: Given) -> None:
    return None


@frozen
class OpcodeSyntax:
    """Attributes of one opcode.

    Attributes:
        looks_at_operands: the payload, or whether it is legal, depends on more than the attributes.
    """

    required: dict[str, Form | Reference] = field(factory=dict)
    optional: dict[str, Form | Reference] = field(factory=dict)
    build: Builder = _nothing
    looks_at_operands: bool = False

    def form(self, name: str) -> Form | Reference | None:
        """The reader of this attribute, or ``None`` if the opcode does not take it."""
        return self.required.get(name) or self.optional.get(name) or COMMON.get(name)

    def names(self) -> list[str]:
        return sorted({*self.required, *self.optional, *COMMON})


SYNTAX: dict[Opcode, OpcodeSyntax] = {}


def _syntax(
    opcodes: str,
    build: Builder = _nothing,
    *,
    required: dict[str, Form | Reference] | None = None,
    optional: dict[str, Form | Reference] | None = None,
    looks_at_operands: bool = False,
) -> None:
    entry = OpcodeSyntax(required or {}, optional or {}, build, looks_at_operands)
    for name in opcodes.split():
        assert Opcode(name) not in SYNTAX, name
        SYNTAX[Opcode(name)] = entry


# -- readers of simple values ------------------------------------------------------------------------------------------


def _read_integer(lexer: Lexer) -> int:
    return lexer.integer()


def _read_int32(lexer: Lexer) -> int:
    start = lexer.start
    value = lexer.integer()
    if not -(2**31) <= value < 2**31:
        raise lexer.source.error(f"expected a 32-bit integer, got {value}", start)
    return value


def _read_flag(lexer: Lexer) -> bool:
    return lexer.boolean()


def _read_string(lexer: Lexer) -> str:
    return lexer.string()


def _read_float(lexer: Lexer) -> float:
    if lexer.kind not in (Kind.INT, Kind.DECIMAL, "inf", "-inf"):
        lexer.fail("a number")
    value = float(lexer.value)
    lexer.advance()
    return value


def _read_int_lists(lexer: Lexer) -> tuple[Ints, ...]:
    return tuple(read_list(lexer, "{", "}", read_ints))


def _read_pairs(lexer: Lexer) -> tuple[tuple[int, int], ...]:
    return tuple(read_list(lexer, "{", "}", _read_pair))


def _read_pair(lexer: Lexer) -> tuple[int, int]:
    start = lexer.start
    numbers = read_ints(lexer)
    if len(numbers) != 2:
        raise lexer.source.error(f"expected a pair {{source,target}}, got {len(numbers)} numbers", start)
    return numbers[0], numbers[1]


def _read_default_shape(lexer: Lexer) -> Shape:
    return fill_layouts(read_shape(lexer))


def _read_shapes(lexer: Lexer) -> tuple[Shape, ...]:
    return tuple(read_list(lexer, "{", "}", _read_default_shape))


def fill_layouts(shape: Shape) -> Shape:
    """``shape`` with the default layout wherever none was written."""
    from layoutsim.ir import default_layout, map_arrays

    if has_layout(shape):
        return shape
    return map_arrays(shape, lambda leaf: leaf if leaf.layout is not None else leaf.with_layout(default_layout(leaf.rank)))


def _read_precisions(lexer: Lexer) -> tuple[str, ...]:
    found = tuple(read_list(lexer, "{", "}", word("default", "high", "highest", lower=True)))
    return () if all(precision == "default" for precision in found) else found


_DOT_ALGORITHMS = (
    "unset dot_any_f8_any_f8_f32 dot_any_f8_any_f8_f32_fast_accum dot_f16_f16_f16 dot_f16_f16_f32 dot_bf16_bf16_bf16 "
    "dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9 dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 "
    "dot_f32_f32_f32 dot_f64_f64_f64"
).split()


def _read_dot_algorithm(lexer: Lexer) -> str:
    found = word(*_DOT_ALGORITHMS, lower=True)(lexer)
    return "" if found == "unset" else found


def _upper(*allowed: str) -> Form:
    read = word(*(name.lower() for name in allowed), lower=True)
    return lambda lexer: read(lexer).upper()


# -- elementwise -------------------------------------------------------------------------------------------------------

_ACCURACY = (
    "acos acosh asin asinh atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine "
    "sinh sqrt tan tanh"
)


def _compare(given: Given) -> Payload:
    found = given.word("type") or None
    if found and given.operands and isinstance(shape := given.operands[0].shape, ArrayShape):
        found = None if found == default_comparison(shape.element_type) else found
    return ComparePayload(given.word("direction"), found)


def default_comparison(element_type: ElementType) -> str:
    """The comparison type that need not be written."""
    if element_type.is_floating or element_type.is_complex:
        return "FLOAT"
    return "SIGNED" if element_type.is_signed else "UNSIGNED"


_syntax(_ACCURACY, optional={"result_accuracy": read_result_accuracy})
_syntax(
    "compare",
    _compare,
    required={"direction": word("EQ", "NE", "GE", "GT", "LE", "LT")},
    optional={"type": word("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")},
    looks_at_operands=True,
)
_syntax(
    "reduce-precision",
    lambda given: ReducePrecisionPayload(given.integer("exponent_bits"), given.integer("mantissa_bits")),
    required={"exponent_bits": _read_integer, "mantissa_bits": _read_integer},
)
_syntax("domain", lambda given: given.get("domain", DomainPayload, DomainPayload("", "", "")), required={"domain": read_domain})
_syntax(
    " ".join(sorted((ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | ELEMENTWISE_TERNARY) - SYNTAX.keys())),
)
_syntax("opt-barrier bitcast add-dependency parameter constant dynamic-reshape dynamic-update-slice after-all replica-id")
_syntax("partition-id all-gather-done all-reduce-done collective-permute-done copy-done")


# -- data movement -----------------------------------------------------------------------------------------------------


def _dimensions(given: Given) -> Payload:
    return DimensionsPayload(given.ints("dimensions"))


def _one_dimension(given: Given) -> Payload:
    return DimensionsPayload((given.one("dimensions"),))


def _broadcast(given: Given) -> Payload:
    if "dimensions" not in given.values and given.operands:
        shape = given.operands[0].shape
        if not isinstance(shape, ArrayShape) or shape.rank:
            given.refuse("", f"expected attribute dimensions on a broadcast of {shape}, got none")
    if given.shape is None:
        given.refuse("", "expected a result shape on broadcast: its dimensions do not determine one")
    return _dimensions(given)


def _tuple(given: Given) -> None:
    if given.shape is None:
        return
    expected = len(given.shape.elements) if isinstance(given.shape, TupleShape) else -1
    if expected < 0:
        given.refuse("", f"expected a tuple shape on tuple, got {given.shape}")
    if len(given.operands) != expected:
        given.refuse("", f"expected {expected} operands as in the shape of the tuple, got {len(given.operands)}")


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


_DIMENSIONS: dict[str, Form | Reference] = {"dimensions": read_ints}
_syntax("iota", lambda given: IotaPayload(given.integer("iota_dimension")), required={"iota_dimension": _read_integer})
_syntax("broadcast", _broadcast, optional=_DIMENSIONS, looks_at_operands=True)
_syntax("transpose reverse", _dimensions, required=_DIMENSIONS)
_syntax("concatenate get-dimension-size set-dimension-size", _one_dimension, required=_DIMENSIONS)
_syntax(
    "reshape",
    lambda given: ReshapePayload(given.integer("inferred_dimension", -1)),
    optional={"inferred_dimension": _read_integer},
)
_syntax("slice", lambda given: given.get("slice", SlicePayload, SlicePayload((), (), ())), required={"slice": read_slice})
_syntax(
    "dynamic-slice",
    lambda given: DynamicSlicePayload(given.ints("dynamic_slice_sizes")),
    required={"dynamic_slice_sizes": read_ints},
)
_syntax(
    "pad", lambda given: given.get("padding", PadPayload, PadPayload((), (), ())), required={"padding": read_padding_config}
)
_syntax(
    "gather",
    _gather,
    required={
        "offset_dims": read_ints,
        "collapsed_slice_dims": read_ints,
        "start_index_map": read_ints,
        "index_vector_dim": _read_integer,
        "slice_sizes": read_ints,
    },
    optional={
        "operand_batching_dims": read_ints,
        "start_indices_batching_dims": read_ints,
        "indices_are_sorted": _read_flag,
    },
)
_syntax(
    "scatter",
    _scatter,
    required={
        "update_window_dims": read_ints,
        "inserted_window_dims": read_ints,
        "scatter_dims_to_operand_dims": read_ints,
        "index_vector_dim": _read_integer,
        "to_apply": COMPUTATION,
    },
    optional={
        "input_batching_dims": read_ints,
        "scatter_indices_batching_dims": read_ints,
        "indices_are_sorted": _read_flag,
        "unique_indices": _read_flag,
    },
)
_syntax("tuple", _tuple, looks_at_operands=True)
_syntax("get-tuple-element", lambda given: TupleIndexPayload(given.integer("index")), required={"index": _read_integer})


# -- contractions, reductions, windows ---------------------------------------------------------------------------------


def _dot(given: Given) -> DotPayload:
    return DotPayload(
        given.ints("lhs_contracting_dims"),
        given.ints("rhs_contracting_dims"),
        given.ints("lhs_batch_dims"),
        given.ints("rhs_batch_dims"),
        given.get("operand_precision", tuple[str, ...].__origin__, ()),
        given.word("algorithm"),
    )


def _ragged_dot(given: Given) -> Payload:
    return RaggedDotPayload(_dot(given), given.ints("lhs_ragged_dims"), given.ints("rhs_group_dims"))


_NO_LABELS = ConvolutionDimensionNumbers(0, 0, (), 0, 0, (), 0, 0, ())


def _convolution(given: Given) -> Payload:
    kind = given.word("convolution_kind")
    return ConvolutionPayload(
        given.get("window", Window, Window()),
        given.get("dim_labels", ConvolutionDimensionNumbers, _NO_LABELS),
        given.integer("feature_group_count", 1),
        given.integer("batch_group_count", 1),
        "" if kind == "unset" else kind,
        given.get("operand_precision", tuple[str, ...].__origin__, ()),
        given.word("sparsity_config"),
    )


def _window(given: Given) -> Payload:
    return WindowPayload(given.get("window", Window, Window()))


def _even_operands(given: Given) -> None:
    if given.operands and len(given.operands) % 2:
        given.refuse("", f"expected an even number of operands on {given.opcode}, got {len(given.operands)}")


def _reduce(given: Given) -> Payload:
    _even_operands(given)
    return _dimensions(given)


def _reduce_window(given: Given) -> Payload:
    _even_operands(given)
    return _window(given)


def _map(given: Given) -> Payload:
    if "dimensions" in given.values:
        return _dimensions(given)
    if not isinstance(given.shape, ArrayShape):
        given.refuse("", "expected attribute dimensions or an array shape on map, got neither")
    return DimensionsPayload(tuple(range(given.shape.rank)))


def _scan(given: Given) -> Payload:
    associative = given.flag("is_associative") if "is_associative" in given.values else None
    return ScanPayload(given.one("dimensions"), given.integer("num_carries"), given.flag("is_reverse"), associative)


def _fft(given: Given) -> Payload:
    return FftPayload(given.word("fft_type"), given.ints("fft_length"))


def _triangular_solve(given: Given) -> Payload:
    return TriangularSolvePayload(
        given.flag("left_side"), given.flag("lower"), given.flag("unit_diagonal"), given.word("transpose_a")
    )


def _batch_norm(given: Given) -> Payload:
    return BatchNormPayload(given.get("epsilon", float, 0.0), given.integer("feature_index"))


_APPLY: dict[str, Form | Reference] = {"to_apply": COMPUTATION}
_DOT_DIMENSIONS: dict[str, Form | Reference] = {
    "lhs_contracting_dims": read_ints,
    "rhs_contracting_dims": read_ints,
    "lhs_batch_dims": read_ints,
    "rhs_batch_dims": read_ints,
    "operand_precision": _read_precisions,
}
_syntax("dot scaled-dot", _dot, optional=_DOT_DIMENSIONS | {"algorithm": _read_dot_algorithm})
_syntax("ragged-dot", _ragged_dot, optional=_DOT_DIMENSIONS | {"lhs_ragged_dims": read_ints, "rhs_group_dims": read_ints})
_syntax(
    "convolution",
    _convolution,
    required={"dim_labels": read_dim_labels},
    optional={
        "window": read_window,
        "feature_group_count": _read_integer,
        "batch_group_count": _read_integer,
        "convolution_kind": word("fprop", "wgrad", "dgrad", "unset", lower=True),
        "operand_precision": _read_precisions,
        "sparsity_config": read_sparsity,
    },
)
_syntax("reduce", _reduce, required=_DIMENSIONS | _APPLY, looks_at_operands=True)
_syntax("reduce-window", _reduce_window, required=_APPLY, optional={"window": read_window}, looks_at_operands=True)
_syntax(
    "select-and-scatter",
    _window,
    required={"select": COMPUTATION, "scatter": COMPUTATION},
    optional={"window": read_window},
)
_syntax("map", _map, required=_APPLY, optional=_DIMENSIONS, looks_at_operands=True)
_syntax(
    "scan",
    _scan,
    required=_DIMENSIONS | _APPLY | {"num_carries": _read_integer},
    optional={"is_reverse": _read_flag, "is_associative": _read_flag},
)
_syntax("fft", _fft, required={"fft_type": _upper("FFT", "IFFT", "RFFT", "IRFFT"), "fft_length": read_ints})
_syntax("cholesky", lambda given: CholeskyPayload(given.flag("lower")), optional={"lower": _read_flag})
_syntax(
    "triangular-solve",
    _triangular_solve,
    optional={
        "left_side": _read_flag,
        "lower": _read_flag,
        "unit_diagonal": _read_flag,
        "transpose_a": word("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    },
)
_syntax(
    "sort",
    lambda given: SortPayload(given.one("dimensions"), given.flag("is_stable")),
    required=_DIMENSIONS | _APPLY,
    optional={"is_stable": _read_flag},
)
_syntax(
    "topk",
    lambda given: TopKPayload(given.integer("k"), given.flag("largest", True), given.flag("is_stable", True)),
    required={"k": _read_integer},
    optional={"largest": _read_flag, "is_stable": _read_flag},
)
_syntax(
    "batch-norm-training batch-norm-inference batch-norm-grad",
    _batch_norm,
    required={"epsilon": _read_float, "feature_index": _read_integer},
)


# -- control flow, effects, random -------------------------------------------------------------------------------------


def _conditional(given: Given) -> None:
    branches = given.values.get("branch_computations")
    pair = "true_computation" in given.values, "false_computation" in given.values
    if not given.operands:
        given.refuse("", "expected a branch index as the first operand of conditional, got none")
    index = given.operands[0].shape
    kind = index.element_type if isinstance(index, ArrayShape) and not index.rank else None
    if kind not in (ElementType.PRED, ElementType.S32):
        given.refuse("", f"expected a branch index of shape pred[] or s32[], got {index}")
    if kind is ElementType.PRED and (branches is not None or not all(pair)):
        given.refuse("branch_computations", "expected true_computation and false_computation for an index pred[]")
    if kind is ElementType.S32 and (branches is None or any(pair)):
        given.refuse("true_computation", "expected branch_computations for an index s32[]")
    count = 2 if branches is None else len(given.ints("branch_computations"))
    if not count or len(given.operands) != count + 1:
        given.refuse(
            "", f"expected a branch index and an operand for each of {count} branches, got {len(given.operands)} operands"
        )


def _custom_call(given: Given) -> Payload:
    constraints = given.values.get("operand_layout_constraints")
    if constraints is not None:
        _check_layout_constraints(given)
    if "to_apply" in given.values and "called_computations" in given.values:
        given.refuse("called_computations", "expected to_apply or called_computations, got both")
    schedule, version = given.word("schedule"), given.word("api_version")
    return CustomCallPayload(
        given.word("custom_call_target"),
        window=given.values.get("window"),  # pyright: ignore[reportArgumentType]
        dimension_numbers=given.values.get("dim_labels"),  # pyright: ignore[reportArgumentType]
        feature_group_count=given.integer("feature_group_count", 1),
        batch_group_count=given.integer("batch_group_count", 1),
        operand_precision=given.get("operand_precision", tuple[str, ...].__origin__, ()),
        padding_type=given.word("padding_type"),
        operand_layout_constraints=constraints,  # pyright: ignore[reportArgumentType]
        custom_call_has_side_effect=given.flag("custom_call_has_side_effect"),
        literal=given.get("literal", Literal, None) if "literal" in given.values else None,  # pyright: ignore[reportArgumentType]
        output_to_operand_aliasing=given.aliasing(),
        schedule="" if schedule == "SCHEDULE_NONE" else schedule,
        api_version="" if version == "API_VERSION_ORIGINAL" else version,
    )


def _check_layout_constraints(given: Given) -> None:
    shapes = given.get("operand_layout_constraints", tuple[Shape, ...].__origin__, ())
    name = "operand_layout_constraints"
    if len(shapes) != len(given.operands):
        given.refuse(name, f"expected a layout constraint for each of {len(given.operands)} operands, got {len(shapes)}")
    for operand, shape in zip(given.operands, shapes, strict=True):
        from layoutsim.ir import compatible

        if not compatible(operand.shape, shape):
            given.refuse(name, f"expected a constraint compatible with operand {operand.name} of {operand.shape}, got {shape}")


def _infeed(given: Given) -> Payload:
    return InfeedPayload(given.word("infeed_config"))


def _outfeed(given: Given) -> Payload:
    shape = given.values.get("outfeed_shape") or given.operands[0].shape
    return OutfeedPayload(shape, given.word("outfeed_config"))  # pyright: ignore[reportArgumentType]


def _send_recv(given: Given) -> Payload:
    channel = given.number_or_none("channel_id")
    operand = given.operands[0] if given.operands else None
    if given.opcode in (Opcode.SEND_DONE, Opcode.RECV_DONE) and operand and isinstance(operand.payload, SendRecvPayload):
        expected = operand.payload.channel_id
        if channel != expected:
            given.refuse("channel_id", f"expected the channel {expected} of {operand.name}, got {channel}")
    return SendRecvPayload(channel, given.flag("is_host_transfer"))


def _fusion(given: Given) -> Payload:
    return FusionPayload(given.word("kind"), given.aliasing())


_SEND_RECV: dict[str, Form | Reference] = {"channel_id": _read_integer, "is_host_transfer": _read_flag}
_ALIASING: dict[str, Form | Reference] = {"output_to_operand_aliasing": read_aliasing}
_syntax("call", lambda given: CallPayload(given.flag("is_composite")), required=_APPLY, optional={"is_composite": _read_flag})
_syntax(
    "fusion",
    _fusion,
    required={"kind": word("kLoop", "kInput", "kOutput", "kCustom"), "calls": COMPUTATION},
    optional=_ALIASING,
)
_syntax("while", required={"condition": COMPUTATION, "body": COMPUTATION})
_syntax(
    "conditional",
    _conditional,
    optional={
        "true_computation": COMPUTATION,
        "false_computation": COMPUTATION,
        "branch_computations": COMPUTATIONS,
    },
    looks_at_operands=True,
)
_syntax(
    "custom-call",
    _custom_call,
    required={"custom_call_target": _read_string},
    optional={
        "window": read_window,
        "dim_labels": read_dim_labels,
        "feature_group_count": _read_integer,
        "batch_group_count": _read_integer,
        "operand_precision": _read_precisions,
        "padding_type": _upper("PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"),
        "operand_layout_constraints": _read_shapes,
        "custom_call_has_side_effect": _read_flag,
        "literal": read_typed_literal,
        "schedule": _upper("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"),
        "api_version": _upper(
            "API_VERSION_ORIGINAL",
            "API_VERSION_STATUS_RETURNING",
            "API_VERSION_STATUS_RETURNING_UNIFIED",
            "API_VERSION_TYPED_FFI",
        ),
        "to_apply": COMPUTATION,
        "called_computations": COMPUTATIONS,
    }
    | _ALIASING,
    looks_at_operands=True,
)


def _async(given: Given) -> Payload:
    return AsyncPayload(given.word("async_execution_thread", MAIN), given.aliasing())


_THREAD: dict[str, Form | Reference] = {"async_execution_thread": _read_string}
_syntax("async-start", _async, required={"calls": COMPUTATION}, optional=_THREAD | _ALIASING, looks_at_operands=True)
_syntax("async-update async-done", _async, optional=_THREAD | {"calls": COMPUTATION}, looks_at_operands=True)
_syntax("infeed", _infeed, optional={"infeed_config": _read_string})
_syntax(
    "outfeed",
    _outfeed,
    optional={"outfeed_shape": _read_default_shape, "outfeed_config": _read_string},
    looks_at_operands=True,
)
_syntax("send send-done recv recv-done", _send_recv, optional=_SEND_RECV, looks_at_operands=True)
_syntax(
    "copy-start",
    lambda given: CopyStartPayload(given.number_or_none("cross_program_prefetch_index")),
    optional={"cross_program_prefetch_index": _read_int32},
)
_syntax(
    "rng",
    lambda given: RngPayload(given.word("distribution")),
    required={"distribution": word("rng_uniform", "rng_normal", lower=True)},
)
_syntax(
    "rng-bit-generator",
    lambda given: RngBitGeneratorPayload(given.word("algorithm")),
    required={"algorithm": word("rng_default", "rng_three_fry", "rng_philox", lower=True)},
)
_syntax(
    "rng-get-and-update-state",
    lambda given: RngGetAndUpdateStatePayload(given.integer("delta")),
    required={"delta": _read_integer},
)


# -- collectives -------------------------------------------------------------------------------------------------------

_CHANNEL: dict[str, Form | Reference] = {"channel_id": _read_integer, "replica_groups": read_replica_groups}
_CONSTRAIN: dict[str, Form | Reference] = {"constrain_layout": _read_flag}
_GLOBAL_IDS: dict[str, Form | Reference] = {"use_global_device_ids": _read_flag}
_MODE: dict[str, Form | Reference] = {
    "mode": word("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id")
}


def _collective(given: Given) -> Payload:
    """``mode`` is read and forgotten, as XLA does."""
    channel = given.number_or_none("channel_id")
    use_global_ids = given.flag("use_global_device_ids")
    gathers = given.opcode in (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START)
    if use_global_ids and channel is None and not gathers:
        given.refuse("use_global_device_ids", "expected channel_id together with use_global_device_ids=true, got none")
    dimension = given.one("dimensions") if "dimensions" in given.values else None
    return CollectivePayload(given.groups(), channel, given.flag("constrain_layout"), use_global_ids, dimension)


def _permute(given: Given) -> Payload:
    sizes = given.get("slice_sizes", tuple[Ints, ...].__origin__, ())
    pairs = given.get("source_target_pairs", tuple[tuple[int, int], ...].__origin__, ())
    if sizes and given.operands and len(given.operands) != 4:
        given.refuse("slice_sizes", f"expected 4 operands with slice_sizes, got {len(given.operands)}")
    return CollectivePermutePayload(pairs, given.number_or_none("channel_id"), sizes)


_syntax("all-gather all-gather-start", _collective, required=_DIMENSIONS, optional=_CHANNEL | _CONSTRAIN | _GLOBAL_IDS)
_syntax("all-reduce all-reduce-start", _collective, required=_APPLY, optional=_CHANNEL | _CONSTRAIN | _GLOBAL_IDS | _MODE)
_syntax("reduce-scatter", _collective, required=_APPLY | _DIMENSIONS, optional=_CHANNEL | _CONSTRAIN | _GLOBAL_IDS | _MODE)
_syntax("all-to-all", _collective, optional=_CHANNEL | _CONSTRAIN | _DIMENSIONS)
_syntax("ragged-all-to-all", _collective, optional=_CHANNEL | _DIMENSIONS)
_syntax("collective-broadcast", _collective, optional=_CHANNEL)
_syntax(
    "collective-permute collective-permute-start",
    _permute,
    required={"source_target_pairs": _read_pairs},
    optional={"channel_id": _read_integer, "slice_sizes": _read_int_lists},
    looks_at_operands=True,
)


def called_computations(values: dict[str, object]) -> tuple[Computation, ...]:
    """The computations among an instruction's attributes, in XLA's order."""
    found: list[Computation] = []
    for name in CALL_ORDER:
        value = values.get(name)
        if isinstance(value, Computation):
            found.append(value)
        elif isinstance(value, tuple):
            found += value  # pyright: ignore[reportUnknownArgumentType]
    return tuple(found)


def fixed_shape(given: Given) -> Shape | None:
    """The shape of opcodes whose written shape XLA replaces by the one it builds; ``None`` for all others."""
    from layoutsim.ir import TOKEN, array_shape, tuple_shape

    u32 = array_shape(ElementType.U32, ())
    match given.opcode:
        case Opcode.SEND:
            return tuple_shape((given.operands[0].shape, u32, TOKEN))
        case Opcode.RECV if isinstance(given.shape, TupleShape) and given.shape.elements:
            return tuple_shape((given.shape.elements[0], u32, TOKEN))
        case Opcode.RECV_DONE if isinstance(source := given.operands[0].shape, TupleShape) and source.elements:
            return tuple_shape((source.elements[0], TOKEN))
        case Opcode.SEND_DONE | Opcode.AFTER_ALL:
            return TOKEN
        case Opcode.ADD_DEPENDENCY:
            return given.operands[0].shape
        case _:
            return None


__all__ = ["CALL_ORDER", "COMMON", "SYNTAX", "Given", "OpcodeSyntax", "Reference", "fill_layouts", "with_default_layout"]
