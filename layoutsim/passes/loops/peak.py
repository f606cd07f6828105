"""The peak of a module as it stands, layouts assigned: its schedule is tried, with the copies that memory needs."""

from __future__ import annotations

from layoutsim.ir import Module
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.schedule import ScheduleModule
from layoutsim.passes.sharing_rules import SharingRules


def peak_bytes(module: Module, rules: SharingRules) -> int:
    """Most bytes alive at once under the best schedule, packing aside; ``module`` is changed."""
    CopyInsertion(rules=rules).run(module)
    result = ScheduleModule(rules=rules, gpu=rules in (SharingRules.GPU, SharingRules.NVIDIA)).run(module)
    return result.candidates[0].peak_bytes
