"""Attributes of collectives (text spec, sections 3.8 and 5)."""

from __future__ import annotations

from layoutsim.ir import Opcode
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload, Payload
from layoutsim.text.device_syntax import read_ints, read_replica_groups
from layoutsim.text.lexer import Lexer
from layoutsim.text.opcodes.base import APPLY, Forms, Given, Ints, declare, read_flag, read_integer
from layoutsim.text.opcodes.movement import DIMENSIONS
from layoutsim.text.shape_syntax import read_list
from layoutsim.text.value_syntax import word


def _read_int_lists(lexer: Lexer) -> tuple[Ints, ...]:
    return tuple(read_list(lexer, "{", "}", read_ints))


def _read_pairs(lexer: Lexer) -> tuple[tuple[int, int], ...]:
    return tuple(read_list(lexer, "{", "}", _read_pair))


def _read_pair(lexer: Lexer) -> tuple[int, int]:
    start = lexer.start
    numbers = read_ints(lexer)
    if len(numbers) != 2:
        raise lexer.source.error(f"expected a pair {{source,target}}, got {len(numbers)} numbers", start)
    return numbers[0], numbers[1]


def _collective(given: Given) -> Payload:
    """``mode`` is read and forgotten, as XLA does."""
    channel = given.optional("channel_id", int)
    global_ids = given.flag("use_global_device_ids")
    if global_ids and channel is None and given.opcode not in (Opcode.ALL_GATHER, Opcode.ALL_GATHER_START):
        given.refuse("use_global_device_ids", "expected channel_id together with use_global_device_ids=true, got none")
    dimension = given.one("dimensions") if "dimensions" in given else None
    return CollectivePayload(given.groups(), channel, given.flag("constrain_layout"), global_ids, dimension)


def _permute(given: Given) -> Payload:
    sizes = tuple(tuple(row) for row in given.int_lists("slice_sizes"))
    pairs = tuple((source, target) for source, target in given.int_lists("source_target_pairs"))
    if sizes and len(given.operands) != 4:
        given.refuse("slice_sizes", f"expected 4 operands with slice_sizes, got {len(given.operands)}")
    return CollectivePermutePayload(pairs, given.optional("channel_id", int), sizes)


_CHANNEL: Forms = {"channel_id": read_integer, "replica_groups": read_replica_groups}
_CONSTRAIN: Forms = {**_CHANNEL, "constrain_layout": read_flag}
_GLOBAL: Forms = {**_CONSTRAIN, "use_global_device_ids": read_flag}
_MODES: Forms = {
    **_GLOBAL,
    "mode": word("cross_replica", "cross_partition", "cross_replica_and_partition", "flattened_id"),
}
declare("all-gather all-gather-start", _collective, required=DIMENSIONS, optional=_GLOBAL)
declare("all-reduce all-reduce-start", _collective, required=APPLY, optional=_MODES)
declare("reduce-scatter", _collective, required={**APPLY, **DIMENSIONS}, optional=_MODES)
declare("all-to-all", _collective, optional={**_CONSTRAIN, **DIMENSIONS})
declare("ragged-all-to-all", _collective, optional={**_CHANNEL, **DIMENSIONS})
declare("collective-broadcast", _collective, optional=_CHANNEL)
declare(
    "collective-permute collective-permute-start",
    _permute,
    required={"source_target_pairs": _read_pairs},
    optional={"channel_id": read_integer, "slice_sizes": _read_int_lists},
    looks_at_operands=True,
)
