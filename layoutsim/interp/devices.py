"""Simulated devices and the groups in which they meet (text spec, section 5.2).

Device ``d`` is partition ``d % P`` of replica ``d // P``. What a group's ids mean:

1. *cross replica*: replicas; each partition forms its own groups.
2. *cross partition*: partitions; each replica forms its own groups.
3. *cross replica and partition*: replicas, each with all its partitions (replica outer, partition inner).
4. *flattened*: device numbers.

No groups mean one of everybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import frozen

from layoutsim.interp.values import EvaluationError, fail
from layoutsim.ir import Instruction, Module, Opcode
from layoutsim.ir.opcode import COLLECTIVES
from layoutsim.ir.payloads import CollectivePayload, CollectivePermutePayload
from layoutsim.ir.replica_groups import Groups


class Mode(Enum):
    CROSS_REPLICA = "cross replica"
    CROSS_PARTITION = "cross partition"
    CROSS_REPLICA_AND_PARTITION = "cross replica and partition"
    FLATTENED = "flattened"


_REDUCING = frozenset(
    {
        Opcode.ALL_GATHER,
        Opcode.ALL_GATHER_START,
        Opcode.ALL_REDUCE,
        Opcode.ALL_REDUCE_START,
        Opcode.REDUCE_SCATTER,
    }
)
"""Opcodes whose groups may mean any of the four."""


def mode_of(instruction: Instruction) -> Mode:
    """What the ids in an instruction's groups (or source-target pairs) mean.

    Raises:
        EvaluationError: global device ids without a channel.
    """
    payload = instruction.payload
    assert isinstance(payload, (CollectivePayload, CollectivePermutePayload)), instruction
    has_channel = payload.channel_id is not None
    if instruction.opcode not in _REDUCING or isinstance(payload, CollectivePermutePayload):
        return Mode.CROSS_PARTITION if has_channel else Mode.CROSS_REPLICA
    if payload.use_global_device_ids:
        if not has_channel:
            raise fail(instruction, "use_global_device_ids needs a channel_id")
        return Mode.FLATTENED
    return Mode.CROSS_REPLICA_AND_PARTITION if has_channel else Mode.CROSS_REPLICA


@frozen
class Devices:
    """How many replicas and partitions there are."""

    replicas: int
    partitions: int

    @property
    def count(self) -> int:
        return self.replicas * self.partitions

    def replica_of(self, device: int) -> int:
        return device // self.partitions

    def partition_of(self, device: int) -> int:
        return device % self.partitions

    def participants(self, mode: Mode, ids: Groups) -> list[list[int]]:
        """The groups as lists of devices, in the order in which they exchange."""
        replicas, partitions = range(self.replicas), range(self.partitions)
        match mode:
            case Mode.FLATTENED:
                return [list(group) for group in ids]
            case Mode.CROSS_REPLICA:
                groups = ids or (tuple(replicas),)
                return [[r * self.partitions + p for r in group] for p in partitions for group in groups]
            case Mode.CROSS_PARTITION:
                groups = ids or (tuple(partitions),)
                return [[r * self.partitions + p for p in group] for r in replicas for group in groups]
            case Mode.CROSS_REPLICA_AND_PARTITION:
                groups = ids or (tuple(replicas),)
                return [[r * self.partitions + p for r in group for p in partitions] for group in groups]

    def pairs(self, mode: Mode, pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Source-target pairs as pairs of devices."""
        if mode is Mode.CROSS_PARTITION:
            return [(r * self.partitions + s, r * self.partitions + t) for r in range(self.replicas) for s, t in pairs]
        return [(s * self.partitions + p, t * self.partitions + p) for p in range(self.partitions) for s, t in pairs]


def infer_devices(module: Module, replicas: int | None = None, partitions: int | None = None) -> Devices:
    """The counts given, or the module's, or (where a dump does not say) what its collectives need.

    Raises:
        EvaluationError: a collective names devices that do not exist.
    """
    config = module.config
    needed = {Mode.CROSS_REPLICA: 1, Mode.CROSS_PARTITION: 1, Mode.CROSS_REPLICA_AND_PARTITION: 1, Mode.FLATTENED: 1}
    for instruction in _collectives(module):
        mode = mode_of(instruction)
        needed[mode] = max(needed[mode], _highest_id(instruction) + 1)
    counts_are_known = config.replica_count != 1 or config.num_partitions != 1
    by_replica = max(needed[Mode.CROSS_REPLICA], needed[Mode.CROSS_REPLICA_AND_PARTITION])
    r = replicas or (config.replica_count if counts_are_known else by_replica)
    p = partitions or (config.num_partitions if counts_are_known else _partitions_needed(needed, r))
    devices = Devices(r, p)
    if by_replica > r or needed[Mode.CROSS_PARTITION] > p or needed[Mode.FLATTENED] > devices.count:
        raise EvaluationError(
            f"module {module.name}: its collectives name more devices than {r} replicas of {p} partitions; "
            "state how many there are"
        )
    return devices


def _partitions_needed(needed: dict[Mode, int], replicas: int) -> int:
    return max(needed[Mode.CROSS_PARTITION], -(-needed[Mode.FLATTENED] // replicas))


def _collectives(module: Module) -> Iterable[Instruction]:
    return (i for computation in module.computations for i in computation.instructions if i.opcode in COLLECTIVES)


def _highest_id(instruction: Instruction) -> int:
    payload = instruction.payload
    if isinstance(payload, CollectivePermutePayload):
        return max((max(pair) for pair in payload.source_target_pairs), default=0)
    assert isinstance(payload, CollectivePayload), instruction
    return max((max(group, default=0) for group in payload.replica_groups.groups()), default=0)
