"""Layout assignment: which layout every array gets, and which copies that costs (``xla/service/layout_assignment.h``).

One algorithm for all backends (:mod:`assign`), whose backends are values (:mod:`backends`): ``gpu_backend()`` and
``cpu_backend()`` return XLA's rules, ``evolve`` makes variants. Before and after, on GPU::

    ENTRY e {                                              ENTRY e {
      p = f32[1,4,8] parameter(0)                            p = f32[1,4,8]{2,1,0} parameter(0)
      g = f32[1,32,8] all-gather(p), dimensions={1}    =>    copy = f32[1,4,8]{2,0,1} copy(p)
      ROOT n = f32[1,32,8] negate(g)                         g = f32[1,32,8]{2,0,1} all-gather(copy), dimensions={1}
    }                                                        n = f32[1,32,8]{2,0,1} negate(g)
                                                             ROOT copy.1 = f32[1,32,8]{2,1,0} copy(n)
                                                           }

Every copy comes with the reasons for it; see :mod:`result` for how to read them.
"""

from layoutsim.passes.layout_assignment.assign import assign_layouts
from layoutsim.passes.layout_assignment.backend_cpu import cpu_backend
from layoutsim.passes.layout_assignment.backend_generic import GENERIC
from layoutsim.passes.layout_assignment.backend_gpu import gpu_backend
from layoutsim.passes.layout_assignment.backends import (
    Backend,
    BufferDemand,
    Demand,
    DemandRule,
    OperandDemand,
    ResultDemand,
    View,
)
from layoutsim.passes.layout_assignment.gpu_target import GpuTarget
from layoutsim.passes.layout_assignment.layout_pass import LayoutAssignment
from layoutsim.passes.layout_assignment.options import (
    BackendName,
    CollectiveRule,
    ComputationOrder,
    ConvolutionLayout,
    CopyComparison,
    LoopInvariants,
    ReductionPull,
    ReshapeAlignment,
    WorkList,
)
from layoutsim.passes.layout_assignment.procedure import Procedure
from layoutsim.passes.layout_assignment.reasons import Reason, Rule
from layoutsim.passes.layout_assignment.result import CopyKind, InsertedCopy, LayoutAssignmentResult

__all__ = [
    "GENERIC",
    "Backend",
    "BackendName",
    "BufferDemand",
    "CollectiveRule",
    "ComputationOrder",
    "ConvolutionLayout",
    "CopyComparison",
    "CopyKind",
    "Demand",
    "DemandRule",
    "GpuTarget",
    "InsertedCopy",
    "LayoutAssignment",
    "LayoutAssignmentResult",
    "LoopInvariants",
    "OperandDemand",
    "Procedure",
    "Reason",
    "ReductionPull",
    "ReshapeAlignment",
    "ResultDemand",
    "Rule",
    "View",
    "WorkList",
    "assign_layouts",
    "cpu_backend",
    "gpu_backend",
]
