"""Steps that call what only a backend understands: custom calls with and without layouts, random numbers."""

from __future__ import annotations

from layoutsim.build import array_of
from layoutsim.ir import ArrayShape, ElementType, Instruction, Opcode, Shape, array_shape, tuple_shape
from layoutsim.ir.payloads import (
    Aliasing,
    BatchNormPayload,
    ConvolutionDimensionNumbers,
    CustomCallPayload,
    RngBitGeneratorPayload,
    RngPayload,
    Window,
    WindowDimension,
)
from layoutsim.testing.chooser import chance, permutation
from layoutsim.testing.scope import F32, Scope


def free_call(scope: Scope) -> None:
    """A custom call that takes any layouts."""
    operands = [scope.any_array() for _ in range(scope.chooser.integer(1, 2))]
    result = scope.random_shape(element_type=F32)
    scope.keep(scope.builder.apply(Opcode.CUSTOM_CALL, *operands, payload=CustomCallPayload("free"), shape=result))


def constrained_call(scope: Scope) -> None:
    """A custom call with layouts of its own for operands and results, sometimes several results."""
    operands = [scope.any_array() for _ in range(scope.chooser.integer(0, 2))]
    wishes = tuple(_any_order(scope, array_of(o)) for o in operands)
    results = [_any_order(scope, scope.random_shape(element_type=F32)) for _ in range(scope.chooser.pick((1, 1, 2)))]
    shape: Shape = results[0] if len(results) == 1 else tuple_shape(tuple(results))
    payload = CustomCallPayload("constrained", operand_layout_constraints=wishes)
    made = scope.builder.apply(Opcode.CUSTOM_CALL, *operands, payload=payload, shape=shape)
    _keep_results(scope, made, len(results))


def aliased_call(scope: Scope) -> None:
    """A custom call that writes its result over its first operand, constrained or not."""
    operand = scope.any_array()
    order = _any_order(scope, array_of(operand))
    wishes = (order,) if chance(scope.chooser, 50) else None
    payload = CustomCallPayload(
        "in_place", operand_layout_constraints=wishes, output_to_operand_aliasing=(Aliasing((), 0, ()),)
    )
    scope.keep_as_is(scope.builder.apply(Opcode.CUSTOM_CALL, operand, payload=payload, shape=order))


def move_to_host(scope: Scope) -> None:
    """To the host and back, as offloading marks it."""
    operand = scope.any_array()
    there = scope.builder.apply(Opcode.CUSTOM_CALL, operand, payload=CustomCallPayload("MoveToHost"), shape=array_of(operand))
    back = scope.builder.apply(Opcode.CUSTOM_CALL, there, payload=CustomCallPayload("MoveToDevice"), shape=array_of(operand))
    scope.keep(back)


def library_convolution(scope: Scope) -> None:
    """A convolution that is a call of cuDNN already (GPU)."""
    if scope.world.limits.backend != "gpu":
        return
    batch, inputs, outputs, height, width = (scope.chooser.pick((1, 2, 3, 4)) for _ in range(5))
    orders = [permutation(scope.chooser, 4) if chance(scope.chooser, 50) else (0, 1, 2, 3) for _ in range(3)]
    data = scope.array_of(F32, _placed(orders[0], (batch, inputs, height, width)))
    kernel = scope.array_of(F32, _placed(orders[1], (inputs, outputs, 1, 1)))
    result = array_shape(F32, _placed(orders[2], (batch, outputs, height, width)))
    numbers = ConvolutionDimensionNumbers(*_numbers(orders[0]), *_numbers(orders[1]), *_numbers(orders[2]))
    payload = CustomCallPayload(
        "__cudnn$convForward", window=Window((WindowDimension(1), WindowDimension(1))), dimension_numbers=numbers
    )
    shape = tuple_shape((result, array_shape(ElementType.U8, (0,))))
    both = scope.builder.apply(Opcode.CUSTOM_CALL, data, kernel, payload=payload, shape=shape)
    scope.keep(scope.builder.element(both, 0))


def _placed(order: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sizes[order.index(d)] for d in range(len(sizes)))


def _numbers(order: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
    return order[0], order[1], order[2:]


def random_bits(scope: Scope) -> None:
    """Bits from a state, or numbers between two bounds."""
    if chance(scope.chooser, 50):
        state = scope.array_of(ElementType.U64, (2,))
        bits = array_shape(ElementType.U32, scope.random_shape(max_rank=3).dimensions)
        payload = RngBitGeneratorPayload("rng_three_fry")
        shape = tuple_shape((array_of(state), bits))
        both = scope.builder.apply(Opcode.RNG_BIT_GENERATOR, state, payload=payload, shape=shape)
        scope.keep(scope.builder.element(both, 1))
        return
    low, high = scope.array_of(F32, ()), scope.array_of(F32, ())
    shape = scope.random_shape(element_type=F32)
    scope.keep(scope.builder.apply(Opcode.RNG, low, high, payload=RngPayload("rng_uniform"), shape=shape))


def batch_norm(scope: Scope) -> None:
    """Inference with given statistics."""
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32 and 0 not in s.dimensions)
    shape = array_of(operand)
    feature = scope.chooser.integer(0, shape.rank - 1)
    vectors = [scope.array_of(F32, (shape.dimensions[feature],)) for _ in range(4)]
    payload = BatchNormPayload(0.001, feature)
    scope.keep(scope.builder.apply(Opcode.BATCH_NORM_INFERENCE, operand, *vectors, payload=payload))


def _any_order(scope: Scope, shape: ArrayShape) -> ArrayShape:
    return shape.with_order(permutation(scope.chooser, shape.rank))


def _keep_results(scope: Scope, made: Instruction, count: int) -> None:
    if count == 1:
        scope.keep_as_is(made)
        return
    for i in range(count):
        scope.keep_as_is(scope.builder.element(made, i))


def constrained_tuple_call(scope: Scope) -> None:
    """A constrained custom call that takes a tuple and returns one."""
    if scope.world.limits.backend != "gpu":
        return
    parts = [scope.any_array() for _ in range(2)]
    wish = tuple_shape(tuple(_any_order(scope, array_of(p)) for p in parts))
    packed = scope.builder.tuple(*parts)
    results = tuple_shape((wish.elements[0], _any_order(scope, scope.random_shape(element_type=F32))))
    payload = CustomCallPayload("constrained_tuple", operand_layout_constraints=(wish,))
    made = scope.builder.apply(Opcode.CUSTOM_CALL, packed, payload=payload, shape=results)
    _keep_results(scope, made, 2)


def library_gradient(scope: Scope) -> None:
    """Gradients of a cuDNN convolution with one-by-one windows, and the forms with a bias and with a graph (GPU)."""
    if scope.world.limits.backend != "gpu":
        return
    chooser = scope.chooser
    batch, inputs, outputs, height, width = (chooser.pick((1, 2, 3, 4)) for _ in range(5))
    orders = [permutation(chooser, 4) if chance(chooser, 50) else (0, 1, 2, 3) for _ in range(3)]
    image = array_shape(F32, _placed(orders[0], (batch, inputs, height, width)))
    kernel = array_shape(F32, _placed(orders[1], (inputs, outputs, 1, 1)))
    output = array_shape(F32, _placed(orders[2], (batch, outputs, height, width)))
    vector = array_shape(F32, (outputs,))
    target, operands, result = chooser.pick(
        (
            ("__cudnn$convBackwardInput", (output, kernel), image),
            ("__cudnn$convBackwardFilter", (image, output), kernel),
            ("__cudnn$convBiasActivationForward", (image, kernel, vector), output),
            ("__cudnn$convBiasActivationForward", (image, kernel, vector, output), output),
            ("__cudnn$convForwardGraph", (image, kernel, output), output),
        )
    )
    numbers = ConvolutionDimensionNumbers(*_numbers(orders[0]), *_numbers(orders[1]), *_numbers(orders[2]))
    payload = CustomCallPayload(target, window=Window((WindowDimension(1), WindowDimension(1))), dimension_numbers=numbers)
    arrays = [scope.array_of(F32, o.dimensions) for o in operands]
    shape = tuple_shape((result, array_shape(ElementType.U8, (0,))))
    both = scope.builder.apply(Opcode.CUSTOM_CALL, *arrays, payload=payload, shape=shape)
    scope.keep(scope.builder.element(both, 0))


def library_sort(scope: Scope) -> None:
    """CUB's radix sort (GPU)."""
    if scope.world.limits.backend != "gpu":
        return
    keys = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32)
    values = scope.array_of(ElementType.S32, array_of(keys).dimensions)
    shape = tuple_shape((array_of(keys), array_of(values)))
    is_old = scope.world.limits.is_old
    payload = CustomCallPayload("__cub$DeviceRadixSort" if is_old else "xla.gpu.ext.cub_sort_unassigned_scratch_size")
    both = scope.builder.apply(Opcode.CUSTOM_CALL, keys, values, payload=payload, shape=shape)
    _keep_results(scope, both, 2)
