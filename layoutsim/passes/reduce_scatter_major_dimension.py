"""One transpose instead of two around a reduce-scatter: :mod:`~layoutsim.passes.all_gather_major_dimension` in the mirror.

Layout assignment puts the scattered dimension most major, which may take a copy before the reduce-scatter and one behind it.
Instead put what each device gets most major by the first copy, and scatter along whatever dimension the result is to have most
major. Applies to ``copy -> reduce-scatter -> copy`` with one operand where nobody else uses the first two.
``reduce-scatter-major-dimension``::

      add {
        a = s4[] parameter(0)
        b = s4[] parameter(1)
        ROOT c = s4[] add(a, b)
      }
      ENTRY e {
        p = s4[3,7,8]{2,1,0} parameter(0)
    -   c = s4[3,7,8]{1,0,2} copy(p)
    -   s = s4[3,7,4]{1,0,2} reduce-scatter(c), replica_groups=[1,2]<=[2], dimensions={2}, to_apply=add
    -   ROOT d = s4[3,7,4]{2,1,0} copy(s)
    +   bitcast = s4[3,7,2,4]{3,2,1,0} bitcast(p)
    +   copy = s4[3,7,2,4]{3,1,0,2} copy(bitcast)
    +   bitcast.1 = s4[6,7,4]{2,1,0} bitcast(copy)
    +   ROOT s.1 = s4[3,7,4]{2,1,0} reduce-scatter(bitcast.1), replica_groups=[1,2]<=[2], dimensions={0}, to_apply=add
      }

The first copy, of the large array, stays; the second goes. An all-to-all has no such rewriting: it takes *and* gives the blocks
most major, so that splitting along another dimension moves the second copy, and does not save it. Runs after layout assignment;
no release of XLA has it.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import evolve, frozen

from layoutsim.build import array_of
from layoutsim.ir import Instruction, Module, Opcode, array_shape
from layoutsim.ir.payloads import CollectivePayload
from layoutsim.passes.all_gather_major_dimension import rewrite_between_copies, with_dimension
from layoutsim.passes.base import Pass, PassResult
from layoutsim.passes.replace import replace_instruction


@frozen
class ReduceScatterMajorDimension(Pass):
    """Scatter along the dimension that the result is to have most major."""

    name: ClassVar[str] = "reduce-scatter-major-dimension"

    def run(self, module: Module) -> PassResult:
        said = "scatters along dimension {}, with one copy before it"
        return rewrite_between_copies(module, Opcode.REDUCE_SCATTER, _rewrite, said)


def _rewrite(scatter: Instruction) -> int:
    """Build the new chain; the dimension that is scattered now."""
    computation = scatter.parent
    source, (copy,) = scatter.operand(0).operand(0), scatter.users
    payload = scatter.payload_as(CollectivePayload)
    shape, final = array_of(source), array_of(copy)
    dimension = payload.dimension
    assert computation is not None and dimension is not None, scatter
    size = final.dimensions[dimension]
    shards = shape.dimensions[dimension] // size
    kind = shape.element_type
    split_sizes = (*shape.dimensions[:dimension], shards, size, *shape.dimensions[dimension + 1 :])
    split_order = with_dimension(shape.minor_to_major, dimension, behind=dimension)
    split = computation.add(Opcode.BITCAST, array_shape(kind, split_sizes, split_order), [source])
    moved_order = (*(d + (d >= dimension) for d in final.minor_to_major), dimension)
    moved = computation.add(Opcode.COPY, array_shape(kind, split_sizes, moved_order), [split])
    major = final.minor_to_major[-1]
    joined_sizes = tuple(s * shards if d == major else s for d, s in enumerate(final.dimensions))
    joined = computation.add(Opcode.BITCAST, array_shape(kind, joined_sizes, final.minor_to_major), [moved])
    replace_instruction(copy, computation.add_like(scatter, [joined], shape=final, payload=evolve(payload, dimension=major)))
    return major
