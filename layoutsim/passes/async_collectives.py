"""What counts as an asynchronous collective, and which of them XLA's GPU backend runs synchronously.

Source: ``xla/hlo/utils/hlo_query.cc`` (IsAsyncCollectiveStartOp with send and recv included).
"""

from __future__ import annotations

from layoutsim.ir import Instruction, Opcode
from layoutsim.ir.opcode import COLLECTIVES

_STARTS = frozenset(
    {Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE_START, Opcode.COLLECTIVE_PERMUTE_START, Opcode.SEND, Opcode.RECV}
)
_DONES = frozenset(
    {
        Opcode.ALL_GATHER_DONE,
        Opcode.ALL_REDUCE_DONE,
        Opcode.COLLECTIVE_PERMUTE_DONE,
        Opcode.SEND_DONE,
        Opcode.RECV_DONE,
    }
)


def is_collective_start(instruction: Instruction) -> bool:
    """The start of an asynchronous collective, ``send`` or ``recv``."""
    return instruction.opcode in _STARTS or (
        instruction.opcode is Opcode.ASYNC_START and _wrapped_opcode(instruction) in COLLECTIVES
    )


def is_collective_done(instruction: Instruction) -> bool:
    """The done of an asynchronous collective, ``send`` or ``recv``."""
    return instruction.opcode in _DONES or (
        instruction.opcode is Opcode.ASYNC_DONE and _wrapped_opcode(instruction) in COLLECTIVES
    )


def is_synchronous(instruction: Instruction) -> bool:
    """Whether a collective's backend config says ``is_sync``."""
    return '"is_sync":true' in instruction.attributes.backend_config.replace(" ", "")


def _wrapped_opcode(instruction: Instruction) -> Opcode:
    """Opcode of what an async instruction wraps; a done finds it at its start."""
    while not instruction.called_computations:
        instruction = instruction.operand(0)
    return instruction.to_apply.root.opcode
