"""Shape rules of collectives (text spec, 3.8).

Results keep the operand's layout, except of the array form of ``all-to-all``. Where a size depends on the number of devices
in a group, that number is read off the stated shape, as XLA's verifier does; without one, off ``replica_groups``. Whether
both agree is the verifier's business.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutsim.infer.registry import Site, shape_rule
from layoutsim.infer.shapes import dynamic_flags, is_unbounded, new_array, with_size
from layoutsim.ir import UNBOUNDED, ArrayShape, Opcode, Shape, TupleShape, tuple_shape
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload


def _one_or_tuple(shapes: list[Shape]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_shape(tuple(shapes))


def _dimension(site: Site) -> int:
    """The gather, scatter or split dimension, which every operand has."""
    dimension = site.payload_as(CollectivePayload).dimension
    if not site.operands:
        site.fail("has no operands, expected at least one")
    for number, shape in enumerate(site.arrays()):
        if dimension is None or not 0 <= dimension < shape.rank:
            site.fail(f"has dimension {dimension}, expected one of the {shape.rank} dimensions of operand {number}, {shape}")
    assert dimension is not None, site
    return dimension


def _first_result(site: Site, stated: Shape | None) -> ArrayShape | None:
    """What operand 0 becomes in the stated shape."""
    if len(site.operands) > 1 and isinstance(stated, TupleShape) and stated.elements:
        stated = stated.elements[0]
    return stated if isinstance(stated, ArrayShape) else None


def shard_count(site: Site, stated: Shape | None) -> int:
    """Devices in a group: the ratio of the sizes of result and operand 0, or the size of the first group."""
    dimension, operand, result = _dimension(site), site.array(0), _first_result(site, stated)
    if result is None or dimension >= result.rank:
        count = site.payload_as(CollectivePayload).replica_groups.group_size
        if not count:
            site.fail("has no replica groups, so that its shape cannot be inferred and must be stated")
        return count
    sizes = operand.dimensions[dimension], result.dimensions[dimension]
    large, small = max(sizes), min(sizes)
    return 1 if small <= 0 else -(-large // small)


# -- all-gather ----------------------------------------------------------------------------------------------------------


def _gathered(site: Site, stated: Shape | None) -> Shape:
    dimension, count = _dimension(site), shard_count(site, stated)
    return _one_or_tuple([_resized(shape, dimension, lambda size: size * count) for shape in site.arrays()])


def _resized(shape: ArrayShape, dimension: int, change: Callable[[int], int]) -> ArrayShape:
    size = shape.dimensions[dimension]
    unbounded = size == UNBOUNDED
    return with_size(shape, dimension, UNBOUNDED if unbounded else change(size), dynamic=unbounded)


@shape_rule(Opcode.ALL_GATHER)
def _all_gather(site: Site) -> Shape:
    return _gathered(site, site.stated)


@shape_rule(Opcode.ALL_GATHER_START)
def _all_gather_start(site: Site) -> Shape:
    stated = site.stated
    result = stated.elements[1] if isinstance(stated, TupleShape) and len(stated.elements) == 2 else None
    return tuple_shape((_one_or_tuple(list(site.operands)), _gathered(site, result)))


@shape_rule(Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE)
def _second_element(site: Site) -> Shape:
    start = site.tuple(0)
    if len(start.elements) < 2:
        site.fail(f"operand 0 has shape {start}, expected (operand, result)")
    return start.elements[1]


# -- reductions ----------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START)
def _all_reduce(site: Site) -> Shape:
    """The start returns the reduced shape itself; it has no context, unlike the other starts."""
    return _one_or_tuple(list(site.arrays()))


@shape_rule(Opcode.ALL_REDUCE_DONE)
def _all_reduce_done(site: Site) -> Shape:
    return site.operands[0]


@shape_rule(Opcode.REDUCE_SCATTER)
def _reduce_scatter(site: Site) -> Shape:
    dimension, count = _dimension(site), shard_count(site, site.stated)
    for number, shape in enumerate(site.arrays()):
        if shape.dimensions[dimension] % count and shape.dimensions[dimension] != UNBOUNDED:
            site.fail(f"operand {number} has shape {shape}, expected a multiple of {count} in dimension {dimension}")
    return _one_or_tuple([_resized(shape, dimension, lambda size: size // count) for shape in site.arrays()])


# -- exchanges -----------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.ALL_TO_ALL)
def _all_to_all(site: Site) -> Shape:
    payload = site.payload_as(CollectivePayload)
    if payload.dimension is None:
        return _all_to_all_tuple(site)
    if len(site.operands) != 1:
        site.fail(f"has {len(site.operands)} operands, expected 1 where a dimension is split")
    dimension, operand, count = _dimension(site), site.array(0), payload.replica_groups.group_size or 1
    size = operand.dimensions[dimension]
    if size != UNBOUNDED and size % count:
        site.fail(f"operand 0 has shape {operand}, expected a multiple of {count} in dimension {dimension}")
    return new_array(operand.element_type, operand.dimensions, dynamic_flags(operand))


def _all_to_all_tuple(site: Site) -> Shape:
    if not site.operands:
        site.fail("has no operands, expected at least one")
    shapes = site.arrays()
    for number, shape in enumerate(shapes):
        same = shape.element_type is shapes[0].element_type and shape.dimensions == shapes[0].dimensions
        if not same or is_unbounded(shape):
            site.fail(f"operand {number} has shape {shape}, expected {shapes[0]} (same as operand 0)")
    return tuple_shape(site.operands)


@shape_rule(Opcode.RAGGED_ALL_TO_ALL)
def _ragged_all_to_all(site: Site) -> Shape:
    """Operands: input, output, then offsets and sizes, one number (rank 1) or several (rank 2) for each peer."""
    sizes = [site.array(number) for number in range(2, 6)]
    for number, shape in enumerate(sizes, 2):
        if shape.rank not in (1, 2):
            site.fail(f"operand {number} has shape {shape}, expected rank 1 or 2")
        if shape.element_type is not sizes[0].element_type or shape.dimensions != sizes[0].dimensions:
            site.fail(f"operand {number} has shape {shape}, expected {sizes[0]} (same as operand 2)")
    return site.array(1)


@shape_rule(Opcode.COLLECTIVE_BROADCAST)
def _collective_broadcast(site: Site) -> Shape:
    if not site.operands:
        site.fail("has no operands, expected one")
    return site.array(0)


@shape_rule(Opcode.COLLECTIVE_PERMUTE)
def _collective_permute(site: Site) -> Shape:
    if site.payload_as(CollectivePermutePayload).slice_sizes:
        return _in_place(site)[1]
    return _one_or_tuple(list(site.arrays()))


def _in_place(site: Site) -> tuple[Shape, ...]:
    """Operands of the form with slices: input, output, input offsets, output offsets."""
    if len(site.operands) != 4:
        site.fail(f"has {len(site.operands)} operands, expected 4: input, output and their offsets")
    return site.operands


@shape_rule(Opcode.COLLECTIVE_PERMUTE_START)
def _collective_permute_start(site: Site) -> Shape:
    contexts = site.stated.elements[2:] if isinstance(site.stated, TupleShape) else ()
    if site.payload_as(CollectivePermutePayload).slice_sizes:
        source, target, *_ = _in_place(site)
    else:
        source = target = _one_or_tuple(list(site.arrays()))
    return tuple_shape((source, target, *contexts))
