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
    AllGatherRule,
    BackendName,
    ComputationOrder,
    ConvolutionLayout,
    LoopInvariants,
    ReductionPull,
    ReshapeAlignment,
)
from layoutsim.passes.layout_assignment.result import LayoutAssignmentResult


@frozen
class LayoutAssignment(Pass):
    """Give every array a layout and insert the copies that takes: ``layout-assignment{backend=gpu}``.

    Attributes:
        backend: whose rules apply; the options below belong to the GPU's unless stated.
        all_gather: when a collective's dimension counts as most major (GPU and CPU).
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
        computation_order: callees first, or callers first (every backend).
        loop_invariants: who chooses the layout of what a loop only reads (every backend; XLA: the body).
    """

    name: ClassVar[str] = "layout-assignment"

    backend: BackendName = BackendName.GENERIC
    all_gather: AllGatherRule = AllGatherRule.POSITIONAL
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
    loop_invariants: LoopInvariants = LoopInvariants.BODY

    def rules(self) -> Backend:
        """The rules that these options choose."""
        match self.backend:
            case BackendName.GENERIC:
                return GENERIC
            case BackendName.CPU:
                return cpu_backend(all_gather=self.all_gather)
            case BackendName.GPU:
                return gpu_backend(
                    all_gather=self.all_gather,
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

    def run(self, module: Module) -> LayoutAssignmentResult:
        return assign_layouts(module, self.rules(), order=self.computation_order, loop_invariants=self.loop_invariants)
