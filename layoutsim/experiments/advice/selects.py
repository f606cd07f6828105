"""Selects between an array and itself with a part written: advice to select the part.

``jnp.where(condition, buffer.at[i].set(row), buffer)`` needs the old and the new buffer at the same time. If the row is chosen
instead, it can be written in place. Imitated as the changed program would be compiled::

    new = f32[8,4] dynamic-update-slice(old, row, i, 0)            here = f32[1,4] dynamic-slice(old, i, 0)
    s = f32[8,4] select(condition, new, old)                 =>    put = f32[1,4] select(condition', row, here)
                                                                   s = f32[8,4] dynamic-update-slice(old, put, i, 0)

1. A ``dynamic-update-slice``. XLA 0.10.2 makes this change itself before it assigns layouts.
2. A ``scatter`` that writes (its computation returns the update): ``here`` is the ``gather`` of the same places.

``condition'`` is a broadcast in the size of the part where the condition does not vary along the dimensions that are cut, else
the same part of the condition.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutsim.build import Builder, array_of
from layoutsim.experiments.advice.change import ProgramChange, find_again, where
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import DimensionsPayload, GatherPayload, ScatterPayload
from layoutsim.ir.shape import byte_size, shape_text
from layoutsim.passes.replace import replace_instruction


def find_selects(module: Module) -> list[ProgramChange]:
    """A change for each select between a written array and the array."""
    instructions = (i for computation in module.computations for i in computation.instructions)
    return [_change(i, writing) for i in instructions if (writing := _written(i)) is not None]


def _written(select: Instruction) -> Instruction | None:
    """What writes the array that the select takes or leaves."""
    if select.opcode is not Opcode.SELECT:
        return None
    one, other = select.operands[1:]
    for writing, old in ((one, other), (other, one)):
        if _writes(writing) and writing.operand(0) is old and writing.user_count == 1:
            return writing
    return None


def _writes(instruction: Instruction) -> bool:
    """Rules (1) and (2)."""
    if instruction.opcode is not Opcode.SCATTER:
        return instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE
    result = instruction.to_apply.root
    return instruction.operand_count == 3 and result.opcode is Opcode.PARAMETER and result.parameter_number == 1


def _change(select: Instruction, writing: Instruction) -> ProgramChange:
    def apply(module: Module) -> None:
        again = find_again(module, writing)
        rewrite = _select_slice if again.opcode is Opcode.DYNAMIC_UPDATE_SLICE else _select_scattered
        rewrite(find_again(module, select), again)

    return ProgramChange(
        title=f"select what is written, not the whole {shape_text(select.shape, layouts=False)}",
        code="\n".join(_code(select, writing)),
        size_bytes=byte_size(select.shape),
        apply=apply,
    )


def _select_slice(select: Instruction, update: Instruction) -> None:
    """Rule (1)."""
    assert select.parent is not None, select
    build = Builder.into(select.parent)
    old, part, starts = update.operand(0), update.operand(1), update.operands[2:]
    sizes = array_of(part).dimensions
    condition = _broadcast_part(build, select.operand(0), sizes) or build.dynamic_slice(select.operand(0), starts, sizes)
    put = _put(build, select, update, condition, part, build.dynamic_slice(old, starts, sizes))
    new = build.apply(Opcode.DYNAMIC_UPDATE_SLICE, old, put, *starts, shape=select.shape, attributes=update.attributes)
    replace_instruction(select, new, relay_control=True)


def _broadcast_part(build: Builder, condition: Instruction, sizes: tuple[int, ...]) -> Instruction | None:
    whole = array_of(condition).dimensions
    if not whole:
        return condition
    if condition.opcode is not Opcode.BROADCAST:
        return None
    kept = condition.payload_as(DimensionsPayload).dimensions
    return build.broadcast(condition.operand(0), sizes, kept) if all(whole[d] == sizes[d] for d in kept) else None


def _select_scattered(select: Instruction, scatter: Instruction) -> None:
    """Rule (2)."""
    assert select.parent is not None, select
    build = Builder.into(select.parent)
    old, places, part = scatter.operands
    payload = _gather_of(scatter)
    condition = select.operand(0)
    if array_of(condition).rank:
        condition = build.apply(Opcode.GATHER, condition, places, payload=payload)
    put = _put(build, select, scatter, condition, part, build.apply(Opcode.GATHER, old, places, payload=payload))
    new = build.apply(
        Opcode.SCATTER,
        old,
        places,
        put,
        payload=scatter.payload,
        calls=scatter.called_computations,
        shape=select.shape,
        attributes=scatter.attributes,
    )
    replace_instruction(select, new, relay_control=True)


def _gather_of(scatter: Instruction) -> GatherPayload:
    """What reads the places that a scatter writes."""
    to = scatter.payload_as(ScatterPayload)
    updates = array_of(scatter.operand(2)).dimensions
    gone = {*to.inserted_window_dims, *to.input_batching_dims}
    window = iter(updates[d] for d in to.update_window_dims)
    sizes = tuple(1 if d in gone else next(window) for d in range(array_of(scatter.operand(0)).rank))
    return GatherPayload(
        offset_dims=to.update_window_dims,
        collapsed_slice_dims=to.inserted_window_dims,
        start_index_map=to.scatter_dims_to_operand_dims,
        index_vector_dim=to.index_vector_dim,
        slice_sizes=sizes,
        operand_batching_dims=to.input_batching_dims,
        start_indices_batching_dims=to.scatter_indices_batching_dims,
    )


def _put(
    build: Builder, select: Instruction, writing: Instruction, condition: Instruction, part: Instruction, here: Instruction
) -> Instruction:
    taken, left = (part, here) if select.operand(1) is writing else (here, part)
    return build.apply(Opcode.SELECT, condition, taken, left, attributes=select.attributes)


def _code(select: Instruction, writing: Instruction) -> Iterator[str]:
    choice = "jnp.where(condition, part, here)" if select.operand(1) is writing else "jnp.where(condition, here, part)"
    yield f"# {where(select)}: instead of jnp.where(condition, written_buffer, buffer), of the size of the part"
    if writing.opcode is Opcode.SCATTER:
        yield "here = buffer[places]"
        yield f"buffer = buffer.at[places].set({choice})"
        return
    whole, part = array_of(writing).dimensions, array_of(writing.operand(1)).dimensions
    cut = [d for d in range(len(whole)) if whole[d] != part[d]]
    if len(cut) == 1:
        yield f"here = lax.dynamic_slice_in_dim(buffer, i, {part[cut[0]]}, axis={cut[0]})"
        yield f"buffer = lax.dynamic_update_slice_in_dim(buffer, {choice}, i, axis={cut[0]})"
    else:
        yield "here = lax.dynamic_slice(buffer, starts, part.shape)"
        yield f"buffer = lax.dynamic_update_slice(buffer, {choice}, starts)"
