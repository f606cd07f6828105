"""Dead code elimination (``xla/hlo/transforms/simplifiers/hlo_dce.h``).

Computations are visited from the entry, callers before callees, the last callee found first. In each:

1. If it is the body of a fusion, outputs of the fusion that nobody uses go (:mod:`~layoutsim.passes.fusion_interface`).
2. An instruction that nobody uses goes, unless it is a root, a parameter, has a side effect or control edges; then what only it
   used goes. A ``while`` goes if its body and condition have no side effect. An ``after-all`` behind a side effect stays.
3. If it is the body of a fusion, parameters that nobody uses go.

Computations that were not met go.

``dead-code-elimination``::

      p = f32[4] parameter(0)
    - n = f32[4] negate(p)
      ROOT r = f32[4] abs(p)
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.analysis.side_effects import has_side_effect
from layoutsim.ir import Computation, Instruction, Module, Opcode
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.fusion_interface import remove_unused_outputs, remove_unused_parameters
from layoutsim.passes.replace import can_remove, remove_with_unused_operands


@frozen
class DeadCodeElimination(Pass):
    """Remove what contributes nothing to the result."""

    name: ClassVar[str] = "dead-code-elimination"

    def run(self, module: Module) -> PassResult:
        visit = _Visit(module)
        visit.run()
        dead = [computation for computation in reversed(module.computations) if computation not in visit.reached]
        for computation in dead:
            module.remove_computation(computation)
        remarks = [*visit.remarks, *(Remark(computation.name, "removed: nothing calls it") for computation in dead)]
        return PassResult(bool(remarks), tuple(remarks))


class _Visit:
    """One walk over the module; ``reached`` holds the computations met."""

    def __init__(self, module: Module) -> None:
        self.reached = {module.entry}
        self.remarks: list[Remark] = []
        self._pending: list[tuple[Computation, Instruction | None]] = [(module.entry, None)]

    def run(self) -> None:
        while self._pending:
            computation, caller = self._pending.pop()
            self._clean(computation, caller if caller is not None and caller.opcode is Opcode.FUSION else None)
            for instruction in computation.instructions:
                for callee in instruction.called_computations:
                    if callee not in self.reached:
                        self.reached.add(callee)
                        self._pending.append((callee, instruction))

    def _clean(self, computation: Computation, fusion: Instruction | None) -> None:
        if fusion is not None and remove_unused_outputs(fusion):  # (1)
            self.remarks.append(Remark(fusion.name, "lost its unused outputs"))
        if removed := _remove_dead(computation):
            self.remarks.append(Remark(computation.name, f"removed {removed} dead instructions"))
        if fusion is not None and (removed := remove_unused_parameters(fusion)):  # (3)
            self.remarks.append(Remark(fusion.name, f"lost {removed} unused operands"))


def _remove_dead(computation: Computation) -> int:
    """Rule (2)."""
    dead = [i for i in computation.instructions if not i.user_count and not i.is_root and can_remove(i)]
    return sum(remove_with_unused_operands(i) for i in dead if not _ends_side_effects(i))


def _ends_side_effects(instruction: Instruction) -> bool:
    if instruction.opcode is not Opcode.AFTER_ALL:
        return False
    sources = (o.operand(0) if o.opcode is Opcode.GET_TUPLE_ELEMENT else o for o in instruction.operands)
    return any(has_side_effect(source) for source in sources)
