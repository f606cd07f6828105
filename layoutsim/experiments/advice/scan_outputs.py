"""Scan outputs that are scan inputs again, or that nothing reads: advice to drop them.

A loop that stacks, slice by slice, what it reads from an input of the same content (:mod:`layoutsim.memory.restack`) makes a
second copy of that input. It can go if

1. the loop runs as often as there are slices, so that the output is the input when it ends, and
2. nothing in the loop reads the output.

An output that nothing reads, in the loop or behind it, can go as well. XLA drops those itself where it simplifies the loop; one
that is left stands in a loop that it could not simplify, and in a module that did not go through its passes.

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

_UNREAD_CODE = """\
# {place}: nothing reads what the scan's body returns there ({shape})
def body(carry, x):
    ...
    return carry, None"""

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
    return [change for loop in loops for element in _stacked(loop) if (change := _find(dataflow, loop, element)) is not None]


def _stacked(loop: Instruction) -> list[int]:
    """The elements that the body writes into and does not read."""
    elements = enumerate(loop.body.root.operands)
    return [element for element, update in elements if _only_writes(loop, element, update)]


def _only_writes(loop: Instruction, element: int, update: Instruction) -> bool:
    if update.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or update.user_count > 1:
        return False
    readers = [reader for holder in (loop.body, loop.condition) for reader in readers_of(holder.parameters[0], element)]
    return all(user is update for reader in readers for user in reader.users)


def _find(dataflow: Dataflow, loop: Instruction, element: int) -> ProgramChange | None:
    if not loop.is_root and not any(reader.user_count or reader.is_root for reader in readers_of(loop, element)):
        return _drop_unread(loop, element)
    source = _same_input(dataflow, loop, element)
    return None if source is None else _change(loop, element, source)


def _same_input(dataflow: Dataflow, loop: Instruction, element: int) -> int | None:
    """The element that ``element`` equals when the loop ends; rule (1), (2) being so."""
    update = loop.body.root.operand(element)
    if not _runs_over_all(loop, update):
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


def _drop_unread(loop: Instruction, element: int) -> ProgramChange:
    update = loop.body.root.operand(element)

    def apply(module: Module) -> None:
        again = find_again(module, loop)
        drop_element(again, _position(again, find_again(module, update)))

    return ProgramChange(
        title=f"drop a scan output that nothing reads, {shape_text(update.shape, layouts=False)}",
        code=_UNREAD_CODE.format(place=where(update), shape=shape_text(update.operand(1).shape, layouts=False)),
        size_bytes=byte_size(update.shape),
        apply=apply,
    )


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
