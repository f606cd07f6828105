"""Dead code elimination (``xla/hlo/transforms/simplifiers/hlo_dce.h``).

1. An instruction that nobody uses goes, unless it is a root, a parameter, has a side effect or control edges; then what only it
   used goes. A ``while`` goes if its body and condition have no side effect.
2. Computations that nothing reaches from the entry go.

::

    ENTRY e {                                  ENTRY e {
      p = f32[4] parameter(0)             =>     p = f32[4] parameter(0)
      n = f32[4] negate(p)                       ROOT r = f32[4] abs(p)
      ROOT r = f32[4] abs(p)                   }
    }
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.ir import Computation, Module
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.replace import can_remove, remove_with_unused_operands


@frozen
class DeadCodeElimination(Pass):
    """Remove what contributes nothing to the result."""

    name: ClassVar[str] = "dead-code-elimination"

    def run(self, module: Module) -> PassResult:
        removed = sum(_remove_dead(computation) for computation in reversed(module.computations))
        dead = _unreachable(module)
        for computation in dead:
            module.remove_computation(computation)
        remarks = [Remark(module.name, f"removed {removed} dead instructions")] if removed else []
        remarks += [Remark(computation.name, "removed: nothing calls it") for computation in dead]
        return PassResult(bool(removed or dead), tuple(remarks))


def _remove_dead(computation: Computation) -> int:
    """Rule (1)."""
    dead = [i for i in computation.instructions if not i.user_count and not i.is_root and can_remove(i)]
    return sum(remove_with_unused_operands(i) for i in dead)


def _unreachable(module: Module) -> list[Computation]:
    """Rule (2), callers before callees."""
    reached = {module.entry}
    pending = [module.entry]
    while pending:
        for instruction in pending.pop().instructions:
            for callee in instruction.called_computations:
                if callee not in reached:
                    reached.add(callee)
                    pending.append(callee)
    return [c for c in reversed(module.computations) if c not in reached]
