"""The order of a computation's instructions behind a report of XLA's, read off the value ids.

Ids go up in post-order, which begins from what nobody uses, in stored order. A scheduled dump prints another order, so where
several instructions have no users, :func:`~layoutsim.analysis.numbering.instruction_order` has to guess. A report tells:

1. What only one of them reaches (users, control successors) is its own; of two such instructions the one came first whose own
   values have the smaller ids.
2. One with no reported values of its own stays behind the one that it is guessed to follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutsim.analysis.numbering import instruction_order
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.traverse import post_order


def stored_order(computation: Computation, ids: Mapping[str, int]) -> list[Instruction]:
    """Post-order of the instructions, in agreement with reported ids if any order is.

    Args:
        ids: of the first reported value of each instruction that has some, by its name.
    """
    guess = instruction_order(computation)
    reported = [ids[i.name] for i in guess if i.name in ids]
    if reported == sorted(reported):
        return guess
    return post_order(computation, _seeds(guess, ids))


def _seeds(guess: Sequence[Instruction], ids: Mapping[str, int]) -> list[Instruction]:
    """The instructions without users, sorted by rules (1) and (2)."""
    own = _ids_of_their_own(guess, ids)
    keys: dict[Instruction, int] = {}
    last = -1
    for seed in (i for i in guess if not i.user_count):
        last = keys[seed] = own.get(seed, last)
    return sorted(keys, key=lambda seed: keys[seed])


def _ids_of_their_own(guess: Sequence[Instruction], ids: Mapping[str, int]) -> dict[Instruction, int]:
    """Some id of a value that only this instruction without users reaches."""
    found: dict[Instruction, int] = {}
    owners: dict[Instruction, Instruction | None] = {}
    for instruction in reversed(guess):
        reached_from = {owners[near] for near in (*instruction.users, *instruction.control_successors)}
        if not instruction.user_count:
            reached_from.add(instruction)
        owner = owners[instruction] = reached_from.pop() if len(reached_from) == 1 else None
        if owner is not None and instruction.name in ids:
            found[owner] = ids[instruction.name]
    return found
