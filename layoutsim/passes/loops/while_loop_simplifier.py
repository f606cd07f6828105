"""Loops carry less, and loops that run never or once are none.

Source: ``xla/service/while_loop_simplifier.h`` (July 2026; XLA calls the pass ``simplify-while-loops``). Each loop whose body
and condition nobody else calls is tried with these parts in this order, up to the first that changes it:

1. ``repeated``: elements that start with the same value and that the body hands on as they are become one; so do those that the
   body changes by the same ``dynamic-update-slice`` of the same value at the same place.
2. ``flatten``: a state of tuples in tuples becomes one of all their leaves.
3. ``dead``: an element goes that nothing uses behind the loop, and in it no other element, the condition or a side effect; so
   does a group of elements that only use each other and are unused or unchanged behind the loop.
4. ``constant``: an element goes that starts as a constant and that the body sets to the same constant.
5. ``compare`` (off, as in XLA): a comparison of the counter with a constant that it has passed, or never reaches.

A loop that sends or receives is left alone by what follows:

6. ``scalars``: an unchanged scalar that starts as a constant is that constant in the body and the condition.
7. ``trips``: a loop that never runs is what it starts with; one that runs once is its body, unless that has side effects.
8. ``counters``: elements that grow by a constant each time are computed from one counter of iterations.

``repeat`` runs all that, tuples simplified and dead code removed in between, until nothing changes. Part (3):
``while-loop-simplifier``::

      body {
    -   p = (s32[], f32[4], f32[8]) parameter(0)
    +   p = (s32[], f32[4]) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        k = s32[] constant(1)
        n = s32[] add(i, k)
        x = f32[4] get-tuple-element(p), index=1
    -   d = f32[8] get-tuple-element(p), index=2
        y = f32[4] negate(x)
    -   m = f32[8] negate(d)
    -   ROOT o = (s32[], f32[4], f32[8]) tuple(n, y, m)
    +   ROOT tuple = (s32[], f32[4]) tuple(n, y)
      }
      cond {
    -   q = (s32[], f32[4], f32[8]) parameter(0)
    +   q = (s32[], f32[4]) parameter(0)
        j = s32[] get-tuple-element(q), index=0
        e = s32[] constant(4)
        ROOT l = pred[] compare(j, e), direction=LT
      }
      ENTRY main {
        b = f32[8] parameter(1)
        zero = s32[] constant(0)
        a = f32[4] parameter(0)
    -   init = (s32[], f32[4], f32[8]) tuple(zero, a, b)
    -   loop = (s32[], f32[4], f32[8]) while(init), condition=cond, body=body
    +   tuple.1 = (s32[], f32[4]) tuple(zero, a)
    +   loop = (s32[], f32[4]) while(tuple.1), condition=cond, body=body
        ROOT out = f32[4] get-tuple-element(loop), index=1
      }

Not modelled: XLA tells a loop that runs never or once also by evaluating its condition on constants of any kind, while we ask
:mod:`~layoutsim.analysis.trip_count`, which believes the loop's backend config, too. Bodies keep the order in which they store
their instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import ClassVar

from attrs import frozen

from layoutsim.ir import Instruction, Module, Opcode
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.loops import simplifier_elements as elements
from layoutsim.passes.loops import simplifier_trips as trips
from layoutsim.passes.loops.carried import Callers, loops
from layoutsim.passes.loops.simplifier_counters import merge_counters
from layoutsim.passes.loops.simplifier_flatten import flatten_state
from layoutsim.passes.tuple_simplifier import TupleSimplifier


class Part(Enum):
    """One kind of simplification; the module's docstring numbers them."""

    REPEATED = "repeated"
    FLATTEN = "flatten"
    DEAD = "dead"
    CONSTANT = "constant"
    COMPARE = "compare"
    SCALARS = "scalars"
    TRIPS = "trips"
    COUNTERS = "counters"


_TRANSFERS = frozenset({Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE})
_XLA = tuple(part for part in Part if part is not Part.COMPARE)


@frozen(kw_only=True)
class WhileLoopSimplifier(Pass):
    """Simplify what loops carry, and loops away.

    Attributes:
        parts: what is tried.
        repeat: until nothing changes; otherwise once, as one run of XLA's pass does.

    ``while-loop-simplifier{parts=scalars}``::

          body {
            p = (s32[], f32[4], f32[8], f32[]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            x = f32[4] get-tuple-element(p), index=1
        +   two.1 = f32[] constant(2)
        +   b = f32[4] broadcast(two.1), dimensions={}
        +   y = f32[4] add(x, b)
            d = f32[8] get-tuple-element(p), index=2
        -   c = f32[] get-tuple-element(p), index=3
        -   b = f32[4] broadcast(c), dimensions={}
        -   y = f32[4] add(x, b)
            m = f32[8] negate(d)
        -   ROOT o = (s32[], f32[4], f32[8], f32[]) tuple(n, y, m, c)
        +   ROOT o = (s32[], f32[4], f32[8], f32[]) tuple(n, y, m, two.1)
          }
          cond {
            q = (s32[], f32[4], f32[8], f32[]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            h = f32[8] parameter(1)
            two = f32[] constant(2)
            a = f32[4] parameter(0)
            init = (s32[], f32[4], f32[8], f32[]) tuple(zero, a, h, two)
            loop = (s32[], f32[4], f32[8], f32[]) while(init), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=1
          }

    ``while-loop-simplifier{repeat=true}``::

          body {
        -   p = (s32[], f32[4], f32[8], f32[]) parameter(0)
        +   p = (s32[], f32[4]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            x = f32[4] get-tuple-element(p), index=1
        -   d = f32[8] get-tuple-element(p), index=2
        -   c = f32[] get-tuple-element(p), index=3
        -   b = f32[4] broadcast(c), dimensions={}
        +   two.1 = f32[] constant(2)
        +   b = f32[4] broadcast(two.1), dimensions={}
            y = f32[4] add(x, b)
        -   m = f32[8] negate(d)
        -   ROOT o = (s32[], f32[4], f32[8], f32[]) tuple(n, y, m, c)
        +   ROOT tuple.2 = (s32[], f32[4]) tuple(n, y)
          }
          cond {
        -   q = (s32[], f32[4], f32[8], f32[]) parameter(0)
        +   q = (s32[], f32[4]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
        +   h = f32[8] parameter(1)
            zero = s32[] constant(0)
        -   h = f32[8] parameter(1)
        -   two = f32[] constant(2)
            a = f32[4] parameter(0)
        -   init = (s32[], f32[4], f32[8], f32[]) tuple(zero, a, h, two)
        -   loop = (s32[], f32[4], f32[8], f32[]) while(init), condition=cond, body=body
        +   tuple.3 = (s32[], f32[4]) tuple(zero, a)
        +   loop = (s32[], f32[4]) while(tuple.3), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=1
          }
    """

    name: ClassVar[str] = "while-loop-simplifier"

    parts: tuple[Part, ...] = _XLA
    repeat: bool = False

    def run(self, module: Module) -> PassResult:
        remarks: list[Remark] = []
        while found := self._sweep(module):  # comes to an end: each part leaves fewer elements, tuples, loops or uses
            remarks += found
            DeadCodeElimination().run(module)
            if not self.repeat:
                break
            TupleSimplifier().run(module)
        return PassResult(bool(remarks), tuple(remarks))

    def _sweep(self, module: Module) -> list[Remark]:
        remarks: list[Remark] = []
        callers = Callers(module)
        for loop in list(loops(module.computations)):
            name = loop.name
            if loop.parent is not None and callers.are_own(loop):
                remarks += [Remark(name, text) for text in self._simplify(loop)]
        return remarks

    def _simplify(self, loop: Instruction) -> list[str]:
        """What was done to one loop."""
        done = self._first_of(loop, _ON_ANY_LOOP)
        if done or _transfers(loop):
            return done
        texts: list[str] = []
        if Part.SCALARS in self.parts and (text := elements.propagate_scalars(loop)):
            texts.append(text)
        return texts + self._first_of(loop, _ON_QUIET_LOOPS)

    def _first_of(self, loop: Instruction, kinds: dict[Part, Callable[[Instruction], str]]) -> list[str]:
        for part, change in kinds.items():
            if part in self.parts and (text := change(loop)):
                return [text]
        return []


_ON_ANY_LOOP: dict[Part, Callable[[Instruction], str]] = {
    Part.REPEATED: elements.merge_repeated,
    Part.FLATTEN: flatten_state,
    Part.DEAD: elements.remove_dead,
    Part.CONSTANT: elements.remove_constants,
    Part.COMPARE: trips.remove_comparison,
}
_ON_QUIET_LOOPS: dict[Part, Callable[[Instruction], str]] = {
    Part.TRIPS: trips.remove_loop,
    Part.COUNTERS: merge_counters,
}
"""Each changes a loop in place and says what it did; an empty text means nothing."""


def _transfers(loop: Instruction) -> bool:
    return any(i.opcode in _TRANSFERS for callee in loop.called_computations for i in callee.instructions)
