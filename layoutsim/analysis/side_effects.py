"""Which instructions do more than compute their value (``HloInstruction::HasSideEffect``; text spec, 3.11).

1. Transfers, random numbers with a hidden state, and the dedicated start and done forms of collectives always do.
2. all-to-all, all-gather, all-reduce and reduce-scatter do where ``constrain_layout`` is set.
3. Those four and collective-permute do where they have a channel in a module that is not partitioned as one program.
4. A custom call says so itself.
5. A caller does if anything it calls does. Tokens alone are no effect.
"""

from __future__ import annotations

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload, CustomCallPayload

_ALWAYS = frozenset(
    {
        Opcode.SEND,
        Opcode.SEND_DONE,
        Opcode.RECV,
        Opcode.RECV_DONE,
        Opcode.RNG,
        Opcode.RNG_GET_AND_UPDATE_STATE,
        Opcode.INFEED,
        Opcode.OUTFEED,
        Opcode.ALL_REDUCE_START,
        Opcode.ALL_REDUCE_DONE,
        Opcode.ALL_GATHER_START,
        Opcode.ALL_GATHER_DONE,
        Opcode.COLLECTIVE_BROADCAST,
        Opcode.COLLECTIVE_PERMUTE_START,
        Opcode.COLLECTIVE_PERMUTE_DONE,
    }
)
_SOMETIMES = frozenset(
    {Opcode.ALL_TO_ALL, Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.COLLECTIVE_PERMUTE}
)


def has_own_side_effect(instruction: Instruction) -> bool:
    """Rules (1) to (4): an effect of the instruction itself, not of what it calls."""
    opcode, payload = instruction.opcode, instruction.payload
    if opcode in _ALWAYS:  # (1)
        return True
    if isinstance(payload, CustomCallPayload):  # (4)
        return payload.custom_call_has_side_effect
    if opcode not in _SOMETIMES or not isinstance(payload, CollectivePayload | CollectivePermutePayload):
        return False
    if isinstance(payload, CollectivePayload) and payload.constrain_layout:  # (2)
        return True
    module = instruction.parent.parent if instruction.parent is not None else None
    return payload.channel_id is not None and not (module is not None and module.config.uses_spmd_partitioning)  # (3)


def has_side_effect(instruction: Instruction) -> bool:
    """Rules (1) to (5). Walks called computations each time; for a whole module use :func:`effectful_computations`."""
    if has_own_side_effect(instruction):
        return True
    return any(has_side_effect(inner) for callee in instruction.called_computations for inner in callee.instructions)


def effectful_computations(computations: tuple[Computation, ...]) -> frozenset[Computation]:
    """Those that hold an instruction with a side effect (5); ``computations`` come callees before callers, as in modules."""
    found: set[Computation] = set()
    for computation in computations:
        if any(has_own_side_effect(i) or not found.isdisjoint(i.called_computations) for i in computation.instructions):
            found.add(computation)
    return frozenset(found)
