"""Steps in two halves: asynchronous collectives, copies and calls, transfers between devices. GPU only, where noted so.

StableHLO, the way into the CPU compiler, has none of these.
"""

from __future__ import annotations

from layoutsim.build import array_of
from layoutsim.ir import TOKEN, ArrayShape, ElementType, Instruction, Opcode, array_shape, tuple_shape
from layoutsim.ir.payloads import (
    AsyncPayload,
    CollectivePayload,
    CollectivePermutePayload,
    CopyStartPayload,
    SendRecvPayload,
)
from layoutsim.ir.replica_groups import ListReplicaGroups
from layoutsim.testing.chooser import chance, permutation
from layoutsim.testing.scope import F32, MAX_ELEMENTS, Scope, scalar_function

_U32 = array_shape(ElementType.U32, ())


def _elsewhere(scope: Scope) -> bool:
    return scope.world.limits.backend != "gpu"


def async_collective(scope: Scope) -> None:
    """The start and done of an all-gather, an all-reduce or a permutation."""
    devices = scope.world.limits.devices
    if _elsewhere(scope) or devices < 2:
        return
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32 and s.element_count <= MAX_ELEMENTS // 4)
    shape, builder = array_of(operand), scope.builder
    groups = ListReplicaGroups((tuple(range(devices)),))
    kind = scope.chooser.pick((Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE_START, Opcode.COLLECTIVE_PERMUTE_START))
    if kind is Opcode.ALL_GATHER_START:
        dimension = scope.chooser.integer(0, shape.rank - 1)
        sizes = tuple(size * devices if d == dimension else size for d, size in enumerate(shape.dimensions))
        result = array_shape(F32, sizes).with_layout(shape.layout)
        payload = CollectivePayload(groups, dimension=dimension)
        start = builder.apply(kind, operand, payload=payload, shape=tuple_shape((shape, result)))
        scope.keep(builder.apply(Opcode.ALL_GATHER_DONE, start))
    elif kind is Opcode.ALL_REDUCE_START:
        add = scalar_function(scope, Opcode.ADD, F32)
        start = builder.apply(kind, operand, payload=CollectivePayload(groups), calls=[add])
        scope.keep(builder.apply(Opcode.ALL_REDUCE_DONE, start))
    else:
        payload = CollectivePermutePayload(tuple((i, (i + 1) % devices) for i in range(devices)))
        start = builder.apply(kind, operand, payload=payload, shape=tuple_shape((shape, shape)))
        scope.keep(builder.apply(Opcode.COLLECTIVE_PERMUTE_DONE, start))


def async_copy(scope: Scope) -> None:
    """A copy in two halves, sometimes into another layout."""
    if _elsewhere(scope):
        return
    operand = scope.any_array()
    shape = array_of(operand)
    target = shape.with_order(permutation(scope.chooser, shape.rank)) if chance(scope.chooser, 30) else shape
    whole = tuple_shape((target, shape, _U32))
    start = scope.builder.apply(Opcode.COPY_START, operand, payload=CopyStartPayload(), shape=whole)
    scope.keep(scope.builder.apply(Opcode.COPY_DONE, start))


def async_call(scope: Scope) -> None:
    """One operation wrapped into an asynchronous call, with or without an update between start and done."""
    if _elsewhere(scope) or scope.depth >= scope.world.limits.depth:
        return
    operand = scope.any_array(lambda s: s.rank > 1 and s.element_type is F32)
    inner = scope.nested("wrapped")
    parameter = inner.builder.parameter(operand.shape)
    if chance(scope.chooser, 50):
        root = inner.builder.apply(Opcode.NEGATE, parameter)
    else:
        root = inner.builder.transpose(parameter, permutation(scope.chooser, array_of(operand).rank))
    body = inner.builder.build(root)
    shape = tuple_shape((tuple_shape((operand.shape,)), root.shape, _U32))
    value = scope.builder.apply(Opcode.ASYNC_START, operand, payload=AsyncPayload(), calls=[body], shape=shape)
    if chance(scope.chooser, 30):
        value = scope.builder.apply(Opcode.ASYNC_UPDATE, value, payload=AsyncPayload())
    scope.keep(scope.builder.apply(Opcode.ASYNC_DONE, value, payload=AsyncPayload()))


def transfer(scope: Scope) -> None:
    """Send to and receive from the host on one channel."""
    if _elsewhere(scope):
        return
    operand, builder = scope.any_array(lambda s: s.element_type is F32), scope.builder
    payload = SendRecvPayload(scope.world.next_channel(), is_host_transfer=True)
    token = builder.apply(Opcode.AFTER_ALL)
    sent = builder.apply(Opcode.SEND, operand, token, payload=payload)
    done = builder.apply(Opcode.SEND_DONE, sent, payload=payload)
    payload = SendRecvPayload(scope.world.next_channel(), is_host_transfer=True)
    shape = _any_order(scope, array_of(operand))
    received = builder.apply(Opcode.RECV, done, payload=payload, shape=tuple_shape((shape, _U32, TOKEN)))
    scope.keep(builder.element(builder.apply(Opcode.RECV_DONE, received, payload=payload), 0))


def dependency(scope: Scope) -> None:
    """A value that waits for a token."""
    if _elsewhere(scope):
        return
    token = scope.builder.apply(Opcode.AFTER_ALL)
    scope.keep_as_is(scope.builder.apply(Opcode.ADD_DEPENDENCY, scope.any_array(), token))


def _any_order(scope: Scope, shape: ArrayShape) -> ArrayShape:
    return shape.with_order(permutation(scope.chooser, shape.rank))


def scan(scope: Scope) -> None:
    """The scan operation: running sums along one dimension."""
    from layoutsim.ir.payloads import ScanPayload

    if _elsewhere(scope):
        return
    operand = scope.any_array(lambda s: s.rank > 1 and s.element_type is F32 and 0 not in s.dimensions)
    shape = array_of(operand)
    dimension = scope.chooser.integer(0, shape.rank - 1)
    row = tuple(size for d, size in enumerate(shape.dimensions) if d != dimension)
    initial = scope.array_of(F32, row)
    inner = scope.nested("accumulate")
    slice_, carry = inner.builder.parameter(array_shape(F32, row)), inner.builder.parameter(array_shape(F32, row))
    total = inner.builder.add(slice_, carry)
    body = inner.builder.build(inner.builder.tuple(total, total))
    payload = ScanPayload(dimension, num_carries=1)
    whole = tuple_shape((array_shape(F32, shape.dimensions), array_shape(F32, row)))
    both = scope.builder.apply(Opcode.SCAN, operand, initial, payload=payload, calls=[body], shape=whole)
    for i in (0, 1):
        scope.keep(scope.builder.element(both, i))


def dynamic_size(scope: Scope) -> None:
    """An array whose first dimension shrinks at run time, and its size."""
    from layoutsim.ir.payloads import DimensionsPayload

    operand = scope.any_array(lambda s: s.rank > 0 and s.element_type is F32 and not s.is_dynamic and 0 not in s.dimensions)
    payload = DimensionsPayload((scope.chooser.integer(0, array_of(operand).rank - 1),))
    shrunk = scope.builder.apply(Opcode.SET_DIMENSION_SIZE, operand, scope.index(), payload=payload)
    changed: Instruction = scope.builder.apply(Opcode.NEGATE, shrunk)
    scope.keep(scope.builder.apply(Opcode.GET_DIMENSION_SIZE, changed, payload=payload))
    scope.keep_as_is(
        scope.builder.apply(
            Opcode.REDUCE,
            changed,
            scope.zero(F32),
            payload=DimensionsPayload(tuple(range(array_of(operand).rank))),
            calls=[scalar_function(scope, Opcode.ADD, F32)],
        )
    )
