"""All-gathers of arrays with a dimension of size 1 in front: advice to squeeze before the gather.

Imitated by the pass :mod:`~layoutsim.passes.all_gather_degenerate_dims`, which does to HLO what the squeeze does to the
program. Releases from 0.6.2 on run that pass themselves, so that this is advice for older ones.
"""

from __future__ import annotations

from layoutsim.experiments.advice.change import ProgramChange, where
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import CollectivePayload
from layoutsim.ir.shape import ArrayShape, byte_size, shape_text
from layoutsim.passes.all_gather_degenerate_dims import AllGatherRemoveDegenerateDims

_MOST_NAMED = 3


def find_squeezes(module: Module) -> list[ProgramChange]:
    """One change for all gathers of the module with a dimension of size 1 in front of the gathered one."""
    gathers = [i for c in module.computations for i in c.instructions if i.opcode is Opcode.ALL_GATHER and _degenerate(i)]
    if not gathers:
        return []
    shapes = list(dict.fromkeys(shape_text(g.operand(0).shape, layouts=False) for g in gathers))
    change = ProgramChange(
        title="squeeze before gathering " + ", ".join(shapes[:_MOST_NAMED]) + ", ..." * (len(shapes) > _MOST_NAMED),
        code="\n".join(dict.fromkeys(map(_code, gathers))),
        size_bytes=sum(byte_size(source.shape) for gather in gathers for source in _sources(gather)),
        apply=_squeeze_all,
    )
    return [change]


def _squeeze_all(module: Module) -> None:
    AllGatherRemoveDegenerateDims().run(module)


def _degenerate(gather: Instruction) -> tuple[int, ...]:
    """Dimensions of size 1 in front of the gathered one."""
    shape = gather.operand(0).shape
    assert isinstance(shape, ArrayShape), gather
    return tuple(d for d in range(gather.payload_as(CollectivePayload).dimension or 0) if shape.dimensions[d] == 1)


def _sources(gather: Instruction) -> list[Instruction]:
    """What the gathered slices are cut from: that is what an unlucky layout copies."""
    return [o.operand(0) if o.opcode is Opcode.DYNAMIC_SLICE else o for o in gather.operands]


def _code(gather: Instruction) -> str:
    ones = _degenerate(gather)
    dimension = (gather.payload_as(CollectivePayload).dimension or 0) - len(ones)
    axes = str(ones[0]) if len(ones) == 1 else repr(ones)
    return (
        f"shard = jnp.squeeze(shard, axis={axes})  # {where(gather)}\n"
        f"whole = lax.all_gather(shard, axis_name, axis={dimension}, tiled=True)  # or with_sharding_constraint(shard, ...)"
    )
