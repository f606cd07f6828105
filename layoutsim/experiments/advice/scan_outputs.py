"""Scan outputs that are scan inputs again: advice to drop them.

A loop that stacks, slice by slice, what it reads from an input of the same content (:mod:`layoutsim.memory.restack`) makes a
second copy of that input. It can go if

1. the loop runs as often as there are slices, so that the output is the input when it ends, and
2. nothing in the loop reads the output.

Imitated by reading the input instead of the output and carrying one array less::

    ys1 = dynamic-update-slice(ys, slice, i, 0, 0)              (gone)
    out = (i1, y, ys1, w) tuple                          =>     out = (i1, y, w) tuple
    ... get-tuple-element(loop), index=2                        ... w
"""

from __future__ import annotations

from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.trip_count import trip_count
from layoutsim.experiments.advice.change import ProgramChange, find_again, where
from layoutsim.experiments.advice.loop_elements import drop_element, is_invariant, plain_loops, readers_of
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.shape import ArrayShape, byte_size, shape_text
from layoutsim.memory.restack import restacked_input

_CODE = """\
# {place}: the scan's body returns a slice of what it scans over ({shape})
def body(carry, x):
    ...
    return carry, None  # not x
carry, _ = lax.scan(body, carry, xs)
# and read xs where the stacked output was read"""


def find_scan_outputs(module: Module) -> list[ProgramChange]:
    """A change for each loop output that equals a loop input."""
    loops = plain_loops(module)
    if not loops:
        return []
    dataflow = Dataflow(module)
    return [
        _change(loop, element, source)
        for loop in loops
        for element in range(loop.operand(0).operand_count)
        if (source := _same_input(dataflow, loop, element)) is not None
    ]


def _same_input(dataflow: Dataflow, loop: Instruction, element: int) -> int | None:
    """The element that ``element`` equals when the loop ends; rules (1) and (2)."""
    update = loop.body.root.operand(element)
    if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or update.user_count > 1:
        return None
    readers = readers_of(loop.body.parameters[0], element)
    if any(user is not update for reader in readers for user in reader.users) or not _runs_over_all(loop, update):
        return None
    source = restacked_input(dataflow, dataflow.value_at(update))
    if source is None:
        return None
    same = [i for i in range(loop.operand(0).operand_count) if is_invariant(loop, i)]
    return next((i for i in same if dataflow.value_set(loop.operand(0), (i,)) == (source,)), None)


def _runs_over_all(loop: Instruction, update: Instruction) -> bool:
    """Rule (1)."""
    whole, part = update.shape, update.operand(1).shape
    assert isinstance(whole, ArrayShape) and isinstance(part, ArrayShape), update
    steps = [a for a, b in zip(whole.dimensions, part.dimensions, strict=True) if a != b]
    return len(steps) == 1 and 1 in part.dimensions and trip_count(loop) == steps[0]


def _change(loop: Instruction, element: int, source: int) -> ProgramChange:
    update = loop.body.root.operand(element)
    read = loop.operand(0).operand(source)

    def apply(module: Module) -> None:
        again = find_again(module, loop)
        for reader in readers_of(again, _position(again, find_again(module, update))):
            reader.replace_all_uses_with(find_again(module, read))
        drop_element(again, _position(again, find_again(module, update)))

    return ProgramChange(
        title=f"drop a scan output that equals the scan's input %{read.name}, {shape_text(update.shape, layouts=False)}",
        code=_CODE.format(place=where(update), shape=shape_text(update.operand(1).shape, layouts=False)),
        size_bytes=byte_size(update.shape),
        apply=apply,
    )


def _position(loop: Instruction, update: Instruction) -> int:
    """The element that ``update`` makes, which moves when others before it are dropped."""
    return loop.body.root.operands.index(update)
