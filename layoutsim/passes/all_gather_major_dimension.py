"""One transpose instead of two around an all-gather (layout spec, 12.3; ``all_gather_major_dimension_rewriter.h``).

Layout assignment puts the gathered dimension most major, which may take a copy before the all-gather and one behind it. Instead
gather along whatever dimension the input has most major, and let one copy sort out the result. Applies to
``copy -> all-gather -> copy`` with one operand where nobody else uses the first two.
``all-gather-major-dimension``::

      p = s4[3,7,4]{2,1,0} parameter(0)
    - c = s4[3,7,4]{1,0,2} copy(p)
    - g = s4[3,7,8]{1,0,2} all-gather(c), replica_groups=[1,2]<=[2], dimensions={2}
    - ROOT d = s4[3,7,8]{0,2,1} copy(g)
    + g.1 = s4[6,7,4]{2,1,0} all-gather(p), replica_groups=[1,2]<=[2], dimensions={0}
    + bitcast = s4[2,3,7,4]{3,2,1,0} bitcast(g.1)
    + copy = s4[2,3,7,4]{1,3,0,2} copy(bitcast)
    + ROOT bitcast.1 = s4[3,7,8]{0,2,1} bitcast(copy)

Runs after layout assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import evolve, frozen

from layoutsim.build import array_of
from layoutsim.ir import Instruction, Module, Opcode, array_shape
from layoutsim.ir.payloads import CollectivePayload
from layoutsim.ir.traverse import post_order
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.replace import replace_instruction


@frozen
class AllGatherMajorDimension(Pass):
    """Gather along the dimension that is most major already."""

    name: ClassVar[str] = "all-gather-major-dimension"

    def run(self, module: Module) -> PassResult:
        said = "gathers along dimension {}, with one copy behind it"
        return rewrite_between_copies(module, Opcode.ALL_GATHER, _rewrite, said)


def rewrite_between_copies(module: Module, opcode: Opcode, rewrite: Callable[[Instruction], int], said: str) -> PassResult:
    """Rewrite every collective of one opcode that has a copy before and one behind it, which serve nothing else.

    Args:
        rewrite: does it to one, and returns the dimension that it goes along now.
        said: the remark, with ``{}`` for that dimension.
    """
    remarks: list[Remark] = []
    for computation in module.computations:
        for instruction in post_order(computation):
            if instruction.parent is not None and _stands_between_copies(instruction, opcode):
                name = instruction.name
                remarks.append(Remark(name, said.format(rewrite(instruction))))
    return PassResult(bool(remarks), tuple(remarks))


def _stands_between_copies(collective: Instruction, opcode: Opcode) -> bool:
    return (
        collective.opcode is opcode
        and collective.operand_count == 1
        and collective.operand(0).opcode is Opcode.COPY
        and collective.operand(0).user_count == 1
        and collective.user_count == 1
        and collective.users[0].opcode is Opcode.COPY
    )


def _rewrite(gather: Instruction) -> int:
    """Build the new chain; the dimension that is gathered now."""
    computation = gather.parent
    source, (copy,) = gather.operand(0).operand(0), gather.users
    payload = gather.payload_as(CollectivePayload)
    shape, final = array_of(source), array_of(copy)
    dimension = payload.dimension
    assert computation is not None and dimension is not None, gather
    shards = array_of(gather).dimensions[dimension] // array_of(gather.operand(0)).dimensions[dimension]
    major = shape.minor_to_major[-1]
    sizes = list(shape.dimensions)
    sizes[major] *= shards
    whole = array_shape(shape.element_type, tuple(sizes), shape.minor_to_major)
    gathered = computation.add_like(gather, [source], shape=whole, payload=evolve(payload, dimension=major))
    split_sizes = (*shape.dimensions[:major], shards, *shape.dimensions[major:])
    split_order = with_dimension(shape.minor_to_major, major, behind=major)
    split = computation.add(Opcode.BITCAST, array_shape(shape.element_type, split_sizes, split_order), [gathered])
    moved_order = with_dimension(final.minor_to_major, major, behind=dimension)
    moved = computation.add(Opcode.COPY, array_shape(shape.element_type, split_sizes, moved_order), [split])
    replace_instruction(copy, computation.add(Opcode.BITCAST, final, [moved]))
    return major


def with_dimension(order: tuple[int, ...], new: int, *, behind: int) -> tuple[int, ...]:
    """The order with a dimension ``new`` inserted: renumbered, and ``new`` next to old dimension ``behind``, more major."""
    out: list[int] = []
    for d in order:
        out.append(d + (d >= new))
        if d == behind:
            out.append(new)
    return tuple(out)
