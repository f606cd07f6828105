"""How value sets move through instructions (memory spec, section 2.3): one small function per opcode.

Each takes the value sets of all instructions and returns the new ones of its instruction, in pre-order of its shape.

1. ``bitcast``, ``domain``, ``opt-barrier``, ``add-dependency`` and ``all-reduce-done`` forward operand 0 as it is; ``copy`` all
   but its own table.
2. A tuple holds its operands' sets, a ``get-tuple-element`` takes them out again.
3. A ``call`` has its callee's root; parameters of ``call`` and ``async-start`` have the union over the callers.
4. At a ``while``, a ``conditional`` and the parameters of their computations values meet: see :func:`phi_sources`.
5. The ``-start`` and ``-done`` halves forward what they do not define.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutsim.analysis.call_graph import CallGraph, async_start_of
from layoutsim.analysis.definitions import is_in_place_permute
from layoutsim.analysis.values import ValueSet, element_spans, rank_of, union
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ShapeIndex, TupleShape, leaves, subshapes

Sets = dict[Instruction, Sequence[ValueSet]]
"""Value sets of each instruction; a stored sequence is never changed, so that instructions may share it."""

_Transfer = Callable[[Instruction, Sets, CallGraph], Sequence[ValueSet]]


def phi_sources(instruction: Instruction, sets: Sets, graph: CallGraph) -> list[Sequence[ValueSet]] | None:
    """The value sets that meet at an instruction; ``None`` where no phi can be needed.

    At a ``while``: the body's root, the initial value. At its computations' parameters: the initial value, and the body's
    root unless it is this parameter. At a ``conditional``: the branches' roots; at a branch's parameter: its operand.
    """
    match instruction.opcode:
        case Opcode.WHILE:
            return [sets[instruction.body.root], sets[instruction.operand(0)]]
        case Opcode.CONDITIONAL:
            return [sets[branch.root] for branch in instruction.called_computations]
        case Opcode.PARAMETER:
            return _sources_of_parameter(instruction, sets, graph)
        case _:
            return None


def _sources_of_parameter(parameter: Instruction, sets: Sets, graph: CallGraph) -> list[Sequence[ValueSet]] | None:
    assert parameter.parent is not None
    sources: list[Sequence[ValueSet]] = []
    may_need_phi = False
    for site in graph[parameter.parent].caller_sites:
        caller = site.instruction
        if caller.opcode is Opcode.WHILE:
            may_need_phi = True
            sources.append(sets[caller.operand(0)])
            if caller.body.root is not parameter:
                sources.append(sets[caller.body.root])
        elif caller.opcode is Opcode.CONDITIONAL:
            may_need_phi = True
            sources.append(sets[caller.operand(site.called.index(parameter.parent) + 1)])
        else:
            sources.append(sets[caller.operand(parameter.parameter_number)])
    return sources if may_need_phi else None


def _parameter(parameter: Instruction, sets: Sets, graph: CallGraph) -> list[ValueSet]:
    assert parameter.parent is not None
    callers = [site.instruction for site in graph[parameter.parent].caller_sites]
    sources = [sets[caller.operand(parameter.parameter_number)] for caller in callers]
    return [union(*at_rank) for at_rank in zip(*sources, strict=True)]


def _forward(instruction: Instruction, sets: Sets, _graph: CallGraph) -> Sequence[ValueSet]:
    return sets[instruction.operand(0)]


def _copy(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    return [sets[instruction][0], *sets[instruction.operand(0)][1:]]


def _tuple(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    new = [sets[instruction][0]]
    for operand in instruction.operands:
        new += sets[operand]
    return new


def _get_tuple_element(instruction: Instruction, sets: Sets, _graph: CallGraph) -> Sequence[ValueSet]:
    operand = instruction.operand(0)
    assert isinstance(operand.shape, TupleShape), operand
    first, end = element_spans(operand.shape)[instruction.tuple_index]
    return sets[operand][first:end]


def _call(instruction: Instruction, sets: Sets, _graph: CallGraph) -> Sequence[ValueSet]:
    return sets[instruction.to_apply.root]


def _from_operand(instruction: Instruction, sets: Sets, pairs: list[tuple[ShapeIndex, int, ShapeIndex]]) -> list[ValueSet]:
    """The own sets, with those at ``index`` replaced by operand ``number``'s at ``operand_index``."""
    new = list(sets[instruction])
    for index, number, operand_index in pairs:
        operand = instruction.operand(number)
        new[rank_of(instruction.shape, index)] = sets[operand][rank_of(operand.shape, operand_index)]
    return new


def _copy_start(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    return _from_operand(instruction, sets, [((1,), 0, ())])


def _copy_done(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    return _from_operand(instruction, sets, [((), 0, (0,))])


def _send(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    parts = subshapes(instruction.operand(0).shape)
    return _from_operand(instruction, sets, [((0, *index), 0, index) for index, _ in parts])


def _recv_done(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    indices = [index for index, _ in subshapes(instruction.shape) if index and index[0] == 0]
    return _from_operand(instruction, sets, [(index, 0, index) for index in indices])


def _all_gather_start(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    count = instruction.operand_count
    return _from_operand(instruction, sets, [((0, i) if count > 1 else (0,), i, ()) for i in range(count)])


def _collective_permute_start(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    first = instruction.operand(0).shape
    if not is_in_place_permute(instruction) and instruction.operand_count > 1:
        pairs: list[tuple[ShapeIndex, int, ShapeIndex]] = [((0, i), i, ()) for i in range(instruction.operand_count)]
    elif isinstance(first, TupleShape):
        pairs = [((0, i), 0, (i,)) for i in range(len(first.elements))]
    else:
        pairs = [((0,), 0, ())]
    return _from_operand(instruction, sets, pairs)


def _done_of_second(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    """The leaves come from element 1 of the start."""
    return _from_operand(instruction, sets, [(index, 0, (1, *index)) for index, _ in leaves(instruction.shape)])


def _async_start(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    pairs = [
        ((0, number, *index), number, index)
        for number, operand in enumerate(instruction.operands)
        for index, _ in leaves(operand.shape)
    ]
    new = _from_operand(instruction, sets, pairs)
    root = instruction.to_apply.root
    for index, _ in leaves(root.shape):
        rank = rank_of(instruction.shape, (1, *index))
        new[rank] = union(new[rank], sets[root][rank_of(root.shape, index)])
    return new


def _async_update(instruction: Instruction, sets: Sets, _graph: CallGraph) -> list[ValueSet]:
    new = _from_operand(instruction, sets, [(index, 0, index) for index, _ in leaves(instruction.shape)])
    root = async_start_of(instruction).to_apply.root
    for index, _ in leaves(root.shape):
        rank = rank_of(instruction.shape, (1, *index))
        new[rank] = union(new[rank], sets[root][rank_of(root.shape, index)])
    return new


def _async_done(instruction: Instruction, sets: Sets, graph: CallGraph) -> list[ValueSet]:
    new = _done_of_second(instruction, sets, graph)
    root = async_start_of(instruction).to_apply.root
    for index, _ in leaves(instruction.shape):
        rank = rank_of(instruction.shape, index)
        new[rank] = union(new[rank], sets[root][rank_of(root.shape, index)])
    return new


TRANSFER: dict[Opcode, _Transfer] = {
    Opcode.ADD_DEPENDENCY: _forward,
    Opcode.ALL_GATHER_DONE: _done_of_second,
    Opcode.ALL_GATHER_START: _all_gather_start,
    Opcode.ALL_REDUCE_DONE: _forward,
    Opcode.ASYNC_DONE: _async_done,
    Opcode.ASYNC_START: _async_start,
    Opcode.ASYNC_UPDATE: _async_update,
    Opcode.BITCAST: _forward,
    Opcode.CALL: _call,
    Opcode.COLLECTIVE_PERMUTE_DONE: _done_of_second,
    Opcode.COLLECTIVE_PERMUTE_START: _collective_permute_start,
    Opcode.CONDITIONAL: _call,  # never used: phi_sources covers it
    Opcode.COPY: _copy,
    Opcode.COPY_DONE: _copy_done,
    Opcode.COPY_START: _copy_start,
    Opcode.DOMAIN: _forward,
    Opcode.GET_TUPLE_ELEMENT: _get_tuple_element,
    Opcode.OPT_BARRIER: _forward,
    Opcode.PARAMETER: _parameter,
    Opcode.RECV_DONE: _recv_done,
    Opcode.SEND: _send,
    Opcode.TUPLE: _tuple,
    Opcode.WHILE: _call,  # never used: phi_sources covers it
}
"""Transfer functions of the opcodes whose value sets come from elsewhere, at least in part."""
