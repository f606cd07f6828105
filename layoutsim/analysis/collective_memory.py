"""Which arrays XLA:GPU puts into collective memory, memory space 1, that all devices of a collective can address.

An array is there if it is made or read by

1. a custom call that asks for it: ``frontend_attributes={operands_memory_spaces={0:1},results_memory_spaces={0:1}}``, by
   number of the operand or element of the result; such a call may ask for other spaces too;
2. a Mosaic kernel with multicast memory: ``multimem_parameters`` in its backend config;
3. a collective whose backend config says ``"collectives_mode":"COLLECTIVES_SYMMETRIC_MEMORY"``;
4. any collective, if the compiler's flag ``xla_gpu_enable_nccl_user_buffers`` or
   ``xla_gpu_experimental_enable_nccl_symmetric_buffers`` is set. A module does not tell until buffers are assigned; then the
   layouts have ``S(1)``, and dumps of the scheduled module show it.

Tables of tuples never are. Parameters, constants and results of the module are not there either, so copies stand between
(:mod:`layoutsim.passes.copy_insertion_special`, rule 5).

Source: ``xla/service/gpu/gpu_memory_space_assignment.cc``; compiled with jaxlib 0.10.2 for the tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from layoutsim.analysis.call_graph import async_start_of
from layoutsim.analysis.values import Use, Value
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import COLLECTIVES, Opcode
from layoutsim.ir.shape import TupleShape

DEFAULT_SPACE = 0
COLLECTIVE_SPACE = 1

_MOSAIC = frozenset({"mosaic_gpu", "mosaic_gpu_v2"})
_SYMMETRIC = re.compile(r'"collectives_mode"\s*:\s*"COLLECTIVES_SYMMETRIC_MEMORY"')
_DONES = frozenset({Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE, Opcode.COLLECTIVE_PERMUTE_DONE})


def space_of_definition(value: Value, *, all_collectives: bool) -> int:
    """The memory space that the instruction asks for which makes ``value``.

    Args:
        all_collectives: rule (4).
    """
    instruction, index = value.instruction, value.index
    if instruction.opcode is Opcode.CUSTOM_CALL:
        number = index if isinstance(instruction.shape, TupleShape) else (0,)
        asked = _asked(instruction.attributes.frontend_attributes, "results_memory_spaces")
        if len(number) == 1 and number[0] in asked:
            return asked[number[0]]
    return _space_for(value, instruction, all_collectives)


def space_of_use(value: Value, use: Use, *, all_collectives: bool) -> int:
    """The memory space that ``use`` asks for ``value``."""
    user, number, index = use
    if user.opcode is Opcode.CUSTOM_CALL and not index:
        asked = _asked(user.attributes.frontend_attributes, "operands_memory_spaces")
        if number in asked:
            return asked[number]
    return _space_for(value, user, all_collectives)


def _space_for(value: Value, instruction: Instruction, all_collectives: bool) -> int:
    """Rules (2) to (4)."""
    if isinstance(value.shape, TupleShape):
        return DEFAULT_SPACE
    config = instruction.attributes.backend_config
    is_asked = _is_multicast_kernel(instruction) or ("collectives_mode" in config and _SYMMETRIC.search(config) is not None)
    return COLLECTIVE_SPACE if is_asked or (all_collectives and _is_collective(instruction)) else DEFAULT_SPACE


def _is_multicast_kernel(instruction: Instruction) -> bool:
    return instruction.custom_call_target in _MOSAIC and "multimem_parameters" in instruction.attributes.backend_config


def _is_collective(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    if opcode in (Opcode.ASYNC_START, Opcode.ASYNC_DONE):
        opcode = async_start_of(instruction).to_apply.root.opcode
    return opcode is not Opcode.COLLECTIVE_BROADCAST and (opcode in COLLECTIVES or opcode in _DONES)


@cache
def _asked(frontend_attributes: str, name: str) -> Mapping[int, int]:
    """Memory spaces by number from ``name="{0:1,2:1}"``, with or without the quotes; 0 asks for nothing."""
    found = re.search(rf'{name}="?\{{([^}}]*)\}}', frontend_attributes)
    pairs = re.findall(r"(\d+)\s*:\s*(\d+)", found.group(1)) if found else []
    return {int(number): int(space) for number, space in pairs if int(space) != DEFAULT_SPACE}
