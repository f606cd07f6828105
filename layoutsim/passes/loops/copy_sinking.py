"""A copy of what a loop only slices moves into the loop, behind the slices. Ours; XLA has nothing like it.

Layout assignment lays out a loop's body first, and the caller must pass what the body chose: a stack of weights in another
order is copied as a whole in front of the loop, and the copy lives as long as the loop. Where the body only takes slices of the
stack, the slice can be taken from the original, and that alone be copied. The copy then lives for one iteration, or is none,
where the slice is the same bytes in both layouts.
``copy-sinking{choose=always}``::

      body {
    -   p = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) parameter(0)
    +   p = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        k = s32[] constant(1)
        n = s32[] add(i, k)
    -   w = f32[4,8,16]{2,1,0} get-tuple-element(p), index=1
    +   w = f32[4,8,16]{2,0,1} get-tuple-element(p), index=1
        a = f32[8,16]{1,0} get-tuple-element(p), index=2
        z = s32[] constant(0)
    -   s = f32[1,8,16]{2,1,0} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
    -   r = f32[8,16]{1,0} reshape(s)
    +   s = f32[1,8,16]{2,0,1} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
    +   bitcast = f32[1,8,16]{2,1,0} bitcast(s)
    +   r = f32[8,16]{1,0} reshape(bitcast)
        t = f32[8,16]{1,0} add(a, r)
    -   ROOT o = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) tuple(n, w, t)
    +   ROOT o = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) tuple(n, w, t)
      }
      cond {
    -   q = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) parameter(0)
    +   q = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) parameter(0)
        j = s32[] get-tuple-element(q), index=0
        e = s32[] constant(4)
        ROOT l = pred[] compare(j, e), direction=LT
      }
      ENTRY main {
        zero = s32[] constant(0)
        stack = f32[4,8,16]{2,0,1} parameter(0)
        sum = f32[8,16]{1,0} parameter(1)
    -   c = f32[4,8,16]{2,1,0} copy(stack)
    -   init = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) tuple(zero, c, sum)
    -   loop = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) while(init), condition=cond, body=body
    +   init = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) tuple(zero, stack, sum)
    +   loop = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) while(init), condition=cond, body=body
        ROOT out = f32[8,16]{1,0} get-tuple-element(loop), index=2
      }

1. The value of the copy is followed (:mod:`.copy_flow`) through tuples, barriers, transposes that move nothing, and loops,
   nested ones too. It moves if it goes through at least one loop, and nothing reads it but slices and further copies.
2. Everywhere on the way it takes the layout of what was copied: in states, bodies and conditions.
3. Behind each slice stands a copy to the layout from before; a bitcast if that moves no bytes because only dimensions of size 1
   are in other places. A further copy reads the original.
4. ``choose`` says which of these copies move: ``always`` all; ``bytes`` those after which no more bytes are moved than before,
   loops counted as often as they run (unknown: not); ``peak`` those without which the peak would be higher, measured with copy
   insertion and scheduling; of several choices with the lowest peak one that moves few bytes.

Runs behind layout assignment. For an all-gather along a minor dimension (which wants that dimension most major) this turns one
transpose of the whole stack into one of a layer in each iteration.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from attrs import frozen

from layoutsim.analysis.trip_count import execution_counts
from layoutsim.ir import ArrayShape, Instruction, Module, Opcode, Shape, byte_size, replace_subshape, subshape
from layoutsim.ir.clone import clone_module
from layoutsim.passes.base import Remark
from layoutsim.passes.layout_assignment.copy_attributes import copied_attributes
from layoutsim.passes.layout_assignment.layout_math import equal_without_ones
from layoutsim.passes.layout_assignment.rules import array_of
from layoutsim.passes.loops.carried import Callers
from layoutsim.passes.loops.copy_flow import CopyFlow
from layoutsim.passes.loops.moved_copies import MovedCopies, MovesCopies
from layoutsim.passes.loops.peak import peak_bytes
from layoutsim.passes.replace import has_control_edges, remove_with_unused_operands
from layoutsim.passes.sharing_rules import SharingRules


class Choose(Enum):
    """Which copies move into loops."""

    ALWAYS = "always"
    BYTES = "bytes"
    PEAK = "peak"


@frozen(kw_only=True)
class CopySinking(MovesCopies):
    """Copy slices inside loops instead of what they are taken from in front of them.

    Attributes:
        choose: which of the copies that can move do.
        min_bytes: copies of smaller arrays stay.
        rules: whose rules on sharing memory hold when peaks are measured.

    ``copy-sinking{choose=bytes}`` and ``copy-sinking{choose=peak}``::

          body {
        -   p = (s32[], f32[4,8,16]{1,0,2}, f32[8,16]{0,1}) parameter(0)
        +   p = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{0,1}) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
        -   w = f32[4,8,16]{1,0,2} get-tuple-element(p), index=1
        +   w = f32[4,8,16]{2,1,0} get-tuple-element(p), index=1
            a = f32[8,16]{0,1} get-tuple-element(p), index=2
            z = s32[] constant(0)
        -   s = f32[1,8,16]{1,0,2} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
        -   r = f32[8,16]{0,1} reshape(s)
        +   s = f32[1,8,16]{2,1,0} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
        +   s.copy = f32[1,8,16]{1,0,2} copy(s)
        +   r = f32[8,16]{0,1} reshape(s.copy)
            t = f32[8,16]{0,1} add(a, r)
        -   ROOT o = (s32[], f32[4,8,16]{1,0,2}, f32[8,16]{0,1}) tuple(n, w, t)
        +   ROOT o = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{0,1}) tuple(n, w, t)
          }
          cond {
        -   q = (s32[], f32[4,8,16]{1,0,2}, f32[8,16]{0,1}) parameter(0)
        +   q = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{0,1}) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            stack = f32[4,8,16]{2,1,0} parameter(0)
            sum = f32[8,16]{0,1} parameter(1)
        -   c = f32[4,8,16]{1,0,2} copy(stack)
        -   init = (s32[], f32[4,8,16]{1,0,2}, f32[8,16]{0,1}) tuple(zero, c, sum)
        -   loop = (s32[], f32[4,8,16]{1,0,2}, f32[8,16]{0,1}) while(init), condition=cond, body=body
        +   init = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{0,1}) tuple(zero, stack, sum)
        +   loop = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{0,1}) while(init), condition=cond, body=body
            ROOT out = f32[8,16]{0,1} get-tuple-element(loop), index=2
          }

    ``copy-sinking{min-bytes=1024}``::

          body {
        -   p = (s32[], f32[4,8,16]{1,0,2}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) parameter(0)
        +   p = (s32[], f32[4,8,16]{2,1,0}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
        -   w = f32[4,8,16]{1,0,2} get-tuple-element(p), index=1
        +   w = f32[4,8,16]{2,1,0} get-tuple-element(p), index=1
            v = f32[4,8]{0,1} get-tuple-element(p), index=2
            a = f32[8,16]{0,1} get-tuple-element(p), index=3
        +   z = s32[] constant(0)
        +   s = f32[1,8,16]{2,1,0} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
        +   s.copy = f32[1,8,16]{1,0,2} copy(s)
        +   r = f32[8,16]{0,1} reshape(s.copy)
        +   t = f32[8,16]{0,1} add(a, r)
            b = f32[8] get-tuple-element(p), index=4
        -   z = s32[] constant(0)
        -   s = f32[1,8,16]{1,0,2} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
        -   r = f32[8,16]{0,1} reshape(s)
        -   t = f32[8,16]{0,1} add(a, r)
            g = f32[1,8]{0,1} dynamic-slice(v, i, z), dynamic_slice_sizes={1,8}
            h = f32[8] reshape(g)
            u = f32[8] add(b, h)
        -   ROOT o = (s32[], f32[4,8,16]{1,0,2}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) tuple(n, w, v, t, u)
        +   ROOT o = (s32[], f32[4,8,16]{2,1,0}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) tuple(n, w, v, t, u)
          }
          cond {
        -   q = (s32[], f32[4,8,16]{1,0,2}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) parameter(0)
        +   q = (s32[], f32[4,8,16]{2,1,0}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            stack = f32[4,8,16]{2,1,0} parameter(0)
            small = f32[4,8]{1,0} parameter(1)
            sum = f32[8,16]{0,1} parameter(2)
            row = f32[8] parameter(3)
        -   c = f32[4,8,16]{1,0,2} copy(stack)
            d = f32[4,8]{0,1} copy(small)
        -   init = (s32[], f32[4,8,16]{1,0,2}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) tuple(zero, c, d, sum, row)
        -   loop = (s32[], f32[4,8,16]{1,0,2}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) while(init), condition=cond, body=body
        +   init = (s32[], f32[4,8,16]{2,1,0}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) tuple(zero, stack, d, sum, row)
        +   loop = (s32[], f32[4,8,16]{2,1,0}, f32[4,8]{0,1}, f32[8,16]{0,1}, f32[8]) while(init), condition=cond, body=body
            ROOT out = f32[8,16]{0,1} get-tuple-element(loop), index=3
          }
    """

    name: ClassVar[str] = "copy-sinking"

    choose: Choose = Choose.ALWAYS
    min_bytes: int = 0
    rules: SharingRules = SharingRules.NVIDIA

    def run(self, module: Module) -> MovedCopies:
        callers = Callers(module)
        able, remarks = self._able(module, callers)
        chosen = self._chosen(module, able)
        moved: dict[Instruction, tuple[Instruction, ...]] = {}
        for copy in able:
            if copy not in chosen:
                remarks.append(Remark(copy.name, f"stays: {_WHY_NOT[self.choose]}"))
                continue
            flow = CopyFlow.of(copy, callers)
            moved[copy] = sink(flow)
            inside = ", ".join(new.name for new in moved[copy]) or "nothing: its slices need no copy"
            remarks.append(Remark(copy.name, f"moved into {', '.join(loop.name for loop in flow.loops)}; instead: {inside}"))
        return MovedCopies(bool(moved), tuple(remarks), moved)

    def _able(self, module: Module, callers: Callers) -> tuple[list[Instruction], list[Remark]]:
        """The copies that can move, and why others cannot that go into a loop."""
        able: list[Instruction] = []
        remarks: list[Remark] = []
        for computation in module.computations:
            for copy in computation.instructions:
                if copy.opcode is not Opcode.COPY or not _changes_order(copy) or byte_size(copy.shape) < self.min_bytes:
                    continue
                flow = CopyFlow.of(copy, callers)
                if not flow.loops:
                    continue
                if flow.obstacle:
                    remarks.append(Remark(copy.name, f"stays: {flow.obstacle}"))
                else:
                    able.append(copy)
        return able, remarks

    def _chosen(self, module: Module, able: list[Instruction]) -> set[Instruction]:
        match self.choose:
            case Choose.ALWAYS:
                return set(able)
            case Choose.BYTES:
                return {copy for copy, more in _more_bytes_moved(module, able).items() if more is not None and more <= 0}
            case Choose.PEAK:
                return self._lowest_peak(module, able)

    def _lowest_peak(self, module: Module, able: list[Instruction]) -> set[Instruction]:
        """From all of them take back, one by one, what does not raise the peak; the most expensive first."""
        more = _more_bytes_moved(module, able)
        chosen = dict.fromkeys(able)
        lowest = self._peak(module, [*chosen])
        # Unknown trip counts count as expensive; a copy that saves movement is never taken back.
        costs = {copy: float("inf") if bytes_ is None else bytes_ for copy, bytes_ in more.items()}
        for copy in sorted((c for c in able if costs[c] > 0), key=lambda c: -costs[c]):
            without = [c for c in chosen if c is not copy]
            if (peak := self._peak(module, without)) <= lowest:
                lowest, chosen = peak, dict.fromkeys(without)
        return set(chosen)

    def _peak(self, module: Module, sunk: list[Instruction]) -> int:
        """The peak if these copies move, in bytes."""
        names = {(copy.parent.name if copy.parent else "", copy.name) for copy in sunk}
        trial = clone_module(module)
        callers = Callers(trial)
        for computation in trial.computations:
            for instruction in computation.instructions:
                if (computation.name, instruction.name) in names:
                    sink(CopyFlow.of(instruction, callers))
        return peak_bytes(trial, self.rules)


_WHY_NOT = {
    Choose.ALWAYS: "",
    Choose.BYTES: "more bytes would be moved, or it is not known how many",
    Choose.PEAK: "the peak is as low without",
}


def _changes_order(copy: Instruction) -> bool:
    source = copy.operand(0)
    if has_control_edges(copy) or not isinstance(copy.shape, ArrayShape) or not isinstance(source.shape, ArrayShape):
        return False
    # Copies to another memory space move data even where the order is the same; they are not this pass's business.
    before, after = source.shape.layout, copy.shape.layout
    return before is not None and after is not None and before != after and before.with_order(after.minor_to_major) == after


def _moves(shape: Shape, from_: Shape) -> bool:
    assert isinstance(shape, ArrayShape) and isinstance(from_, ArrayShape), shape
    same = equal_without_ones(shape.dimensions, from_.minor_to_major, shape.minor_to_major)
    return not same and shape.element_count > 0


def _more_bytes_moved(module: Module, able: list[Instruction]) -> dict[Instruction, int | None]:
    """By how much more each copy would move inside the loops, in bytes; ``None`` where that is not known."""
    runs, callers = execution_counts(module), Callers(module)
    more: dict[Instruction, int | None] = {}
    for copy in able:
        shape = copy.operand(0).shape
        assert isinstance(shape, ArrayShape) and copy.parent is not None, copy
        before = runs.get(copy.parent)
        total = None if before is None else -before * byte_size(copy.shape) * _moves(copy.shape, shape)
        flow = CopyFlow.of(copy, callers)
        for reader, dimensions in flow.readers.items():
            assert isinstance(reader.shape, ArrayShape) and reader.parent is not None, reader
            order = flow.order_of(dimensions, shape.minor_to_major)
            if reader.opcode is Opcode.COPY or not _moves(reader.shape, reader.shape.with_order(order)):
                continue
            times = runs.get(reader.parent)
            total = None if total is None or times is None else total + times * byte_size(reader.shape)
        more[copy] = total
    return more


def sink(flow: CopyFlow) -> tuple[Instruction, ...]:
    """Move one copy into the loops; the copies that stand behind its slices now."""
    copy = flow.copy
    source = copy.operand(0)
    assert isinstance(source.shape, ArrayShape), copy
    for (instruction, index), dimensions in flow.positions.items():
        if instruction is not copy:
            part = array_of(subshape(instruction.shape, index))
            order = flow.order_of(dimensions, source.shape.minor_to_major)
            instruction.shape = replace_subshape(instruction.shape, index, part.with_order(order))
    slices = [(reader, dimensions) for reader, dimensions in flow.readers.items() if reader.opcode is not Opcode.COPY]
    orders = [flow.order_of(dimensions, source.shape.minor_to_major) for _, dimensions in slices]
    made = [new for (reader, _), order in zip(slices, orders, strict=True) if (new := _copy_behind(reader, order))]
    copy.replace_all_uses_with(source)
    remove_with_unused_operands(copy)
    return tuple(new for new in made if new.opcode is Opcode.COPY)


def _copy_behind(reader: Instruction, order: tuple[int, ...]) -> Instruction | None:
    """Let a slice come in this order, with what its users want behind it."""
    wanted, computation = reader.shape, reader.parent
    assert isinstance(wanted, ArrayShape) and computation is not None, reader
    reader.shape = wanted.with_order(order)
    if not reader.user_count and not reader.is_root:
        return None
    opcode = Opcode.COPY if _moves(wanted, reader.shape) else Opcode.BITCAST
    name = f"{reader.name}.copy" if opcode is Opcode.COPY else None
    new = computation.add(opcode, wanted, [reader], name=name, attributes=copied_attributes(reader, ()))
    reader.replace_all_uses_with(new)
    return new
