"""Lets loops read their state before they write it (``xla/service/loop_schedule_linearizer.h``; memory spec, 12.0).

For each element of a loop's state that is one value at the body's parameter and one value at its root, every reader of the
first runs before the instruction that defines the second, so that copy insertion can let them share memory::

    %x = gte(%state), index=0                 %x = gte(%state), index=0
    %new = f32[8] negate(%y)             =>   %old = f32[8] sine(%x)
    %old = f32[8] sine(%x)                    %new = f32[8] negate(%y), control-predecessors={%old}
    ROOT %t = (..) tuple(%new, ..)            ROOT %t = (..) tuple(%new, ..)

1. Nested tuples and elements that a loop only passes on are left alone.
2. Only readers in the writer's own computation count.
3. An edge that would close a cycle is not added (then a copy will be needed).
4. Loops with asynchronous collectives in their body are left alone: they want to be scheduled freely.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.analysis.dataflow import Dataflow
from layoutsim.ir import Instruction, Module, Opcode, ShapeIndex, TupleShape, subshapes
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.passes.async_collectives import is_collective_done, is_collective_start
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.online_order import OnlineOrder


@frozen
class LoopScheduleLinearizer(Pass):
    """Add control edges from the readers of each element of a loop's state to the one that writes it."""

    name: ClassVar[str] = "loop-schedule-linearizer"

    def run(self, module: Module) -> PassResult:
        remarks: list[Remark] = []
        loops = _loops(module)
        dataflow = Dataflow(module) if loops else None
        for loop in loops:
            assert dataflow is not None
            remarks += _linearize(loop, dataflow)
        return PassResult(bool(remarks), tuple(remarks))


def _loops(module: Module) -> list[Instruction]:
    fused = fusion_bodies(module)
    return [
        i
        for computation in module.computations
        if computation not in fused
        for i in computation.instructions
        if i.opcode is Opcode.WHILE and not _has_async_collectives(i)
    ]


def _has_async_collectives(loop: Instruction) -> bool:  # (4)
    return any(is_collective_start(i) or is_collective_done(i) for i in loop.body.instructions)


def _linearize(loop: Instruction, dataflow: Dataflow) -> list[Remark]:
    order = OnlineOrder(loop.body)
    remarks: list[Remark] = []
    for index, _ in subshapes(loop.shape):
        for reader, writer in _pairs(loop, index, dataflow) if index else ():
            if order.insert(reader, writer) and reader not in writer.control_predecessors:  # (3)
                writer.add_control_predecessor(reader)
                remarks.append(Remark(writer.name, f"runs after {reader.name}, which reads the state that it writes"))
    return remarks


def _pairs(loop: Instruction, index: ShapeIndex, dataflow: Dataflow) -> list[tuple[Instruction, Instruction]]:
    """Readers and the writer of the state at ``index``."""
    body = loop.body
    old = dataflow.value_set(dataflow.parameters(body)[0], index)
    new = dataflow.value_set(body.root, index)
    if len(old) != 1 or len(new) != 1 or old[0] is new[0] or isinstance(new[0].shape, TupleShape):  # (1)
        return []
    writer = new[0].instruction
    readers = [use.instruction for use in old[0].uses]
    return [(reader, writer) for reader in readers if reader is not writer and reader.parent is writer.parent]  # (2)
