"""What collectives compute, for one group of devices at a time (text spec, section 5.3).

Every function takes the operands of each member in group order and gives the result of each member. Sums fold left in group
order, in the operand's own type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from layoutsim.interp.bodies import Body
from layoutsim.interp.values import Array, Value, as_array, fail, zeros
from layoutsim.ir import ArrayShape, Instruction, Opcode, TupleShape
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload

Operands = tuple[Value, ...]
GroupFunction = Callable[[Instruction, Sequence[Operands], Body | None], list[Value]]


def _packed(instruction: Instruction, parts: Sequence[Value]) -> Value:
    """The result of a member: a tuple where the instruction has one."""
    shape = instruction.shape
    is_start = instruction.opcode in (Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START)
    if is_start:
        assert isinstance(shape, TupleShape), instruction
        shape = shape.elements[1]
    return tuple(parts) if isinstance(shape, TupleShape) else parts[0]


def _dimension(instruction: Instruction) -> int:
    dimension = instruction.payload_as(CollectivePayload).dimension
    assert dimension is not None, instruction
    return dimension


def _all_gather(instruction: Instruction, members: Sequence[Operands], _body: Body | None) -> list[Value]:
    axis = _dimension(instruction)
    parts = [np.concatenate([as_array(x) for x in column], axis=axis) for column in zip(*members, strict=True)]
    return [_packed(instruction, parts)] * len(members)


def _folded(members: Sequence[Operands], body: Body | None) -> list[Array]:
    """The fold of each operand over the members."""
    assert body is not None
    out: list[Array] = []
    for column in zip(*members, strict=True):
        total = as_array(column[0])
        for x in column[1:]:
            (total,) = body.apply(total, as_array(x))
        out.append(total)
    return out


def _all_reduce(instruction: Instruction, members: Sequence[Operands], body: Body | None) -> list[Value]:
    return [_packed(instruction, _folded(members, body))] * len(members)


def _reduce_scatter(instruction: Instruction, members: Sequence[Operands], body: Body | None) -> list[Value]:
    axis = _dimension(instruction)
    blocks = [np.split(total, len(members), axis=axis) for total in _folded(members, body)]
    return [_packed(instruction, [block[rank] for block in blocks]) for rank in range(len(members))]


def _all_to_all(instruction: Instruction, members: Sequence[Operands], _body: Body | None) -> list[Value]:
    if instruction.payload_as(CollectivePayload).dimension is None:
        return [tuple(member[rank] for member in members) for rank in range(len(members))]
    axis = _dimension(instruction)
    blocks = [np.split(as_array(member[0]), len(members), axis=axis) for member in members]
    return [np.concatenate([parts[rank] for parts in blocks], axis=axis) for rank in range(len(members))]


def _collective_broadcast(instruction: Instruction, members: Sequence[Operands], _body: Body | None) -> list[Value]:
    return [_packed(instruction, members[0])] * len(members)


def _ragged_all_to_all(instruction: Instruction, members: Sequence[Operands], _body: Body | None) -> list[Value]:
    """Rows of each sender's input go where the sender says in the receiver's output."""
    arrays = [tuple(as_array(x) for x in member) for member in members]
    results = [output.copy() for _, output, *_ in arrays]
    count = len(members)
    for sender, (rows, _, in_offsets, send_sizes, out_offsets, _) in enumerate(arrays):
        table = [x.reshape(count, -1) for x in (in_offsets, send_sizes, out_offsets)]
        for peer in range(count):
            expected = arrays[peer][5].reshape(count, -1)[sender]
            if table[1][peer].tolist() != expected.tolist():
                sizes = f"{table[1][peer].tolist()} rows to {peer}, which expects {expected.tolist()}"
                raise fail(instruction, f"member {sender} sends {sizes}")
            for start, size, target in zip(*(column[peer].tolist() for column in table), strict=True):
                if min(start, size, target) < 0 or start + size > len(rows) or target + size > len(results[peer]):
                    raise fail(
                        instruction, f"member {sender} sends rows {start}:{start + size} to {target} of {peer}: out of range"
                    )
                results[peer][target : target + size] = rows[start : start + size]
    return list(results)


GROUP_FUNCTIONS: dict[Opcode, GroupFunction] = {
    Opcode.ALL_GATHER: _all_gather,
    Opcode.ALL_GATHER_START: _all_gather,
    Opcode.ALL_REDUCE: _all_reduce,
    Opcode.ALL_REDUCE_START: _all_reduce,
    Opcode.REDUCE_SCATTER: _reduce_scatter,
    Opcode.ALL_TO_ALL: _all_to_all,
    Opcode.RAGGED_ALL_TO_ALL: _ragged_all_to_all,
    Opcode.COLLECTIVE_BROADCAST: _collective_broadcast,
}


def without_group(instruction: Instruction, operands: Operands) -> Value:
    """The result on a device that no group names: zeros for a broadcast, an error for everything else."""
    if instruction.opcode is Opcode.COLLECTIVE_BROADCAST:
        return zeros(instruction.shape)
    raise fail(instruction, "a device is in no group")


def permuted(instruction: Instruction, target: Operands, source: Operands | None) -> Value:
    """A collective-permute's result on one device; ``source`` is ``None`` where nobody sends to it."""
    payload = instruction.payload_as(CollectivePermutePayload)
    if payload.slice_sizes:
        return _permuted_in_place(instruction, payload, target, source)
    if source is None:
        shape = instruction.shape
        if instruction.opcode is Opcode.COLLECTIVE_PERMUTE_START:
            assert isinstance(shape, TupleShape), instruction
            shape = shape.elements[1]
        return zeros(shape)
    return _packed(instruction, source)


def _permuted_in_place(
    instruction: Instruction, payload: CollectivePermutePayload, target: Operands, source: Operands | None
) -> Value:
    """Slices of the sender's input are written into the receiver's output buffer."""
    output = target[1]
    if isinstance(output, tuple):
        raise fail(instruction, "in-place permutes of several buffers are not modelled")
    result = as_array(output).copy()
    if source is None:
        return result
    reads, writes = _starts(source[2], len(payload.slice_sizes)), _starts(target[3], len(payload.slice_sizes))
    for read, write, sizes in zip(reads, writes, payload.slice_sizes, strict=True):
        result[_window(write, sizes, result)] = as_array(source[0])[_window(read, sizes, as_array(source[0]))]
    return result


def _starts(indices: Value, count: int) -> list[list[int]]:
    parts = indices if isinstance(indices, tuple) else (indices,)
    if count > 1 or isinstance(parts[0], tuple):
        return [[int(as_array(x)) for x in part] for part in parts if isinstance(part, tuple)]
    return [[int(as_array(x)) for x in parts]]


def _window(starts: Sequence[int], sizes: Sequence[int], x: Array) -> tuple[slice, ...]:
    clamped = [max(0, min(s, bound - n)) for s, n, bound in zip(starts, sizes, x.shape, strict=True)]
    return tuple(slice(s, s + n) for s, n in zip(clamped, sizes, strict=True))


def started(instruction: Instruction, operands: Operands, result: Value) -> Value:
    """The value of a start: its result, or (operands, result, contexts...) where its shape says so."""
    if instruction.opcode not in (Opcode.ALL_GATHER_START, Opcode.COLLECTIVE_PERMUTE_START):
        return result
    shape = instruction.shape
    assert isinstance(shape, TupleShape), instruction
    first: Value = operands if isinstance(shape.elements[0], TupleShape) else operands[0]
    contexts = [zeros(part) for part in shape.elements[2:] if isinstance(part, ArrayShape)]
    return (first, result, *contexts)
