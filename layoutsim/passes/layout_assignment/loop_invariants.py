"""A variant of XLA's rule for loops: what a loop only reads keeps the layout in which its caller has it.

XLA lays out a loop's body first, in isolation, and the caller must then pass what the body chose. For a stack that the body
only slices, the body's choice is often no choice at all: the place of the layer dimension comes from a default, or from a
slice in which that dimension has size 1. The caller pays for it with a copy of the whole stack. Below, lines with ``-`` are
XLA's: the body has the stack in {2,1,0}, the caller in {2,0,1}; the slice is the same bytes either way.
``layout-assignment{backend=gpu loop-invariants=caller}``::

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
    +   s = f32[1,8,16]{2,0,1} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,8,16}
        r = f32[8,16]{1,0} reshape(s)
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
        init = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) tuple(zero, stack, sum)
    -   get-tuple-element = s32[] get-tuple-element(init), index=0
    -   get-tuple-element.1 = f32[4,8,16]{2,0,1} get-tuple-element(init), index=1
    -   copy = f32[4,8,16]{2,1,0} copy(get-tuple-element.1)
    -   get-tuple-element.2 = f32[8,16]{1,0} get-tuple-element(init), index=2
    -   tuple = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) tuple(get-tuple-element, copy, get-tuple-element.2)
    -   loop = (s32[], f32[4,8,16]{2,1,0}, f32[8,16]{1,0}) while(tuple), condition=cond, body=body
    +   loop = (s32[], f32[4,8,16]{2,0,1}, f32[8,16]{1,0}) while(init), condition=cond, body=body
        ROOT out = f32[8,16]{1,0} get-tuple-element(loop), index=2
      }

The rule:

1. A leaf of a loop's state takes part if the body passes it on unchanged and uses it only through slices, transposes that are
   used so, optimization barriers, get-tuple-elements, and inner loops in which it takes part.
2. Where the body's layout of it comes from a default, every dimension is *free*; where it follows from a demand, those
   dimensions are free that had size 1 somewhere on the way from the demand to the leaf. Moving a free dimension changes no
   bytes of what made the demand.
3. Round 0 is XLA's: bodies demand, and the reasons show which dimensions are free.
4. Then, while negotiation is open, a loop does not tell its caller the layout of such a leaf. After each round the caller's
   layout is looked at; if it differs from the body's in free dimensions only, the body takes it, and its slices as a hint of
   where their size-1 dimensions go. Inner loops follow a round later, so rounds go on until nothing changes.
5. A last round demands of every caller what its loop has, as always.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field

from layoutsim.errors import LayoutError
from layoutsim.ir import ArrayShape, Instruction, Layout, Opcode, Shape, ShapeIndex, replace_subshape, subshape
from layoutsim.passes.layout_assignment import reasons
from layoutsim.passes.layout_assignment.computation_layouts import infer_layout
from layoutsim.passes.layout_assignment.layout_math import keep_dimensions, only_ones_change
from layoutsim.passes.layout_assignment.reasons import Reason, Rule
from layoutsim.passes.layout_assignment.rules import array_of, as_array, dimensions_of, with_layouts
from layoutsim.passes.layout_assignment.state import State

LOOP_INIT = Rule("loop-init", "variant", "the loop only reads it, and takes it as its caller has it", is_demand=False)

_SLICES = frozenset({Opcode.DYNAMIC_SLICE, Opcode.SLICE})


@define(eq=False)
class Leaf:
    """Part ``number`` of a loop's state that takes part.

    Attributes:
        readers: instructions of the body that slice it.
        free: dimensions whose place in the body's layout means nothing; known after round 0.
    """

    loop: Instruction
    number: int
    readers: tuple[Instruction, ...]
    free: frozenset[int] = frozenset()

    @property
    def index(self) -> ShapeIndex:
        return (self.number,)

    @property
    def shape(self) -> ArrayShape:
        return array_of(subshape(self.loop.shape, self.index))


class _Phase(Enum):
    BEFORE = "round 0"
    OPEN = "until nothing changes"
    OVER = "last round"


@define(eq=False)
class Negotiation:
    """The leaves that take part, and how far rules (3) to (5) have come."""

    leaves: list[Leaf]
    _phase: _Phase = field(default=_Phase.BEFORE, init=False)
    _by_loop: dict[Instruction, list[Leaf]] = field(factory=dict[Instruction, list[Leaf]], init=False)

    @staticmethod
    def start(state: State) -> Negotiation:
        """Find the leaves that take part; callees come first, so inner loops are known when outer ones are looked at."""
        negotiation = Negotiation([])
        for computation in state.computations:
            for loop in state.plan(computation).callers:
                if loop.opcode is Opcode.WHILE:
                    negotiation._add(loop)
        return negotiation

    def _add(self, loop: Instruction) -> None:
        root, (parameter,) = loop.body.root, loop.body.parameters
        if root.opcode is not Opcode.TUPLE:
            return
        for number, passed in enumerate(root.operands):
            array = as_array(passed.shape)
            if array is None or array.rank < 2 or not _is_element(passed, parameter, number):
                continue
            readers = self._readers([u for u in parameter.users if _is_element(u, parameter, number)], (root, number))
            if readers is not None:
                leaf = Leaf(loop, number, readers)
                self.leaves.append(leaf)
                self._by_loop.setdefault(loop, []).append(leaf)

    def _readers(self, values: list[Instruction], passing_on: tuple[Instruction, int] | None) -> tuple[Instruction, ...] | None:
        """The slices that read ``values``; ``None`` where something else does (rule 1).

        Args:
            passing_on: the use that hands the leaf on to the next iteration; in any other slot of the root it is a new value.
        """
        found: list[Instruction] = []
        for user, slot in (use for value in values for use in value.uses):
            if (user, slot) == passing_on or self._feeds_inner_loops(user, slot):
                continue
            if user.opcode in _SLICES and slot == 0:
                found.append(user)
                continue
            behind = [user] if user.opcode is Opcode.TRANSPOSE else _behind_barrier(user, slot)
            inner = None if behind is None else self._readers(behind, None)
            if inner is None:
                return None
            # What reads a transposed value cannot take the hint as it is; its own demands come through the transpose.
            found += () if user.opcode is Opcode.TRANSPOSE else inner
        return tuple(found)

    def _feeds_inner_loops(self, user: Instruction, slot: int) -> bool:
        if user.opcode is not Opcode.TUPLE or user.is_root or not user.users:
            return False
        return all(
            loop.opcode is Opcode.WHILE and any(leaf.number == slot for leaf in self._by_loop.get(loop, ()))
            for loop in user.users
        )

    def asked_of_caller(self, loop: Instruction, shape: Shape) -> Shape:
        """``shape`` without the layouts that are still open."""
        if self._phase is _Phase.OPEN:
            for leaf in self._by_loop.get(loop, ()):
                part = array_of(subshape(shape, leaf.index))
                shape = replace_subshape(shape, leaf.index, part.with_layout(None))
        return shape

    def after_round(self, state: State) -> bool:
        """Go on with the negotiation; whether another round is needed."""
        if not self.leaves or self._phase is _Phase.OVER:
            return False
        if self._phase is _Phase.BEFORE:
            for leaf in self.leaves:
                leaf.free = _free_dimensions(state.constraint(leaf.loop.body).result_reasons.get(leaf.index), leaf.shape)
            self._phase = _Phase.OPEN
        elif not any([self._settle(state, leaf) for leaf in self.leaves]):  # every one, so no lazy any()
            self._phase = _Phase.OVER
        return True

    def _settle(self, state: State, leaf: Leaf) -> bool:
        body = state.constraint(leaf.loop.body)
        standing = array_of(subshape(body.result, leaf.index)).layout
        if standing is None:
            return False
        try:
            offered, cause = infer_layout(state, leaf.loop.operand(0), leaf.index)
        except LayoutError:
            return False
        if not _differ_in(leaf, standing, offered):
            return False
        _take(state, leaf, offered, cause)
        return True


def _is_element(instruction: Instruction, parameter: Instruction, number: int) -> bool:
    return (
        instruction.opcode is Opcode.GET_TUPLE_ELEMENT
        and instruction.operand(0) is parameter
        and instruction.tuple_index == number
    )


def _behind_barrier(user: Instruction, slot: int) -> list[Instruction] | None:
    """The values that an optimization barrier passes on for this slot of its tuple."""
    if user.opcode is not Opcode.TUPLE or user.is_root or any(b.opcode is not Opcode.OPT_BARRIER for b in user.users):
        return None
    passed = [value for barrier in user.users for value in barrier.users]
    if any(value.opcode is not Opcode.GET_TUPLE_ELEMENT for value in passed):
        return None
    return [value for value in passed if value.tuple_index == slot]


def _differ_in(leaf: Leaf, standing: Layout, offered: Layout) -> bool:
    """Whether the two orders differ, and only in the place of free dimensions."""
    kept = tuple(d for d in range(standing.rank) if d not in leaf.free)
    same_rest = keep_dimensions(standing.minor_to_major, kept) == keep_dimensions(offered.minor_to_major, kept)
    return same_rest and standing.minor_to_major != offered.minor_to_major


def _take(state: State, leaf: Leaf, offered: Layout, cause: Reason) -> None:
    """Make the loop's body and condition take the leaf as offered."""
    reason = Reason(LOOP_INIT, leaf.loop, 0, leaf.index, offered, cause, state.round)
    body, condition = state.constraint(leaf.loop.body), state.constraint(leaf.loop.condition)
    found = {leaf.index: offered}
    body.result = with_layouts(body.result, found)
    body.result_reasons[leaf.index] = reason
    for constraint in (body, condition):
        constraint.parameters[0] = with_layouts(constraint.parameters[0], found)
        constraint.parameter_reasons[0][leaf.index] = reason
    for reader in leaf.readers:
        _hint(state, reader, offered)


def _hint(state: State, reader: Instruction, wanted: Layout) -> None:
    """Let a slice, and what follows it element by element, come with this layout.

    Layouts that instructions come with are hints: a reshape behind them places size-1 dimensions by them.
    """
    dimensions = array_of(reader.shape).dimensions
    waiting, seen = [reader], {reader}
    while waiting:
        instruction = waiting.pop()
        instruction.shape = array_of(instruction.shape).with_order(wanted.minor_to_major)
        for user in instruction.users:
            array = as_array(user.shape)
            if user not in seen and array is not None and array.dimensions == dimensions and state.node(user).keeps:
                seen.add(user)
                waiting.append(user)


def _free_dimensions(reason: Reason | None, shape: ArrayShape) -> frozenset[int]:
    """Rule (2) for a leaf whose layout has this reason."""
    if reason is None or reason.origin.rule in (reasons.DEFAULT, reasons.GIVEN):
        return frozenset(range(shape.rank))
    free: frozenset[int] = frozenset()
    before: ArrayShape | None = None
    for link in reversed(reason.chain()):
        here = _value_shape(link)
        if here is None:
            return frozenset()
        if before is not None:
            free = _carried(free, before, here, link)
        free |= frozenset(d for d, size in enumerate(here.dimensions) if size == 1)
        before = here
    return free if before is not None and before.dimensions == shape.dimensions else frozenset()


def _value_shape(link: Reason) -> ArrayShape | None:
    whole = link.at.shape if link.slot is None else link.at.operand(link.slot).shape
    return as_array(subshape(whole, link.index))


def _carried(free: frozenset[int], before: ArrayShape, here: ArrayShape, link: Reason) -> frozenset[int]:
    """The free dimensions of the next value on the way, without those of size 1 there."""
    if link.at.opcode is Opcode.TRANSPOSE and link.rule in (reasons.BITCAST_OPERAND, reasons.BITCAST_RESULT):
        permutation = dimensions_of(link.at)
        if link.rule is reasons.BITCAST_OPERAND:
            return frozenset(permutation[d] for d in free)
        return frozenset(d for d, source in enumerate(permutation) if source in free)
    if before.rank == here.rank and link.at.opcode is not Opcode.RESHAPE:
        return free
    if link.at.opcode is Opcode.RESHAPE and only_ones_change(before.dimensions, here.dimensions):
        real_before = [d for d, size in enumerate(before.dimensions) if size != 1]
        real_here = [d for d, size in enumerate(here.dimensions) if size != 1]
        return frozenset(b for a, b in zip(real_before, real_here, strict=True) if a in free)
    return frozenset()
