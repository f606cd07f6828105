"""What runs before what, and whose lives may overlap (``xla/hlo/analysis/hlo_ordering.h``; memory spec, section 5).

*Order of two instructions* ``a`` and ``b``. Both are lifted to the calls of one computation that (transitively) run them.

1. Both are in one loop: what is in the condition runs before the end of what is in the body.
2. Both are in branches of one conditional: the one in the lower branch runs exclusively before; a branch runs before the end
   of the conditional itself.
3. Else the lifted instructions are compared: by their place in the schedule, where a root never runs before anything; or,
   without a schedule, by dependency.

*Order of two values.* ``a`` is *defined before* ``b`` if

4. ``a`` is an entry parameter, and ``b`` is not; or ``a`` is a loop or branch parameter's phi and ``b``, no such phi itself,
   is defined inside; or ``b`` is the phi of a ``while`` or ``conditional`` that ``a`` is defined in; or ``a``'s instruction
   runs before.

``a`` *lives before* ``b`` if it is defined before, does not appear in the module's result nor at a root around ``b``, and

5. every use of it that touches its buffer comes before ``b``'s definition: runs before it; or is the same instruction, which
   can share; or is a ``while``, ``call``, ``conditional`` or async operation and ``b`` is defined inside; or is inside a
   ``while`` of which ``b`` is the phi; or is in an exclusive branch that ``b`` cannot reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from layoutsim.analysis.alias_rules import Sharing
from layoutsim.analysis.call_graph import CallGraph, async_start_of
from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.values import Use, Value
from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import FusionPayload
from layoutsim.ir.schedule import Schedule
from layoutsim.ir.traverse import post_order

_ASYNC = frozenset({Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE})


class Constraint(Enum):
    """How ``a`` runs relative to ``b``."""

    SAME = "same"
    BEFORE_START = "before start"
    BEFORE_END = "before end"
    EXCLUSIVE_BEFORE = "exclusive, before"
    EXCLUSIVE_AFTER = "exclusive, after"
    AFTER = "after"
    UNORDERED = "unordered"

    @property
    def is_before(self) -> bool:
        return self in _BEFORE


_BEFORE = frozenset({Constraint.BEFORE_START, Constraint.BEFORE_END, Constraint.EXCLUSIVE_BEFORE})


class ComputationOrder(Protocol):
    """Order of instructions within one computation."""

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        """Whether ``a`` runs before ``b``; both are in one computation."""
        ...

    def sequence(self, computation: Computation) -> Sequence[Instruction] | None:
        """The total order of a computation, or ``None``."""
        ...


class SequentialOrder:
    """By place in a schedule. A root never runs before anything; what is not scheduled is not ordered."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._place = {i: place for order in schedule.sequences.values() for place, i in enumerate(order)}

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        place_a, place_b = self._place.get(a), self._place.get(b)
        return place_a is not None and place_b is not None and not a.is_root and place_a < place_b

    def sequence(self, computation: Computation) -> Sequence[Instruction] | None:
        return self._schedule.sequences.get(computation)


class DependencyOrder:
    """By paths over operands and control edges. Reachability is kept as one big integer of bits for each instruction."""

    def __init__(self, module: Module) -> None:
        self._bit: dict[Instruction, int] = {}
        self._before: dict[Instruction, int] = {}
        self._known: set[Computation] = set()
        self._module = module

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        assert a.parent is not None and a.parent is b.parent
        if a.parent not in self._known:
            self._add(a.parent)
        return a is not b and bool(self._before[b] & self._bit[a])

    def sequence(self, computation: Computation) -> Sequence[Instruction] | None:
        """No computation has a total order."""
        return None

    def _add(self, computation: Computation) -> None:
        self._known.add(computation)
        for place, instruction in enumerate(post_order(computation)):
            self._bit[instruction] = 1 << place
            before = 1 << place
            for source in (*instruction.operands, *instruction.control_predecessors):
                before |= self._before[source]
            self._before[instruction] = before


def order_of(module: Module) -> ComputationOrder:
    """By the module's schedule if it has one, else by dependency."""
    return DependencyOrder(module) if module.schedule is None else SequentialOrder(module.schedule)


class Ordering:
    """Order of the instructions of a whole module; rules (1) to (3).

    Args:
        last_first: conditionals of which, in a variant, the higher branch counts as the one before in rule (2).
    """

    def __init__(self, graph: CallGraph, order: ComputationOrder, last_first: frozenset[Instruction] = frozenset()) -> None:
        self.graph = graph
        self.order = order
        self._last_first = last_first

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        return self.constraint(a, b).is_before

    def constraint(self, a: Instruction, b: Instruction) -> Constraint:
        """How ``a`` runs relative to ``b``."""
        if a is b or _wraps(a, b) or _wraps(b, a):
            return Constraint.SAME
        above = self.graph.nearest_common(a, b)
        if above is None:
            return Constraint.UNORDERED
        above_a, above_b = above
        if above_a is above_b:
            inside = self._inside_one(above_a, a, b)
            if inside is not None:
                return inside
        if self.order.runs_before(above_a, above_b):
            return Constraint.BEFORE_START
        return Constraint.AFTER if self.order.runs_before(above_b, above_a) else Constraint.UNORDERED

    def _inside_one(self, caller: Instruction, a: Instruction, b: Instruction) -> Constraint | None:
        if caller.opcode is Opcode.WHILE:  # (1)
            nested = self.graph.is_nested_in
            is_ordered = nested(a, caller.condition) and nested(b, caller.body)
            return Constraint.BEFORE_END if is_ordered else None
        return self._in_conditional(caller, a, b) if caller.opcode is Opcode.CONDITIONAL else None

    def _in_conditional(self, conditional: Instruction, a: Instruction, b: Instruction) -> Constraint | None:
        """Rule (2)."""
        branch_a, branch_b = self._branch(conditional, a), self._branch(conditional, b)
        if branch_b is None:
            return Constraint.SAME if branch_a is None else Constraint.BEFORE_END
        if branch_a is None:
            return Constraint.AFTER
        if branch_a == branch_b:
            return None
        is_before = branch_a > branch_b if conditional in self._last_first else branch_a < branch_b
        return Constraint.EXCLUSIVE_BEFORE if is_before else Constraint.EXCLUSIVE_AFTER

    def _branch(self, conditional: Instruction, instruction: Instruction) -> int | None:
        nested = [n for n, b in enumerate(conditional.called_computations) if self.graph.is_nested_in(instruction, b)]
        return nested[-1] if nested else None


class ValueOrdering:
    """Order of values; rules (4) and (5)."""

    def __init__(
        self,
        dataflow: Dataflow,
        sharing: Sharing,
        order: ComputationOrder,
        last_first: frozenset[Instruction] = frozenset(),
    ) -> None:
        self.dataflow = dataflow
        self.instructions = Ordering(dataflow.call_graph, order, last_first)
        self._sharing = sharing
        self._graph = dataflow.call_graph

    def is_defined_before(self, a: Value, b: Value) -> bool:
        """Rule (4)."""
        if _is_entry_parameter(b):
            return False
        if _is_entry_parameter(a):
            return True
        if _is_parameter_phi(a) and not _is_parameter_phi(b) and self._inside(b, a.instruction.parent):
            return True
        if _is_parameter_phi(b) and self._inside(a, b.instruction.parent):
            return False
        is_joined = b.is_phi and b.instruction.opcode in (Opcode.WHILE, Opcode.CONDITIONAL)
        if is_joined and any(self._inside(a, callee) for callee in b.instruction.called_computations):
            return True
        return self.instructions.runs_before(a.instruction, b.instruction)

    def may_interfere(self, a: Value, b: Value) -> bool:
        """Whether neither lives before the other."""
        return not self.lives_before(a, b) and not self.lives_before(b, a)

    def lives_before(self, a: Value, b: Value, *, same_instruction_is_before: bool = False) -> bool:
        """Whether all of ``a``'s life is over when ``b`` is defined.

        Args:
            same_instruction_is_before: a use by ``b``'s own instruction counts as over, whether or not it can share.
        """
        if not self.is_defined_before(a, b) or a.is_live_out:
            return False
        for position in a.positions:
            if position.instruction.is_root and self._inside(b, position.instruction.parent):
                return False
        uses = [use for use in a.uses if not self._is_idle(a, use.instruction)]
        return self.uses_are_before(uses, b, same_instruction_is_before=same_instruction_is_before)

    def uses_are_before(self, uses: Sequence[Use], value: Value, *, same_instruction_is_before: bool = False) -> bool:
        """Rule (5), for all of ``uses``."""
        return _UsesBefore(self, self._sharing, value, same_instruction_is_before).all(uses)

    def _inside(self, value: Value, computation: Computation | None) -> bool:
        assert computation is not None
        return self._graph.is_nested_in(value.instruction, computation)

    def _is_idle(self, value: Value, user: Instruction) -> bool:
        """Whether ``user`` is a loop fusion whose parameter for ``value`` nobody reads."""
        if user.opcode is not Opcode.FUSION or user.payload_as(FusionPayload).kind != "kLoop":
            return False
        use = next((u for u in value.uses if u.instruction is user), None)
        if use is None:
            return True
        parameter = self.dataflow.parameters(user.to_apply)[use.operand_number]
        return not self.dataflow.value_at(parameter, use.operand_index).uses


class _UsesBefore:
    """Rule (5) for one value. Branches are remembered from use to use: see :meth:`_of_conditional`."""

    def __init__(self, values: ValueOrdering, sharing: Sharing, value: Value, same_is_before: bool) -> None:
        self._dataflow = values.dataflow
        self._ordering = values.instructions
        self._sharing = sharing
        self._value = value
        self._same_is_before = same_is_before
        self._used_in_other_branch = False
        self._escapes_its_branch = False

    def all(self, uses: Sequence[Use]) -> bool:
        return all(map(self._is_before, uses))

    def _is_before(self, use: Use) -> bool:
        match self._ordering.constraint(use.instruction, self._value.instruction):
            case Constraint.SAME:
                if self._same_is_before or self._can_share(use):
                    return True
            case Constraint.EXCLUSIVE_AFTER:
                if not self._escapes_its_branch:
                    self._used_in_other_branch = True
                    return True
            case Constraint.EXCLUSIVE_BEFORE | Constraint.BEFORE_START | Constraint.BEFORE_END:
                return True
            case Constraint.AFTER:
                if self._is_done_of_permute(use):
                    return True
            case Constraint.UNORDERED:
                pass
        return self._is_before_inside(use)

    def _can_share(self, use: Use) -> bool:
        operand, index = use.instruction.operand(use.operand_number), use.operand_index
        if use.instruction.opcode in _ASYNC:
            body = async_start_of(use.instruction).to_apply
            if self._value.instruction.parent is body:
                parameters = self._dataflow.parameters(body)
                if use.instruction.opcode is Opcode.ASYNC_START:
                    operand = parameters[use.operand_number]
                else:
                    operand, index = parameters[index[1]], index[2:]
        return self._sharing.can_share(operand, index, self._value.instruction, self._value.index)

    def _is_done_of_permute(self, use: Use) -> bool:
        is_done = use.instruction.opcode is Opcode.COLLECTIVE_PERMUTE_DONE
        return self._same_is_before and is_done and use.instruction.operand(0) is self._value.instruction

    def _is_before_inside(self, use: Use) -> bool:
        """Uses by callers of the value's computation, and uses inside what defines the value."""
        user, definer = use.instruction, self._value.instruction
        if user.opcode is Opcode.WHILE:
            if self._is_inside(definer, user.body):
                return True
            if self._is_inside(definer, user.condition):
                return definer is self._dataflow.parameters(user.condition)[0]
        if definer.opcode is Opcode.WHILE and any(self._is_inside(user, c) for c in definer.called_computations):
            return True
        if user.opcode is Opcode.CALL and self._is_inside(definer, user.to_apply):
            return True
        if user.opcode in _ASYNC and self._is_inside(definer, async_start_of(user).to_apply):
            return True
        return user.opcode is Opcode.CONDITIONAL and self._of_conditional(use)

    def _of_conditional(self, use: Use) -> bool:
        """A use by a conditional comes before what its branches define, unless the value may come back to it.

        With a loop around the conditional, a value that leaves its branch could flow back in and meet a use in another branch.
        So of two things only one is allowed: uses in exclusive branches, or a value that escapes.
        """
        conditional, definer = use.instruction, self._value.instruction
        if any(self._is_inside(definer, branch) for branch in conditional.called_computations):
            if not self._dataflow.is_defined_at(conditional.operand(use.operand_number)):
                self._escapes_its_branch |= any(u.instruction.is_root for u in self._value.uses)
            if not self._used_in_other_branch:
                return True
        return definer is conditional

    def _is_inside(self, instruction: Instruction, computation: Computation) -> bool:
        return self._ordering.graph.is_nested_in(instruction, computation)


def _wraps(a: Instruction, b: Instruction) -> bool:
    """Whether ``a`` is an async operation and ``b`` the instruction that its computation consists of."""
    return a.opcode in _ASYNC and async_start_of(a).to_apply.root is b


def _is_entry_parameter(value: Value) -> bool:
    instruction = value.instruction
    return instruction.opcode is Opcode.PARAMETER and instruction.parent is not None and instruction.parent.is_entry


def _is_parameter_phi(value: Value) -> bool:
    return value.is_phi and value.instruction.opcode is Opcode.PARAMETER
