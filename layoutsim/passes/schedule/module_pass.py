"""The pass that gives a module a schedule (memory spec, section 13)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from attrs import field, frozen

from layoutsim.analysis.alias import Aliases
from layoutsim.ir import Module, Schedule, byte_size
from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.schedule.default import Algorithm, Candidate, Schedulers, Weighing
from layoutsim.passes.schedule.gpu_postprocess import gpu_postprocess
from layoutsim.passes.schedule.sizes import device_bytes
from layoutsim.passes.sharing_rules import SharingRules


@frozen
class ScheduleResult(PassResult):
    """What the scheduler tried.

    Attributes:
        candidates: every schedule that was measured, the chosen one first.
    """

    candidates: tuple[Candidate, ...] = ()


@frozen
class ScheduleModule(Pass):
    """Order the instructions of every computation; a module that has a schedule keeps it.

    The best of XLA's memory schedulers, as on GPUs, unless another algorithm is asked for.

    Attributes:
        algorithm: ``best`` measures list, depth-first and post-order scheduling, and takes the one that needs least memory.
        rules: whose rules say what may share memory, when schedules are measured.
        weighing: what depth-first scheduling counts.
        gpu: sizes and post-processing of the GPU backend: host memory is free, collectives overlap.
        overlap_all_gathers: whether all-gathers do, too.
    """

    name: ClassVar[str] = "schedule"

    algorithm: Algorithm = field(default=Algorithm.BEST, kw_only=True)
    rules: SharingRules = field(default=SharingRules.NVIDIA, kw_only=True)
    weighing: Weighing = field(default=Weighing.VALUES, kw_only=True)
    gpu: bool = field(default=True, kw_only=True)
    overlap_all_gathers: bool = field(default=True, kw_only=True)

    def run(self, module: Module) -> ScheduleResult:
        if module.schedule is not None:
            return ScheduleResult(changed=False, remarks=(Remark(module.name, "kept: the module is scheduled"),))
        aliases = Aliases.run(module, self.rules.rules)
        size_of = device_bytes if self.gpu else byte_size
        postprocess = partial(gpu_postprocess, overlap_all_gathers=self.overlap_all_gathers) if self.gpu else None
        schedulers = Schedulers(module, aliases, size_of, postprocess=postprocess, weighing=self.weighing)
        is_best = self.algorithm is Algorithm.BEST
        candidates = schedulers.best() if is_best else (schedulers.run(self.algorithm),)
        module.schedule = Schedule(dict(candidates[0].sequences))
        return ScheduleResult(True, (_remark(module, candidates),), candidates)


def _remark(module: Module, candidates: tuple[Candidate, ...]) -> Remark:
    chosen, *others = [f"{c.algorithm.value} ({c.peak_bytes} bytes at the peak)" for c in candidates]
    return Remark(module.name, f"scheduled: {chosen}" + (f"; not {', '.join(others)}" if others else ""))
