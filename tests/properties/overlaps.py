"""Placements in which one live value overwrites another, for a judge that must see each of them.

:func:`harmful_overlaps` takes a scheduled module with the places of its values and moves one value (the *writer*) so that it
covers a byte of another (the *victim*). That this does harm is known without the judge, from what the reference interpreter
does on these inputs, on the first device:

1. the victim is computed,
2. then the writer is computed,
3. then an instruction outside of fusions and reducers reads the array of (1), or it is part of the result.

Every result is an array of its own, so that (3) is a matter of identity. Instructions that pass values on, control flow and
starts of asynchronous calls read nothing themselves. Live ranges that overlap are not enough: of 69 such pairs in random
modules the heap machine reports 45. The other 24 do no harm: a branch that is not taken writes nothing, and what is only passed
on into a loop or a callee that does not look at it is not read.

    python -m tests.properties.overlaps --count 100        # a campaign: how many are planted, and how many are not caught
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from enum import Enum

import numpy as np
from attrs import evolve, frozen

from layoutsim.errors import LayoutsimError
from layoutsim.interp import Interpreter, Value
from layoutsim.interp.arena import Fault, Finding
from layoutsim.interp.heap_machine import run_in_memory
from layoutsim.interp.places import Place, Places
from layoutsim.interp.strided import physical_bytes
from layoutsim.interp.values import Array, arrays_of
from layoutsim.ir import ArrayShape, Computation, Instruction, Module, Opcode
from layoutsim.ir.opcode import CallContext
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.passes import parse_pipeline
from layoutsim.testing import Limits, random_module
from layoutsim.testing.execution import Inputs, inputs_for
from layoutsim.verify import verify

PIPELINE = "flatten-call-graph,layout-assignment{backend=gpu},sub-byte-size-setter,copy-insertion,schedule"

_PASSES_ON = frozenset(
    {
        Opcode.TUPLE,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.BITCAST,
        Opcode.OPT_BARRIER,
        Opcode.DOMAIN,
        Opcode.ADD_DEPENDENCY,
        Opcode.AFTER_ALL,
        Opcode.ASYNC_UPDATE,
        Opcode.ASYNC_DONE,
        Opcode.COPY_DONE,
        Opcode.ALL_REDUCE_DONE,
        Opcode.ALL_GATHER_DONE,
        Opcode.COLLECTIVE_PERMUTE_DONE,
    }
)


class Where(Enum):
    """Which bytes of the victim are hit."""

    ALL = "from its first byte on"
    FIRST = "its first byte"
    LAST = "its last byte"


@frozen(eq=False)
class Overlap:
    """One fault that was planted."""

    victim: Instruction
    writer: Instruction
    where: Where
    places: Places

    def __str__(self) -> str:
        return f"{self.writer.name} over {self.victim.name}, {self.where.value}"

    def is_caught_by(self, findings: tuple[Finding, ...]) -> bool:
        """Whether a finding is about this fault: bytes of the victim, or the write itself is refused."""
        hit = self.places.defined[self.victim, ()]
        return any(
            (f.allocation == hit.allocation and f.first_byte < hit.offset + hit.size and hit.offset < f.end_byte)
            or (f.fault in (Fault.READ_ONLY, Fault.IN_PLACE) and f.instruction == self.writer.name)
            for f in findings
        )


class Tracer(Interpreter):
    """The reference interpreter, which remembers when each array was computed and last read on the first device.

    Attributes:
        computed: instruction and time, with the number of the array; in order of time.
        last_read: time by number of the array.
    """

    def __init__(self, module: Module, inputs: Inputs) -> None:
        super().__init__(module, inputs.options)
        self.computed: list[tuple[Instruction, int, int]] = []
        self.last_read: dict[int, int] = {}
        self._time = 0
        self._numbers: dict[int, int] = {}
        self._arrays: list[Array] = []  # kept alive, so that identities stay theirs
        self._in_memory = _reached(module.entry)
        arguments = self.prepare(inputs.arguments)
        given = [[self._own(p, value) for p, value in zip(module.entry.parameters, arguments[0], strict=True)]]
        results = self.run_computation(module.entry, tuple(range(self.devices.count)), [*map(tuple, given), *arguments[1:]])
        self._read(results[0])

    def evaluate_instruction(
        self, instruction: Instruction, devices: tuple[int, ...], operands: list[tuple[Value, ...]]
    ) -> list[Value]:
        """Evaluate and remember."""
        is_seen = devices[0] == 0 and instruction.parent in self._in_memory and instruction.opcode not in _PASSES_ON
        is_seen = is_seen and instruction.opcode.spec.calls is not CallContext.CONTROL_FLOW
        if is_seen:
            for operand in operands:
                self._read(operand[0])
        values = super().evaluate_instruction(instruction, devices, operands)
        return [self._own(instruction, values[0]), *values[1:]] if is_seen else values

    def _read(self, value: Value) -> None:
        self._time += 1
        for array in arrays_of(value):
            if id(array) in self._numbers:
                self.last_read[self._numbers[id(array)]] = self._time

    def _own(self, instruction: Instruction, value: Value) -> Value:
        """The value as arrays that nothing else has."""
        if isinstance(value, tuple):
            return tuple(self._own(instruction, part) for part in value)
        if not isinstance(value, np.ndarray):
            return value
        self._time += 1
        array = value.copy()
        self._numbers[id(array)] = len(self._arrays)
        self.computed.append((instruction, self._time, len(self._arrays)))
        self._arrays.append(array)
        return array


def _reached(computation: Computation) -> frozenset[Computation]:
    """The computation and what control flow runs from it; reducers, fusions and the like keep their values to themselves."""
    calls = [i for i in computation.instructions if i.opcode.spec.calls is CallContext.CONTROL_FLOW]
    return frozenset({computation}).union(*(_reached(callee) for i in calls for callee in i.called_computations))


def harmful_overlaps(places: Places, inputs: Inputs, source: random.Random, count: int) -> list[Overlap]:
    """At most ``count`` of them, by chance; fewer where a module has no two values alive at once."""
    pairs = list(_pairs(Tracer(places.module, inputs), places))
    source.shuffle(pairs)
    planted: list[Overlap] = []
    for victim, writer in pairs:
        found = _planted(places, victim, writer, source.choice(tuple(Where)))
        planted += [found] if found is not None else []
        if len(planted) == count:
            break
    return planted


def _pairs(trace: Tracer, places: Places) -> Iterator[tuple[Instruction, Instruction]]:
    """Victims and writers by rules (1) to (3), each pair once."""
    known = [(i, time, number) for i, time, number in trace.computed if _has_bytes(i, places)]
    written = [(i, time) for i, time, _ in known if i.opcode not in (Opcode.PARAMETER, Opcode.CONSTANT)]
    found: dict[tuple[Instruction, Instruction], None] = {}
    for victim, computed, number in known:
        last_read = trace.last_read.get(number, 0)
        found |= dict.fromkeys((victim, writer) for writer, time in written if computed < time < last_read)
    return (pair for pair in found if pair[0] is not pair[1])


def _has_bytes(value: Instruction, places: Places) -> bool:
    return isinstance(value.shape, ArrayShape) and (value, ()) in places.defined and physical_bytes(value.shape) > 0


def _planted(places: Places, victim: Instruction, writer: Instruction, where: Where) -> Overlap | None:
    """The fault, if the writer's bytes stay inside the victim's allocation."""
    assert isinstance(victim.shape, ArrayShape) and isinstance(writer.shape, ArrayShape)
    hit, moved = places.defined[victim, ()], places.defined[writer, ()]
    size = physical_bytes(writer.shape)
    match where:
        case Where.ALL:
            offset = hit.offset
        case Where.FIRST:
            offset = hit.offset - size + 1
        case Where.LAST:
            offset = hit.offset + physical_bytes(victim.shape) - 1
    block = next(block for block in places.blocks if block.index == hit.allocation)
    if offset < 0 or offset + moved.size > block.size:
        return None
    place = Place(hit.allocation, offset, moved.size)
    return Overlap(victim, writer, where, evolve(places, defined={**places.defined, (writer, ()): place}))


# -- a campaign --------------------------------------------------------------------------------------------------------------


def prepared(seed: int, devices: int = 1) -> tuple[Places, Inputs] | None:
    """A random module inside our own placement, and inputs on which it runs; ``None`` where passes refuse it."""
    module = random_module(seed, Limits(devices=devices, executable=True))
    if verify(module):
        return None
    try:
        parse_pipeline(PIPELINE).run(module)
        places = Places.of_assignment(assign_buffers(module, GPU))
        inputs = inputs_for(module, seed)
        clean = run_in_memory(places, inputs.arguments, options=inputs.options, watched=[0]).is_clean
    except LayoutsimError:
        return None
    assert clean, f"seed {seed}: the placement is wrong before anything is planted"
    return places, inputs


def missed(seed: int, count: int, devices: int = 1) -> tuple[int, list[str]]:
    """How many faults were planted in a random module, and those that the heap machine did not see."""
    found = prepared(seed, devices)
    if found is None:
        return 0, []
    places, inputs = found
    planted = harmful_overlaps(places, inputs, random.Random(seed), count)
    not_seen: list[str] = []
    for overlap in planted:
        findings = run_in_memory(overlap.places, inputs.arguments, options=inputs.options, watched=[0]).findings
        if not overlap.is_caught_by(findings):
            not_seen.append(f"seed {seed}: {overlap}; findings: {'; '.join(map(str, findings[:3]))}")
    return len(planted), not_seen


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="modules")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--each", type=int, default=20, help="faults in a module")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        planted, not_seen = missed(seed, options.each, devices=4 if seed % 2 else 1)
        counts.update(modules=planted > 0, planted=planted, missed=len(not_seen))
        print(*not_seen, sep="\n", end="\n" if not_seen else "", flush=True)
    print(f"{counts['planted']} faults in {counts['modules']} modules, {counts['missed']} not caught")
    return 1 if counts["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
