"""Steps that contract: dots of every kind, convolutions, transforms and solvers."""

from __future__ import annotations

from layoutsim.build import array_of
from layoutsim.ir import ElementType, Instruction, Opcode, array_shape
from layoutsim.ir.payloads import (
    CholeskyPayload,
    ConvolutionDimensionNumbers,
    ConvolutionPayload,
    DotPayload,
    FftPayload,
    RaggedDotPayload,
    TriangularSolvePayload,
    Window,
    WindowDimension,
)
from layoutsim.testing.chooser import chance, permutation
from layoutsim.testing.scope import BF16, COMMON_SIZES, F16, F32, S8, S32, Scope


def dot(scope: Scope) -> None:
    """Up to two batch, contracting and free dimensions on each side, in any order."""
    chooser = scope.chooser
    left = scope.any_array(lambda s: s.rank > 0 and s.element_type in (F32, BF16, F16))
    shape = array_of(left)
    order = permutation(chooser, shape.rank)
    batch_count = chooser.pick((0, 0, 1, 2))
    contracting_count = chooser.pick((1, 1, 2, 0))
    batch, contracting = order[:batch_count], order[batch_count : batch_count + contracting_count]
    free = [chooser.pick(COMMON_SIZES) for _ in range(chooser.pick((1, 1, 2, 0)))]
    sizes = [*(shape.dimensions[d] for d in (*batch, *contracting)), *free]
    placing = permutation(chooser, len(sizes))
    right_sizes = [sizes[i] for i in placing]
    where = [placing.index(i) for i in range(len(sizes))]
    right = scope.array_of(shape.element_type, right_sizes)
    split = len(batch)
    right_batch, right_contracting = where[:split], where[split : split + len(contracting)]
    if len(order) - split - len(contracting) + len(free) + split > 5:
        return
    scope.keep(scope.builder.dot(left, right, (contracting, right_contracting), (batch, right_batch)))


def integer_dot(scope: Scope) -> None:
    """s8 times s8 into s32, which GPUs want with the contracted dimension minor."""
    m, k, n = (scope.chooser.pick(COMMON_SIZES) for _ in range(3))
    left = scope.array_of(S8, (m, k))
    right = scope.array_of(S8, (k, n) if chance(scope.chooser, 50) else (n, k))
    contracting = 0 if array_of(right).dimensions == (k, n) else 1
    payload = DotPayload((1,), (contracting,))
    rows = array_of(right).dimensions[1 - contracting]
    scope.keep(scope.builder.apply(Opcode.DOT, left, right, payload=payload, shape=array_shape(S32, (m, rows))))


def float8_dot(scope: Scope) -> None:
    """f8 operands with an f32 result."""
    m, k, n = (scope.chooser.pick(COMMON_SIZES) for _ in range(3))
    left, right = scope.array_of(ElementType.F8E4M3FN, (m, k)), scope.array_of(ElementType.F8E4M3FN, (k, n))
    scope.keep(scope.builder.apply(Opcode.DOT, left, right, payload=DotPayload((1,), (0,)), shape=array_shape(F32, (m, n))))


def ragged_dot(scope: Scope) -> None:
    """Rows in groups, each with a matrix of its own."""
    groups, m, k, n = (scope.chooser.pick((2, 3, 4)) for _ in range(4))
    left, right = scope.array_of(F32, (m, k)), scope.array_of(F32, (groups, k, n))
    sizes = scope.array_of(S32, (groups,))
    payload = RaggedDotPayload(DotPayload((1,), (1,)), lhs_ragged_dims=(0,), rhs_group_dims=(0,))
    scope.keep(scope.builder.apply(Opcode.RAGGED_DOT, left, right, sizes, payload=payload))


def convolution(scope: Scope) -> None:
    """One or two spatial dimensions, labels in any order."""
    chooser = scope.chooser
    spatial = chooser.pick((1, 2))
    orders = [permutation(chooser, spatial + 2) if chance(chooser, 60) else tuple(range(spatial + 2)) for _ in range(3)]
    batch, inputs, outputs = (chooser.pick((1, 2, 3)) for _ in range(3))
    image = [chooser.pick((3, 4, 5)) for _ in range(spatial)]
    window = [chooser.pick((1, 2, 3)) for _ in range(spatial)]
    data = scope.array_of(F32, _placed(orders[0], [batch, inputs, *image]))
    kernel = scope.array_of(F32, _placed(orders[1], [inputs, outputs, *window]))
    numbers = ConvolutionDimensionNumbers(*_numbers(orders[0]), *_numbers(orders[1]), *_numbers(orders[2]))
    sizes = Window(tuple(WindowDimension(size, stride=chooser.pick((1, 1, 2)), padding_low=1) for size in window))
    payload = ConvolutionPayload(sizes, numbers)
    scope.keep(scope.builder.apply(Opcode.CONVOLUTION, data, kernel, payload=payload))


def _placed(order: tuple[int, ...], sizes: list[int]) -> tuple[int, ...]:
    """Role ``i`` (batch, feature, spatial...) stands in dimension ``order[i]``."""
    return tuple(sizes[order.index(d)] for d in range(len(sizes)))


def _numbers(order: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
    return order[0], order[1], order[2:]


def fft(scope: Scope) -> None:
    """A transform along the last dimension."""
    sizes = scope.random_shape(max_rank=2).dimensions
    operand = scope.array_of(ElementType.C64, (*sizes, 4))
    scope.keep(scope.builder.apply(Opcode.FFT, operand, payload=FftPayload("FFT", (4,))))


def triangular_solve(scope: Scope) -> None:
    """A lower triangular system, batched or not."""
    matrix, batch = _square(scope)
    right = scope.array_of(F32, (*batch, 3, scope.chooser.pick(COMMON_SIZES)))
    payload = TriangularSolvePayload(left_side=True, lower=True, transpose_a="NO_TRANSPOSE")
    scope.keep(scope.builder.apply(Opcode.TRIANGULAR_SOLVE, matrix, right, payload=payload))


def cholesky(scope: Scope) -> None:
    """A decomposition, batched or not."""
    matrix, _ = _square(scope)
    scope.keep(scope.builder.apply(Opcode.CHOLESKY, matrix, payload=CholeskyPayload(lower=True)))


def _square(scope: Scope) -> tuple[Instruction, tuple[int, ...]]:
    batch = tuple(scope.chooser.pick((1, 2)) for _ in range(scope.chooser.integer(0, 1)))
    return scope.array_of(F32, (*batch, 3, 3)), batch


def packed_dot(scope: Scope) -> None:
    """An operand of four-bit numbers, widened on the way into a dot (GPU packs it along the contracted dimension)."""
    m, k, n = (scope.chooser.pick(COMMON_SIZES) for _ in range(3))
    packed = scope.builder.convert(scope.array_of(ElementType.S4, (k, n)), BF16)
    if chance(scope.chooser, 40):
        packed = scope.builder.apply(Opcode.MULTIPLY, packed, scope.array_of(BF16, (k, n)))
    left = scope.array_of(BF16, (m, k))
    scope.keep(scope.builder.dot(left, packed, ((1,), (0,))))
