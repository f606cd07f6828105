"""What a loop's body computes anew from the same values each time moves in front of the loop.

Source: ``xla/service/while_loop_invariant_code_motion.h`` (July 2026). Loops are visited inside out, so that what leaves an
inner loop may leave the outer one, too. In each body, operands before users:

1. *Invariant* is a constant, an array that the body hands on as it is, and everything computed from invariant values only.
2. Nothing moves that has a side effect, control edges, or is an ``after-all``.
3. Some things are not worth moving alone, only together with what uses them: bitcasts, broadcasts, iotas, reverses, slices,
   transposes, tuples, sharding annotations; constants unless ``constants``, reshapes unless ``reshapes``. With ``other=false``
   nothing but constants and reshapes moves.
4. ``size-inflation-ratio``: what makes more bytes than so many times those of its operands stays, and so does (ours)
   what makes more than ``max-bytes``. Constants move whatever their size.
5. A loop stays as it is that runs at most once, whose state is no tuple, that says ``_xla_disable_loop_instr_hoisting``, or
   whose body holds domains, conversions between full and sharded shapes, or moves between host and device.

Then dead code goes and tuples are simplified. The result lives as long as the loop: this is the trade of computing against
memory. Behind layout assignment the pass takes copies of invariant arrays out of loops.
``while-loop-invariant-code-motion``::

      body {
    -   p = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}) parameter(0)
    +   p = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}, f32[4,8]{0,1}) parameter(0)
        i = s32[] get-tuple-element(p), index=0
        k = s32[] constant(1)
        n = s32[] add(i, k)
        w = f32[4,8]{1,0} get-tuple-element(p), index=1
        a = f32[4,8]{0,1} get-tuple-element(p), index=2
    -   c = f32[4,8]{0,1} copy(w)
    -   t = f32[4,8]{0,1} add(a, c)
    -   ROOT o = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}) tuple(n, w, t)
    +   get-tuple-element = f32[4,8]{0,1} get-tuple-element(p), index=3
    +   t = f32[4,8]{0,1} add(a, get-tuple-element)
    +   ROOT tuple.1 = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}, f32[4,8]{0,1}) tuple(n, w, t, get-tuple-element)
      }
      cond {
    -   q = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}) parameter(0)
    +   q = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}, f32[4,8]{0,1}) parameter(0)
        j = s32[] get-tuple-element(q), index=0
        e = s32[] constant(4)
        ROOT l = pred[] compare(j, e), direction=LT
      }
      ENTRY main {
        zero = s32[] constant(0)
        v = f32[4,8]{1,0} parameter(0)
        sum = f32[4,8]{0,1} parameter(1)
    -   init = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}) tuple(zero, v, sum)
    -   loop = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}) while(init), condition=cond, body=body
    +   c.1 = f32[4,8]{0,1} copy(v)
    +   tuple = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}, f32[4,8]{0,1}) tuple(zero, v, sum, c.1)
    +   loop = (s32[], f32[4,8]{1,0}, f32[4,8]{0,1}, f32[4,8]{0,1}) while(tuple), condition=cond, body=body
        ROOT out = f32[4,8]{0,1} get-tuple-element(loop), index=2
      }

Not modelled: XLA's limit on the time the pass may take, which is off by default; of what it knows of loops that run at most
once, only those that :mod:`~layoutsim.analysis.trip_count` can tell.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.analysis.side_effects import has_side_effect
from layoutsim.analysis.trip_count import trip_count
from layoutsim.ir import ArrayShape, Instruction, Module, Opcode, TupleShape, total_bytes
from layoutsim.ir.traverse import computations_post_order, post_order
from layoutsim.passes.base import Remark
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.loops.carried import Callers, invariant_elements, loops, widen
from layoutsim.passes.loops.moved_copies import MovedCopies, MovesCopies
from layoutsim.passes.replace import has_control_edges, replace_instruction
from layoutsim.passes.tuple_simplifier import TupleSimplifier

_NOT_ALONE = frozenset(
    {
        Opcode.BITCAST,
        Opcode.BROADCAST,
        Opcode.IOTA,
        Opcode.REVERSE,
        Opcode.SLICE,
        Opcode.TRANSPOSE,
        Opcode.TUPLE,
    }
)
_KEEPS_LOOPS = frozenset({"SPMDFullToShardShape", "SPMDShardShapeToFull", "MoveToDevice", "MoveToHost"})
_DISABLED = "_xla_disable_loop_instr_hoisting"


@frozen(kw_only=True)
class WhileLoopInvariantCodeMotion(MovesCopies):
    """Move what a loop computes anew each time from the same values in front of it.

    Attributes:
        constants: constants move alone, too.
        reshapes: reshapes move alone, too.
        other: anything moves that is neither a constant nor a reshape.
        size_inflation_ratio: bytes made for each byte read, at most; ``None``: any number.
        max_bytes: of a result that moves; ``None``: any number.

    ``while-loop-invariant-code-motion{reshapes=true}``::

          body {
        -   p = (s32[], f32[4], f32[4]) parameter(0)
        +   p = (s32[], f32[4], f32[4], f32[2,2]{1,0}) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            w = f32[4] get-tuple-element(p), index=1
            x = f32[4] get-tuple-element(p), index=2
        -   r = f32[2,2]{1,0} reshape(w)
            d = f32[2,2]{1,0} reshape(x)
        -   m = f32[2,2]{1,0} multiply(d, r)
        +   get-tuple-element = f32[2,2]{1,0} get-tuple-element(p), index=3
        +   m = f32[2,2]{1,0} multiply(d, get-tuple-element)
            y = f32[4] reshape(m)
        -   ROOT o = (s32[], f32[4], f32[4]) tuple(n, w, y)
        +   ROOT tuple.1 = (s32[], f32[4], f32[4], f32[2,2]{1,0}) tuple(n, w, y, get-tuple-element)
          }
          cond {
        -   q = (s32[], f32[4], f32[4]) parameter(0)
        +   q = (s32[], f32[4], f32[4], f32[2,2]{1,0}) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            v = f32[4] parameter(0)
            start = f32[4] parameter(1)
        -   init = (s32[], f32[4], f32[4]) tuple(zero, v, start)
        -   loop = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
        +   r.1 = f32[2,2]{1,0} reshape(v)
        +   tuple = (s32[], f32[4], f32[4], f32[2,2]{1,0}) tuple(zero, v, start, r.1)
        +   loop = (s32[], f32[4], f32[4], f32[2,2]{1,0}) while(tuple), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=2
          }

    ``while-loop-invariant-code-motion{constants=true other=false}``::

          body {
        -   p = (s32[], f32[4], f32[4]) parameter(0)
        +   p = (s32[], f32[4], f32[4], s32[], f32[4]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
        -   k = s32[] constant(1)
        -   n = s32[] add(i, k)
        +   get-tuple-element = s32[] get-tuple-element(p), index=3
        +   n = s32[] add(i, get-tuple-element)
            w = f32[4] get-tuple-element(p), index=1
            x = f32[4] get-tuple-element(p), index=2
        -   c = f32[4] constant({1, 2, 3, 4})
            g = f32[4] negate(w)
        -   m = f32[4] add(g, c)
        +   get-tuple-element.1 = f32[4] get-tuple-element(p), index=4
        +   m = f32[4] add(g, get-tuple-element.1)
            y = f32[4] add(x, m)
        -   ROOT o = (s32[], f32[4], f32[4]) tuple(n, w, y)
        +   ROOT tuple.1 = (s32[], f32[4], f32[4], s32[], f32[4]) tuple(n, w, y, get-tuple-element, get-tuple-element.1)
          }
          cond {
        -   q = (s32[], f32[4], f32[4]) parameter(0)
        +   q = (s32[], f32[4], f32[4], s32[], f32[4]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            v = f32[4] parameter(0)
            start = f32[4] parameter(1)
        -   init = (s32[], f32[4], f32[4]) tuple(zero, v, start)
        -   loop = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
        +   k.1 = s32[] constant(1)
        +   c.1 = f32[4] constant({1, 2, 3, 4})
        +   tuple = (s32[], f32[4], f32[4], s32[], f32[4]) tuple(zero, v, start, k.1, c.1)
        +   loop = (s32[], f32[4], f32[4], s32[], f32[4]) while(tuple), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=2
          }

    ``while-loop-invariant-code-motion{size-inflation-ratio=2}``::

          body {
        -   p = (s32[], f32[4], f32[4]) parameter(0)
        +   p = (s32[], f32[4], f32[4], f32[4]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            w = f32[4] get-tuple-element(p), index=1
            x = f32[4] get-tuple-element(p), index=2
        -   g = f32[4] negate(w)
        +   get-tuple-element = f32[4] get-tuple-element(p), index=3
            z = f32[] constant(0)
            d = f32[64] pad(w, z), padding=0_60
            h = f32[4] slice(d), slice={[2:6]}
        -   m = f32[4] add(g, h)
        +   m = f32[4] add(get-tuple-element, h)
            y = f32[4] add(x, m)
        -   ROOT o = (s32[], f32[4], f32[4]) tuple(n, w, y)
        +   ROOT tuple.1 = (s32[], f32[4], f32[4], f32[4]) tuple(n, w, y, get-tuple-element)
          }
          cond {
        -   q = (s32[], f32[4], f32[4]) parameter(0)
        +   q = (s32[], f32[4], f32[4], f32[4]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            v = f32[4] parameter(0)
            start = f32[4] parameter(1)
        -   init = (s32[], f32[4], f32[4]) tuple(zero, v, start)
        -   loop = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
        +   g.1 = f32[4] negate(v)
        +   tuple = (s32[], f32[4], f32[4], f32[4]) tuple(zero, v, start, g.1)
        +   loop = (s32[], f32[4], f32[4], f32[4]) while(tuple), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=2
          }

    ``while-loop-invariant-code-motion{max-bytes=8}``::

          body {
        -   p = (s32[], f32[4], f32[4]) parameter(0)
        +   p = (s32[], f32[4], f32[4], f32[2]) parameter(0)
            i = s32[] get-tuple-element(p), index=0
            k = s32[] constant(1)
            n = s32[] add(i, k)
            w = f32[4] get-tuple-element(p), index=1
            x = f32[4] get-tuple-element(p), index=2
        +   get-tuple-element = f32[2] get-tuple-element(p), index=3
        +   m = f32[4] concatenate(get-tuple-element, get-tuple-element), dimensions={0}
            g = f32[4] negate(w)
        -   h = f32[2] slice(w), slice={[0:2]}
        -   u = f32[2] exponential(h)
        -   m = f32[4] concatenate(u, u), dimensions={0}
            t = f32[4] multiply(m, g)
            y = f32[4] add(x, t)
        -   ROOT o = (s32[], f32[4], f32[4]) tuple(n, w, y)
        +   ROOT tuple.1 = (s32[], f32[4], f32[4], f32[2]) tuple(n, w, y, get-tuple-element)
          }
          cond {
        -   q = (s32[], f32[4], f32[4]) parameter(0)
        +   q = (s32[], f32[4], f32[4], f32[2]) parameter(0)
            j = s32[] get-tuple-element(q), index=0
            e = s32[] constant(4)
            ROOT l = pred[] compare(j, e), direction=LT
          }
          ENTRY main {
            zero = s32[] constant(0)
            v = f32[4] parameter(0)
            start = f32[4] parameter(1)
        -   init = (s32[], f32[4], f32[4]) tuple(zero, v, start)
        -   loop = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
        +   h.1 = f32[2] slice(v), slice={[0:2]}
        +   u.1 = f32[2] exponential(h.1)
        +   tuple = (s32[], f32[4], f32[4], f32[2]) tuple(zero, v, start, u.1)
        +   loop = (s32[], f32[4], f32[4], f32[2]) while(tuple), condition=cond, body=body
            ROOT out = f32[4] get-tuple-element(loop), index=2
          }
    """

    name: ClassVar[str] = "while-loop-invariant-code-motion"

    constants: bool = False
    reshapes: bool = False
    other: bool = True
    size_inflation_ratio: float | None = None
    max_bytes: int | None = None

    def run(self, module: Module) -> MovedCopies:
        callers = Callers(module)
        remarks: list[Remark] = []
        moved: dict[Instruction, tuple[Instruction, ...]] = {}
        for loop in list(loops(computations_post_order(module))):
            hoisted = self._hoisted(loop)
            if hoisted:
                remarks += [Remark(old.name, f"moved in front of {loop.name}") for old in hoisted]
                moved |= _apply(callers, loop, hoisted)
        if not remarks:
            return MovedCopies(changed=False)
        DeadCodeElimination().run(module)
        TupleSimplifier().run(module)
        return MovedCopies(True, tuple(remarks), _followed(moved))

    def _hoisted(self, loop: Instruction) -> list[Instruction]:
        """What moves for its own sake, operands before users."""
        if (
            not isinstance(loop.shape, TupleShape) or _runs_once(loop) or _DISABLED in loop.attributes.frontend_attributes
        ):  # (5)
            return []
        arrays = [e for e in invariant_elements(loop).values() if isinstance(e.shape, ArrayShape)]
        if not arrays and not self.constants:
            return []
        if any(_keeps_loop(instruction) for instruction in loop.body.instructions):  # (5)
            return []
        invariant = dict.fromkeys(arrays)
        found: list[Instruction] = []
        for instruction in post_order(loop.body):
            if not self._may_move(instruction) or not all(o in invariant or _is_constant(o) for o in instruction.operands):
                continue
            invariant[instruction] = None
            if not self._is_not_alone(instruction):
                found.append(instruction)
        return found

    def _may_move(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if (
            opcode in (Opcode.PARAMETER, Opcode.AFTER_ALL) or has_control_edges(instruction) or has_side_effect(instruction)
        ):  # (2)
            return False
        if not self.other and opcode not in (Opcode.CONSTANT, Opcode.RESHAPE):  # (3)
            return False
        return opcode is Opcode.CONSTANT or self._is_small_enough(instruction)

    def _is_small_enough(self, instruction: Instruction) -> bool:  # (4)
        made = total_bytes(instruction.shape)
        if self.max_bytes is not None and made > self.max_bytes:
            return False
        if self.size_inflation_ratio is None:
            return True
        return made <= self.size_inflation_ratio * sum(total_bytes(operand.shape) for operand in instruction.operands)

    def _is_not_alone(self, instruction: Instruction) -> bool:  # (3)
        match instruction.opcode:
            case Opcode.CONSTANT:
                return not self.constants
            case Opcode.RESHAPE:
                return not self.reshapes
            case Opcode.CUSTOM_CALL:
                return instruction.custom_call_target == "Sharding"
            case opcode:
                return opcode in _NOT_ALONE


def _is_constant(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.CONSTANT


def _runs_once(loop: Instruction) -> bool:
    trips = trip_count(loop)
    return trips is not None and trips <= 1


def _keeps_loop(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.DOMAIN or instruction.custom_call_target in _KEEPS_LOOPS


def _apply(callers: Callers, loop: Instruction, hoisted: list[Instruction]) -> dict[Instruction, tuple[Instruction, ...]]:
    """Move ``hoisted`` in front of the loop; where each copy among them went."""
    old_body = loop.body
    place = {instruction: number for number, instruction in enumerate(old_body.instructions)}
    callers.make_own(loop)
    if loop.body is not old_body:  # the clone stores what it holds in the same order
        inside = loop.body.instructions
        hoisted = [inside[place[instruction]] for instruction in hoisted]
    outside: dict[Instruction, Instruction] = {}
    values = [_outside(loop, instruction, outside) for instruction in hoisted]
    copies = {a: (b,) for a, b in zip(hoisted, values, strict=True) if a.opcode is Opcode.COPY}
    for old, new in zip(hoisted, widen(loop, values), strict=True):
        replace_instruction(old, new)
    return copies


def _outside(loop: Instruction, wanted: Instruction, outside: dict[Instruction, Instruction]) -> Instruction:
    """The value of ``wanted`` in front of the loop; what it takes for that is made once."""
    (parameter,), parent = loop.body.parameters, loop.parent
    assert parent is not None, loop
    outside.setdefault(parameter, loop.operand(0))
    stack = [wanted]
    while stack:
        current = stack[-1]
        missing = [operand for operand in current.operands if operand not in outside]
        if missing:
            stack += reversed(missing)
            continue
        stack.pop()
        if current not in outside:
            outside[current] = parent.add_like(current, [outside[operand] for operand in current.operands])
    return outside[wanted]


def _followed(moved: dict[Instruction, tuple[Instruction, ...]]) -> dict[Instruction, tuple[Instruction, ...]]:
    """The same with copies that left several loops where they are in the end."""
    out: dict[Instruction, tuple[Instruction, ...]] = {}
    for old, (new,) in moved.items():
        while new in moved:
            (new,) = moved[new]
        out[old] = (new,)
    return out
