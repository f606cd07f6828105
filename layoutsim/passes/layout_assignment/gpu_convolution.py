"""GPU: layouts of cuDNN convolutions (layout spec, 6.2; ``HeuristicLayoutAssignment``).

Three layouts, from major to minor, for data (batch, feature, spatial) and filters (output feature, input feature, spatial):
NCHW, NHWC, and NCHW with the features split over two dimensions (VECT_C). Which one depends on element type and device.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from attrs import evolve, frozen

from layoutsim.errors import LayoutError
from layoutsim.ir import ArrayShape, ElementType, Instruction, TupleShape, layout
from layoutsim.ir.payloads import ConvolutionDimensionNumbers, ConvolutionPayload, CustomCallPayload
from layoutsim.passes.layout_assignment.backends import (
    BufferDemand,
    Demand,
    DemandRule,
    OperandDemand,
    ResultDemand,
    View,
)
from layoutsim.passes.layout_assignment.gpu_target import GpuFacts
from layoutsim.passes.layout_assignment.options import ConvolutionLayout
from layoutsim.passes.layout_assignment.reasons import Rule
from layoutsim.passes.layout_assignment.rules import array_of

CONVOLUTION = Rule("cudnn-convolution", "6.2", "cuDNN convolves this element type fastest in this layout on the device")


class Scheme(Enum):
    """Order of the feature dimension."""

    NCHW = "NCHW"
    NHWC = "NHWC"
    VECT_C = "NCHW_VECT_C"


@frozen
class Roles:
    """Which array of a convolution call is input, filter and output: operand numbers, ``None`` for the result."""

    input: int | None
    filter: int | None
    output: int | None


_FORWARD = Roles(0, 1, None)
_ROLES = {
    "__cudnn$convForward": _FORWARD,
    "__cudnn$convForwardGraph": _FORWARD,
    "__cudnn$convBiasActivationForward": _FORWARD,
    "__cudnn$convBackwardInput": Roles(None, 1, 0),
    "__cudnn$convBackwardFilter": Roles(0, None, 1),
}
CONVOLUTION_TARGETS = frozenset(_ROLES)


def scheme_of(
    instruction: Instruction, numbers: ConvolutionDimensionNumbers, facts: GpuFacts, forced: ConvolutionLayout
) -> Scheme:
    """The layout that XLA chooses for a convolution."""
    source = array_of(instruction.operand(0).shape)
    kind = source.element_type
    spatial = len(numbers.input_spatial)
    if kind.is_integral:
        return Scheme.VECT_C if kind is ElementType.S8 and spatial == 2 and source.rank == 5 else Scheme.NHWC
    if kind.is_floating and kind.bits == 8:
        return Scheme.NHWC
    if forced is not ConvolutionLayout.BY_DEVICE:
        return Scheme.NCHW if forced is ConvolutionLayout.NCHW else Scheme.NHWC
    if facts.is_cuda and facts.capability >= 9:
        return Scheme.NCHW if kind is ElementType.F64 or spatial > 2 else Scheme.NHWC
    is_half = kind in (ElementType.F16, ElementType.BF16)
    can_nhwc = facts.capability >= 7 if facts.is_cuda else facts.rocm_nhwc
    return Scheme.NHWC if is_half and can_nhwc and _result(instruction).rank == 4 else Scheme.NCHW


def _result(instruction: Instruction) -> ArrayShape:
    shape = instruction.shape
    return array_of(shape.elements[0] if isinstance(shape, TupleShape) else shape)


def _laid_out(shape: ArrayShape, outer: int, feature: int, spatial: tuple[int, ...], scheme: Scheme) -> ArrayShape:
    order = (outer, *spatial, feature) if scheme is Scheme.NHWC else (outer, feature, *spatial)
    if scheme is Scheme.VECT_C:
        order += tuple(d for d in range(shape.rank) if d not in order)
    return shape.with_layout(layout(order[::-1]))


def _three_layouts(
    shapes: tuple[ArrayShape, ArrayShape, ArrayShape], n: ConvolutionDimensionNumbers, scheme: Scheme
) -> tuple[ArrayShape, ArrayShape, ArrayShape]:
    """Input, filter and output laid out."""
    source, kernel, result = shapes
    return (
        _laid_out(source, n.input_batch, n.input_feature, n.input_spatial, scheme),
        _laid_out(kernel, n.kernel_output_feature, n.kernel_input_feature, n.kernel_spatial, scheme),
        _laid_out(result, n.output_batch, n.output_feature, n.output_spatial, scheme),
    )


def convolution_call_rule(facts: GpuFacts, forced: ConvolutionLayout) -> DemandRule:
    """The demand rule of the ``__cudnn$conv...`` custom calls."""

    def demand(call: Instruction, _view: View) -> Iterable[Demand]:
        payload = call.payload_as(CustomCallPayload)
        numbers, roles = payload.dimension_numbers, _ROLES[payload.custom_call_target]
        if numbers is None:
            raise LayoutError(f"{call.name}: convolution call without dim_labels")
        numbered = (roles.input, roles.filter, roles.output)
        shapes = tuple(_result(call) if n is None else array_of(call.operand(n).shape) for n in numbered)
        laid_out = _three_layouts((shapes[0], shapes[1], shapes[2]), numbers, scheme_of(call, numbers, facts, forced))
        by_number = dict(zip(numbered, laid_out, strict=True))
        yield OperandDemand(0, by_number[0], CONVOLUTION)
        yield OperandDemand(1, by_number[1], CONVOLUTION)
        result_layout = by_number[None].layout
        assert result_layout is not None
        yield BufferDemand((0,), result_layout, CONVOLUTION)
        yield from _side_inputs(call, payload.custom_call_target, laid_out[2])

    return demand


def _side_inputs(call: Instruction, target: str, output: ArrayShape) -> Iterable[Demand]:
    """What is added to or combined with the output has the output's layout."""
    if target == "__cudnn$convBiasActivationForward":
        if call.operand_count == 4:
            yield OperandDemand(3, output, CONVOLUTION)
    elif target == "__cudnn$convForwardGraph":
        for number in range(2, call.operand_count):
            if array_of(call.operand(number).shape).rank > 0:
                yield OperandDemand(number, output, CONVOLUTION)
    elif call.operand_count > 2:
        raise LayoutError(f"{call.name}: convolution has a side input, but {target} takes none")


def convolution_rule(facts: GpuFacts, forced: ConvolutionLayout) -> DemandRule:
    """The demand rule of ``convolution`` itself, under ``xla_gpu_experimental_enable_conv_fusion``."""

    def demand(convolution: Instruction, _view: View) -> Iterable[Demand]:
        payload = convolution.payload_as(ConvolutionPayload)
        if not payload.convolution_kind:
            raise LayoutError(f"{convolution.name}: convolution kind is not set")
        numbers = _restored(payload.dimension_numbers, payload.convolution_kind)
        shapes = (*(array_of(o.shape) for o in convolution.operands), array_of(convolution.shape))
        scheme = scheme_of(convolution, payload.dimension_numbers, facts, forced)
        source, kernel, result = _three_layouts((shapes[0], shapes[1], shapes[2]), numbers, scheme)
        yield OperandDemand(0, source, CONVOLUTION)
        yield OperandDemand(1, kernel, CONVOLUTION)
        yield ResultDemand(result, CONVOLUTION)

    return demand


def _restored(n: ConvolutionDimensionNumbers, kind: str) -> ConvolutionDimensionNumbers:
    """The dimension numbers of the convolution that a gradient was made from."""
    if kind not in ("wgrad", "dgrad"):
        return n
    n = evolve(n, kernel_input_feature=n.kernel_output_feature, kernel_output_feature=n.kernel_input_feature)
    if kind == "dgrad":
        return n
    return evolve(
        n,
        input_batch=n.input_feature,
        input_feature=n.input_batch,
        output_batch=n.output_feature,
        output_feature=n.output_batch,
    )
