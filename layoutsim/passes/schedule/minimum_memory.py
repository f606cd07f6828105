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


def minimum_memory(aliases: Aliases, sequences: Sequences, size_of: Callable[[Shape], int]) -> int:
    """Bytes at the peak of a schedule of the whole module.

    Args:
        aliases: buffers of the module as it stands.
        sequences: a sequence for every computation outside fusions.
        size_of: bytes of a buffer by its shape.
    """
    return _Replay(aliases, LiveRanges(aliases, sequences), size_of).peak()


class _Replay:
    def __init__(self, aliases: Aliases, live: LiveRanges, size_of: Callable[[Shape], int]) -> None:
        self._aliases = aliases
        self._live = live
        self._size = _buffer_sizes(aliases, size_of)
        self._shared = {v for b in aliases.buffers if len(b.values) > 1 for v in b.values}
        chosen = [v for v in live.ranges if v.instruction.opcode is not Opcode.CONSTANT]
        chosen.sort(key=lambda v: (live.ranges[v].start, live.ranges[v].end, v.id))
        self._defined: list[list[Value]] = [[] for _ in range(live.end + 1)]
        self._freed: list[dict[Value, None]] = [{} for _ in range(live.end + 1)]
        for value in chosen:
            self._defined[live.ranges[value].start].append(value)
            self._freed[live.ranges[value].end][value] = None

    def peak(self) -> int:
        total = peak = 0
        size = self._size
        for time, defined in enumerate(self._defined):
            for value in defined:
                if value not in self._shared:  # (1)
                    total -= self._take_over_operand(value, time)
                total += size[value]
                peak = max(peak, total)
            for value in self._freed[time]:  # (3)
                total -= size[value]
        return peak

    def _take_over_operand(self, value: Value, time: int) -> int:  # (2)
        """Bytes of the operand whose place ``value`` takes, or 0."""
        if value.instruction.opcode is Opcode.COPY:
            return 0
        freed = self._freed[time]
        for operand in value.instruction.operands:
            for old in self._aliases.dataflow.value_set(operand):
                if old not in freed or old in self._shared or old.instruction not in value.instruction.operands:
                    continue
                if self._aliases.sharing.can_share(old.instruction, old.index, value.instruction, value.index):
                    del freed[old]
                    bytes_freed = self._size[old]
                    self._size[value] = max(self._size[value], bytes_freed)
                    return bytes_freed
        return 0


def _buffer_sizes(aliases: Aliases, size_of: Callable[[Shape], int]) -> dict[Value, int]:
    sizes: dict[Value, int] = {}
    for buffer in aliases.buffers:
        size = max(size_of(value.shape) for value in buffer.values)
        sizes |= dict.fromkeys(buffer.values, size)
    return sizes
