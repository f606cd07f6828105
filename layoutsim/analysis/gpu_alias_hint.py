"""XLA:GPU's opinion on sharing (memory spec, sections 3.4 and 3.5).

For a fusion the answer is always definite. Output and operand must have the same shape, or as many elements of the same width.
All that is reached from the fused parameter must keep the order of iteration:

1. elementwise operations except ``copy``, bitcasts, tuples, and the reduction that the reduction emitter does first (nothing
   behind it counts);
2. a scatter at this output, reached once and at one of its inputs; a sort at this output, reached once in the output's slot;
3. a ``dynamic-slice`` of what a ``dynamic-update-slice`` at this output updates: of the same place, or single elements;
   the update of that ``dynamic-update-slice``.
4. If another output is reached too, this output must be elementwise, and no output reached a transpose or copy.
5. The output must be reached.

NVIDIA: a synchronous ``all-reduce`` or ``collective-broadcast`` works in place; a custom call never does, but cublasLt's matmul
may write over the matrix it adds. Up to jaxlib 0.6.2 it may do so with every output, and where it reads that matrix twice; and
cuSOLVER's Cholesky factors may be written over what is factored.

Source: ``xla/service/gpu/alias_info.cc`` and ``nvptx_alias_info.cc``.
"""

from __future__ import annotations

import json
from collections import deque

from layoutsim.analysis.elementwise import is_elementwise, is_elementwise_on_operand
from layoutsim.analysis.gpu_fusion import GpuFusion, analyze_fusion
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.opcode import Opcode
from layoutsim.ir.payloads import CustomCallPayload
from layoutsim.ir.shape import ArrayShape, Shape, ShapeIndex, TupleShape, subshape, true_rank

_IN_PLACE_COLLECTIVES = (Opcode.ALL_REDUCE, Opcode.COLLECTIVE_BROADCAST)
_CUBLAS_LT_MATMUL = "__cublas$lt$matmul"
_CUSOLVER_CHOLESKY = "__cusolver$cholesky"


def nvidia_hint(operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex) -> bool | None:
    """Rules for NVIDIA, then those for all GPUs."""
    if user.opcode in _IN_PLACE_COLLECTIVES:
        return user.operand_count == 1 or (len(user_index) == 1 and user.operand(user_index[0]) is operand)
    if user.opcode is Opcode.CUSTOM_CALL:
        return _overwrites_addend(operand, user, user_index)
    return gpu_hint(operand, operand_index, user, user_index)


def nvidia_0_6_hint(operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex) -> bool | None:
    """Rules for NVIDIA up to jaxlib 0.6.2."""
    if user.opcode is not Opcode.CUSTOM_CALL:
        return nvidia_hint(operand, operand_index, user, user_index)
    target = user.payload_as(CustomCallPayload).custom_call_target
    if target == _CUBLAS_LT_MATMUL:
        return user.operand_count > 2 and operand is user.operand(2) and _beta(user) != 0
    return target == _CUSOLVER_CHOLESKY and user_index == (0,)


def gpu_hint(operand: Instruction, _operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex) -> bool | None:
    """Rules (1) to (5) for fusions; no opinion on anything else."""
    if user.opcode is not Opcode.FUSION:
        return None
    if not _may_fit(operand.shape, subshape(user.shape, user_index)):
        return False
    return _FusionWalk(operand, user, user_index).may_share()


def _overwrites_addend(operand: Instruction, user: Instruction, user_index: ShapeIndex) -> bool:
    if user.payload_as(CustomCallPayload).custom_call_target != _CUBLAS_LT_MATMUL or user.operand_count < 3:
        return False
    times = sum(o is operand for o in user.operands)
    return _beta(user) != 0 and operand is user.operand(2) and times == 1 and user_index == (0,)


def _beta(call: Instruction) -> float:
    match json.loads(call.attributes.backend_config or "{}"):
        case {"gemm_backend_config": {"beta": int() | float() as beta}}:
            return beta
        case _:
            return 0


def _may_fit(operand: Shape, output: Shape) -> bool:
    if operand == output:
        return True
    if not isinstance(operand, ArrayShape) or not isinstance(output, ArrayShape):
        return False
    same_count = operand.element_count == output.element_count
    return same_count and operand.element_type.bits == output.element_type.bits


class _FusionWalk:
    """The walk over users from a fused parameter, for one output of a fusion."""

    def __init__(self, operand: Instruction, fusion: Instruction, index: ShapeIndex) -> None:
        self._fusion = fusion
        self._index = index
        slot = next(number for number, o in enumerate(fusion.operands) if o is operand)
        self._parameter = fusion.to_apply.parameters[slot]
        self._output = _output_at(fusion.to_apply.root, index)
        self._root = self._output.operand(0) if self._output.opcode is Opcode.BITCAST else self._output
        self._analysis: GpuFusion | None = None

    def may_share(self) -> bool:
        """Whether the output may be written over the operand."""
        reached = {self._parameter}
        pending = deque([self._parameter])
        hero = self._analyzed().reduction_hero
        while pending:
            value = pending.popleft()
            if value is hero:
                continue
            for user in value.users:
                if user not in reached:
                    reached.add(user)
                    pending.append(user)
                if not self._keeps_order(value, user, hero):
                    return False
        return self._others_agree(reached) and self._output in reached  # (5)

    def _analyzed(self) -> GpuFusion:
        if self._analysis is None:
            self._analysis = analyze_fusion(self._fusion)
        return self._analysis

    def _keeps_order(self, value: Instruction, user: Instruction, hero: Instruction | None) -> bool:
        slots = [number for number, o in enumerate(user.operands) if o is value]
        if user is self._root:
            if user.opcode is Opcode.SCATTER and len(slots) == 1 and slots[0] < _output_count(user):  # (2)
                return True
            if user.opcode is Opcode.SORT and len(slots) == 1:
                return self._index == (slots[0],)
        if self._is_slice_of_target(user):  # (3)
            return self._reads_what_it_writes(user)
        if user.opcode in (Opcode.BITCAST, Opcode.TUPLE) or user is hero:  # (1)
            return True
        if user.opcode is not Opcode.COPY and is_elementwise_on_operand(user, slots[0]):
            return True
        return user is self._root and user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and slots[0] == 1

    def _is_slice_of_target(self, user: Instruction) -> bool:
        root = self._root
        return (
            root.opcode is Opcode.DYNAMIC_UPDATE_SLICE
            and user.opcode is Opcode.DYNAMIC_SLICE
            and root.operand(0) is user.operand(0)
            and user.shape == root.operand(1).shape
        )

    def _reads_what_it_writes(self, slice_: Instruction) -> bool:
        if _is_single_element(slice_.shape):
            return True
        return all(a is b for a, b in zip(slice_.operands[1:], self._root.operands[2:], strict=True))

    def _others_agree(self, reached: set[Instruction]) -> bool:
        """Rule (4)."""
        if self._fusion.to_apply.root.opcode is not Opcode.TUPLE:
            return True
        analysis = self._analyzed()
        if not any(root in reached and root is not self._output for root in analysis.roots):
            return True
        pairs = zip(analysis.roots, analysis.heroes, strict=True)
        reordered = any(hero.opcode in (Opcode.TRANSPOSE, Opcode.COPY) for root, hero in pairs if root in reached)
        return is_elementwise(self._root) and not reordered


def _output_at(root: Instruction, index: ShapeIndex) -> Instruction:
    for element in index:
        if root.opcode is not Opcode.TUPLE:
            break
        root = root.operand(element)
    return root


def _output_count(instruction: Instruction) -> int:
    return len(instruction.shape.elements) if isinstance(instruction.shape, TupleShape) else 1


def _is_single_element(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and true_rank(shape) == 0
