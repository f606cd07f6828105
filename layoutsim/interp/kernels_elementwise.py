"""Kernels of elementwise opcodes (text spec, section 8.2).

Kernels here look at element types only, never at dimensions, so that they also run on whole slices when the body of a
reduction is evaluated for many elements at once (:mod:`layoutsim.interp.bodies`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from layoutsim.errors import UnsupportedError
from layoutsim.interp.registry import Call, kernel
from layoutsim.interp.rounding import convert, finish, integer_range, widen
from layoutsim.interp.strided import from_codes, to_codes
from layoutsim.interp.values import Array, Value
from layoutsim.ir import ElementType
from layoutsim.ir.payloads import ComparePayload, ReducePrecisionPayload

# -- unary -----------------------------------------------------------------------------------------------------------------


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(x.dtype)


def _cbrt(x: Array) -> Array:
    return np.cbrt(x)


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _round_away(x: Array) -> Array:
    """Halves away from zero; adding a half and truncating would push 0.49999997 up."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), np.copysign(whole, x)).astype(x.dtype)


_MATH: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cbrt": _cbrt,
    "ceil": np.ceil,
    "cosine": np.cos,
    "cosh": np.cosh,
    "erf": _erf,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": _logistic,
    "round-nearest-afz": _round_away,
    "round-nearest-even": np.rint,
    "rsqrt": _rsqrt,
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


@kernel(" ".join(_MATH))
def _math(call: Call) -> Value:
    with np.errstate(all="ignore"):
        return finish(_MATH[call.instruction.opcode.value](widen(call.array(0))), call.element_type)


@kernel("abs")
def _abs(call: Call) -> Value:
    return finish(np.abs(call.array(0)), call.element_type)


@kernel("negate")
def _negate(call: Call) -> Value:
    x = call.array(0)
    return finish(-x if x.dtype.kind != "u" else (np.zeros((), x.dtype) - x), call.element_type)


@kernel("sign")
def _sign(call: Call) -> Value:
    x = call.array(0)
    if x.dtype.kind == "c":
        size = np.abs(x)
        with np.errstate(all="ignore"):
            return finish(np.where(size == 0, 0, x / size), call.element_type)
    if x.dtype.kind == "f":
        return np.where(np.isnan(x) | (x == 0), x, np.copysign(np.ones((), x.dtype), x))
    return np.sign(x)


@kernel("not")
def _not(call: Call) -> Value:
    return finish(~call.array(0), call.element_type)


@kernel("is-finite")
def _is_finite(call: Call) -> Value:
    return np.isfinite(call.array(0))


@kernel("real")
def _real(call: Call) -> Value:
    return np.real(call.array(0)).copy()


@kernel("imag")
def _imag(call: Call) -> Value:
    return np.imag(call.array(0)).copy()


@kernel("popcnt")
def _popcnt(call: Call) -> Value:
    """Set bits of what is stored: XLA counts the sign bits above a negative ``s4`` too."""
    x = call.array(0)
    bits = x.view(f"u{x.dtype.itemsize}")
    count = sum(((bits >> i) & 1 for i in range(1, 8 * x.dtype.itemsize)), bits & 1)
    return finish(count.astype(x.dtype), call.element_type)


@kernel("count-leading-zeros")
def _count_leading_zeros(call: Call) -> Value:
    bits, width = _bits(call), _width(call)
    count = np.full(bits.shape, width, call.array(0).dtype)
    for i in range(width):  # the highest set bit is seen last
        count = np.where((bits >> i) & 1, np.array(width - 1 - i, count.dtype), count)
    return count


def _width(call: Call) -> int:
    return call.operand_shape(0).element_type.bits


def _bits(call: Call) -> Array:
    """The operand as unsigned numbers of its own width."""
    x = call.array(0)
    return x.view(f"u{x.dtype.itemsize}") & np.array((1 << _width(call)) - 1, f"u{x.dtype.itemsize}")


@kernel("convert")
def _convert(call: Call) -> Value:
    return convert(call.array(0), call.element_type)


@kernel("bitcast-convert")
def _bitcast_convert(call: Call) -> Value:
    """Same bits; where widths differ, the last dimension takes the parts, least significant first."""
    source, target = call.operand_shape(0).element_type, call.element_type
    codes = np.ascontiguousarray(to_codes(call.array(0), source)).reshape(call.array(0).shape)  # numpy makes scalars 1-D
    if min(source.bits, target.bits) < 8:
        return from_codes(_recut(codes, source.bits, target.bits), target)
    width, wanted = source.storage_bytes, target.storage_bytes
    if width > wanted:
        codes = codes.reshape(*codes.shape, 1)
    cast = codes.view(f"u{wanted}") if wanted <= 8 and width <= 8 else codes.view(_code_type(wanted))
    if wanted > width:
        cast = cast.reshape(codes.shape[:-1])
    return from_codes(cast, target)


def _recut(codes: Array, width: int, wanted: int) -> Array:
    """Codes of ``width`` bits as codes of ``wanted`` bits, where one of them is smaller than a byte."""
    bits = (codes[..., None].astype(np.int64) >> np.arange(width)) & 1
    if wanted > width:
        bits = bits.reshape(*codes.shape[:-1], wanted)
    elif wanted < width:
        bits = bits.reshape(*codes.shape, width // wanted, wanted)
    return (bits << np.arange(wanted)).sum(-1).astype(f"u{max(wanted, 8) // 8}")


def _code_type(size: int) -> str:
    return "c16" if size == 16 else f"u{size}"


@kernel("reduce-precision")
def _reduce_precision(call: Call) -> Value:
    payload = call.instruction.payload_as(ReducePrecisionPayload)
    x = call.array(0)
    wide = x.astype(np.float64)
    bias = (1 << (payload.exponent_bits - 1)) - 1
    with np.errstate(all="ignore"):
        # frexp gives [0.5, 1), so a number in [1, 2) * 2**e has frexp exponent e + 1.
        exponent = np.frexp(wide)[1] - 1
        quantum = exponent - payload.mantissa_bits
        rounded = np.ldexp(np.rint(np.ldexp(wide, -quantum)), quantum)
        new_exponent = np.frexp(rounded)[1] - 1
        result = np.where(new_exponent > bias, np.copysign(np.inf, wide), rounded)
        result = np.where(new_exponent <= -bias, np.copysign(0.0, wide), result)
    is_kept = ~np.isfinite(wide) | (wide == 0)
    return finish(np.where(is_kept, wide, result), call.element_type)


@kernel("copy copy-done")
def _copy(call: Call) -> Value:
    value = call.operands[0]
    if call.instruction.opcode.value == "copy-done":
        assert isinstance(value, tuple)
        return value[0]
    return value


# -- binary ----------------------------------------------------------------------------------------------------------------


def _arithmetic(call: Call, function: Callable[[Array, Array], Array]) -> Value:
    left, right = call.arrays
    with np.errstate(all="ignore"):
        return finish(function(widen(left), widen(right)), call.element_type)


@kernel("add")
def _add(call: Call) -> Value:
    return _arithmetic(call, np.logical_or if call.element_type.is_pred else np.add)


@kernel("multiply")
def _multiply(call: Call) -> Value:
    return _arithmetic(call, np.logical_and if call.element_type.is_pred else np.multiply)


@kernel("subtract")
def _subtract(call: Call) -> Value:
    return _arithmetic(call, np.subtract)


@kernel("maximum")
def _maximum(call: Call) -> Value:
    return _arithmetic(call, np.maximum)


@kernel("minimum")
def _minimum(call: Call) -> Value:
    return _arithmetic(call, np.minimum)


@kernel("and")
def _and(call: Call) -> Value:
    return _arithmetic(call, np.bitwise_and)


@kernel("or")
def _or(call: Call) -> Value:
    return _arithmetic(call, np.bitwise_or)


@kernel("xor")
def _xor(call: Call) -> Value:
    return _arithmetic(call, np.bitwise_xor)


@kernel("divide")
def _divide(call: Call) -> Value:
    if not call.element_type.is_integral:
        return _arithmetic(call, np.divide)
    quotient, _ = _divided(call.array(0), call.array(1), call.element_type)
    return finish(quotient, call.element_type)


@kernel("remainder")
def _remainder(call: Call) -> Value:
    if not call.element_type.is_integral:
        return _arithmetic(call, np.fmod)
    _, remainder = _divided(call.array(0), call.array(1), call.element_type)
    return finish(remainder, call.element_type)


def _divided(left: Array, right: Array, element_type: ElementType) -> tuple[Array, Array]:
    """Quotient truncated toward zero and remainder; ``x/0`` is all ones and ``x%0`` is x; ``MIN/-1`` is MIN."""
    is_zero = right == 0
    overflows = (right == -1) & (left == integer_range(element_type)[0]) if element_type.is_signed else np.False_
    safe = np.where(is_zero | overflows, np.ones((), right.dtype), right)
    remainder = np.fmod(left, safe)
    quotient = (left - remainder) // safe
    all_ones = np.array(-1 if element_type.is_signed else integer_range(element_type)[1], left.dtype)
    quotient = np.where(is_zero, all_ones, np.where(overflows, left, quotient))
    return quotient, np.where(is_zero, left, np.where(overflows, np.zeros((), left.dtype), remainder))


@kernel("power")
def _power(call: Call) -> Value:
    if call.element_type.is_integral:
        return finish(_integer_power(call.array(0), call.array(1)), call.element_type)
    return _arithmetic(call, np.power)


def _integer_power(base: Array, exponent: Array) -> Array:
    """Six squarings that wrap, as XLA emits them: only the exponent's low six bits count.

    An exponent with its sign bit set (unsigned ones too) gives 1 for base 1, 1 or -1 for base -1, and 0 otherwise.
    """
    base, left = np.broadcast_arrays(base, exponent)
    factor, result = base.copy(), np.ones_like(base)
    for _ in range(6):
        result = np.where(left & 1, result * factor, result)
        factor = factor * factor
        left = left >> 1
    signed = exponent.view(f"i{exponent.dtype.itemsize}")
    minus_one = (base == -1) * np.where(exponent & 1, -1, 1) if base.dtype.kind == "i" else 0
    return np.where(signed < 0, ((base == 1) + minus_one).astype(base.dtype), result)


@kernel("atan2")
def _atan2(call: Call) -> Value:
    if call.element_type.is_complex:
        y, x = call.arrays
        with np.errstate(all="ignore"):  # the principal value, from the logarithm
            return finish(-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)), call.element_type)
    return _arithmetic(call, np.arctan2)


@kernel("complex")
def _complex(call: Call) -> Value:
    real, imaginary = np.broadcast_arrays(*call.arrays)
    result = np.empty(real.shape, np.complex64 if call.element_type is ElementType.C64 else np.complex128)
    result.real, result.imag = real, imaginary
    return result


@kernel("mulhi")
def _mulhi(call: Call) -> Value:
    left, right = call.arrays
    width = call.element_type.bits
    product = left.astype(object) * right.astype(object)  # exact at any width
    return finish((product >> width).astype(left.dtype), call.element_type)


@kernel("shift-left")
def _shift_left(call: Call) -> Value:
    bits, amount, too_far = _shift(call)
    return finish(np.where(too_far, np.zeros((), bits.dtype), bits << amount), call.element_type)


@kernel("shift-right-logical")
def _shift_right_logical(call: Call) -> Value:
    x, amount, too_far = _shift(call)
    bits = x.view(f"u{x.dtype.itemsize}") & np.array((1 << _width(call)) - 1, f"u{x.dtype.itemsize}")
    shifted = bits >> amount.view(bits.dtype)
    return finish(np.where(too_far, np.zeros((), bits.dtype), shifted), call.element_type)


@kernel("shift-right-arithmetic")
def _shift_right_arithmetic(call: Call) -> Value:
    x, amount, too_far = _shift(call)
    signed = x.view(f"i{x.dtype.itemsize}")
    if call.element_type.is_unsigned and _width(call) < 8:
        signed = (signed << (8 - _width(call))) >> (8 - _width(call))
    shifted = signed >> amount.view(signed.dtype)
    filled = np.where(signed < 0, np.array(-1, signed.dtype), np.array(0, signed.dtype))
    return finish(np.where(too_far, filled, shifted).astype(signed.dtype).view(x.dtype), call.element_type)


def _shift(call: Call) -> tuple[Array, Array, Array]:
    """The number, the amount (0 where out of range) and where it is out of range: negative, or the width and more."""
    x, amount = call.arrays
    too_far = (amount < 0) | (amount >= _width(call))
    return x, np.where(too_far, np.zeros((), amount.dtype), amount).astype(amount.dtype), too_far


# -- comparison and choice -------------------------------------------------------------------------------------------------

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}


@kernel("compare")
def _compare(call: Call) -> Value:
    payload = call.instruction.payload_as(ComparePayload)
    left, right = call.arrays
    if payload.type == "TOTALORDER" and left.dtype.kind == "f":
        left, right = total_order(left), total_order(right)
    return _COMPARISONS[payload.direction](left, right)


def total_order(values: Array) -> Array:
    """Integers in the order -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN of floats."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"i{size}").reshape(values.shape)
    return np.where(bits < 0, bits ^ np.array((1 << (8 * size - 1)) - 1, bits.dtype), bits)


@kernel("select")
def _select(call: Call) -> Value:
    chosen, on_true, on_false = call.arrays
    return np.where(chosen, on_true, on_false)


@kernel("clamp")
def _clamp(call: Call) -> Value:
    low, x, high = call.arrays
    result = np.minimum(high, np.maximum(x, low))
    if x.dtype.kind == "f":
        for bound in (high, x, low):  # the first NaN of min, operand, max wins
            result = np.where(np.isnan(bound), bound, result)
    return finish(result, call.element_type)


@kernel("stochastic-convert")
def _stochastic_convert(call: Call) -> Value:
    """Round up with the probability that the random number's size gives."""
    x, random = call.arrays
    if not call.element_type.is_integral:
        raise UnsupportedError(f"{call.instruction.name}: stochastic-convert to {call.element_type} is not modelled")
    with np.errstate(all="ignore"):
        size = np.abs(x.astype(np.float64))
        whole = np.floor(size)
        threshold = np.ldexp(size - whole, 8 * random.dtype.itemsize)
        moved = whole + (random < threshold)
    return convert(np.copysign(moved, x), call.element_type)
