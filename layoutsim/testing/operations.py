"""Random modules of single operations: every opcode that the real CPU compiler runs, over every element type it takes.

Where :mod:`~layoutsim.testing.modules` makes programs for layouts, these are about numbers: each operation has parameters of
its own and attributes of all kinds, and is a part of the result. A parameter's name says what its values may be:

* ``any``: everything: NaN, infinities, both zeros, the largest and smallest integers;
* ``tame``: what sums do not lose digits on: small integers, floats around zero;
* ``place``: positions in arrays, beyond their ends too.

:func:`operation_inputs` makes them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

from layoutsim.build import Builder
from layoutsim.errors import ShapeError
from layoutsim.interp import Value
from layoutsim.interp.values import Array, value_from
from layoutsim.ir import ArrayShape, ElementType, Instruction, Module, Opcode, array_shape
from layoutsim.ir.payloads import (
    ComparePayload,
    DimensionsPayload,
    IotaPayload,
    PadPayload,
    ReducePrecisionPayload,
    SlicePayload,
)
from layoutsim.testing.chooser import Chooser, SeededChooser, chance, subset

FLOATS = (ElementType.F32, ElementType.F32, ElementType.F64, ElementType.BF16, ElementType.F16)
SIGNED = (ElementType.S32, ElementType.S8, ElementType.S16, ElementType.S64)
UNSIGNED = (ElementType.U32, ElementType.U8, ElementType.U16, ElementType.U64)
COMPLEX = (ElementType.C64, ElementType.C128)
INTEGERS = (*SIGNED, *UNSIGNED)
PREDICATES = (ElementType.PRED,)
NARROW = (
    ElementType.F8E5M2,
    ElementType.F8E4M3FN,
    ElementType.F8E4M3B11FNUZ,
    ElementType.F8E5M2FNUZ,
    ElementType.F8E4M3FNUZ,
    ElementType.S4,
    ElementType.U4,
)


@frozen
class Drawing:
    """A module under construction."""

    builder: Builder
    chooser: Chooser

    def sizes(self, max_rank: int = 3, *, at_least: int = 0, largest: int = 5) -> tuple[int, ...]:
        """Dimensions of an array."""
        return tuple(self.chooser.integer(1, largest) for _ in range(self.chooser.integer(at_least, max_rank)))

    def given(self, values: str, element_type: ElementType, sizes: tuple[int, ...]) -> Instruction:
        """A parameter with such values."""
        return self.builder.parameter(array_shape(element_type, sizes), name=values)

    def payload_opcode(self, opcodes: str) -> Opcode:
        """One of these opcodes."""
        return Opcode(self.chooser.pick(opcodes.split()))


Operation = Callable[[Drawing], Instruction]


# -- element by element ------------------------------------------------------------------------------------------------------

_UNARY = {
    "abs negate sign copy": (*FLOATS, *SIGNED),
    "ceil floor round-nearest-afz round-nearest-even cosine sine tan tanh exponential exponential-minus-one log log-plus-one "
    "logistic sqrt rsqrt cbrt erf is-finite": FLOATS,
    "not popcnt count-leading-zeros": INTEGERS,
    "exponential-minus-one exponential log log-plus-one sqrt rsqrt tanh sine cosine negate abs real imag sign": COMPLEX,
    "not": PREDICATES,
}
_BINARY = {
    "add subtract multiply divide remainder power maximum minimum": (*FLOATS, *INTEGERS),
    "atan2": FLOATS,
    "and or xor shift-left shift-right-arithmetic shift-right-logical": INTEGERS,
    "add subtract multiply divide": COMPLEX,
    "and or xor maximum minimum": PREDICATES,
}


def unary(draw: Drawing) -> Instruction:
    """One operand."""
    opcodes = draw.chooser.pick(tuple(_UNARY))
    element_type, opcode = draw.chooser.pick(_UNARY[opcodes]), draw.payload_opcode(opcodes)
    values = "tame" if element_type in COMPLEX else "any"
    return draw.builder.apply(opcode, draw.given(values, element_type, draw.sizes(2, largest=9)))


def binary(draw: Drawing) -> Instruction:
    """Two operands."""
    opcodes = draw.chooser.pick(tuple(_BINARY))
    element_type, sizes, opcode = draw.chooser.pick(_BINARY[opcodes]), draw.sizes(2, largest=9), draw.payload_opcode(opcodes)
    values = "tame" if element_type in COMPLEX else "any"
    return draw.builder.apply(opcode, *(draw.given(values, element_type, sizes) for _ in range(2)))


def compare(draw: Drawing) -> Instruction:
    """All directions; floats in total order too."""
    kind = draw.chooser.pick((*FLOATS, *INTEGERS, *PREDICATES, *COMPLEX))
    directions = ("EQ", "NE") if kind in COMPLEX else ("EQ", "NE", "LT", "LE", "GT", "GE")
    order = "TOTALORDER" if kind.is_floating and chance(draw.chooser, 40) else None
    sizes = draw.sizes(2, largest=9)
    operands = [draw.given("any", kind, sizes) for _ in range(2)]
    return draw.builder.apply(Opcode.COMPARE, *operands, payload=ComparePayload(draw.chooser.pick(directions), order))


def convert(draw: Drawing) -> Instruction:
    """Between any two real types, through a narrow one now and then.

    From integers only those that the narrow types hold: where a large one becomes a NaN of eight bits, XLA's CPU compiler makes
    the largest unsigned integer of it, and 0 where the NaN came from a float.
    """
    kinds = (*FLOATS, *INTEGERS, *PREDICATES)
    kind, narrow = draw.chooser.pick(kinds), draw.chooser.pick(NARROW) if chance(draw.chooser, 40) else None
    operand = draw.given("any" if narrow is None or kind in FLOATS else "tame", kind, draw.sizes(2, largest=9))
    if narrow is not None:
        operand = draw.builder.convert(operand, narrow)
    return draw.builder.convert(operand, draw.chooser.pick(kinds))


def bitcast_convert(draw: Drawing) -> Instruction:
    """Other types of as many bits, or of half as many."""
    types = {16: ("f16", "bf16", "s16", "u16"), 32: ("f32", "s32", "u32"), 64: ("f64", "s64", "u64"), 8: ("s8", "u8")}
    bits, sizes = draw.chooser.pick((16, 32, 64)), draw.sizes(2, largest=5)
    source = draw.given("any", ElementType(draw.chooser.pick(types[bits][-2:])), sizes)  # bits of a NaN may change on the way
    if chance(draw.chooser, 30):
        bits, sizes = bits // 2, (*sizes, 2)
    options = types[bits][-2:] if bits == 8 or len(sizes) > 2 else types[bits]
    return draw.builder.apply(Opcode.BITCAST_CONVERT, source, shape=array_shape(ElementType(draw.chooser.pick(options)), sizes))


def reduce_precision(draw: Drawing) -> Instruction:
    """To few bits and many."""
    kind = draw.chooser.pick(FLOATS)
    payload = ReducePrecisionPayload(draw.chooser.integer(2, 8), draw.chooser.integer(0, 12))
    return draw.builder.apply(Opcode.REDUCE_PRECISION, draw.given("any", kind, draw.sizes(1, largest=20)), payload=payload)


def choose(draw: Drawing) -> Instruction:
    """``select`` and ``clamp``, by arrays and by scalars."""
    kind, sizes = draw.chooser.pick((*FLOATS, *INTEGERS)), draw.sizes(2, largest=9)
    small = () if chance(draw.chooser, 50) else sizes
    if chance(draw.chooser, 50):
        flags = draw.given("any", ElementType.PRED, small)
        return draw.builder.apply(Opcode.SELECT, flags, *(draw.given("any", kind, sizes) for _ in range(2)))
    bounds = [draw.given("any", kind, small) for _ in range(2)]
    return draw.builder.apply(Opcode.CLAMP, bounds[0], draw.given("any", kind, sizes), bounds[1])


def parts_of_complex(draw: Drawing) -> Instruction:
    """A complex number from its parts."""
    kind, sizes = draw.chooser.pick((ElementType.F32, ElementType.F64)), draw.sizes(2)
    return draw.builder.apply(Opcode.COMPLEX, *(draw.given("any", kind, sizes) for _ in range(2)))


# -- moving ------------------------------------------------------------------------------------------------------------------

_ANY = (*FLOATS, *INTEGERS, *COMPLEX, *PREDICATES)


def iota(draw: Drawing) -> Instruction:
    """Numbers along a dimension."""
    sizes = draw.sizes(at_least=1, largest=9)
    shape = array_shape(draw.chooser.pick((*FLOATS, *INTEGERS, *COMPLEX)), sizes)
    return draw.builder.apply(Opcode.IOTA, payload=IotaPayload(draw.chooser.integer(0, len(sizes) - 1)), shape=shape)


def pad(draw: Drawing) -> Instruction:
    """Edges of either sign, and gaps."""
    kind, sizes = draw.chooser.pick(_ANY), draw.sizes(at_least=1)
    low, high = (tuple(draw.chooser.integer(-2, 3) for _ in sizes) for _ in range(2))
    payload = PadPayload(low, high, tuple(draw.chooser.integer(0, 2) for _ in sizes))
    return draw.builder.apply(Opcode.PAD, draw.given("any", kind, sizes), draw.given("any", kind, ()), payload=payload)


def slices(draw: Drawing) -> Instruction:
    """Strided slices, and the reverse of an array."""
    kind, sizes = draw.chooser.pick(_ANY), draw.sizes(at_least=1, largest=7)
    operand = draw.given("any", kind, sizes)
    if chance(draw.chooser, 30):
        dimensions = tuple(subset(draw.chooser, range(len(sizes))))
        return draw.builder.apply(Opcode.REVERSE, operand, payload=DimensionsPayload(dimensions))
    starts = tuple(draw.chooser.integer(0, size) for size in sizes)
    limits = tuple(draw.chooser.integer(start, size) for start, size in zip(starts, sizes, strict=True))
    return draw.builder.apply(
        Opcode.SLICE, operand, payload=SlicePayload(starts, limits, tuple(draw.chooser.integer(1, 3) for _ in sizes))
    )


def dynamic_slices(draw: Drawing) -> Instruction:
    """Slices and updates at positions beyond the ends, of all integer types."""
    kind, sizes = draw.chooser.pick(_ANY), draw.sizes(at_least=1)
    index = draw.chooser.pick(INTEGERS)
    starts = [draw.given("place", index, ()) for _ in sizes]
    cut = tuple(draw.chooser.integer(1, size) for size in sizes)
    operand = draw.given("any", kind, sizes)
    if chance(draw.chooser, 50):
        return draw.builder.dynamic_slice(operand, starts, cut)
    return draw.builder.dynamic_update_slice(operand, draw.given("any", kind, cut), starts)


# -- modules and inputs ------------------------------------------------------------------------------------------------------


def random_operations(seed: int) -> Module:
    """A module of up to eight operations."""
    from layoutsim.testing.operations_structured import STRUCTURED

    table = (*_ELEMENTWISE, *STRUCTURED)
    module, chooser = Module("operations"), SeededChooser(seed)
    draw = Drawing(Builder("main", module), chooser)
    results: list[Instruction] = []
    for _ in range(chooser.integer(1, 8)):
        try:
            results.append(chooser.pick(table)(draw))
        except ShapeError:  # a window or slice that does not fit; its parameters stay, unused
            continue
    draw.builder.build(draw.builder.tuple(*results), is_entry=True)
    return module


_ELEMENTWISE: tuple[Operation, ...] = (
    *(unary, unary, unary, binary, binary, binary, compare, convert, convert, bitcast_convert, reduce_precision, choose),
    *(parts_of_complex, iota, pad, slices, dynamic_slices, dynamic_slices),
)

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3e38, -1e30, 1e-30, 70000.0, 300.0, -128.5, np.inf, -np.inf, np.nan)


def operation_inputs(module: Module, seed: int) -> tuple[Value, ...]:
    """Values of the entry's parameters, by their names."""
    generator = np.random.default_rng(seed)
    return tuple(_values(generator, p) for p in module.entry.parameters)


def _values(generator: np.random.Generator, parameter: Instruction) -> Value:
    shape = parameter.shape
    assert isinstance(shape, ArrayShape), parameter
    maker = {"any": _anything, "place": _places}.get(parameter.name.partition(".")[0], _tame)
    return value_from(maker(generator, shape), shape)


def _tame(generator: np.random.Generator, shape: ArrayShape) -> Array:
    kind, sizes = shape.element_type, shape.dimensions
    if kind.is_pred:
        return generator.random(sizes) < 0.5
    if kind.is_integral:
        return generator.integers(-3 if kind.is_signed else 0, 6, sizes)
    real = generator.normal(size=sizes)
    return real + 1j * generator.normal(size=sizes) if kind.is_complex else real


def _anything(generator: np.random.Generator, shape: ArrayShape) -> Array:
    kind, sizes = shape.element_type, shape.dimensions
    if kind.is_pred or kind.is_complex:
        return _tame(generator, shape)
    tame = _tame(generator, shape)
    if kind.is_integral:
        low, high = (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1) if kind.is_signed else (0, (1 << kind.bits) - 1)
        dtype = np.int64 if kind.is_signed else np.uint64
        special = np.array([low, low + 1, high, high - 1, high // 3, kind.bits, kind.bits - 1], dtype)
        return np.where(generator.random(sizes) < 0.5, generator.choice(special, sizes), tame.astype(dtype))
    return np.where(generator.random(sizes) < 0.4, generator.choice(np.array(_SPECIAL), sizes), tame * 4)


def _places(generator: np.random.Generator, shape: ArrayShape) -> Array:
    low = -3 if shape.element_type.is_signed else 0
    near = generator.integers(low, 8, shape.dimensions)
    far = 100 if generator.random() < 0.5 else -100 if low else 120
    return np.where(generator.random(shape.dimensions) < 0.1, far, near)
