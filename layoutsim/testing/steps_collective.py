"""Steps that communicate between devices; they do nothing where a module is for one device."""

from __future__ import annotations

from attrs import evolve

from layoutsim.build import array_of
from layoutsim.ir import ElementType, Instruction, Opcode, array_shape, tuple_shape
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload
from layoutsim.ir.replica_groups import ListReplicaGroups
from layoutsim.testing.chooser import chance, permutation
from layoutsim.testing.scope import F32, MAX_ELEMENTS, Scope, scalar_function


def _payload(scope: Scope, dimension: int | None = None, *, takes_ids: bool = True) -> tuple[CollectivePayload, int]:
    """Attributes and group size: all devices together, or two halves."""
    devices = scope.world.limits.devices
    size = devices if devices < 4 or chance(scope.chooser, 60) else devices // 2
    groups = tuple(tuple(range(start, start + size)) for start in range(0, devices, size))
    global_ids = takes_ids and chance(scope.chooser, 30)
    payload = CollectivePayload(
        ListReplicaGroups(groups),
        channel_id=scope.world.next_channel() if global_ids else None,
        use_global_device_ids=global_ids,
        dimension=dimension,
    )
    return payload, size


def _alone(scope: Scope) -> bool:
    return scope.world.limits.devices < 2


def all_gather(scope: Scope) -> None:
    """Along any dimension, the others often of size 1; sometimes two operands."""
    if _alone(scope):
        return
    operand = scope.any_array(lambda s: s.rank > 0 and s.element_count * 4 <= MAX_ELEMENTS)
    shape = array_of(operand)
    dimension = scope.chooser.integer(0, shape.rank - 1)
    payload, count = _payload(scope, dimension)
    operands = [operand]
    if scope.world.limits.backend == "gpu" and chance(scope.chooser, 15):
        operands.append(scope.like(operand))
    sizes = tuple(size * count if d == dimension else size for d, size in enumerate(shape.dimensions))
    results = [array_shape(shape.element_type, sizes).with_layout(array_of(o).layout) for o in operands]
    whole = results[0] if len(results) == 1 else tuple_shape(tuple(results))
    _keep(scope, scope.builder.apply(Opcode.ALL_GATHER, *operands, payload=payload, shape=whole), len(operands))


def all_reduce(scope: Scope) -> None:
    """Sums, sometimes of two arrays at once; in some modules they insist on the layouts they were written with."""
    if _alone(scope):
        return
    operands = [scope.any_array(lambda s: s.element_type is F32)]
    if chance(scope.chooser, 25):
        operands.append(scope.any_array(lambda s: s.element_type is F32))
    payload, _ = _payload(scope, takes_ids=len(operands) == 1)
    payload = evolve(payload, constrain_layout=scope.world.constrains_all_reduces)
    shapes = [array_of(o) for o in operands]
    if payload.constrain_layout:
        shapes = [s.with_order(permutation(scope.chooser, s.rank)) for s in shapes]
    whole = shapes[0] if len(shapes) == 1 else tuple_shape(tuple(shapes))
    add = scalar_function(scope, Opcode.ADD, F32)
    reduced = scope.builder.apply(Opcode.ALL_REDUCE, *operands, payload=payload, calls=[add], shape=whole)
    _keep(scope, reduced, len(operands), as_is=payload.constrain_layout)


def reduce_scatter(scope: Scope) -> None:
    """Sum over the devices, each keeping its part; where all-reduces insist on their layouts, these do."""
    if _alone(scope):
        return
    operand, dimension = _divisible(scope)
    shape = array_of(operand)
    payload, count = _payload(scope, dimension)
    sizes = tuple(size // count if d == dimension else size for d, size in enumerate(shape.dimensions))
    result = array_shape(shape.element_type, sizes).with_layout(shape.layout)
    if scope.world.constrains_all_reduces:
        payload = evolve(payload, constrain_layout=True)
        result = result.with_order(permutation(scope.chooser, result.rank))
    reducer = scalar_function(scope, Opcode.ADD, F32)
    scattered = scope.builder.apply(Opcode.REDUCE_SCATTER, operand, payload=payload, calls=[reducer], shape=result)
    _keep(scope, scattered, 1, as_is=payload.constrain_layout)


def all_to_all(scope: Scope) -> None:
    """One array split along a dimension, or as many arrays as devices."""
    if _alone(scope):
        return
    if chance(scope.chooser, 70):
        operand, dimension = _divisible(scope)
        payload, _ = _payload(scope, dimension, takes_ids=False)
        scope.keep(scope.builder.apply(Opcode.ALL_TO_ALL, operand, payload=payload))
        return
    payload, count = _payload(scope, takes_ids=False)
    first = scope.any_array(lambda s: s.element_type is F32)
    operands = [first, *(_twin(scope, first) for _ in range(count - 1))]
    _keep(scope, scope.builder.apply(Opcode.ALL_TO_ALL, *operands, payload=payload), len(operands), is_tuple=True)


def _twin(scope: Scope, value: Instruction) -> Instruction:
    """An array of the very same shape, layout included: XLA's verifier wants that of a tuple's elements here."""
    return scope.chooser.pick([*scope.arrays(lambda s: s == value.shape), value])


def _divisible(scope: Scope) -> tuple[Instruction, int]:
    """An f32 array and a dimension of it that the devices divide."""
    devices = scope.world.limits.devices
    base = list(scope.random_shape(max_rank=3).dimensions) or [1]
    dimension = scope.chooser.integer(0, len(base) - 1)
    base[dimension] = devices * scope.chooser.pick((1, 1, 2))
    found = scope.arrays(lambda s: s.element_type is F32 and any(size and size % devices == 0 for size in s.dimensions))
    if found and chance(scope.chooser, 70):
        operand = scope.chooser.pick(found)
        sizes = array_of(operand).dimensions
        return operand, scope.chooser.pick([d for d, size in enumerate(sizes) if size and size % devices == 0])
    return scope.new_array(array_shape(F32, tuple(base))), dimension


def collective_permute(scope: Scope) -> None:
    """Hand an array to the next device."""
    if _alone(scope):
        return
    devices = scope.world.limits.devices
    pairs = tuple((i, (i + 1) % devices) for i in range(devices))
    payload = CollectivePermutePayload(pairs)
    scope.keep(scope.builder.apply(Opcode.COLLECTIVE_PERMUTE, scope.any_array(), payload=payload))


def collective_broadcast(scope: Scope) -> None:
    """An array of the first device of each group."""
    if _alone(scope):
        return
    payload, _ = _payload(scope, takes_ids=False)
    scope.keep(scope.builder.apply(Opcode.COLLECTIVE_BROADCAST, scope.any_array(), payload=payload))


def replica_number(scope: Scope) -> None:
    """The device's number as a float."""
    number = scope.builder.apply(Opcode.REPLICA_ID)
    scope.keep(scope.builder.convert(number, F32))


def _keep(scope: Scope, result: Instruction, count: int, *, is_tuple: bool = False, as_is: bool = False) -> None:
    keep = scope.keep_as_is if as_is else scope.keep
    if count == 1 and not is_tuple:
        keep(result)
        return
    for i in range(count):
        keep(scope.builder.element(result, i))


def ragged_all_to_all(scope: Scope) -> None:
    """Rows of different counts to every device (GPU; StableHLO has no layouts for it)."""
    if _alone(scope) or scope.world.limits.backend != "gpu":
        return
    devices = scope.world.limits.devices
    rest = scope.random_shape(max_rank=2).dimensions
    rows, target_rows = (scope.chooser.pick((4, 8)) for _ in range(2))
    source, target = scope.array_of(F32, (rows, *rest)), scope.array_of(F32, (target_rows, *rest))
    offsets = [scope.array_of(ElementType.S32, (devices,)) for _ in range(4)]
    groups = ListReplicaGroups((tuple(range(devices)),))
    payload = CollectivePayload(groups)
    scope.keep(scope.builder.apply(Opcode.RAGGED_ALL_TO_ALL, source, target, *offsets, payload=payload))
