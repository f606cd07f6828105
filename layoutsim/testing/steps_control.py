"""Steps that group values and call computations: tuples, loops, branches, calls, fusions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from layoutsim.ir import (
    ArrayShape,
    Computation,
    ElementType,
    Instruction,
    Opcode,
    Shape,
    TupleShape,
    array_shape,
    tuple_shape,
)
from layoutsim.ir.payloads import FusionPayload
from layoutsim.testing.chooser import chance
from layoutsim.testing.scope import PRED, S32, Scope, Step

Grow = Callable[[Scope, int], None]
"""Takes some steps in a scope."""


def make_tuple(scope: Scope) -> None:
    """A tuple of a few values, tuples among them where the backend keeps those."""
    scope.keep(scope.builder.tuple(*_some_values(scope)))


def tuple_parameter(scope: Scope) -> None:
    """A parameter of the entry that is a tuple, sometimes with a tuple in it (GPU; StableHLO flattens those)."""
    if not scope.is_entry or scope.world.limits.backend != "gpu":
        return
    parts: list[Shape] = [scope.random_shape() for _ in range(scope.chooser.integer(1, 3))]
    if chance(scope.chooser, 25):
        parts.append(tuple_shape((scope.random_shape(), scope.random_shape())))
    packed = scope.keep(scope.builder.parameter(tuple_shape(tuple(parts))))
    for i in range(len(parts)):
        if chance(scope.chooser, 80):
            scope.keep(scope.builder.element(packed, i))


def get_element(scope: Scope) -> None:
    """An element of a tuple made before."""
    tuples = scope.tuples()
    if not tuples:
        return
    operand = scope.chooser.pick(tuples)
    assert isinstance(operand.shape, TupleShape)
    scope.keep(scope.builder.element(operand, scope.chooser.integer(0, len(operand.shape.elements) - 1)))


def barrier(scope: Scope) -> None:
    """An optimization barrier over a tuple."""
    tied = scope.builder.tuple(*[scope.any_array() for _ in range(scope.chooser.integer(1, 3))])
    after = scope.builder.apply(Opcode.OPT_BARRIER, tied)
    assert isinstance(after.shape, TupleShape)
    for i in range(len(after.shape.elements)):
        scope.keep(scope.builder.element(after, i))


def _some_values(scope: Scope) -> list[Instruction]:
    values = [scope.any_array() for _ in range(scope.chooser.integer(1, 3))]
    if scope.world.limits.backend == "gpu" and chance(scope.chooser, 15) and (tuples := scope.tuples()):
        values.append(tuples[0])
    return values


def loop(grow: Grow) -> Step:
    """A loop of three iterations over a tuple of a counter and a few values."""

    def step(scope: Scope) -> None:
        if scope.depth >= scope.world.limits.depth:
            return
        counter = scope.builder.constant(np.int32(0))
        initial = scope.builder.tuple(counter, *_some_values(scope))
        body = _loop_body(scope, initial.shape, grow)
        condition = _loop_condition(scope, initial.shape)
        result = scope.builder.while_loop(condition, body, initial)
        assert isinstance(result.shape, TupleShape)
        if chance(scope.chooser, 10):
            again = scope.builder.tuple(counter, *[_replacement(scope, v) for v in initial.operands[1:]])
            result = scope.builder.while_loop(condition, body, again)
            assert isinstance(result.shape, TupleShape)
        for i in range(1, len(result.shape.elements)):
            if chance(scope.chooser, 80):
                scope.keep(scope.builder.element(result, i))

    return step


def _replacement(scope: Scope, value: Instruction) -> Instruction:
    """Another value of the same shape for a second loop with the same body."""
    return scope.like(value) if isinstance(value.shape, ArrayShape) else value


def _loop_body(scope: Scope, state: Shape, grow: Grow) -> Computation:
    inner = scope.nested("body")
    parameter = inner.builder.parameter(state)
    assert isinstance(state, TupleShape)
    elements = [inner.builder.element(parameter, i) for i in range(len(state.elements))]
    inner.values += elements[1:]
    grow(inner, scope.chooser.integer(1, 4))
    one = inner.builder.constant(np.int32(1))
    results = [inner.builder.add(elements[0], one), *(_successor(inner, element) for element in elements[1:])]
    return inner.builder.build(inner.builder.tuple(*results))


def _successor(scope: Scope, element: Instruction) -> Instruction:
    """What takes the place of a loop's state element: the latest value of its shape, or itself."""
    if not isinstance(element.shape, ArrayShape) or chance(scope.chooser, 20):
        return element
    type_, sizes = element.shape.element_type, element.shape.dimensions
    found = scope.arrays(lambda s: s.element_type is type_ and s.dimensions == sizes)
    return found[0] if found else element


def _loop_condition(scope: Scope, state: Shape) -> Computation:
    builder = scope.nested("condition").builder
    counter = builder.element(builder.parameter(state), 0)
    return builder.build(builder.compare(counter, builder.constant(np.int32(3)), "LT"))


def branches(grow: Grow) -> Step:
    """A conditional of two or three branches, whose results have one shape and maybe different wishes of layout."""

    def step(scope: Scope) -> None:
        if scope.depth >= scope.world.limits.depth:
            return
        by_index = chance(scope.chooser, 40)
        selector = scope.array_of(S32 if by_index else PRED, ())
        first = _packed(scope, [scope.any_array() for _ in range(scope.chooser.integer(1, 2))])
        operands, made = [first], [_grown(scope, "branch", first.shape, grow, None)]
        for _ in range(2 if by_index else 1):
            if chance(scope.chooser, 15) and not scope.world.limits.is_old:
                operands.append(first)
                made.append(made[0])
                continue
            operands.append(_packed(scope, [scope.any_array() for _ in range(scope.chooser.integer(1, 2))]))
            made.append(_grown(scope, "branch", operands[-1].shape, grow, made[0].root.shape))
        scope.keep(scope.builder.apply(Opcode.CONDITIONAL, selector, *operands, calls=made))

    return step


def _packed(scope: Scope, values: list[Instruction]) -> Instruction:
    return values[0] if len(values) == 1 and chance(scope.chooser, 50) else scope.builder.tuple(*values)


def _grown(scope: Scope, name: str, parameter: Shape, grow: Grow, wanted: Shape | None) -> Computation:
    """A computation of one parameter; its result has the wanted types and dimensions, if any are wanted."""
    inner = scope.nested(name)
    value = inner.builder.parameter(parameter)
    if isinstance(parameter, TupleShape):
        inner.values += [inner.builder.element(value, i) for i in range(len(parameter.elements))]
    else:
        inner.values.append(value)
    grow(inner, scope.chooser.integer(0, 3))
    if wanted is None:
        results = (inner.arrays() or [inner.any_array()])[: 2 if chance(scope.chooser, 25) else 1]
        return inner.builder.build(results[0] if len(results) == 1 else inner.builder.tuple(*results))
    if isinstance(wanted, TupleShape):
        return inner.builder.build(inner.builder.tuple(*[_fitting(inner, part) for part in wanted.elements]))
    return inner.builder.build(_fitting(inner, wanted))


def _fitting(scope: Scope, wanted: Shape) -> Instruction:
    assert isinstance(wanted, ArrayShape)
    return scope.array_of(wanted.element_type, wanted.dimensions)


def call(grow: Grow) -> Step:
    """A call, often of a computation that is called already."""

    def step(scope: Scope) -> None:
        if scope.depth >= scope.world.limits.depth:
            return
        callees = scope.world.callees
        if not callees or chance(scope.chooser, 50):
            operand = scope.any_array()
            callees.append(_grown(scope, "callee", operand.shape, grow, None))
        callee = callees[-1]
        shape = callee.parameters[0].shape
        assert isinstance(shape, ArrayShape)
        scope.keep(scope.builder.call(callee, scope.array_of(shape.element_type, shape.dimensions)))

    return step


def fusion(grow: Grow) -> Step:
    """A loop fusion of a few simple steps, which must use everything in it (GPU; the other way in has no fusions)."""

    def step(scope: Scope) -> None:
        if scope.world.limits.backend != "gpu" or scope.depth >= scope.world.limits.depth:
            return
        inner = scope.nested("fused")
        operands = [scope.any_array() for _ in range(scope.chooser.integer(1, 2))]
        inner.values += [inner.builder.parameter(o.shape) for o in operands]
        grow(inner, scope.chooser.integer(1, 3))
        loose = [i for i in inner.builder.computation.instructions if not i.user_count]
        body = inner.builder.build(loose[0] if len(loose) == 1 else inner.builder.tuple(*loose))
        fused = scope.builder.apply(Opcode.FUSION, *operands, payload=FusionPayload("kLoop"), calls=[body])
        if len(loose) == 1:
            scope.keep(fused)
            return
        for i in range(len(loose)):
            scope.keep(scope.builder.element(fused, i))

    return step


def tokens(scope: Scope) -> None:
    """Data from an infeed, in a layout of its own."""
    from layoutsim.ir import TOKEN
    from layoutsim.ir.payloads import InfeedPayload
    from layoutsim.testing.chooser import permutation

    token = scope.builder.apply(Opcode.AFTER_ALL)
    data = array_shape(ElementType.F32, tuple(scope.chooser.pick((2, 3)) for _ in range(2)))
    data = data.with_order(permutation(scope.chooser, 2))
    fed = scope.builder.apply(Opcode.INFEED, token, payload=InfeedPayload(), shape=tuple_shape((data, TOKEN)))
    scope.keep(scope.builder.element(fed, 0))
