"""Steps that reduce, scan windows, and sort."""

from __future__ import annotations

from layoutsim.build import Builder, array_of
from layoutsim.ir import Computation, ElementType, Instruction, Opcode, array_shape, tuple_shape
from layoutsim.ir.payloads import (
    ComparePayload,
    CustomCallPayload,
    DimensionsPayload,
    SortPayload,
    Window,
    WindowDimension,
    WindowPayload,
)
from layoutsim.testing.chooser import chance, subset
from layoutsim.testing.scope import F32, S32, Scope, scalar_function, shared_computation


def reduce(scope: Scope) -> None:
    """Some or all dimensions, with a sum or a maximum."""
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type.is_floating)
    shape = array_of(operand)
    dimensions = subset(scope.chooser, range(shape.rank), at_least=1)
    opcode, kind = scope.chooser.pick((Opcode.ADD, Opcode.MAXIMUM)), shape.element_type
    reducer = scalar_function(scope, opcode, kind)
    scope.keep(scope.builder.reduce(operand, scope.identity(opcode, kind), dimensions, reducer))


def variadic_reduce(scope: Scope) -> None:
    """Two operands reduced together; both results are taken out of the tuple."""
    first = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32)
    second = scope.like(first)
    dimensions = tuple(subset(scope.chooser, range(array_of(first).rank), at_least=1))
    both = scope.builder.apply(
        Opcode.REDUCE,
        first,
        second,
        scope.zero(F32),
        scope.zero(F32),
        payload=DimensionsPayload(dimensions),
        calls=[scalar_function(scope, Opcode.ADD, F32, operands=2)],
    )
    for i in (0, 1):
        scope.keep(scope.builder.element(both, i))


def reduce_window(scope: Scope) -> None:
    """A maximum over small windows."""
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32)
    sizes = [min(size, scope.chooser.pick((1, 1, 2))) or 1 for size in array_of(operand).dimensions]
    window = Window(tuple(WindowDimension(size, padding_low=size - 1) for size in sizes))
    reducer, start = scalar_function(scope, Opcode.MAXIMUM, F32), scope.identity(Opcode.MAXIMUM, F32)
    payload = WindowPayload(window)
    scope.keep(scope.builder.apply(Opcode.REDUCE_WINDOW, operand, start, payload=payload, calls=[reducer]))


def select_and_scatter(scope: Scope) -> None:
    """The gradient of a windowed maximum."""
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32 and 0 not in s.dimensions)
    sizes = array_of(operand).dimensions
    source = scope.array_of(F32, sizes)
    window = Window(tuple(WindowDimension(1) for _ in sizes))
    select = _comparison(scope, (F32,), "GE")
    scatter = scalar_function(scope, Opcode.ADD, F32)
    scope.keep(
        scope.builder.apply(
            Opcode.SELECT_AND_SCATTER,
            operand,
            source,
            scope.zero(F32),
            payload=WindowPayload(window),
            calls=[select, scatter],
        )
    )


def sort(scope: Scope) -> None:
    """One array, or keys with values."""
    keys = scope.any_array(lambda s: s.rank > 0 and s.element_type in (F32, S32))
    shape = array_of(keys)
    operands = [keys]
    if chance(scope.chooser, 50):
        operands.append(scope.array_of(scope.chooser.pick((F32, S32)), shape.dimensions))
    payload = SortPayload(scope.chooser.integer(0, shape.rank - 1), is_stable=True)
    compare = _comparison(scope, tuple(array_of(o).element_type for o in operands), "LT")
    result = scope.builder.apply(Opcode.SORT, *operands, payload=payload, calls=[compare])
    if len(operands) == 1:
        scope.keep(result)
        return
    for i in range(len(operands)):
        scope.keep(scope.builder.element(result, i))


def _comparison(scope: Scope, types: tuple[ElementType, ...], direction: str) -> Computation:
    """Compares the first pair of parameters; each type comes twice."""

    def grow(builder: Builder) -> Instruction:
        parameters = [builder.parameter(array_shape(t, ())) for t in types for _ in range(2)]
        return builder.apply(Opcode.COMPARE, *parameters[:2], payload=ComparePayload(direction))

    return shared_computation(scope, f"compare_{direction}_{'_'.join(types)}".lower(), grow)


def top_k(scope: Scope) -> None:
    """The custom call by which a backend knows its top-k."""
    rows, columns = scope.chooser.pick((1, 2, 3)), 8
    operand = scope.array_of(F32, (rows, columns))
    target = "__gpu$TopK" if scope.world.limits.backend == "gpu" else "TopK"
    shape = tuple_shape((array_shape(F32, (rows, 3)), array_shape(S32, (rows, 3))))
    payload = CustomCallPayload(target, api_version="API_VERSION_TYPED_FFI" if target != "TopK" else "")
    both = scope.builder.apply(Opcode.CUSTOM_CALL, operand, payload=payload, shape=shape)
    for i in (0, 1):
        scope.keep(scope.builder.element(both, i))
