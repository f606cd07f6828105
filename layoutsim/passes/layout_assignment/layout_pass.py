"""The pass object: options of layout assignment, and their text form."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from layoutsim.ir import Module
from layoutsim.passes.base import Pass
from layoutsim.passes.layout_assignment.assign import assign_layouts
from layoutsim.passes.layout_assignment.backend_cpu import cpu_backend
from layoutsim.passes.layout_assignment.backend_generic import GENERIC
from layoutsim.passes.layout_assignment.backend_gpu import gpu_backend
from layoutsim.passes.layout_assignment.backends import Backend
from layoutsim.passes.layout_assignment.gpu_target import GpuTarget
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
from layoutsim.passes.layout_assignment.procedure import Procedure, parse_priorities
from layoutsim.passes.layout_assignment.result import LayoutAssignmentResult


@frozen
class LayoutAssignment(Pass):
    """Give every array a layout and insert the copies that takes: ``layout-assignment{backend=gpu}``.

    Attributes:
        backend: whose rules apply; the options below belong to the GPU's unless stated.
        all_gather: when the dimension that is gathered along counts as most major (GPU and CPU).
        reduce_scatter: the same for the dimension that is scattered along (GPU and CPU).
        all_to_all: the same for the dimension that is split along.
        ragged_all_to_all: the same for dimension 0.
        reshape_alignment: where reshapes put dimensions of size 1.
        target: the device.
        convolution_layout: layout of convolution calls.
        convolution_fusion: constrain plain convolutions too.
        pack_along_contraction: sub-byte operands of products need the contracting dimensions most minor.
        reduction_pull: which reductions want to run along the most minor dimensions.
        constrain_ragged_dot: ragged products have default layouts.
        constrain_bitcast_convert: bitcast-converts between ranks are laid out so that they move nothing.
        outputs_follow_aliases: outputs of custom calls follow the layout of the operand they overwrite.
        transparent_copies: copies in front of constrained custom calls hand the layout on.
        computation_order: callees first, or callers first (this and what follows: every backend).
        work_list: in which order constraints are followed.
        copies: when two layouts differ so that a copy is needed.
        priorities: of wishes, ``reduce-operand:-1+loop-back-edge:1``; see :mod:`.procedure`.
        loop_invariants: who chooses the layout of what a loop only reads (XLA: the body).
    """

    name: ClassVar[str] = "layout-assignment"

    backend: BackendName = BackendName.GENERIC
    all_gather: CollectiveRule = CollectiveRule.POSITIONAL
    reduce_scatter: CollectiveRule = CollectiveRule.POSITIONAL
    all_to_all: CollectiveRule = CollectiveRule.POSITIONAL
    ragged_all_to_all: CollectiveRule = CollectiveRule.POSITIONAL
    reshape_alignment: ReshapeAlignment = ReshapeAlignment.IN_PLACE
    target: GpuTarget = GpuTarget.H100
    convolution_layout: ConvolutionLayout = ConvolutionLayout.BY_DEVICE
    convolution_fusion: bool = False
    pack_along_contraction: bool = True
    reduction_pull: ReductionPull = ReductionPull.LARGE
    constrain_ragged_dot: bool = True
    constrain_bitcast_convert: bool = True
    transparent_copies: bool = True
    outputs_follow_aliases: bool = True
    computation_order: ComputationOrder = ComputationOrder.FORWARD
    work_list: WorkList = WorkList.XLA
    copies: CopyComparison = CopyComparison.EXACT
    priorities: tuple[str, ...] = ()
    loop_invariants: LoopInvariants = LoopInvariants.BODY

    def __attrs_post_init__(self) -> None:
        parse_priorities(self.priorities)

    def rules(self) -> Backend:
        """The rules that these options choose."""
        match self.backend:
            case BackendName.GENERIC:
                return GENERIC
            case BackendName.CPU:
                return cpu_backend(all_gather=self.all_gather, reduce_scatter=self.reduce_scatter)
            case BackendName.GPU:
                return gpu_backend(
                    all_gather=self.all_gather,
                    reduce_scatter=self.reduce_scatter,
                    all_to_all=self.all_to_all,
                    ragged_all_to_all=self.ragged_all_to_all,
                    reshape_alignment=self.reshape_alignment,
                    target=self.target,
                    convolution_layout=self.convolution_layout,
                    convolution_fusion=self.convolution_fusion,
                    pack_along_contraction=self.pack_along_contraction,
                    reduction_pull=self.reduction_pull,
                    constrain_ragged_dot=self.constrain_ragged_dot,
                    constrain_bitcast_convert=self.constrain_bitcast_convert,
                    transparent_copies=self.transparent_copies,
                    outputs_follow_aliases=self.outputs_follow_aliases,
                )

    def procedure(self) -> Procedure:
        """How the pass goes about it."""
        return Procedure(
            order=self.computation_order,
            work_list=self.work_list,
            copies=self.copies,
            loop_invariants=self.loop_invariants,
            priorities=parse_priorities(self.priorities),
        )

    def run(self, module: Module) -> LayoutAssignmentResult:
        return assign_layouts(module, self.rules(), self.procedure())
