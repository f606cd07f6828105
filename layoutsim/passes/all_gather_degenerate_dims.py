"""All-gathers without dimensions of size 1 (layout spec, 12.2; ``all_gather_remove_degenerate_dims.h``, XLA since June 2025).

GPU and CPU want the gathered dimension most major, and ask for it by position. A dimension of size 1 in front of it makes that
a different layout, which spreads from the all-gather to what it reads and to its users, until a real transpose stands before a
large array. Without the dimension of size 1 the default layout will do:

1. Dimensions in front of the gathered one go if they have size 1 in every result; those behind it, per operand. The gathered
   dimension itself stays, and an all-gather with ``constrain_layout`` is left alone.
2. Operands are reshaped, results reshaped back (several results through ``get-tuple-element`` and a new ``tuple``).

``all-gather-remove-degenerate-dims``::

      p = f32[1,4,8]{2,1,0} parameter(0)
    - ROOT g = f32[1,32,8]{2,1,0} all-gather(p), replica_groups=[1,8]<=[8], dimensions={1}
    + reshape = f32[4,8]{1,0} reshape(p)
    + g.1 = f32[32,8]{1,0} all-gather(reshape), replica_groups=[1,8]<=[8], dimensions={0}
    + ROOT reshape.1 = f32[1,32,8]{2,1,0} reshape(g.1)
"""

from __future__ import annotations

from typing import ClassVar

from attrs import evolve, frozen

from layoutsim.ir import (
    ArrayShape,
    Instruction,
    Module,
    Opcode,
    Shape,
    TupleShape,
    array_shape,
    layout,
    tuple_shape,
)
from layoutsim.ir.payloads import CollectivePayload, ReshapePayload, TupleIndexPayload
from layoutsim.ir.traverse import post_order
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.replace import replace_instruction


@frozen
class AllGatherRemoveDegenerateDims(Pass):
    """Reshape all-gathers so that no dimension of size 1 stands in front of the gathered one."""

    name: ClassVar[str] = "all-gather-remove-degenerate-dims"

    def run(self, module: Module) -> PassResult:
        return remove_degenerate_dims(module, Opcode.ALL_GATHER)


def remove_degenerate_dims(module: Module, opcode: Opcode) -> PassResult:
    """Rules (1) and (2) for every collective of one opcode that has a dimension."""
    remarks: list[Remark] = []
    for computation in module.computations:
        for instruction in post_order(computation):
            if instruction.opcode is opcode:
                name = instruction.name
                new = _without_degenerate_dims(instruction)
                if new is not None:
                    remarks.append(Remark(name, f"now {new.shape} along {new.payload_as(CollectivePayload).dimension}"))
    return PassResult(bool(remarks), tuple(remarks))


def _without_degenerate_dims(gather: Instruction) -> Instruction | None:
    """Replace ``gather``; the new collective, or ``None`` if there was nothing to remove."""
    payload, computation = gather.payload_as(CollectivePayload), gather.parent
    dimension = payload.dimension
    assert computation is not None, gather
    if payload.constrain_layout or dimension is None:
        return None
    major = _major_dims_to_delete(gather, dimension)
    deleted = [(*major, *_minor_dims_to_delete(operand.shape, dimension)) for operand in gather.operands]
    if not any(deleted):
        return None
    operands = [_reshaped(o, dims) if dims else o for o, dims in zip(gather.operands, deleted, strict=True)]
    new_dimension = dimension - len(major)
    gathered = zip(_results(gather), deleted, operands, strict=True)
    # The result keeps its sizes, also where they are 0, and gets the layout of what is gathered.
    shapes = tuple(without_dimensions(result, dims).with_layout(_array(o.shape).layout) for result, dims, o in gathered)
    shape = shapes[0] if len(shapes) == 1 else tuple_shape(shapes)
    new = computation.add_like(gather, operands, shape=shape, payload=evolve(payload, dimension=new_dimension))
    _replace_by_reshaped(gather, new)
    return new


def _major_dims_to_delete(gather: Instruction, dimension: int) -> tuple[int, ...]:
    return tuple(d for d in range(dimension) if all(result.dimensions[d] == 1 for result in _results(gather)))


def _results(gather: Instruction) -> tuple[ArrayShape, ...]:
    shapes = gather.shape.elements if isinstance(gather.shape, TupleShape) else (gather.shape,)
    return tuple(map(_array, shapes))


def _minor_dims_to_delete(shape: Shape, dimension: int) -> tuple[int, ...]:
    array = _array(shape)
    return tuple(d for d in range(dimension + 1, array.rank) if array.dimensions[d] == 1)


def _reshaped(operand: Instruction, deleted: tuple[int, ...]) -> Instruction:
    computation = operand.parent
    assert computation is not None, operand
    shape = without_dimensions(_array(operand.shape), deleted)
    return computation.add(Opcode.RESHAPE, shape, [operand], payload=ReshapePayload())


def without_dimensions(shape: ArrayShape, deleted: tuple[int, ...]) -> ArrayShape:
    """``shape`` without these dimensions; the order of the others in memory stays."""
    kept = [d for d in range(shape.rank) if d not in deleted]
    number = {d: i for i, d in enumerate(kept)}
    sizes = tuple(shape.dimensions[d] for d in kept)
    dynamic = tuple(shape.dynamic[d] for d in kept) if shape.dynamic else ()
    if shape.layout is None:
        return array_shape(shape.element_type, sizes, dynamic=dynamic).with_layout(None)
    order = tuple(number[d] for d in shape.minor_to_major if d in number)
    return array_shape(shape.element_type, sizes, dynamic=dynamic).with_layout(layout(order))


def _replace_by_reshaped(gather: Instruction, new: Instruction) -> None:
    computation = gather.parent
    assert computation is not None, gather
    if not isinstance(gather.shape, TupleShape):
        result = computation.add(Opcode.RESHAPE, gather.shape, [new], payload=ReshapePayload())
    else:
        assert isinstance(new.shape, TupleShape), new
        results: list[Instruction] = []
        for i, (part, whole) in enumerate(zip(new.shape.elements, gather.shape.elements, strict=True)):
            element = computation.add(Opcode.GET_TUPLE_ELEMENT, part, [new], payload=TupleIndexPayload(i))
            results.append(computation.add(Opcode.RESHAPE, whole, [element], payload=ReshapePayload()))
        result = computation.add(Opcode.TUPLE, gather.shape, results)
    replace_instruction(gather, result, relay_control=True)


def _array(shape: Shape) -> ArrayShape:
    assert isinstance(shape, ArrayShape), shape
    return shape
