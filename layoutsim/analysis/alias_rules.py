"""When a result may take over an operand's memory (memory spec, sections 3.3 to 3.6).

An :class:`AliasRules` object is a backend's part: its in-place rules and its *hint*, which answers yes, no or "no opinion".
:class:`Sharing` asks in this order:

1. A constant is never overwritten. Up to jaxlib 0.6.2, a horizontal fusion is decided by :mod:`.slice_fusion`; nothing below is
   asked then.
2. Same shape, layout included, and the user writes in place into a use of this value: yes.
3. The backend's hint, if it has an opinion.
4. Different shapes: no.
5. A loop or input fusion: if everything reached from the fused parameter is elementwise or a tuple. An output fusion with an
   ``add`` at its root: if one side is a dot or convolution and the parameter's only use is the other side.
6. ``while`` and ``conditional``: yes.
7. ``dynamic-update-slice``, ``scatter``, ``set-dimension-size``: the operand stands in slot 0 only;
   ``triangular-solve``: in slot 1 only.
8. ``sort``: the operand has one user, and stands only in the slot of the output asked for.
9. ``call``: the value's two uses are the call and a callee root that is elementwise on it.
10. Otherwise: if the user is elementwise on the operand.

Source: ``HloDataflowAnalysis::CanShareOperandBufferWithUser`` in ``xla/hlo/analysis/hlo_dataflow_analysis.cc``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from layoutsim.analysis.dataflow import Dataflow
from layoutsim.analysis.elementwise import is_elementwise_on_operand
from layoutsim.analysis.gpu_alias_hint import gpu_hint, nvidia_0_6_hint, nvidia_hint
from layoutsim.analysis.in_place import InPlacePair, InPlaceRules
from layoutsim.analysis.slice_fusion import is_slice_fusion, slice_fusion_may_share
from layoutsim.analysis.values import Use
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import FusionPayload
from layoutsim.ir.shape import ShapeIndex, subshape

Hint = Callable[[Instruction, ShapeIndex, Instruction, ShapeIndex], bool | None]
"""A backend's opinion on whether a user at an index may overwrite an operand at an index: ``(operand, index, user, index)``."""


def no_hint(_operand: Instruction, _operand_index: ShapeIndex, _user: Instruction, _user_index: ShapeIndex) -> bool | None:
    """No opinion on anything: XLA's default, and the CPU."""
    return None


@frozen
class AliasRules:
    """A backend's rules on sharing.

    Attributes:
        name: for reports.
        in_place: pairs that must share.
        hint: opinion on pairs that may share.
        through_slice_fusions: horizontal fusions are looked through, as up to jaxlib 0.6.2.
    """

    name: str
    in_place: InPlaceRules
    hint: Hint
    through_slice_fusions: bool = False

    def pairs(self, instruction: Instruction) -> Sequence[InPlacePair]:
        """Inputs and outputs of an instruction that must share."""
        return self.in_place.pairs(instruction)


DEFAULT_RULES = AliasRules("default", InPlaceRules(), no_hint)
CPU_RULES = AliasRules("cpu", InPlaceRules(), no_hint)
_GPU_IN_PLACE = InPlaceRules(frozenset({Opcode.BITCAST, Opcode.RESHAPE}))
GPU_RULES = AliasRules("gpu", _GPU_IN_PLACE, gpu_hint)
NVIDIA_RULES = AliasRules("nvidia", _GPU_IN_PLACE, nvidia_hint)
NVIDIA_0_6_RULES = AliasRules("nvidia-0.6", _GPU_IN_PLACE, nvidia_0_6_hint, through_slice_fusions=True)


class Sharing:
    """Answers for one analysis, remembered; where the module changes meanwhile, :meth:`forget` them."""

    def __init__(self, dataflow: Dataflow, rules: AliasRules) -> None:
        self._dataflow = dataflow
        self._rules = rules
        self._pairs: dict[Instruction, Sequence[InPlacePair]] = {}
        self._answers: dict[tuple[Instruction, ShapeIndex, Instruction, ShapeIndex], bool] = {}

    def forget(self) -> None:
        """Ask again: an instruction has a new operand, or reads one more often than before."""
        self._answers.clear()

    def pairs(self, instruction: Instruction) -> Sequence[InPlacePair]:
        """Inputs and outputs of an instruction that must share."""
        if not self._rules.in_place.may_pair(instruction):
            return ()
        found = self._pairs.get(instruction)
        if found is None:
            found = self._pairs[instruction] = self._rules.pairs(instruction)
        return found

    def can_share(self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex) -> bool:
        """Whether ``user`` at ``user_index`` may be written over ``operand`` at ``operand_index``, a direct operand."""
        key = (operand, operand_index, user, user_index)
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._decide(operand, operand_index, user, user_index)
        return answer

    def _decide(self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex) -> bool:
        if operand.opcode is Opcode.CONSTANT:  # (1)
            return False
        if self._rules.through_slice_fusions and is_slice_fusion(user):
            return slice_fusion_may_share(operand, operand_index, user, user_index)
        same_shape = subshape(operand.shape, operand_index) == subshape(user.shape, user_index)
        if same_shape and self._is_written_in_place(operand, operand_index, user, user_index):  # (2)
            return True
        hint = self._rules.hint(operand, operand_index, user, user_index)  # (3)
        if hint is not None:
            return hint
        return same_shape and self._default(operand, operand_index, user, user_index)  # (4)

    def _is_written_in_place(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex
    ) -> bool:
        pairs = [pair for pair in self.pairs(user) if pair.output_index == user_index]
        if not pairs:
            return False
        uses = self._dataflow.value_at(operand, operand_index).uses
        return any(Use(user, pair.operand_number, pair.operand_index) in uses for pair in pairs)

    def _default(self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex) -> bool:
        slots = [number for number, o in enumerate(user.operands) if o is operand]
        match user.opcode:
            case Opcode.FUSION:  # (5)
                return self._fusion(slots[0], operand_index, user)
            case Opcode.WHILE | Opcode.CONDITIONAL:  # (6)
                return True
            case Opcode.DYNAMIC_UPDATE_SLICE | Opcode.SCATTER | Opcode.SET_DIMENSION_SIZE:  # (7)
                return slots == [0]
            case Opcode.TRIANGULAR_SOLVE:
                return slots == [1]
            case Opcode.SORT:  # (8)
                if operand.user_count != 1:
                    return False
                return user.operand_count == 1 or slots == [user_index[0]]
            case Opcode.CALL:  # (9)
                return self._call(operand, operand_index, user)
            case _:  # (10)
                return is_elementwise_on_operand(user, slots[0])

    def _fusion(self, slot: int, operand_index: ShapeIndex, fusion: Instruction) -> bool:
        parameter = self._dataflow.parameters(fusion.to_apply)[slot]
        root = fusion.to_apply.root
        match fusion.payload_as(FusionPayload).kind:
            case "kLoop" | "kInput":
                return _reaches_only_elementwise(parameter)
            case "kOutput" if root.opcode is Opcode.ADD:
                heavy = [n for n, o in enumerate(root.operands) if o.opcode in (Opcode.CONVOLUTION, Opcode.DOT)]
                if not heavy:
                    return False
                other = 1 if root.operand(heavy[0]) is root.operand(0) else 0
                uses = self._dataflow.value_at(parameter, operand_index).uses
                return len(uses) == 1 and uses[0].instruction is root and uses[0].operand_number == other
            case _:
                return is_elementwise_on_operand(fusion, slot)

    def _call(self, operand: Instruction, operand_index: ShapeIndex, call: Instruction) -> bool:
        uses = self._dataflow.value_at(operand, operand_index).uses
        root = call.to_apply.root
        by_call = any(use.instruction is call for use in uses)
        by_root = any(use.instruction is root and is_elementwise_on_operand(root, use.operand_number) for use in uses)
        return len(uses) == 2 and by_call and by_root


def _reaches_only_elementwise(start: Instruction) -> bool:
    seen = {start}
    pending = [start]
    while pending:
        value = pending.pop()
        for user in value.users:
            if user.opcode is not Opcode.TUPLE:
                slots = (number for number, o in enumerate(user.operands) if o is value)
                if not all(is_elementwise_on_operand(user, number) for number in slots):
                    return False
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return True
