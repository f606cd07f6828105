"""How often loops run, and with them every computation.

A loop's trip count is known if

1. XLA wrote it into the loop's backend config (``known_trip_count``), or
2. the loop counts: the condition compares one carried integer with a constant, the body adds a constant to it, and its
   first value is a constant (the loops that ``jax.lax.scan`` and ``fori_loop`` make).

Otherwise it is ``None``, and so is the count of everything inside. Both branches of a conditional count as taken, so the
counts are upper bounds where conditionals are involved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import frozen

from layoutsim.errors import LayoutsimError
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import ComparePayload
from layoutsim.ir.traverse import computations_post_order

_MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ"}


def trip_count(loop: Instruction) -> int | None:
    """Iterations of a ``while``, or ``None`` where they cannot be told."""
    known = _from_backend_config(loop.attributes.backend_config)
    if known is not None:
        return known
    counter = counter_of(loop)
    return None if counter is None else counter.trips


def execution_counts(module: Module) -> Mapping[Computation, int | None]:
    """How often each reachable computation runs in one run of the entry; ``None`` where a trip count is unknown."""
    counts: dict[Computation, int | None] = {module.entry: 1}
    for caller in reversed(computations_post_order(module)):
        if caller not in counts:
            continue
        for instruction in caller.instructions:
            for number, callee in enumerate(instruction.called_computations):
                times = _product(counts[caller], _runs_per_call(instruction, number))
                counts[callee] = _sum(counts[callee], times) if callee in counts else times
    return counts


def _runs_per_call(instruction: Instruction, number: int) -> int | None:
    if instruction.opcode is not Opcode.WHILE:
        return 1
    trips = trip_count(instruction)
    is_condition = number == 1
    return trips if trips is None else trips + is_condition


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _from_backend_config(text: str) -> int | None:
    if "known_trip_count" not in text:
        return None
    try:
        config: object = json.loads(text)
    except json.JSONDecodeError:
        return None
    match config:
        case {"known_trip_count": {"n": str() | int() as n}}:
            return int(n)
        case _:
            return None


@frozen
class Counter:
    """How a loop counts (rule 2).

    Attributes:
        index: which element of its state.
        first: its value in the first iteration.
        step: what each iteration adds.
        trips: how many iterations there are.
    """

    index: int
    first: int
    step: int
    trips: int


def counter_of(loop: Instruction) -> Counter | None:
    """The counter of a loop that counts to a constant, or ``None``."""
    test = loop.condition.root
    if test.opcode is not Opcode.COMPARE:
        return None
    direction = test.payload_as(ComparePayload).direction
    counter, bound = test.operand(0), _constant(test.operand(1))
    if bound is None:
        counter, bound, direction = test.operand(1), _constant(test.operand(0)), _MIRRORED[direction]
    index = _carried_index(counter)
    if bound is None or index is None:
        return None
    start, step = _initial_value(loop, index), _step(loop, index)
    trips = None if start is None or step is None else _iterations(start, step, bound, direction)
    return None if trips is None or start is None or step is None else Counter(index, start, step, trips)


def _iterations(start: int, step: int, bound: int, direction: str) -> int | None:
    match direction:
        case "LT" if step > 0:
            return max(0, -(-(bound - start) // step))
        case "LE" if step > 0:
            return max(0, (bound - start) // step + 1)
        case "GT" if step < 0:
            return max(0, -(-(start - bound) // -step))
        case "GE" if step < 0:
            return max(0, (start - bound) // -step + 1)
        case "NE" if step and (bound - start) % step == 0 and (bound - start) // step >= 0:
            return (bound - start) // step
        case _:
            return None


def _carried_index(instruction: Instruction) -> int | None:
    """``k`` if the instruction is element ``k`` of its computation's parameter."""
    source = _through_copies(instruction)
    if source.opcode is Opcode.GET_TUPLE_ELEMENT and source.operand(0).opcode is Opcode.PARAMETER:
        return source.tuple_index
    return None


def _initial_value(loop: Instruction, index: int) -> int | None:
    state = loop.operand(0)
    return _constant(state.operand(index)) if state.opcode is Opcode.TUPLE else None


def _step(loop: Instruction, index: int) -> int | None:
    state = loop.body.root
    if state.opcode is not Opcode.TUPLE:
        return None
    new = _through_copies(state.operand(index))
    if new.opcode is not Opcode.ADD:
        return None
    for counter, other in (new.operands, new.operands[::-1]):
        if _carried_index(counter) == index:
            return _constant(other)
    return None


def _constant(instruction: Instruction) -> int | None:
    source = _through_copies(instruction)
    if source.opcode is not Opcode.CONSTANT:
        return None
    try:
        values = source.constant.literal.array()
    except LayoutsimError:
        return None
    return int(values) if values.shape == () and values.dtype.kind in "iu" else None


def _through_copies(instruction: Instruction) -> Instruction:
    while instruction.opcode in (Opcode.COPY, Opcode.BITCAST):
        instruction = instruction.operand(0)
    return instruction
