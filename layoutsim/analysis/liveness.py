"""When each value is live in a scheduled module (``xla/hlo/utils/hlo_live_range.h``; memory spec, section 6).

*Logical time.* The sequences are laid end to end, starting with the entry's:

1. What a ``call``, ``conditional`` or ``async-start`` calls comes in front of it; in front of a ``while`` its condition, then
   its body. A computation is laid out once; its *span* runs from its first instruction to one past its last.
2. Each instruction takes one unit of time. The end of the program is one past the last.

*Range of a value*, both ends included:

3. It starts with its instruction; a parameter's value with its computation.
4. It ends with its last position or use. At the root of a computation that is the end of the computation's span.
5. A use by a ``call`` does not count (what is inside does). A use by a ``while`` counts when the body's parameter is.
6. Entry parameters that are not donated live to the end of the program.
7. What is defined inside an async computation lives at least until the ``async-done``.

*Buffers.* 8. The ranges of a buffer's values are made to abut: in order of (start, end, id), of two neighbours the second lasts
as long as either, and the first ends at the latest where the second starts.

What a range's last *position* is (uses do not count) decides with whom the value may share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import define

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.call_graph import async_done_of
from layoutsim.analysis.values import Position, Value
from layoutsim.errors import UnsupportedError
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode

_CALLS = frozenset({Opcode.CALL, Opcode.CONDITIONAL, Opcode.ASYNC_START})
Sequences = Mapping[Computation, Sequence[Instruction]]


@define
class LiveRange:
    """Times at which a value is live, both ends included.

    Attributes:
        end_position: where the value stands last.
    """

    start: int
    end: int
    end_position: Position


class FlatSchedule:
    """Logical time; rules (1) and (2).

    Attributes:
        instructions: by time.
        spans: half-open ``(first, end)`` of each computation laid out.
        is_total: whether every computation met had a sequence.
    """

    def __init__(self, entry: Computation, sequences: Sequences, *, whole_module: bool = True) -> None:
        self.instructions: list[Instruction] = []
        self.spans: dict[Computation, tuple[int, int]] = {}
        self.is_total = True
        self._sequences = sequences
        self._whole_module = whole_module
        self._async_body: dict[Computation, Computation] = {}
        self._lay_out(entry, None)
        self.times: dict[Instruction, int] = {i: time for time, i in enumerate(self.instructions)}

    @property
    def end(self) -> int:
        """One past the last time."""
        return len(self.instructions)

    def async_body_around(self, computation: Computation) -> Computation | None:
        """The async computation that this one is, or is called from."""
        return self._async_body.get(computation)

    def _lay_out(self, computation: Computation, async_body: Computation | None) -> None:
        sequence = self._sequences.get(computation)
        if sequence is None:
            self.is_total = False
            return
        if computation in self.spans:
            return
        if async_body is not None:
            self._async_body[computation] = async_body
        start = len(self.instructions)
        for instruction in sequence:
            if self._whole_module and instruction.called_computations:
                self._lay_out_callees(instruction, async_body)
            self.instructions.append(instruction)
        self.spans[computation] = (start, len(self.instructions))

    def _lay_out_callees(self, caller: Instruction, async_body: Computation | None) -> None:
        if caller.opcode in _CALLS:
            for callee in caller.called_computations:
                self._lay_out(callee, callee if caller.opcode is Opcode.ASYNC_START else async_body)
        elif caller.opcode is Opcode.WHILE:
            self._lay_out(caller.condition, async_body)
            self._lay_out(caller.body, async_body)


class LiveRanges:
    """The live range of every value of the scheduled computations.

    Args:
        aliases: buffers of the module.
        sequences: the schedule; the module's own by default.
        computation: where to begin; the entry by default.
        whole_module: follow calls.

    Attributes:
        schedule: logical time.
        ranges: by value, in order of ids. Values of fusions, reducers and the like have none.
    """

    def __init__(
        self,
        aliases: Aliases,
        sequences: Sequences | None = None,
        *,
        computation: Computation | None = None,
        whole_module: bool = True,
    ) -> None:
        module = aliases.module
        if sequences is None:
            if module.schedule is None:
                raise UnsupportedError(f"module {module.name} has no schedule; run a scheduler first")
            sequences = module.schedule.sequences
        self.aliases = aliases
        self._whole_module = whole_module
        self.schedule = FlatSchedule(computation or module.entry, sequences, whole_module=whole_module)
        self.ranges: dict[Value, LiveRange] = {
            value: self._range(value) for value in aliases.dataflow.values if value.instruction in self.schedule.times
        }
        self._abut()

    @property
    def is_total(self) -> bool:
        """Whether every computation reached is scheduled."""
        return self.schedule.is_total

    @property
    def end(self) -> int:
        """One past the last time."""
        return self.schedule.end

    def __getitem__(self, value: Value) -> LiveRange:
        return self.ranges[value]

    def get(self, value: Value) -> LiveRange | None:
        return self.ranges.get(value)

    # -- one value -------------------------------------------------------------------------------------------------

    def _range(self, value: Value) -> LiveRange:
        instruction = value.instruction
        computation = instruction.parent
        assert computation is not None
        span = self.schedule.spans[computation]
        time = self.schedule.times[instruction]
        start = span[0] if instruction.opcode is Opcode.PARAMETER else time  # (3)
        end = span[1] if instruction.is_root else time
        end = max(end, self._end_of_async(computation))
        end, position = self._last_position(value, end)
        kept = self._is_kept_to_the_end(value)  # (6)
        return LiveRange(start, self.schedule.end if kept else max(end, self._last_use(value)), position)

    def _last_position(self, value: Value, end: int) -> tuple[int, Position]:
        """Rule (4) for positions; the first of those that are last."""
        last = value.definition
        for position in value.other_positions:
            time = self._position_time(position.instruction)
            if time is not None and time > end:
                end, last = time, position
        return end, last

    def _position_time(self, instruction: Instruction) -> int | None:
        if not instruction.is_root:
            return self.schedule.times.get(instruction)
        assert instruction.parent is not None
        span = self.schedule.spans.get(instruction.parent)
        return None if span is None else span[1]

    def _last_use(self, value: Value) -> int:
        """Rules (4) and (5) for uses; -1 without any."""
        times = self.schedule.times
        last = -1
        for user, _, _ in value.uses:
            if self._whole_module:
                if user.opcode is Opcode.CALL:
                    continue
                if user.opcode is Opcode.WHILE:
                    user = self.aliases.dataflow.parameters(user.body)[0]
            time = times.get(user, -1)
            if time > last:
                last = time
        return last

    def _is_kept_to_the_end(self, value: Value) -> bool:
        instruction = value.instruction
        if instruction.opcode is not Opcode.PARAMETER or instruction.parent is not self.aliases.module.entry:
            return False
        return (instruction.parameter_number, value.index) not in self.aliases.donations.given

    def _end_of_async(self, computation: Computation) -> int:
        """Rule (7); -1 outside of async computations."""
        body = self.schedule.async_body_around(computation)
        if body is None:
            return -1
        start = self.aliases.dataflow.call_graph.unique_caller(body)
        done = None if start is None else async_done_of(start)
        assert done is not None, f"async computation {body.name} has no unique start with a done"
        return self.schedule.times[done]

    # -- buffers ---------------------------------------------------------------------------------------------------

    def _abut(self) -> None:
        """Rule (8)."""
        for buffer in self.aliases.buffers:
            if len(buffer.values) == 1:
                continue
            live = [(self.ranges[value], value.id) for value in buffer.values if value in self.ranges]
            live.sort(key=lambda pair: (pair[0].start, pair[0].end, pair[1]))
            for (first, _), (second, _) in pairwise(live):
                second.end, first.end = max(first.end, second.end), min(first.end, second.start)
