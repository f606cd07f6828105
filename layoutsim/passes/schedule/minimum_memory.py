"""The least memory that a schedule needs, packing aside (``HeapSimulator::MinimumMemoryForModule``; memory spec, 7.3, 14.1).

All values of the module but constants are allocated and freed along the flattened schedule, in order of (start, end, id):

1. A value whose buffer holds something already takes no new place; it is added nevertheless, since the one before is freed.
2. A value alone in its buffer takes over an operand's place: the first operand value that is alone in its buffer, ends at
   this moment, was not taken over yet, is defined by the operand itself, and may be overwritten. A ``copy`` takes over nothing.
3. Everything else is allocated. What ends at a moment is freed after all that starts at it.

A buffer's size is that of its largest value. The result is the highest running total.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.liveness import LiveRanges, Sequences
from layoutsim.analysis.values import Value
from layoutsim.ir import Opcode, Shape


class MinimumMemory:
    """Measures schedules of one module.

    Args:
        aliases: buffers of the module as it stands.
        size_of: bytes of a buffer by its shape.
    """

    def __init__(self, aliases: Aliases, size_of: Callable[[Shape], int]) -> None:
        self._aliases = aliases
        self._size: dict[Value, int] = {}
        self._shared: set[Value] = set()
        for buffer in aliases.buffers:
            size = max(size_of(value.shape) for value in buffer.values)
            for value in buffer.values:
                self._size[value] = size
            if len(buffer.values) > 1:
                self._shared.update(buffer.values)

    def peak_bytes(self, sequences: Sequences) -> int:
        """Bytes at the peak.

        Args:
            sequences: a sequence for every computation outside fusions.
        """
        live = LiveRanges(self._aliases, sequences)
        return _Replay(self._aliases, live, dict(self._size), self._shared).peak()


class _Replay:
    def __init__(self, aliases: Aliases, live: LiveRanges, size: dict[Value, int], shared: set[Value]) -> None:
        self._aliases = aliases
        self._size = size
        self._shared = shared
        ranges = live.ranges
        chosen = [v for v in ranges if v.instruction.opcode is not Opcode.CONSTANT]  # by id
        chosen.sort(key=lambda v: ranges[v].end)
        chosen.sort(key=lambda v: ranges[v].start)
        self._defined: list[list[Value]] = [[] for _ in range(live.end + 1)]
        self._freed: list[dict[Value, None]] = [{} for _ in range(live.end + 1)]
        for value in chosen:
            self._defined[ranges[value].start].append(value)
            self._freed[ranges[value].end][value] = None

    def peak(self) -> int:
        total = peak = 0
        size, shared = self._size, self._shared
        for defined, freed in zip(self._defined, self._freed, strict=True):
            for value in defined:
                if value not in shared:  # (1)
                    total -= self._take_over_operand(value, freed)
                total += size[value]
                peak = max(peak, total)
            for value in freed:  # (3)
                total -= size[value]
        return peak

    def _take_over_operand(self, value: Value, freed: dict[Value, None]) -> int:  # (2)
        """Bytes of the operand whose place ``value`` takes, or 0."""
        user = value.instruction
        if not freed or user.opcode is Opcode.COPY:
            return 0
        for operand in user.operands:
            for old in self._aliases.dataflow.value_set(operand):
                if old not in freed or old in self._shared or old.instruction not in user.operands:
                    continue
                if self._aliases.sharing.can_share(old.instruction, old.index, user, value.index):
                    del freed[old]
                    bytes_freed = self._size[old]
                    self._size[value] = max(self._size[value], bytes_freed)
                    return bytes_freed
        return 0
