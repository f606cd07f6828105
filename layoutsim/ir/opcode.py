"""The opcodes of HLO and what is common to all users of one (``xla/hlo/ir/hlo_opcode.h``; text spec, section 3).

An :class:`OpcodeSpec` holds only facts that every consumer shares: arity, which attributes name computations and how those
are called, and a category. What a consumer does with an opcode stands in that consumer's own rule table.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from attrs import frozen


class Opcode(StrEnum):
    """An operation; the value is its spelling in HLO text."""

    ABS = "abs"
    ACOS = "acos"
    ACOSH = "acosh"
    ADD = "add"
    ADD_DEPENDENCY = "add-dependency"
    AFTER_ALL = "after-all"
    ALL_GATHER = "all-gather"
    ALL_GATHER_DONE = "all-gather-done"
    ALL_GATHER_START = "all-gather-start"
    ALL_REDUCE = "all-reduce"
    ALL_REDUCE_DONE = "all-reduce-done"
    ALL_REDUCE_START = "all-reduce-start"
    ALL_TO_ALL = "all-to-all"
    AND = "and"
    ASIN = "asin"
    ASINH = "asinh"
    ASYNC_DONE = "async-done"
    ASYNC_START = "async-start"
    ASYNC_UPDATE = "async-update"
    ATAN2 = "atan2"
    ATANH = "atanh"
    BATCH_NORM_GRAD = "batch-norm-grad"
    BATCH_NORM_INFERENCE = "batch-norm-inference"
    BATCH_NORM_TRAINING = "batch-norm-training"
    BITCAST = "bitcast"
    BITCAST_CONVERT = "bitcast-convert"
    BROADCAST = "broadcast"
    CALL = "call"
    CBRT = "cbrt"
    CEIL = "ceil"
    CHOLESKY = "cholesky"
    CLAMP = "clamp"
    CLZ = "count-leading-zeros"
    COLLECTIVE_BROADCAST = "collective-broadcast"
    COLLECTIVE_PERMUTE = "collective-permute"
    COLLECTIVE_PERMUTE_DONE = "collective-permute-done"
    COLLECTIVE_PERMUTE_START = "collective-permute-start"
    COMPARE = "compare"
    COMPLEX = "complex"
    CONCATENATE = "concatenate"
    CONDITIONAL = "conditional"
    CONSTANT = "constant"
    CONVERT = "convert"
    CONVOLUTION = "convolution"
    COPY = "copy"
    COPY_DONE = "copy-done"
    COPY_START = "copy-start"
    COS = "cosine"
    COSH = "cosh"
    CUSTOM_CALL = "custom-call"
    DIVIDE = "divide"
    DOMAIN = "domain"
    DOT = "dot"
    DYNAMIC_RESHAPE = "dynamic-reshape"
    DYNAMIC_SLICE = "dynamic-slice"
    DYNAMIC_UPDATE_SLICE = "dynamic-update-slice"
    ERF = "erf"
    EXP = "exponential"
    EXPM1 = "exponential-minus-one"
    FFT = "fft"
    FLOOR = "floor"
    FUSION = "fusion"
    GATHER = "gather"
    GET_DIMENSION_SIZE = "get-dimension-size"
    GET_TUPLE_ELEMENT = "get-tuple-element"
    IMAG = "imag"
    INFEED = "infeed"
    IOTA = "iota"
    IS_FINITE = "is-finite"
    LOG = "log"
    LOG1P = "log-plus-one"
    LOGISTIC = "logistic"
    MAP = "map"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    MULHI = "mulhi"
    MULTIPLY = "multiply"
    NEGATE = "negate"
    NOT = "not"
    OPT_BARRIER = "opt-barrier"
    OR = "or"
    OUTFEED = "outfeed"
    PAD = "pad"
    PARAMETER = "parameter"
    PARTITION_ID = "partition-id"
    POPCNT = "popcnt"
    POWER = "power"
    RAGGED_ALL_TO_ALL = "ragged-all-to-all"
    RAGGED_DOT = "ragged-dot"
    REAL = "real"
    RECV = "recv"
    RECV_DONE = "recv-done"
    REDUCE = "reduce"
    REDUCE_PRECISION = "reduce-precision"
    REDUCE_SCATTER = "reduce-scatter"
    REDUCE_WINDOW = "reduce-window"
    REMAINDER = "remainder"
    REPLICA_ID = "replica-id"
    RESHAPE = "reshape"
    REVERSE = "reverse"
    RNG = "rng"
    RNG_BIT_GENERATOR = "rng-bit-generator"
    RNG_GET_AND_UPDATE_STATE = "rng-get-and-update-state"
    ROUND_NEAREST_AFZ = "round-nearest-afz"
    ROUND_NEAREST_EVEN = "round-nearest-even"
    RSQRT = "rsqrt"
    SCALED_DOT = "scaled-dot"
    SCAN = "scan"
    SCATTER = "scatter"
    SELECT = "select"
    SELECT_AND_SCATTER = "select-and-scatter"
    SEND = "send"
    SEND_DONE = "send-done"
    SET_DIMENSION_SIZE = "set-dimension-size"
    SHIFT_LEFT = "shift-left"
    SHIFT_RIGHT_ARITHMETIC = "shift-right-arithmetic"
    SHIFT_RIGHT_LOGICAL = "shift-right-logical"
    SIGN = "sign"
    SIN = "sine"
    SINH = "sinh"
    SLICE = "slice"
    SORT = "sort"
    SQRT = "sqrt"
    STOCHASTIC_CONVERT = "stochastic-convert"
    SUBTRACT = "subtract"
    TAN = "tan"
    TANH = "tanh"
    TOPK = "topk"
    TRANSPOSE = "transpose"
    TRIANGULAR_SOLVE = "triangular-solve"
    TUPLE = "tuple"
    WHILE = "while"
    XOR = "xor"

    @property
    def spec(self) -> OpcodeSpec:
        return _SPECS[self]


class CallContext(Enum):
    """How an instruction runs the computations it names (buffer spec, section 1.3)."""

    NONE = "none"
    CONTROL_FLOW = "control flow"
    """``call``, ``while``, ``conditional``, ``async-start``: the callee's values live in memory like the caller's."""
    EMBEDDED = "embedded"
    """Fusions, reducers, comparators, ...: the callee's values are the backend's business."""


@frozen
class OpcodeSpec:
    """What every consumer may know of an opcode.

    Attributes:
        arity: number of operands, or ``None`` when it varies.
        calls: how called computations run.
        is_elementwise: unary, binary or ternary and every operand has the result's dimensions (text spec, 3.2 to 3.4,
            without bitcast, domain, opt-barrier and add-dependency).
        is_collective: section 3.8 without the ``-done`` forms.
    """

    arity: int | None
    calls: CallContext = CallContext.NONE
    is_elementwise: bool = False
    is_collective: bool = False


def _words(text: str) -> list[Opcode]:
    return [Opcode(word) for word in text.split()]


ELEMENTWISE_UNARY = frozenset(
    _words(
        "abs acos acosh asin asinh atanh cbrt ceil floor round-nearest-afz round-nearest-even convert bitcast-convert copy "
        "cosine sine tan cosh sinh tanh count-leading-zeros erf exponential exponential-minus-one log log-plus-one logistic "
        "sqrt rsqrt imag real is-finite negate not popcnt sign reduce-precision"
    )
)
ELEMENTWISE_BINARY = frozenset(
    _words(
        "add multiply maximum minimum mulhi subtract divide remainder power atan2 shift-left shift-right-arithmetic "
        "shift-right-logical and or xor complex compare stochastic-convert"
    )
)
ELEMENTWISE_TERNARY = frozenset(_words("clamp select"))
ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | ELEMENTWISE_TERNARY

COLLECTIVES = frozenset(
    _words(
        "all-gather all-gather-start all-reduce all-reduce-start reduce-scatter all-to-all ragged-all-to-all "
        "collective-broadcast collective-permute collective-permute-start"
    )
)
ASYNC_STARTS = frozenset(_words("async-start all-gather-start all-reduce-start collective-permute-start copy-start"))
ASYNC_DONES = frozenset(_words("async-done all-gather-done all-reduce-done collective-permute-done copy-done"))

_CONTROL_FLOW = frozenset(_words("call while conditional async-start async-update async-done"))
_EMBEDDED = frozenset(
    _words(
        "fusion reduce reduce-window select-and-scatter map scan sort scatter custom-call all-reduce all-reduce-start "
        "reduce-scatter"
    )
)
_NO_OPERANDS = "constant parameter iota rng-get-and-update-state partition-id replica-id"
_ONE_OPERAND = (
    "domain opt-barrier bitcast broadcast reshape transpose reverse slice get-tuple-element get-dimension-size fft cholesky "
    "topk while async-update async-done infeed send-done recv recv-done copy-start copy-done rng-bit-generator "
    "all-gather-done all-reduce-done collective-permute-done"
)
_TWO_OPERANDS = "add-dependency set-dimension-size gather pad dot convolution triangular-solve outfeed send rng"
_OTHER_ARITIES = {
    3: "ragged-dot select-and-scatter batch-norm-training",
    4: "scaled-dot",
    5: "batch-norm-inference batch-norm-grad",
    6: "ragged-all-to-all",
}


def _arities() -> dict[Opcode, int]:
    arities: dict[Opcode, int] = {}
    for count, opcodes in [(1, ELEMENTWISE_UNARY), (2, ELEMENTWISE_BINARY), (3, ELEMENTWISE_TERNARY)]:
        arities |= dict.fromkeys(opcodes, count)
    for count, text in [(0, _NO_OPERANDS), (1, _ONE_OPERAND), (2, _TWO_OPERANDS), *_OTHER_ARITIES.items()]:
        arities |= dict.fromkeys(_words(text), count)
    return arities


def _calls(opcode: Opcode) -> CallContext:
    if opcode in _CONTROL_FLOW:
        return CallContext.CONTROL_FLOW
    return CallContext.EMBEDDED if opcode in _EMBEDDED else CallContext.NONE


_ARITIES = _arities()
_SPECS = {
    opcode: OpcodeSpec(
        arity=_ARITIES.get(opcode),
        calls=_calls(opcode),
        is_elementwise=opcode in ELEMENTWISE,
        is_collective=opcode in COLLECTIVES,
    )
    for opcode in Opcode
}
