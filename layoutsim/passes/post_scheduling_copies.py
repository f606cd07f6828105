"""What XLA's GPU compiler does to copies once a module is scheduled (``RunPostSchedulingCopyInsertion``; memory spec, 12.6).

1. Elide copies again: a schedule orders more than dependencies do, so more live ranges turn out not to meet.
2. Drop dead code, add the copies that have nothing to do with live ranges, those around collective memory too, drop dead code
   again.
3. Repair the schedule: new instructions come right behind what they wait for.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen

from layoutsim.analysis.alias import Aliases
from layoutsim.errors import PassError
from layoutsim.ir import Module
from layoutsim.passes.base import Pass, PassResult
from layoutsim.passes.copy_insertion import remarks_on_copies, remove_unnecessary_copies
from layoutsim.passes.copy_insertion_special import CollectiveMemory, SpecialCopies
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.schedule.repair import repair_schedule
from layoutsim.passes.sharing_rules import SharingRules


@frozen
class PostSchedulingCopies(Pass):
    """Elide the copies that the schedule made unnecessary.

    Attributes:
        rules: whose rules say what may share memory.
        region_analysis: as in copy insertion.
        collective_memory: which instructions need collective memory; ``all`` stands for the compiler's flags
            ``xla_gpu_enable_nccl_user_buffers`` and ``xla_gpu_experimental_enable_nccl_symmetric_buffers``.
    """

    name: ClassVar[str] = "post-scheduling-copies"

    rules: SharingRules = field(default=SharingRules.NVIDIA, kw_only=True)
    region_analysis: bool = field(default=False, kw_only=True)
    collective_memory: CollectiveMemory = field(default=CollectiveMemory.ASKED_FOR, kw_only=True)

    def run(self, module: Module) -> PassResult:
        """Run on a scheduled module.

        Raises:
            PassError: the module has no schedule.
        """
        schedule = module.schedule
        if schedule is None:
            raise PassError(f"{self.name}: module {module.name} has no schedule; run schedule first")
        before = {computation: list(sequence) for computation, sequence in schedule.sequences.items()}
        verdicts = remove_unnecessary_copies(module, self.rules.rules, region_analysis=self.region_analysis)  # (1)
        DeadCodeElimination().run(module)  # (2)
        module.schedule = None
        special = SpecialCopies(Aliases.run(module, self.rules.rules), self.collective_memory)
        special.add()
        DeadCodeElimination().run(module)
        module.schedule = repair_schedule(module, schedule)  # (3)
        changed = bool(special.reasons) or any(v.elided for v in verdicts.values())
        changed |= module.schedule.sequences != before
        return PassResult(changed, remarks_on_copies(module, special.reasons, verdicts))
