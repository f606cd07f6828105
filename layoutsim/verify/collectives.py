"""Collectives: replica groups, pairs and channels (invariants C1 to C7; list in ``layoutsim.verify``).

Dumps of partitioned modules usually name neither replicas nor partitions; a count of 1 therefore means *unknown* here, and
what needs the count is not checked, as in XLA.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from functools import lru_cache

from layoutsim.errors import ShapeError
from layoutsim.infer import shard_count
from layoutsim.ir import ArrayShape, Instruction, ModuleConfig, Opcode, Shape, TupleShape
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload
from layoutsim.ir.replica_groups import ReplicaGroups
from layoutsim.verify.findings import Findings
from layoutsim.verify.shapes import site_of

_GATHERING = frozenset({Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.REDUCE_SCATTER})
_ALL_REDUCES = frozenset({Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START})
_ANY_IDS = _GATHERING | _ALL_REDUCES


class GroupMode(Enum):
    """What the numbers in replica groups count (text spec, 5.2)."""

    CROSS_REPLICA = "cross_replica"
    CROSS_PARTITION = "cross_partition"
    CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
    FLATTENED_ID = "flattened_id"


def group_mode(instruction: Instruction) -> GroupMode | None:
    """The mode, or ``None`` for global device ids without a channel, which mean nothing."""
    payload = instruction.payload
    assert isinstance(payload, CollectivePayload | CollectivePermutePayload), instruction
    has_channel = payload.channel_id is not None
    if instruction.opcode not in _ANY_IDS or not isinstance(payload, CollectivePayload):
        return GroupMode.CROSS_PARTITION if has_channel else GroupMode.CROSS_REPLICA
    if payload.use_global_device_ids:
        return GroupMode.FLATTENED_ID if has_channel else None
    return GroupMode.CROSS_REPLICA_AND_PARTITION if has_channel else GroupMode.CROSS_REPLICA


def verify_collectives(findings: Findings) -> None:
    """C1 to C7."""
    reference: Instruction | None = None
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            payload = instruction.payload
            if isinstance(payload, CollectivePayload):
                _check_groups(findings, instruction, payload)
                if instruction.opcode in _ALL_REDUCES:
                    reference = reference or instruction
                    _check_all_reduce(findings, instruction, payload, reference)
            elif isinstance(payload, CollectivePermutePayload):
                _check_pairs(findings, instruction, payload)


# -- groups --------------------------------------------------------------------------------------------------------------


def _check_groups(findings: Findings, instruction: Instruction, payload: CollectivePayload) -> None:
    mode = group_mode(instruction)
    if mode is None:
        findings.add(instruction, "C2", "has use_global_device_ids=true, expected a channel_id with it")
        return
    config = findings.module.config
    if findings.options.check_replica_groups:
        uniform = instruction.opcode not in _ALL_REDUCES
        problem = group_problem(payload.replica_groups, uniform) or _count_problem(payload.replica_groups, mode, config)
        if problem:
            findings.add(instruction, *problem)
    if instruction.opcode in _GATHERING or instruction.opcode is Opcode.ALL_TO_ALL:
        _check_group_size(findings, instruction, payload, mode)


@lru_cache(maxsize=4096)
def group_problem(groups: ReplicaGroups, uniform: bool) -> tuple[str, str] | None:
    """C1 and C3: no group is empty, and the ids are 0 to n - 1, once each."""
    lists = groups.groups()
    if any(not group for group in lists):
        return "C1", f"has an empty group in {groups.to_text()}"
    ids = [i for group in lists for i in group]
    if sorted(ids) != list(range(len(ids))):
        wrong = next((i for i in ids if not 0 <= i < len(ids) or ids.count(i) > 1), ids[0])
        return "C1", f"has id {wrong} in {groups.to_text()}, expected each of 0..{len(ids) - 1} once"
    if uniform and len({len(group) for group in lists}) > 1:
        return "C3", f"has groups of different sizes in {groups.to_text()}, expected equal ones"
    return None


def _count_problem(groups: ReplicaGroups, mode: GroupMode, config: ModuleConfig) -> tuple[str, str] | None:
    """C2: groups name everybody there is."""
    if not groups.group_size:
        if mode is GroupMode.FLATTENED_ID:
            return "C2", "has no replica groups, expected some where they hold global device ids"
        return None
    expected = {
        GroupMode.CROSS_REPLICA: config.replica_count,
        GroupMode.CROSS_REPLICA_AND_PARTITION: config.replica_count,
        GroupMode.CROSS_PARTITION: config.num_partitions,
        GroupMode.FLATTENED_ID: config.replica_count * config.num_partitions,
    }[mode]
    count = device_count(groups)
    if expected not in (1, count):
        return "C2", f"names {count} ids in mode {mode.value}, expected the {expected} of the module"
    return None


@lru_cache(maxsize=4096)
def device_count(groups: ReplicaGroups) -> int:
    """Number of ids in all groups."""
    return sum(map(len, groups.groups()))


def subgroup_size(groups: ReplicaGroups, mode: GroupMode, config: ModuleConfig) -> int:
    """Number of devices in the first group; 1 may also mean that the module does not say."""
    if mode is GroupMode.CROSS_PARTITION:
        return groups.group_size or config.num_partitions
    size = groups.group_size or config.replica_count
    return size * config.num_partitions if mode is GroupMode.CROSS_REPLICA_AND_PARTITION else size


def _check_group_size(findings: Findings, instruction: Instruction, payload: CollectivePayload, mode: GroupMode) -> None:
    """C4: the result is as many times larger, or smaller, as devices are in a group."""
    expected = subgroup_size(payload.replica_groups, mode, findings.module.config)
    if instruction.opcode is Opcode.ALL_TO_ALL:
        if payload.dimension is None and expected not in (1, instruction.operand_count):
            findings.add(instruction, "C4", f"has {instruction.operand_count} operands, expected {expected}, the group size")
        return
    try:
        count = shard_count(site_of(findings, instruction), _gathered_shape(instruction))
    except ShapeError:
        return  # T1 says so
    unknown = mode is GroupMode.CROSS_REPLICA_AND_PARTITION and findings.module.config.num_partitions == 1
    fits = count % expected == 0 if unknown else count == expected
    if expected != 1 and not fits:
        findings.add(
            instruction, "C4", f"changes dimension {payload.dimension} {count} times, expected {expected}, the group size"
        )


def _gathered_shape(instruction: Instruction) -> Shape | None:
    """The part of the result that a gather or scatter produces."""
    shape = instruction.shape
    if instruction.opcode is not Opcode.ALL_GATHER_START:
        return shape
    return shape.elements[1] if isinstance(shape, TupleShape) and len(shape.elements) == 2 else None


# -- all-reduce and permutes ---------------------------------------------------------------------------------------------


def _check_all_reduce(findings: Findings, instruction: Instruction, payload: CollectivePayload, reference: Instruction) -> None:
    if payload.channel_id is not None and payload.channel_id <= 0:
        findings.add(instruction, "C6", f"has channel_id {payload.channel_id}, expected a positive one")
    expected = reference.payload_as(CollectivePayload).constrain_layout
    if payload.constrain_layout is not expected:
        ours, theirs = str(payload.constrain_layout).lower(), str(expected).lower()
        findings.add(instruction, "C7", f"has constrain_layout={ours}, expected {theirs} as {reference.name} has it")


def _check_pairs(findings: Findings, instruction: Instruction, payload: CollectivePermutePayload) -> None:
    """C5: in range, and each id at most once on each side (once for each slice in the in-place form)."""
    config = findings.module.config
    count = config.replica_count if payload.channel_id is None else config.num_partitions
    if payload.slice_sizes and not _check_offsets(findings, instruction):
        return
    allowed = _slices_of(instruction) if payload.slice_sizes else 1
    for side, ids in enumerate(zip(*payload.source_target_pairs, strict=True)):
        name = ("source", "target")[side]
        for device, times in Counter(ids).items():
            if device < 0 or (count != 1 and device >= count):
                limit = "a non-negative id" if device < 0 else f"an id below {count}"
                findings.add(instruction, "C5", f"has {name} {device} in source_target_pairs, expected {limit}")
            elif times > allowed:
                findings.add(instruction, "C5", f"has {name} {device} {times} times in source_target_pairs, expected {allowed}")


def _slices_of(instruction: Instruction) -> int:
    """Number of slices that an in-place permute moves for each pair of devices."""
    offsets = instruction.operand(2).shape
    if isinstance(instruction.operand(0).shape, TupleShape) and isinstance(offsets, TupleShape):
        offsets = offsets.elements[0]
    if isinstance(offsets, TupleShape) and offsets.elements and isinstance(offsets.elements[0], TupleShape):
        return len(offsets.elements)
    return 1


def _check_offsets(findings: Findings, instruction: Instruction) -> bool:
    """C5: the in-place form has, for input and output, tuples of as many offsets as the buffer has dimensions."""
    if instruction.operand_count != 4:
        return False  # T1 says so
    for buffer, offsets in ((0, 2), (1, 3)):
        target, given = instruction.operand(buffer).shape, instruction.operand(offsets).shape
        pairs: list[tuple[Shape, Shape]] = [(given, target)]
        if isinstance(target, TupleShape) and isinstance(given, TupleShape) and len(target.elements) == len(given.elements):
            pairs = list(zip(given.elements, target.elements, strict=True))
        if not all(_are_offsets_into(*pair) for pair in pairs):
            findings.add(instruction, "C5", f"operand {offsets} has shape {given}, expected offsets into {target}")
            return False
    return True


def _are_offsets_into(offsets: Shape, buffer: Shape) -> bool:
    if not isinstance(offsets, TupleShape) or not isinstance(buffer, ArrayShape):
        return False
    several = all(isinstance(element, TupleShape) for element in offsets.elements)
    tuples = [e.elements for e in offsets.elements if isinstance(e, TupleShape)] if several else [offsets.elements]
    return all(len(t) == buffer.rank and all(isinstance(e, ArrayShape) for e in t) for t in tuples)
