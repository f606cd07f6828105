"""Operations that combine elements: sums, products, windows, gathers, sorts, transforms, with attributes of all kinds."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from layoutsim.build import Builder
from layoutsim.errors import ShapeError
from layoutsim.ir import Computation, ElementType, Instruction, Opcode, array_shape, tuple_shape
from layoutsim.ir.payloads import (
    BatchNormPayload,
    CholeskyPayload,
    ComparePayload,
    ConvolutionDimensionNumbers,
    ConvolutionPayload,
    DimensionsPayload,
    DotPayload,
    FftPayload,
    GatherPayload,
    RngBitGeneratorPayload,
    ScatterPayload,
    SortPayload,
    TriangularSolvePayload,
    Window,
    WindowDimension,
    WindowPayload,
)
from layoutsim.testing.chooser import chance, permutation, subset
from layoutsim.testing.operations import COMPLEX, FLOATS, INTEGERS, PREDICATES, UNSIGNED, Drawing, Operation

_REALS = (*FLOATS, *INTEGERS)


def _reducer(draw: Drawing, opcode: Opcode, kind: ElementType) -> Computation:
    """A computation of its own for each operation."""
    assert draw.builder.module is not None
    inner = Builder(draw.builder.module.unique_name("reducer"), draw.builder.module)
    return inner.build(inner.apply(opcode, *(inner.parameter(array_shape(kind, ())) for _ in range(2))))


def _constant(draw: Drawing, value: float, kind: ElementType) -> Instruction:
    constant = draw.builder.constant(np.float64(value) if kind.is_floating or kind.is_complex else np.int64(value))
    return draw.builder.convert(constant, kind)


def _identity(draw: Drawing, opcode: Opcode, kind: ElementType) -> Instruction:
    if opcode in (Opcode.MAXIMUM, Opcode.MINIMUM) and not kind.is_floating:
        bits = kind.bits - int(kind.is_signed)
        low, high = (-(1 << bits) if kind.is_signed else 0), (1 << bits) - 1
        extreme = low if opcode is Opcode.MAXIMUM else high
        return draw.builder.constant(np.array(extreme, np.dtype(("int" if kind.is_signed else "uint") + str(kind.bits))))
    identities = {Opcode.MULTIPLY: 1.0, Opcode.AND: -1.0, Opcode.MAXIMUM: -np.inf, Opcode.MINIMUM: np.inf}
    if kind.is_pred:
        return draw.builder.constant(np.array(opcode in (Opcode.AND, Opcode.MINIMUM)))
    return _constant(draw, identities.get(opcode, 0.0), kind)


def _reduction(draw: Drawing) -> tuple[Opcode, ElementType]:
    """A monoid."""
    kind = draw.chooser.pick((*_REALS, *COMPLEX, *PREDICATES))
    if kind in PREDICATES:
        return draw.payload_opcode("and or"), kind
    if kind in COMPLEX:
        return draw.payload_opcode("add multiply"), kind
    return draw.payload_opcode("add add multiply maximum minimum" + (" or and xor" if kind.is_integral else "")), kind


def reduce(draw: Drawing) -> Instruction:
    """Any monoid over any dimensions."""
    opcode, kind = _reduction(draw)
    sizes = draw.sizes(at_least=1, largest=6)
    dimensions = tuple(subset(draw.chooser, range(len(sizes)), at_least=1))
    operand = draw.given("tame", kind, sizes)
    return draw.builder.apply(
        Opcode.REDUCE,
        operand,
        _identity(draw, opcode, kind),
        payload=DimensionsPayload(dimensions),
        calls=[_reducer(draw, opcode, kind)],
    )


def _window(draw: Drawing, sizes: tuple[int, ...], *, dilated: bool = True) -> Window:
    def dimension() -> WindowDimension:
        return WindowDimension(
            draw.chooser.integer(1, 3),
            stride=draw.chooser.integer(1, 2),
            padding_low=draw.chooser.integer(0, 2),
            padding_high=draw.chooser.integer(0, 2),
            window_dilation=draw.chooser.pick((1, 1, 2)) if dilated else 1,
            base_dilation=draw.chooser.pick((1, 1, 2)) if dilated else 1,
        )

    return Window(tuple(dimension() for _ in sizes))


def reduce_window(draw: Drawing) -> Instruction:
    """Windows with strides, padding and dilation on both sides."""
    kind, opcode = draw.chooser.pick(_REALS), draw.payload_opcode("add maximum minimum")
    sizes = draw.sizes(at_least=1, largest=6)
    return draw.builder.apply(
        Opcode.REDUCE_WINDOW,
        draw.given("tame", kind, sizes),
        _identity(draw, opcode, kind),
        payload=WindowPayload(_window(draw, sizes)),
        calls=[_reducer(draw, opcode, kind)],
    )


def select_and_scatter(draw: Drawing) -> Instruction:
    """The gradient of a pooling.

    Of floats, since XLA's CPU compiler selects among equal elements in an order of its own where windows are padded; and no
    window lies in padding alone, since it then selects elements of other windows.
    """
    kind, sizes = draw.chooser.pick((ElementType.F32, ElementType.F64)), draw.sizes(at_least=1, largest=6)
    window = _window(draw, sizes, dilated=False)
    window = Window(
        tuple(
            evolve(w, padding_low=min(w.padding_low, w.size - 1), padding_high=min(w.padding_high, w.size - 1))
            for w in window.dimensions
        )
    )
    pairs = zip(sizes, window.dimensions, strict=True)
    windows = tuple((size + w.padding_low + w.padding_high - w.size) // w.stride + 1 for size, w in pairs)
    if min(windows) < 1:
        raise ShapeError(f"no window of {window} fits over {sizes}")
    operands = draw.given("tame", kind, sizes), draw.given("tame", kind, windows), _constant(draw, 0, kind)
    assert draw.builder.module is not None
    select = Builder(draw.builder.module.unique_name("select"), draw.builder.module)
    pair = [select.parameter(array_shape(kind, ())) for _ in range(2)]
    chosen = select.build(select.compare(pair[0], pair[1], draw.chooser.pick(("GE", "LE"))))
    calls = [chosen, _reducer(draw, Opcode.ADD, kind)]
    return draw.builder.apply(Opcode.SELECT_AND_SCATTER, *operands, payload=WindowPayload(window), calls=calls)


def dot(draw: Drawing) -> Instruction:
    """Batch, contracting and free dimensions in any order."""
    chooser, kind = draw.chooser, draw.chooser.pick((*FLOATS, ElementType.S32, ElementType.S64, *COMPLEX))
    batch, shared, left, right = (draw.sizes(2, largest=4) for _ in range(4))
    first, second = permutation(chooser, len(batch + shared + left)), permutation(chooser, len(batch + shared + right))

    def operand(sizes: tuple[int, ...], order: tuple[int, ...]) -> Instruction:
        placed = [0] * len(sizes)
        for size, at in zip(sizes, order, strict=True):
            placed[at] = size
        return draw.given("tame", kind, tuple(placed))

    b, k = len(batch), len(batch + shared)
    payload = DotPayload(first[b:k], second[b:k], first[:b], second[:b])
    operands = operand(batch + shared + left, first), operand(batch + shared + right, second)
    return draw.builder.apply(Opcode.DOT, *operands, payload=payload)


def convolution(draw: Drawing) -> Instruction:
    """One or two spatial dimensions, groups, dilation, negative padding, reversal, any order of dimensions."""
    chooser, rank = draw.chooser, draw.chooser.integer(1, 2)
    kind = chooser.pick((ElementType.F32, ElementType.F32, ElementType.F64, ElementType.BF16))
    groups, batch_groups = chooser.pick(((1, 1), (1, 1), (2, 1), (1, 2)))
    batch, inputs = chooser.integer(1, 2) * batch_groups, chooser.integer(1, 2)
    outputs = chooser.integer(1, 2) * groups * batch_groups
    image = (batch, inputs * groups, *(chooser.integer(2, 5) for _ in range(rank)))
    window = Window(
        tuple(
            WindowDimension(
                chooser.integer(1, 3),
                stride=chooser.integer(1, 2),
                padding_low=chooser.integer(-1, 2),
                padding_high=chooser.integer(-1, 2),
                window_dilation=chooser.integer(1, 2),
                base_dilation=chooser.integer(1, 2),
                reversal=chance(chooser, 30),
            )
            for _ in range(rank)
        )
    )
    kernel = (inputs, outputs, *(w.size for w in window.dimensions))
    orders = [permutation(chooser, rank + 2) for _ in range(3)]
    (a, b, c), (d, e, f), (g, h, i) = ((order[0], order[1], order[2:]) for order in orders)
    numbers = ConvolutionDimensionNumbers(a, b, c, d, e, f, g, h, i)

    def placed(sizes: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sizes[order.index(d)] for d in range(len(sizes)))

    operands = draw.given("tame", kind, placed(image, orders[0])), draw.given("tame", kind, placed(kernel, orders[1]))
    return draw.builder.apply(Opcode.CONVOLUTION, *operands, payload=ConvolutionPayload(window, numbers, groups, batch_groups))


def gather(draw: Drawing) -> Instruction:
    """Slices at positions in any dimensions, within and beyond the ends."""
    chooser, kind = draw.chooser, draw.chooser.pick((*_REALS, *COMPLEX, *PREDICATES))
    sizes = draw.sizes(at_least=1)
    rank = len(sizes)
    cuts = tuple(chooser.integer(1, size) for size in sizes)
    starts = permutation(chooser, rank)[: chooser.integer(1, rank)]
    collapsed = tuple(subset(chooser, [d for d in range(rank) if cuts[d] == 1]))
    batch = draw.sizes(2)
    vector = chooser.integer(0, len(batch))
    indices = draw.given("place", chooser.pick(INTEGERS), (*batch[:vector], len(starts), *batch[vector:]))
    places = range(len(batch) + rank - len(collapsed))
    offsets = tuple(sorted(permutation(chooser, len(places))[: rank - len(collapsed)]))
    payload = GatherPayload(offsets, collapsed, starts, vector, cuts)
    return draw.builder.apply(Opcode.GATHER, draw.given("any", kind, sizes), indices, payload=payload)


def scatter(draw: Drawing) -> Instruction:
    """Updates of slices at positions in any dimensions, combined where they meet; those that do not fit are left out."""
    chooser, kind = draw.chooser, draw.chooser.pick(_REALS)
    opcode = draw.payload_opcode("add maximum minimum multiply")
    sizes = draw.sizes(at_least=1)
    rank = len(sizes)
    inserted = tuple(subset(chooser, range(rank)))
    window = tuple(chooser.integer(1, size) for d, size in enumerate(sizes) if d not in inserted)
    starts = permutation(chooser, rank)[: chooser.integer(1, rank)]
    batch = draw.sizes(2)
    vector = chooser.integer(0, len(batch))
    indices = draw.given("place", chooser.pick(INTEGERS), (*batch[:vector], len(starts), *batch[vector:]))
    window_dims = tuple(sorted(permutation(chooser, len(batch) + len(window))[: len(window)]))
    rest, inside = iter(batch), iter(window)
    updates = tuple(next(inside) if d in window_dims else next(rest) for d in range(len(batch) + len(window)))
    return draw.builder.apply(
        Opcode.SCATTER,
        draw.given("tame", kind, sizes),
        indices,
        draw.given("tame", kind, updates),
        payload=ScatterPayload(window_dims, inserted, starts, vector),
        calls=[_reducer(draw, opcode, kind)],
    )


def sort(draw: Drawing) -> Instruction:
    """Keys in total order, with values that follow."""
    chooser, sizes = draw.chooser, draw.sizes(at_least=1, largest=9)
    kinds = [chooser.pick(_REALS) for _ in range(chooser.integer(1, 3))]
    operands = [draw.given("any", kind, sizes) for kind in kinds]
    assert draw.builder.module is not None
    inner = Builder(draw.builder.module.unique_name("comparator"), draw.builder.module)
    parameters = [inner.parameter(array_shape(kind, ())) for kind in kinds for _ in range(2)]
    order = ComparePayload(chooser.pick(("LT", "GT")), "TOTALORDER" if kinds[0].is_floating else None)
    compare = inner.build(inner.apply(Opcode.COMPARE, *parameters[:2], payload=order))
    payload = SortPayload(chooser.integer(0, len(sizes) - 1), is_stable=True)
    return draw.builder.apply(Opcode.SORT, *operands, payload=payload, calls=[compare])


def fft(draw: Drawing) -> Instruction:
    """All four kinds over one to three dimensions."""
    chooser, wide = draw.chooser, chance(draw.chooser, 40)
    real, complex_ = (ElementType.F64, ElementType.C128) if wide else (ElementType.F32, ElementType.C64)
    sizes = draw.sizes(3, at_least=1, largest=8)
    lengths = sizes[chooser.integer(0, len(sizes) - 1) :]
    kind = chooser.pick(("FFT", "IFFT", "RFFT", "IRFFT"))
    given = (*sizes[:-1], sizes[-1] // 2 + 1) if kind == "IRFFT" else sizes
    operand = draw.given("tame", real if kind == "RFFT" else complex_, given)
    return draw.builder.apply(Opcode.FFT, operand, payload=FftPayload(kind, lengths))


def triangular_solve(draw: Drawing) -> Instruction:
    """Either side, either triangle, transposed or not."""
    chooser = draw.chooser
    kind = chooser.pick((ElementType.F32, ElementType.F64, *COMPLEX))
    batch, size, other = draw.sizes(1), chooser.integer(1, 3), chooser.integer(1, 3)
    left, lower, unit = (chance(chooser, 50) for _ in range(3))
    payload = TriangularSolvePayload(left, lower, unit, chooser.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")))
    sides = (*batch, size, other) if left else (*batch, other, size)
    operands = draw.given("tame", kind, (*batch, size, size)), draw.given("tame", kind, sides)
    return draw.builder.apply(Opcode.TRIANGULAR_SOLVE, *operands, payload=payload)


def cholesky(draw: Drawing) -> Instruction:
    """Of matrices that mostly have no factor."""
    kind, size = draw.chooser.pick((ElementType.F32, ElementType.F64, *COMPLEX)), draw.chooser.integer(1, 2)
    operand = draw.given("tame", kind, (*draw.sizes(1), size, size))
    return draw.builder.apply(Opcode.CHOLESKY, operand, payload=CholeskyPayload(chance(draw.chooser, 50)))


def batch_norm(draw: Drawing) -> Instruction:
    """Training, inference and gradient, over any dimension."""
    sizes = tuple(size + 1 for size in draw.sizes(at_least=2, largest=4))  # the variance of one number is all rounding
    feature = draw.chooser.integer(0, len(sizes) - 1)
    payload, kind = BatchNormPayload(0.01, feature), ElementType.F32
    image, vector = draw.given("tame", kind, sizes), (sizes[feature],)
    scale, offset, mean = (draw.given("tame", kind, vector) for _ in range(3))
    variance = draw.builder.apply(Opcode.ABS, draw.given("tame", kind, vector))
    match draw.payload_opcode("batch-norm-training batch-norm-inference batch-norm-grad"):
        case Opcode.BATCH_NORM_TRAINING:
            return draw.builder.apply(Opcode.BATCH_NORM_TRAINING, image, scale, offset, payload=payload)
        case Opcode.BATCH_NORM_INFERENCE:
            return draw.builder.apply(Opcode.BATCH_NORM_INFERENCE, image, scale, offset, mean, variance, payload=payload)
        case _:
            grad = draw.given("tame", kind, sizes)
            return draw.builder.apply(Opcode.BATCH_NORM_GRAD, image, scale, mean, variance, grad, payload=payload)


def random_bits(draw: Drawing) -> Instruction:
    """All algorithms and integer types."""
    algorithm, words = draw.chooser.pick((("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 2)))
    state = draw.given("any", ElementType.U64, (words,))
    bits = array_shape(draw.chooser.pick(UNSIGNED), draw.sizes(largest=7))
    shape = tuple_shape((array_shape(ElementType.U64, (words,)), bits))
    return draw.builder.apply(Opcode.RNG_BIT_GENERATOR, state, payload=RngBitGeneratorPayload(algorithm), shape=shape)


STRUCTURED: tuple[Operation, ...] = (
    *(reduce, reduce, reduce_window, select_and_scatter, dot, dot, convolution, convolution, gather, gather, scatter, scatter),
    *(sort, fft, triangular_solve, cholesky, batch_norm, random_bits),
)
