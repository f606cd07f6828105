"""Constants that a loop carries unchanged are made inside it.

Source: ``xla/service/while_loop_constant_sinking.h`` (July 2026). Loops are visited outside in, so that one run takes a
constant into nested loops:

1. An element sinks that the body hands on as it is and that starts as a constant; with ``broadcasts`` also as a broadcast of
   one.
2. In the body the constant stands for the element that the root takes, wherever else that is used; the root keeps taking the
   element, which is invariant as before (``while-loop-simplifier`` removes it). In the condition it stands for every use.
3. ``only-scalars`` lets nothing but scalars sink, and (ours) ``max-bytes`` nothing larger than that.

``while-loop-constant-sinking``::

      body {
        p = (s32[], f32[], f32[4]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        k = s32[] constant(1)
        n = s32[] add(i, k)
        v = f32[] get-tuple-element(p), index=1
        x = f32[4] get-tuple-element(p), index=2
    -   b = f32[4] broadcast(v), dimensions={}
    +   five.1 = f32[] constant(5)
    +   b = f32[4] broadcast(five.1), dimensions={}
        y = f32[4] multiply(x, b)
        ROOT o = (s32[], f32[], f32[4]) tuple(n, v, y)
      }
      cond {
        q = (s32[], f32[], f32[4]) parameter(0)
        j = s32[] get-tuple-element(q), index=0
        e = s32[] constant(4)
        ROOT l = pred[] compare(j, e), direction=LT
      }
      ENTRY main {
        zero = s32[] constant(0)
        start = f32[4] parameter(0)
        five = f32[] constant(5)
        init = (s32[], f32[], f32[4]) tuple(zero, five, start)
        loop = (s32[], f32[], f32[4]) while(init), condition=cond, body=body
        ROOT out = f32[4] get-tuple-element(loop), index=2
      }
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.ir import ArrayShape, Computation, Instruction, Module, Opcode, byte_size
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.loops.carried import Callers, elements_of, invariant_elements, remove_if_unused


@frozen(kw_only=True)
class WhileLoopConstantSinking(Pass):
    """Make constants inside the loops that carry them.

    Attributes:
        broadcasts: broadcasts of constants sink, too.
        only_scalars: nothing but scalars sinks.
        max_bytes: of what sinks; ``None``: any number.

    ``while-loop-constant-sinking{broadcasts=true}``::

          body {
            p = (s32[], f32[4], f32[4]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            w = f32[4] get-tuple-element(p), index=1
            x = f32[4] get-tuple-element(p), index=2
        -   y = f32[4] multiply(x, w)
        +   five.1 = f32[] constant(5)
        +   fives.1 = f32[4] broadcast(five.1), dimensions={}
        +   y = f32[4] multiply(x, fives.1)
            ROOT o = (s32[], f32[4], f32[4]) tuple(n, w, y)
          }
          cond {
            q = (s32[], f32[4], f32[4]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            five = f32[] constant(5)
            fives = f32[4] broadcast(five), dimensions={}
            start = f32[4] parameter(0)
            init = (s32[], f32[4], f32[4]) tuple(zero, fives, start)
            loop = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=2
          }

    ``while-loop-constant-sinking{only-scalars=true}`` and ``while-loop-constant-sinking{max-bytes=4}``::

          body {
            p = (s32[], f32[], f32[4], f32[4]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            v = f32[] get-tuple-element(p), index=1
            w = f32[4] get-tuple-element(p), index=2
            x = f32[4] get-tuple-element(p), index=3
        -   b = f32[4] broadcast(v), dimensions={}
        +   five.1 = f32[] constant(5)
        +   b = f32[4] broadcast(five.1), dimensions={}
            y = f32[4] multiply(x, b)
            a = f32[4] add(y, w)
            ROOT o = (s32[], f32[], f32[4], f32[4]) tuple(n, v, w, a)
          }
          cond {
            q = (s32[], f32[], f32[4], f32[4]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            five = f32[] constant(5)
            four = f32[4] constant({1, 2, 3, 4})
            start = f32[4] parameter(0)
            init = (s32[], f32[], f32[4], f32[4]) tuple(zero, five, four, start)
            loop = (s32[], f32[], f32[4], f32[4]) while(init), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=3
          }
    """

    name: ClassVar[str] = "while-loop-constant-sinking"

    broadcasts: bool = False
    only_scalars: bool = False
    max_bytes: int | None = None

    def run(self, module: Module) -> PassResult:
        callers = Callers(module)
        remarks: list[Remark] = []
        pending, visited = [module.entry], set[Computation]()
        while pending:
            computation = pending.pop()
            if computation in visited:
                continue
            visited.add(computation)
            for instruction in computation.instructions:
                if instruction.opcode is Opcode.WHILE:
                    remarks += self._sink(callers, instruction)
                pending += instruction.called_computations
        return PassResult(bool(remarks), tuple(remarks))

    def _sink(self, callers: Callers, loop: Instruction) -> list[Remark]:
        first = loop.operand(0)
        if first.opcode is not Opcode.TUPLE:
            return []
        remarks: list[Remark] = []
        for number in invariant_elements(loop):
            value = first.operand(number)
            if self._may_sink(value) and _uses(loop, number):
                callers.make_own(loop)
                for computation, replaced, spared in _uses(loop, number):
                    _replace(replaced, _made_in(computation, value), spared, number)
                remarks.append(Remark(value.name, f"made inside {loop.name}"))
        return remarks

    def _may_sink(self, value: Instruction) -> bool:  # (1), (3)
        source = value.operand(0) if value.opcode is Opcode.BROADCAST and self.broadcasts else value
        if source.opcode is not Opcode.CONSTANT or not isinstance(value.shape, ArrayShape):
            return False
        if self.only_scalars and value.shape.rank:
            return False
        return self.max_bytes is None or byte_size(value.shape) <= self.max_bytes


def _uses(loop: Instruction, number: int) -> list[tuple[Computation, Instruction, Instruction | None]]:
    """What the constant stands for: computation, element, and the user that goes on taking the element."""
    root = loop.body.root
    element = invariant_elements(loop)[number]
    found: list[tuple[Computation, Instruction, Instruction | None]] = []
    if element.user_count > 1:
        found.append((loop.body, element, root))
    condition = loop.condition
    inside = [e for e in elements_of(condition.parameters[0]) if e.tuple_index == number and e.user_count]
    return found + [(condition, e, None) for e in inside]


def _made_in(computation: Computation, value: Instruction) -> Instruction:
    operands = [_made_in(computation, operand) for operand in value.operands]
    return computation.add_like(value, operands)


def _replace(element: Instruction, constant: Instruction, root: Instruction | None, number: int) -> None:
    """Let every use but that in slot ``number`` of ``root`` read the constant."""
    for user, slot in list(element.uses):
        if (user, slot) != (root, number):
            user.replace_operand(slot, constant)
    remove_if_unused(element)
