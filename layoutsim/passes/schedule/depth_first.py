"""Depth-first order with a taste (``xla/hlo/transforms/simplifiers/hlo_memory_scheduler.h``, DFSMemoryScheduler).

1. XLA's visitor walks from the unreachable roots and then the root; among children it goes first where
   (extra users, descending; bytes, descending; name, ascending) is smallest.
2. *Extra users* of an instruction: its users beyond the first, plus those of its distinct operands, so history counts.
3. *Bytes*: of the values it defines, plus those of its distinct operands.
4. Shared history counts several times, so both are capped: extra users by the number of instructions, bytes by the bytes
   defined so far in post-order.
5. Parameters and constants count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutsim.ir import Computation, Instruction, Opcode
from layoutsim.ir.traverse import post_order, visitor_order

_FREE = frozenset({Opcode.PARAMETER, Opcode.CONSTANT})

_Rank = tuple[int, int, str]


def depth_first_order(
    computation: Computation,
    defined_bytes: Callable[[Instruction], int],
    operands_first: Sequence[Instruction] | None = None,
) -> list[Instruction]:
    """The instructions of ``computation``, deepest and most shared history first.

    Args:
        computation: any but a fusion's body.
        defined_bytes: bytes of the values that an instruction defines.
        operands_first: the post-order, where it is known.
    """
    ranks = _ranks(operands_first or post_order(computation), defined_bytes)
    return visitor_order(computation, lambda children: sorted(children, key=ranks.__getitem__))  # (1)


def _ranks(order: Sequence[Instruction], defined_bytes: Callable[[Instruction], int]) -> dict[Instruction, _Rank]:
    """Sort keys, smallest first."""
    ranks: dict[Instruction, _Rank] = {}
    bytes_so_far = 0
    for instruction in order:
        if instruction.opcode in _FREE:  # (5)
            ranks[instruction] = (0, 0, instruction.name)
            continue
        own = defined_bytes(instruction)
        bytes_so_far += own
        operands = [ranks[o] for o in dict.fromkeys(instruction.operands)]
        extra = max(instruction.user_count - 1, 0) - sum(rank[0] for rank in operands)  # (2)
        total = own - sum(rank[1] for rank in operands)  # (3)
        ranks[instruction] = (-min(extra, len(order)), -min(total, bytes_so_far), instruction.name)  # (4)
    return ranks
