"""Steps that compute element by element."""

from __future__ import annotations

from layoutsim.ir import ArrayShape, ElementType, Opcode, array_shape
from layoutsim.ir.payloads import ComparePayload, ReducePrecisionPayload
from layoutsim.testing.chooser import chance
from layoutsim.testing.scope import BF16, F16, F32, PRED, S8, S32, Scope, scalar_function

_FLOATING = (F32, BF16, F16)
_PACKED = (ElementType.S4, ElementType.U4, ElementType.S4, ElementType.S2, ElementType.U2)
_NARROW = {2: ElementType.S16, 4: ElementType.S8}


def unary(scope: Scope) -> None:
    """One operand, same type."""
    operand = scope.any_array(lambda s: s.element_type in _FLOATING or s.element_type is S32)
    assert isinstance(operand.shape, ArrayShape)
    names = (Opcode.NEGATE, Opcode.ABS, Opcode.SIGN, Opcode.COPY)
    if operand.shape.element_type in _FLOATING:
        names += (Opcode.EXP, Opcode.TANH, Opcode.LOG, Opcode.SQRT)
    scope.keep(scope.builder.apply(scope.chooser.pick(names), operand))


def binary(scope: Scope) -> None:
    """Two operands, which may be the same value."""
    left = scope.any_array(lambda s: s.element_type is not PRED)
    opcode = scope.chooser.pick((Opcode.ADD, Opcode.MULTIPLY, Opcode.SUBTRACT, Opcode.MAXIMUM))
    scope.keep(scope.builder.apply(opcode, left, scope.like(left)))


def ternary(scope: Scope) -> None:
    """A select behind a compare, or a clamp."""
    left = scope.any_array(lambda s: s.element_type is not PRED)
    right = scope.like(left)
    if chance(scope.chooser, 30):
        scope.keep(scope.builder.apply(Opcode.CLAMP, left, right, scope.like(left)))
        return
    condition = scope.builder.apply(Opcode.COMPARE, left, right, payload=ComparePayload("LT"))
    scope.keep(scope.builder.select(scope.keep(condition), left, right))


def convert(scope: Scope) -> None:
    """Another element type."""
    operand = scope.any_array(lambda s: s.element_type is not PRED)
    assert isinstance(operand.shape, ArrayShape)
    options = [t for t in (F32, BF16, F16, S32, S8) if t is not operand.shape.element_type]
    scope.keep(scope.builder.convert(operand, scope.chooser.pick(options)))


def pack(scope: Scope) -> None:
    """An element type narrower than a byte."""
    operand = scope.any_array(lambda s: s.element_type is not PRED)
    scope.keep(scope.builder.convert(operand, scope.chooser.pick(_PACKED)))


def reduce_precision(scope: Scope) -> None:
    """Rounding to fewer bits."""
    operand = scope.any_array(lambda s: s.element_type is F32)
    scope.keep(scope.builder.apply(Opcode.REDUCE_PRECISION, operand, payload=ReducePrecisionPayload(5, 10)))


def map_elements(scope: Scope) -> None:
    """``map`` of a scalar function over two arrays."""
    from layoutsim.ir.payloads import DimensionsPayload

    left = scope.any_array(lambda s: s.element_type is F32)
    assert isinstance(left.shape, ArrayShape)
    reducer = scalar_function(scope, Opcode.ADD, F32)
    payload = DimensionsPayload(tuple(range(left.shape.rank)))
    scope.keep(scope.builder.apply(Opcode.MAP, left, scope.like(left), payload=payload, calls=[reducer]))


def bitcast_convert(scope: Scope) -> None:
    """Reinterpret elements: same width, split into a new minor dimension, or merged out of one."""
    builder = scope.builder
    mode = scope.chooser.pick(("same", "split", "merge"))
    if mode == "same":
        operand = scope.any_array(lambda s: s.element_type is F32)
        assert isinstance(operand.shape, ArrayShape)
        shape = array_shape(S32, operand.shape.dimensions)
    elif mode == "split":
        operand = scope.any_array(lambda s: s.element_type is F32)
        assert isinstance(operand.shape, ArrayShape)
        parts = scope.chooser.pick((2, 4))
        shape = array_shape(_NARROW[parts], (*operand.shape.dimensions, parts))
    else:
        dims = scope.random_shape(max_rank=3).dimensions
        operand = scope.array_of(S8, (*dims, 4))
        shape = array_shape(S32, dims)
    scope.keep(builder.apply(Opcode.BITCAST_CONVERT, operand, shape=shape))
