"""Shape rules of elementwise opcodes and of the identities (text spec, 3.2 to 3.4).

1. No implicit broadcasting: all operands have the result's dimensions. (XLA's client-side inference stretches size-1
   dimensions; its verifier refuses the result, and so does this rule.)
2. Operand types are the same up to floating precision; the result has the higher one.
3. The result keeps the first operand's layout, and a dimension is dynamic where any operand's is.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from layoutsim.infer.registry import Site, opcodes, shape_rule
from layoutsim.infer.shapes import (
    appended_minor,
    compatible_up_to_precision,
    component_type,
    dynamic_flags,
    higher_type,
    is_unbounded,
    new_array,
    same_sizes,
    same_type_up_to_precision,
    with_dynamic,
    with_type,
    without_dimension,
)
from layoutsim.ir import UNBOUNDED, ArrayShape, ElementType, Opcode, Shape
from layoutsim.ir.payloads import ComparePayload, ReducePrecisionPayload


@shape_rule(Opcode.COPY, Opcode.DOMAIN, Opcode.OPT_BARRIER)
def _identity(site: Site) -> Shape:
    return site.operands[0]


# -- unary -------------------------------------------------------------------------------------------------------------


def _operand(site: Site, expected: str, accepts: Callable[[ElementType], bool]) -> ArrayShape:
    """The one operand, of an accepted element type."""
    shape = site.array(0)
    if not accepts(shape.element_type):
        site.fail(f"operand 0 has element type {shape.element_type}, expected {expected}")
    return shape


def _floating_or_complex(element_type: ElementType) -> bool:
    return element_type.is_floating or element_type.is_complex


@shape_rule(Opcode.CBRT, Opcode.CEIL, Opcode.ERF, Opcode.FLOOR, Opcode.ROUND_NEAREST_AFZ, Opcode.ROUND_NEAREST_EVEN)
def _floating_unary(site: Site) -> Shape:
    return _operand(site, "a floating type", lambda t: t.is_floating)


@shape_rule(
    *opcodes(
        "acos acosh asin asinh atanh cosine cosh exponential exponential-minus-one log log-plus-one logistic rsqrt sine sinh "
        "sqrt tan tanh"
    )
)
def _floating_or_complex_unary(site: Site) -> Shape:
    return _operand(site, "a floating or complex type", _floating_or_complex)


@shape_rule(Opcode.IMAG, Opcode.REAL)
def _part(site: Site) -> Shape:
    shape = _operand(site, "a floating or complex type", _floating_or_complex)
    return with_type(shape, component_type(shape.element_type))


@shape_rule(Opcode.ABS)
def _abs(site: Site) -> Shape:
    shape = _operand(site, "a signed or complex type", lambda t: t.is_signed or t.is_complex)
    return with_type(shape, component_type(shape.element_type))


@shape_rule(Opcode.SIGN)
def _sign(site: Site) -> Shape:
    return _operand(site, "a signed or complex type", lambda t: t.is_signed or t.is_complex)


@shape_rule(Opcode.NEGATE)
def _negate(site: Site) -> Shape:
    return _operand(site, "an integral, floating or complex type", lambda t: not t.is_pred)


@shape_rule(Opcode.CLZ, Opcode.POPCNT)
def _integral_unary(site: Site) -> Shape:
    return _operand(site, "an integral type", lambda t: t.is_integral)


@shape_rule(Opcode.NOT)
def _not(site: Site) -> Shape:
    return _operand(site, "pred or an integral type", lambda t: t.is_pred or t.is_integral)


@shape_rule(Opcode.IS_FINITE)
def _is_finite(site: Site) -> Shape:
    return with_type(_operand(site, "a floating type", lambda t: t.is_floating), ElementType.PRED)


@shape_rule(Opcode.REDUCE_PRECISION)
def _reduce_precision(site: Site) -> Shape:
    payload = site.payload_as(ReducePrecisionPayload)
    if payload.exponent_bits < 1:
        site.fail(f"has exponent_bits {payload.exponent_bits}, expected at least 1")
    if payload.mantissa_bits < 0:
        site.fail(f"has mantissa_bits {payload.mantissa_bits}, expected at least 0")
    return _operand(site, "a floating type", lambda t: t.is_floating)


# -- conversions: the stated shape names the new element type ------------------------------------------------------------


@shape_rule(Opcode.CONVERT)
def _convert(site: Site) -> Shape:
    return with_type(site.array(0), site.stated_array().element_type)


@shape_rule(Opcode.BITCAST_CONVERT)
def _bitcast_convert(site: Site) -> Shape:
    """Equal widths keep the dimensions; a narrower type gets a new last dimension, a wider one eats the last."""
    operand, new = site.array(0), site.stated_array().element_type
    old = operand.element_type
    if old.is_complex != new.is_complex:
        site.fail(f"cannot convert between real and complex types {old} and {new}")
    wide, narrow = sorted((old.bits, new.bits), reverse=True)
    if wide % narrow:
        site.fail(f"widths of {old} and {new} do not divide")
    retyped = with_type(operand, new)
    if old.bits > new.bits:
        return appended_minor(retyped, wide // narrow)
    if old.bits < new.bits:
        if not operand.rank or operand.dimensions[-1] != wide // narrow:
            site.fail(f"operand 0 has shape {operand}, expected a last dimension of size {wide // narrow} for {new}")
        return without_dimension(retyped, operand.rank - 1)
    return retyped


@shape_rule(Opcode.STOCHASTIC_CONVERT)
def _stochastic_convert(site: Site) -> Shape:
    operand, random = site.array(0), site.array(1)
    if not operand.element_type.is_floating:
        site.fail(f"operand 0 has element type {operand.element_type}, expected a floating type")
    if not random.element_type.is_unsigned or random.element_type.bits != operand.element_type.bits:
        site.fail(f"operand 1 has element type {random.element_type}, expected u{operand.element_type.bits}")
    if not same_sizes(operand, random):
        site.fail(f"operand 1 has shape {random}, expected the dimensions of operand 0, {operand}")
    return with_type(operand, site.stated_array().element_type)


# -- binary ------------------------------------------------------------------------------------------------------------


def _binary(site: Site) -> ArrayShape:
    """Rules (1) to (3)."""
    left, right = site.arrays()
    if not same_type_up_to_precision(left.element_type, right.element_type):
        site.fail(f"operand 1 has shape {right}, expected element type {left.element_type} (same as operand 0)")
    if not same_sizes(left, right):
        site.fail(f"operand 1 has shape {right}, expected the dimensions of operand 0, {left}")
    element_type = higher_type(left.element_type, right.element_type)
    if is_unbounded(left) or is_unbounded(right):
        return _merged_unbounded(element_type, left, right)
    result = with_type(left, element_type)
    if not right.dynamic:
        return result
    return with_dynamic(result, map(any, zip(dynamic_flags(left), dynamic_flags(right), strict=True)))


def _merged_unbounded(element_type: ElementType, left: ArrayShape, right: ArrayShape) -> ArrayShape:
    """An unbounded dimension takes the other operand's size, except that a bounded one yields to it."""
    sizes: list[int] = []
    flags: list[bool] = []
    for a, b, a_dynamic, b_dynamic in zip(
        left.dimensions, right.dimensions, dynamic_flags(left), dynamic_flags(right), strict=True
    ):
        if a == b:
            size, flag = a, a_dynamic or b_dynamic
        else:
            size, flag = (b, b_dynamic) if a == UNBOUNDED else (a, a_dynamic)
        sizes.append(size)
        flags.append(flag)
    return new_array(element_type, sizes, flags)


@shape_rule(Opcode.ADD, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.MULTIPLY, Opcode.MULHI)
def _any_binary(site: Site) -> Shape:
    return _binary(site)


@shape_rule(
    Opcode.SUBTRACT,
    Opcode.DIVIDE,
    Opcode.REMAINDER,
    Opcode.POWER,
    Opcode.SHIFT_LEFT,
    Opcode.SHIFT_RIGHT_ARITHMETIC,
    Opcode.SHIFT_RIGHT_LOGICAL,
)
def _arithmetic_binary(site: Site) -> Shape:
    if any(shape.element_type.is_pred for shape in site.arrays()):
        site.fail("operands have element type pred, expected an arithmetic type")
    return _binary(site)


@shape_rule(Opcode.ATAN2)
def _atan2(site: Site) -> Shape:
    _operand(site, "a floating or complex type", _floating_or_complex)
    return _binary(site)


@shape_rule(Opcode.AND, Opcode.OR, Opcode.XOR)
def _bitwise(site: Site) -> Shape:
    _operand(site, "pred or an integral type", lambda t: t.is_pred or t.is_integral)
    return _binary(site)


@shape_rule(Opcode.COMPLEX)
def _complex(site: Site) -> Shape:
    result = _binary(site)
    types = {shape.element_type for shape in site.arrays()}
    for part, whole in ((ElementType.F32, ElementType.C64), (ElementType.F64, ElementType.C128)):
        if types == {part}:
            return with_type(result, whole)
    site.fail(f"operands have shapes {site.operands[0]} and {site.operands[1]}, expected both f32 or both f64")


@shape_rule(Opcode.COMPARE)
def _compare(site: Site) -> Shape:
    payload, result = site.payload_as(ComparePayload), _binary(site)
    default = default_compare_type(site.array(0).element_type)
    allowed = {default, "TOTALORDER"} if default == "FLOAT" else {default}
    if payload.type is not None and payload.type not in allowed:
        site.fail(f"has type {payload.type}, expected {' or '.join(sorted(allowed))} for {site.array(0).element_type}")
    return with_type(result, ElementType.PRED)


def default_compare_type(element_type: ElementType) -> str:
    """The comparison ``type`` that holds where the text states none."""
    if element_type.is_floating or element_type.is_complex:
        return "FLOAT"
    return "SIGNED" if element_type.is_signed else "UNSIGNED"


@shape_rule(Opcode.ADD_DEPENDENCY)
def _add_dependency(site: Site) -> Shape:
    site.token(1)
    return site.operands[0]


# -- ternary -----------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.CLAMP)
def _clamp(site: Site) -> Shape:
    low, operand, high = site.arrays()
    for number, bound in ((0, low), (2, high)):
        if not same_type_up_to_precision(bound.element_type, operand.element_type):
            site.fail(f"operand {number} has shape {bound}, expected element type {operand.element_type} (same as operand 1)")
        if bound.rank and not same_sizes(bound, operand):
            site.fail(f"operand {number} has shape {bound}, expected a scalar or the dimensions of operand 1, {operand}")
    return operand


@shape_rule(Opcode.SELECT)
def _select(site: Site) -> Shape:
    chosen, on_true, on_false = site.arrays()
    if not chosen.element_type.is_pred:
        site.fail(f"operand 0 has shape {chosen}, expected element type pred")
    if not compatible_up_to_precision(on_true, on_false):
        site.fail(f"operand 2 has shape {on_false}, expected {on_true} (same as operand 1)")
    if chosen.rank and not same_sizes(chosen, on_true):
        site.fail(f"operand 0 has shape {chosen}, expected a scalar or the dimensions of operand 1, {on_true}")
    element_type = higher_type(on_true.element_type, on_false.element_type)
    if is_unbounded(on_true) or is_unbounded(on_false):
        return _merged_unbounded(element_type, on_true, on_false)
    # XLA copies the predicate's shape, layout included, where it is not a scalar; only the storage width is a branch's.
    result = with_type(chosen if chosen.rank else on_true, element_type)
    if result.layout is not None and on_true.layout is not None:
        result = result.with_layout(evolve(result.layout, element_size_bits=on_true.layout.element_size_bits))
    dynamic = [shape for shape in (chosen, on_true, on_false) if shape.rank and shape.dynamic]
    return with_dynamic(result, map(any, zip(*map(dynamic_flags, dynamic), strict=True))) if dynamic else result
