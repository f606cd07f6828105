"""Which instructions define values, and at which indices (memory spec, section 2.2).

1. Pass-through opcodes define nothing: their values come from operands or from the computations they call.
2. ``copy`` and ``tuple`` define only ``{}``; deeper values come from the operands.
3. A parameter defines everything in the entry, in dead and in embedded computations; elsewhere its values come from callers.
4. The ``-start`` and ``-done`` halves define the tuple tables and what they produce, but not what they forward.
5. Everything else defines every index.

Source: ``HloDataflowAnalysis::InitializeInstructionValueSets`` in ``xla/hlo/analysis/hlo_dataflow_analysis.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from layoutsim.analysis.call_graph import CallGraphNode, Context
from layoutsim.errors import UnsupportedError
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import CollectivePermutePayload
from layoutsim.ir.shape import Shape, ShapeIndex, TupleShape, subshapes

DEFINES_NOTHING = frozenset(
    {
        Opcode.ADD_DEPENDENCY,
        Opcode.ALL_REDUCE_DONE,
        Opcode.BITCAST,
        Opcode.CALL,
        Opcode.CONDITIONAL,
        Opcode.COPY_DONE,
        Opcode.DOMAIN,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.OPT_BARRIER,
        Opcode.WHILE,
    }
)
DEFINES_TABLE_ONLY = frozenset({Opcode.COPY, Opcode.TUPLE})

_Rule = Callable[[Instruction], Callable[[ShapeIndex, Shape], bool]]


def parameters_define(node: CallGraphNode) -> bool:
    """Rule (3).

    Raises:
        UnsupportedError: the computation is called both by control flow and by a fusion, reducer or the like.
    """
    if node.context is Context.BOTH:
        raise UnsupportedError(f"computation {node.computation.name} is called both as control flow and embedded")
    return not node.caller_sites or node.context is Context.EMBEDDED


def defined_indices(instruction: Instruction) -> Iterator[tuple[int, ShapeIndex]]:
    """Indices of the values that ``instruction`` defines, each with its rank in pre-order; not for parameters."""
    opcode = instruction.opcode
    if opcode in DEFINES_NOTHING:
        return
    if opcode in DEFINES_TABLE_ONLY or not isinstance(instruction.shape, TupleShape):
        if opcode not in _RULES or _RULES[opcode](instruction)((), instruction.shape):
            yield 0, ()
        return
    defines = _RULES[opcode](instruction) if opcode in _RULES else None
    for rank, (index, part) in enumerate(subshapes(instruction.shape)):
        if defines is None or defines(index, part):
            yield rank, index


def is_in_place_permute(instruction: Instruction) -> bool:
    """Whether a collective-permute(-start) writes slices into its second operand."""
    return bool(instruction.payload_as(CollectivePermutePayload).slice_sizes)


def _async_start(_instruction: Instruction) -> Callable[[ShapeIndex, Shape], bool]:
    return lambda index, part: isinstance(part, TupleShape) or index[0] > 1


def _tables(_instruction: Instruction) -> Callable[[ShapeIndex, Shape], bool]:
    return lambda _index, part: isinstance(part, TupleShape)


def _all_gather_start(_instruction: Instruction) -> Callable[[ShapeIndex, Shape], bool]:
    return lambda index, part: isinstance(part, TupleShape) or index[0] == 1


def _collective_permute_start(instruction: Instruction) -> Callable[[ShapeIndex, Shape], bool]:
    in_place = is_in_place_permute(instruction)
    nested = isinstance(instruction.operand(1).shape, TupleShape) if in_place else instruction.operand_count > 1
    return lambda index, _part: not index or (len(index) == 1 and index[0] >= 1) or (nested and index[0] == 1)


def _only(*indices: ShapeIndex) -> _Rule:
    chosen = frozenset(indices)
    return lambda _instruction: lambda index, _part: index in chosen


_RULES: dict[Opcode, _Rule] = {
    Opcode.ASYNC_START: _async_start,
    Opcode.ASYNC_UPDATE: _tables,
    Opcode.ASYNC_DONE: _tables,
    Opcode.COPY_START: _only((), (0,), (2,)),
    Opcode.ALL_GATHER_START: _all_gather_start,
    Opcode.ALL_GATHER_DONE: lambda i: lambda index, _part: not index and isinstance(i.shape, TupleShape),
    Opcode.COLLECTIVE_PERMUTE_START: _collective_permute_start,
    Opcode.COLLECTIVE_PERMUTE_DONE: lambda i: lambda index, _part: not index and isinstance(i.shape, TupleShape),
    Opcode.RECV_DONE: _only((), (1,)),
    Opcode.SEND: _only((), (1,), (2,)),
}
