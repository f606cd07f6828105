"""Loop outputs that are copies of loop inputs: a stack that is read slice by slice, and stacked again as it was.

``jax.lax.scan`` does this when a function returns part of what it scans over, and automatic differentiation when it saves a
parameter for the backward pass. In the loop's body this is::

    slice = dynamic-slice(input, i, 0, 0)
    output' = dynamic-update-slice(output, slice, i, 0, 0)

1. The update is a slice, of the update's size and from the same indices, of an array of the output's dimensions and type.
2. That array is the same in every iteration.

``copy``, ``bitcast`` and ``reshape`` on the way do not matter, nor does what of it is inside fusions. Indices are the same
if they are computed by the same operations from the same values.
"""

from __future__ import annotations

from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.values import Value
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import ConstantPayload
from layoutsim.ir.shape import ShapeIndex, compatible

_PASSED = frozenset({Opcode.COPY, Opcode.BITCAST, Opcode.RESHAPE})
_DEPTH = 12

_Place = tuple[Instruction, tuple[Instruction, ...]]
"""An instruction, and the fusions it is in, the outermost first."""


def restacked_input(dataflow: Dataflow, update: Value) -> Value | None:
    """The loop input that ``update`` (a value made by a dynamic-update-slice) stacks again; ``None`` if there is none."""
    made = _made_by(update.instruction, update.index)
    if made is None or made[0].opcode is not Opcode.DYNAMIC_UPDATE_SLICE:
        return None
    writer, fusions = made
    reader, reader_fusions = _resolve((writer.operand(1), fusions))
    if reader.opcode is not Opcode.DYNAMIC_SLICE or not compatible(reader.operand(0).shape, writer.shape):
        return None
    if not compatible(reader.shape, writer.operand(1).shape):
        return None
    writes = [(start, fusions) for start in writer.operands[2:]]
    reads = [(start, reader_fusions) for start in reader.operands[1:]]
    if not all(_same(a, b, _DEPTH) for a, b in zip(writes, reads, strict=True)):
        return None
    source, around = _resolve((reader.operand(0), reader_fusions))
    return None if around else _invariant(dataflow, source)


def _invariant(dataflow: Dataflow, source: Instruction) -> Value | None:
    """Rule (2): the value at ``source``, if it comes from outside the computation and is no phi of its loop."""
    values = dataflow.value_set(source)
    if len(values) != 1 or values[0].is_phi or values[0].instruction.parent is source.parent:
        return None
    return values[0]


def _made_by(instruction: Instruction, index: ShapeIndex) -> _Place | None:
    """What computes the part at ``index``."""
    if not index:
        return _resolve((instruction, ()))
    if instruction.opcode is not Opcode.FUSION:
        return None
    end = instruction.to_apply.root
    for number in index:
        if end.opcode is not Opcode.TUPLE:
            return None
        end = end.operand(number)
    return _resolve((end, (instruction,)))


def _resolve(place: _Place) -> _Place:
    """The first instruction backwards that does more than pass data on, across the borders of fusions."""
    instruction, fusions = place
    while True:
        if instruction.opcode in _PASSED:
            instruction = instruction.operand(0)
        elif instruction.opcode is Opcode.FUSION:
            fusions = (*fusions, instruction)
            instruction = instruction.to_apply.root
        elif instruction.opcode is Opcode.PARAMETER and fusions:
            instruction = fusions[-1].operand(instruction.parameter_number)
            fusions = fusions[:-1]
        elif instruction.opcode is Opcode.GET_TUPLE_ELEMENT and instruction.operand(0).opcode is Opcode.FUSION:
            part = _made_by(instruction.operand(0), (instruction.tuple_index,))
            if part is None:
                return instruction, fusions
            instruction, inner = part
            fusions = (*fusions, *inner)
        else:
            return instruction, fusions


def _same(a: _Place, b: _Place, depth: int) -> bool:
    """Whether two expressions are equal, operation by operation."""
    a, b = _resolve(a), _resolve(b)
    (one, fusions), (other, other_fusions) = a, b
    if one is other:
        return True
    if one.opcode is not other.opcode or one.operand_count != other.operand_count or not depth:
        return False
    if one.opcode is Opcode.CONSTANT:
        return one.payload_as(ConstantPayload) == other.payload_as(ConstantPayload)
    if not one.operand_count or one.payload != other.payload or one.called_computations:
        return False
    pairs = zip(one.operands, other.operands, strict=True)
    return all(_same((x, fusions), (y, other_fusions), depth - 1) for x, y in pairs)
