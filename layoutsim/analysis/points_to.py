"""Which buffers each part of each value may live in (``xla/hlo/analysis/tuple_points_to_analysis.h``; layout spec, 1.2).

A *logical buffer* is a pair (instruction, shape index): the place where the part at that index is first made. The analysis
stays inside computations: calls and loops define all of their result, whatever their bodies do. Per instruction:

1. By default it defines a buffer at every index, tuple nodes included; so do custom calls with output-operand aliasing.
2. ``get-tuple-element`` forwards a sub-tree of its operand, ``tuple`` defines ``{}`` and forwards its operands below it,
   ``copy`` defines ``{}`` and forwards everything below.
3. ``bitcast``, ``domain``, ``add-dependency``, ``opt-barrier`` and ``async-update`` forward operand 0 as it is (a barrier's
   own buffers have ids but nothing points to them).
4. ``send`` forwards its operand at ``{0}``, ``recv-done`` its operand's ``{0}`` at ``{0}``; both define the rest.
5. ``copy-start`` forwards its operand at ``{1}``; ``copy-done`` is its operand's ``{0}``.
6. ``async-start`` forwards operand ``n`` at ``{0,n}``; ``async-done`` is its operand's ``{1}``.
7. Indices that a fusion or an ``async-start`` lists in its output-operand aliasing forward what is listed.

Buffer ids follow XLA's visiting order: computations callees first, each in visitor order, per instruction the defined indices
in pre-order; fusion bodies after everything else. Layout assignment gives defaults in this order (layout spec, 13.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from attrs import define

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import Aliasing, AsyncPayload, CustomCallPayload, FusionPayload
from layoutsim.ir.shape import ArrayShape, BufferShape, Shape, ShapeIndex, TupleShape, index_text, subshape, subshapes
from layoutsim.ir.traverse import computations_post_order, fusion_bodies, visitor_order


@define(eq=False, repr=False)
class LogicalBuffer:
    """The part of ``instruction``'s value at ``index``, made there.

    Attributes:
        id: position in XLA's visiting order, unique in the module.
        is_array: an array or a ``b(...)`` buffer; only these have layouts.
        rank: of the array, 0 for everything else.
    """

    id: int
    instruction: Instruction
    index: ShapeIndex
    is_array: bool
    rank: int

    @property
    def shape(self) -> Shape:
        """Shape of the part as the instruction has it now."""
        return subshape(self.instruction.shape, self.index)

    def __repr__(self) -> str:
        return f"<buffer {self.id}: %{self.instruction.name}{index_text(self.index)}>"


Buffers = tuple[LogicalBuffer, ...]
"""What one index may point to; nearly always exactly one buffer."""

PointsToSet = tuple[Buffers, ...]
"""The buffers of every index of a value, in the order of ``subshapes(value.shape)``."""

_FORWARDS_OPERAND = frozenset({Opcode.BITCAST, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY, Opcode.OPT_BARRIER, Opcode.ASYNC_UPDATE})


@cache
def position(shape: Shape, index: ShapeIndex) -> int:
    """Where ``index`` stands in ``subshapes(shape)``."""
    here = 0
    for i in index:
        assert isinstance(shape, TupleShape), f"{shape} has no part at {index}"
        here += _element_positions(shape)[i]
        shape = shape.elements[i]
    return here


@cache
def _element_positions(shape: TupleShape) -> tuple[int, ...]:
    """Where each element's sub-tree starts in ``subshapes(shape)``."""
    starts = [1]
    for element in shape.elements:
        starts.append(starts[-1] + len(subshapes(element)))
    return tuple(starts)


class PointsTo:
    """Points-to sets of all instructions of a module as it stands; it does not follow later changes.

    Attributes:
        buffers: all logical buffers, by id.
    """

    def __init__(self, module: Module) -> None:
        self.buffers: list[LogicalBuffer] = []
        self._sets: dict[Instruction, PointsToSet] = {}
        self._aliases: dict[LogicalBuffer, list[tuple[Instruction, ShapeIndex]]] = {}
        bodies = fusion_bodies(module)
        outside = [c for c in computations_post_order(module) if c not in bodies]
        for computation in outside:
            self._visit(computation)
        for fusion in (i for c in outside for i in c.instructions if i.opcode is Opcode.FUSION):
            self._visit_fusion(fusion)

    def points_to(self, instruction: Instruction) -> PointsToSet:
        """The buffers of every index of ``instruction``, in the order of ``subshapes(instruction.shape)``."""
        return self._sets[instruction]

    def at(self, instruction: Instruction, index: ShapeIndex) -> Buffers:
        """What the part at ``index`` may point to."""
        return self._sets[instruction][position(instruction.shape, index)]

    def defined_at(self, instruction: Instruction, index: ShapeIndex) -> LogicalBuffer | None:
        """The one buffer that ``instruction`` itself makes at ``index``, or ``None``."""
        found = self.at(instruction, index)
        return found[0] if len(found) == 1 and found[0].instruction is instruction else None

    def defined_by(self, instruction: Instruction) -> Buffers:
        """The buffers that ``instruction`` makes and that are used, in pre-order of their indices."""
        return tuple(b[0] for b in self._sets[instruction] if len(b) == 1 and b[0].instruction is instruction)

    def aliases(self, buffer: LogicalBuffer) -> list[tuple[Instruction, ShapeIndex]]:
        """Every (instruction, index) that may point to ``buffer``: instructions in list order, indices in pre-order."""
        return self._aliases.get(buffer, [])

    # -- building --------------------------------------------------------------------------------------------------

    def _visit_fusion(self, fusion: Instruction) -> None:
        for inner in fusion.to_apply.instructions:
            if inner.opcode is Opcode.FUSION:
                self._visit_fusion(inner)
        self._visit(fusion.to_apply)

    def _visit(self, computation: Computation) -> None:
        for instruction in visitor_order(computation):
            self._sets[instruction] = _RULES.get(instruction.opcode, PointsTo._default)(self, instruction)
        aliases = self._aliases
        for instruction in computation.instructions:
            found = self._sets[instruction]
            if len(found) == 1:
                for buffer in found[0]:
                    aliases.setdefault(buffer, []).append((instruction, ()))
            else:
                for (index, _), buffers in zip(subshapes(instruction.shape), found, strict=True):
                    for buffer in buffers:
                        aliases.setdefault(buffer, []).append((instruction, index))

    def _define(self, instruction: Instruction, index: ShapeIndex, shape: Shape) -> Buffers:
        array = shape.array if isinstance(shape, BufferShape) else shape
        is_array = isinstance(array, ArrayShape)
        made = LogicalBuffer(len(self.buffers), instruction, index, is_array, array.rank if is_array else 0)
        self.buffers.append(made)
        return (made,)

    def _default(self, instruction: Instruction) -> PointsToSet:  # (1)
        return self._define_subtree(instruction, ())

    def _define_subtree(self, instruction: Instruction, at: ShapeIndex) -> PointsToSet:
        parts = subshapes(subshape(instruction.shape, at))
        return tuple(self._define(instruction, (*at, *index), part) for index, part in parts)

    def _forward(self, instruction: Instruction) -> PointsToSet:  # (3)
        if instruction.opcode is Opcode.OPT_BARRIER:
            self._define_subtree(instruction, ())
        return self._sets[instruction.operand(0)]

    def _subtree(self, instruction: Instruction, index: int) -> PointsToSet:
        """What ``instruction`` points to at ``{index}`` and below."""
        shape = instruction.shape
        assert isinstance(shape, TupleShape), instruction
        starts = _element_positions(shape)
        return self._sets[instruction][starts[index] : starts[index + 1]]

    def _get_tuple_element(self, instruction: Instruction) -> PointsToSet:  # (2)
        return self._subtree(instruction.operand(0), instruction.tuple_index)

    def _tuple(self, instruction: Instruction) -> PointsToSet:
        out: list[Buffers] = [self._define(instruction, (), instruction.shape)]
        for operand in instruction.operands:
            out += self._sets[operand]
        return tuple(out)

    def _copy(self, instruction: Instruction) -> PointsToSet:
        return (self._define(instruction, (), instruction.shape), *self._sets[instruction.operand(0)][1:])

    def _send(self, instruction: Instruction) -> PointsToSet:  # (4)
        whole = self._define(instruction, (), instruction.shape)
        rest = [self._define_subtree(instruction, (i,)) for i in (1, 2)]
        return (whole, *self._sets[instruction.operand(0)], *rest[0], *rest[1])

    def _recv_done(self, instruction: Instruction) -> PointsToSet:
        whole = self._define(instruction, (), instruction.shape)
        return (whole, *self._subtree(instruction.operand(0), 0), *self._define_subtree(instruction, (1,)))

    def _copy_start(self, instruction: Instruction) -> PointsToSet:  # (5)
        whole = self._define(instruction, (), instruction.shape)
        target = self._define_subtree(instruction, (0,))
        return (whole, *target, self._sets[instruction.operand(0)][0], *self._define_subtree(instruction, (2,)))

    def _copy_done(self, instruction: Instruction) -> PointsToSet:
        return self._subtree(instruction.operand(0), 0)

    def _async_start(self, instruction: Instruction) -> PointsToSet:  # (6), (7)
        explicit = _by_output_index(instruction.payload_as(AsyncPayload).output_to_operand_aliasing)
        out: list[Buffers] = []
        for index, part in subshapes(instruction.shape):
            buffers: Buffers = ()
            if len(index) >= 2 and index[0] == 0:
                buffers = self.at(instruction.operand(index[1]), index[2:])
            if index in explicit:
                buffers = _joined(buffers, self._aliased(instruction, explicit[index]))
            out.append(buffers or self._define(instruction, index, part))
        return tuple(out)

    def _async_done(self, instruction: Instruction) -> PointsToSet:
        return self._subtree(instruction.operand(0), 1)

    def _fusion(self, instruction: Instruction) -> PointsToSet:  # (7)
        explicit = _by_output_index(instruction.payload_as(FusionPayload).output_to_operand_aliasing)
        return tuple(
            self._aliased(instruction, explicit[index]) if index in explicit else self._define(instruction, index, part)
            for index, part in subshapes(instruction.shape)
        )

    def _aliased(self, instruction: Instruction, alias: Aliasing) -> Buffers:
        return self.at(instruction.operand(alias.operand_number), alias.operand_index)


def _by_output_index(aliasing: Iterable[Aliasing]) -> dict[ShapeIndex, Aliasing]:
    found: dict[ShapeIndex, Aliasing] = {}
    for alias in aliasing:
        found.setdefault(alias.output_index, alias)
    return found


def _joined(first: Buffers, more: Buffers) -> Buffers:
    return (*first, *(b for b in more if b not in first))


def output_operand_aliasing(instruction: Instruction) -> tuple[Aliasing, ...]:
    """The output-operand aliasing that a fusion or custom call states; empty for every other instruction."""
    payload = instruction.payload
    return payload.output_to_operand_aliasing if isinstance(payload, (FusionPayload, CustomCallPayload)) else ()


_RULES: dict[Opcode, Callable[[PointsTo, Instruction], PointsToSet]] = {
    **dict.fromkeys(_FORWARDS_OPERAND, PointsTo._forward),
    Opcode.GET_TUPLE_ELEMENT: PointsTo._get_tuple_element,
    Opcode.TUPLE: PointsTo._tuple,
    Opcode.COPY: PointsTo._copy,
    Opcode.SEND: PointsTo._send,
    Opcode.RECV_DONE: PointsTo._recv_done,
    Opcode.COPY_START: PointsTo._copy_start,
    Opcode.COPY_DONE: PointsTo._copy_done,
    Opcode.ASYNC_START: PointsTo._async_start,
    Opcode.ASYNC_DONE: PointsTo._async_done,
    Opcode.FUSION: PointsTo._fusion,
}
