"""GPU: what each opcode demands (layout spec, section 6; ``xla/backends/gpu/transforms/layout_assignment.cc``).

Instructions are looked at from the last to the first in post-order, so that users' demands are known when a product picks its
result layout, and the earliest instructions' demands are propagated first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from attrs import evolve

from layoutsim.analysis.call_graph import async_start_of
from layoutsim.errors import LayoutError
from layoutsim.ir import Instruction, Opcode, TupleShape, default_layout, tuple_shape
from layoutsim.ir.shape import ArrayShape
from layoutsim.passes.layout_assignment.backends import (
    Backend,
    BufferDemand,
    Demand,
    DemandRule,
    OperandDemand,
    ResultDemand,
    View,
    VisitOrder,
    generic_reshape_operand,
    generic_reshape_result,
)
from layoutsim.passes.layout_assignment.collective_rules import in_default_order, major_dimension_rules, with_default
from layoutsim.passes.layout_assignment.gpu_convolution import (
    CONVOLUTION_TARGETS,
    convolution_call_rule,
    convolution_rule,
)
from layoutsim.passes.layout_assignment.gpu_dot import dot_rule, transpose_of_dot
from layoutsim.passes.layout_assignment.gpu_target import GpuTarget
from layoutsim.passes.layout_assignment.layout_math import (
    Order,
    align_in_place,
    delete_dimensions,
    move_to_minor,
    true_rank,
)
from layoutsim.passes.layout_assignment.options import (
    CollectiveRule,
    ConvolutionLayout,
    ReductionPull,
    ReshapeAlignment,
)
from layoutsim.passes.layout_assignment.reasons import Rule
from layoutsim.passes.layout_assignment.rules import array_of, dimensions_of, keeps_layout

_SECTION = "6.1"
RAGGED_DOT = Rule("ragged-dot", _SECTION, "ragged products take and write default layouts")
FFT = Rule("fft", _SECTION, "cuFFT takes and writes default layouts")
SORT = Rule("sort", _SECTION, "all operands and results of a sort have the default layout")
TOPK = Rule("top-k", _SECTION, "the top-k kernel writes default layouts")
BITCAST_CONVERT = Rule("bitcast-convert", _SECTION, "the dimension that is split or merged must be most minor")
TRIANGULAR_SOLVE = Rule("triangular-solve", _SECTION, "cuBLAS solves matrices in column-major order")
SEND = Rule("send", _SECTION, "data is sent in the default layout")
RECV = Rule("recv", _SECTION, "data is received in the default layout")
MEMORY_PLACEMENT = Rule("memory-placement", _SECTION, "arrays move between host and device in the default layout")
HOST_COMPUTATION = Rule("host-computation", _SECTION, "the computation that runs on the host has these layouts")

ROW_REDUCTION_THRESHOLD = 32
"""From this many reduced elements on, a reduction along the most minor dimensions pays."""

HOST_THREAD = "host"
TOPK_TARGET = "__gpu$TopK"
_CUB_SORTS = frozenset({"xla.gpu.ext.cub_sort_unassigned_scratch_size", "__cub$DeviceRadixSort"})
"""CUB's radix sort by its name of today, and by that of the 0.6 releases."""
_PLACEMENT = frozenset({"MoveToHost", "MoveToDevice"})
_GEMM_PREFIX = "__cublas$lt$"


def gpu_backend(
    *,
    all_gather: CollectiveRule = CollectiveRule.POSITIONAL,
    reduce_scatter: CollectiveRule = CollectiveRule.POSITIONAL,
    all_to_all: CollectiveRule = CollectiveRule.POSITIONAL,
    ragged_all_to_all: CollectiveRule = CollectiveRule.POSITIONAL,
    reshape_alignment: ReshapeAlignment = ReshapeAlignment.IN_PLACE,
    target: GpuTarget = GpuTarget.H100,
    convolution_layout: ConvolutionLayout = ConvolutionLayout.BY_DEVICE,
    convolution_fusion: bool = False,
    pack_along_contraction: bool = True,
    reduction_pull: ReductionPull = ReductionPull.LARGE,
    constrain_ragged_dot: bool = True,
    constrain_bitcast_convert: bool = True,
    transparent_copies: bool = True,
    outputs_follow_aliases: bool = True,
) -> Backend:
    """The GPU backend's rules.

    Args:
        convolution_fusion: constrain ``convolution`` too (``xla_gpu_experimental_enable_conv_fusion``).
        pack_along_contraction: sub-byte operands of products need the contracting dimensions most minor
            (``xla_gpu_experimental_pack_dot_operands_along_k_dimension``).
        constrain_ragged_dot: ragged products take and write default layouts; in 0.6 they were free.
        constrain_bitcast_convert: bitcast-converts between ranks are laid out so that they move nothing; not so in 0.6.
        transparent_copies: the copies in front of constrained custom calls pass the layout on; not so in 0.6.
        outputs_follow_aliases: outputs of custom calls follow the layout of the operand they overwrite; not so in 0.6.
    """
    facts = target.facts
    collectives = {
        Opcode.ALL_GATHER: all_gather,
        Opcode.REDUCE_SCATTER: reduce_scatter,
        Opcode.ALL_TO_ALL: all_to_all,
        Opcode.RAGGED_ALL_TO_ALL: ragged_all_to_all,
    }
    demands = major_dimension_rules(collectives, _SECTION)
    demands |= {
        Opcode.CUSTOM_CALL: _custom_call_rule(convolution_call_rule(facts, convolution_layout)),
        Opcode.DOT: dot_rule(facts, pack_along_contraction=pack_along_contraction),
        Opcode.TRANSPOSE: transpose_of_dot,
        Opcode.FFT: _all_default(FFT, 1),
        Opcode.SORT: _sort,
        Opcode.TRIANGULAR_SOLVE: _triangular_solve,
        Opcode.SEND: _send,
        Opcode.RECV: _recv,
        Opcode.ASYNC_START: _host_start,
        Opcode.ASYNC_DONE: _host_done,
    }
    if constrain_ragged_dot:
        demands[Opcode.RAGGED_DOT] = _all_default(RAGGED_DOT, 2)
    if constrain_bitcast_convert:
        demands[Opcode.BITCAST_CONVERT] = _bitcast_convert
    if convolution_fusion:
        demands[Opcode.CONVOLUTION] = convolution_rule(facts, convolution_layout)
    in_place = reshape_alignment is ReshapeAlignment.IN_PLACE
    return Backend(
        "gpu",
        demands,
        order=VisitOrder.USERS_FIRST,
        keeps_layout=_keeps_layout,
        pulls_reduction=_pulls_large if reduction_pull is ReductionPull.LARGE else _pulls_large_or_divisor,
        reshape_operand=_reshape_operand if in_place else generic_reshape_operand,
        reshape_result=_reshape_result if in_place else generic_reshape_result,
        transparent_copies=transparent_copies,
        outputs_follow_aliases=outputs_follow_aliases,
        derive_bitcast_convert=constrain_bitcast_convert,
        main_thread_only=True,
    )


# -- hooks of the propagation --------------------------------------------------------------------------------------------


def _keeps_layout(instruction: Instruction) -> bool:
    return keeps_layout(instruction) or instruction.custom_call_target == TOPK_TARGET


def _reduced_elements(reduce: Instruction) -> int:
    sizes = array_of(reduce.operand(0).shape).dimensions
    return prod(sizes[d] for d in dimensions_of(reduce))


def _pulls_large(reduce: Instruction) -> bool:
    return _reduced_elements(reduce) >= ROW_REDUCTION_THRESHOLD


def _pulls_large_or_divisor(reduce: Instruction) -> bool:
    reduced = _reduced_elements(reduce)
    return reduced >= ROW_REDUCTION_THRESHOLD or (reduced > 0 and ROW_REDUCTION_THRESHOLD % reduced == 0)


def _reshape_operand(reshape: Instruction, order: Order) -> Order | None:
    return _aligned(array_of(reshape.shape), order, array_of(reshape.operand(0).shape))


def _reshape_result(reshape: Instruction, order: Order) -> Order | None:
    return _aligned(array_of(reshape.operand(0).shape), order, array_of(reshape.shape))


def _aligned(known: ArrayShape, order: Order, wanted: ArrayShape) -> Order | None:
    """Dimensions of size 1 stay where the layout that ``wanted`` came with has them."""
    if true_rank(known.dimensions) == 1 and true_rank(wanted.dimensions) == 1:
        return None
    template = wanted.layout or default_layout(wanted.rank)
    return align_in_place(known.dimensions, order, wanted.dimensions, template.minor_to_major)


# -- demands -------------------------------------------------------------------------------------------------------------


def _all_default(rule: Rule, operands: int) -> DemandRule:
    def demand(instruction: Instruction, _view: View) -> Iterator[Demand]:
        for number in range(operands):
            yield OperandDemand(number, with_default(instruction.operand(number).shape), rule)
        yield ResultDemand(with_default(instruction.shape), rule)

    return demand


def _custom_call_rule(convolution: DemandRule) -> DemandRule:
    def demand(call: Instruction, view: View) -> Iterable[Demand]:
        target = call.custom_call_target
        if target in CONVOLUTION_TARGETS:
            return convolution(call, view)
        if target.startswith(_GEMM_PREFIX):
            raise LayoutError(f"{call.name}: {target} before layout assignment; products are rewritten to calls after it")
        if target in _CUB_SORTS:
            return _sort(call, view)
        if target == TOPK_TARGET:
            return _topk(call)
        return _placement(call) if target in _PLACEMENT else ()

    return demand


def _sort(sort: Instruction, _view: View) -> Iterator[Demand]:
    keys = array_of(sort.operand(0).shape)
    if keys.rank <= 1:
        return
    wanted = default_layout(keys.rank)
    for number, operand in enumerate(sort.operands):
        yield OperandDemand(number, array_of(operand.shape).with_layout(wanted), SORT)
        yield BufferDemand((number,) if isinstance(sort.shape, TupleShape) else (), wanted, SORT)


def _topk(call: Instruction) -> Iterator[Demand]:
    wanted = default_layout(array_of(call.operand(0).shape).rank)
    yield BufferDemand((0,), wanted, TOPK)
    yield BufferDemand((1,), wanted, TOPK)


def _placement(call: Instruction) -> Iterator[Demand]:
    wanted = with_default(call.operand(0).shape)
    yield OperandDemand(0, wanted, MEMORY_PLACEMENT)
    yield ResultDemand(wanted, MEMORY_PLACEMENT)


def _bitcast_convert(convert: Instruction, _view: View) -> Iterator[Demand]:
    source, result = array_of(convert.operand(0).shape), array_of(convert.shape)
    if source.rank == result.rank:
        return
    larger = source if source.rank > result.rank else result
    split = larger.rank - 1
    standing = larger.layout or default_layout(larger.rank)
    order = move_to_minor(standing.minor_to_major, split)
    wanted = evolve(standing, minor_to_major=order)  # with the element size that stands there, on the other side too
    smaller = evolve(standing, minor_to_major=delete_dimensions(order, [split]))
    yield OperandDemand(0, source.with_layout(wanted if source is larger else smaller), BITCAST_CONVERT)
    yield ResultDemand(result.with_layout(wanted if result is larger else smaller), BITCAST_CONVERT)


def _triangular_solve(solve: Instruction, _view: View) -> Iterator[Demand]:
    for number in (0, 1):
        yield OperandDemand(number, _column_major(array_of(solve.operand(number).shape)), TRIANGULAR_SOLVE)
    yield ResultDemand(_column_major(array_of(solve.shape)), TRIANGULAR_SOLVE)


def _column_major(shape: ArrayShape) -> ArrayShape:
    standing = in_default_order(shape).layout
    assert standing is not None, shape
    minor, major, *batch = standing.minor_to_major
    return shape.with_layout(evolve(standing, minor_to_major=(major, minor, *batch)))


def _send(send: Instruction, _view: View) -> Iterator[Demand]:
    """What is sent is a copy made for it; the copy gets the layout."""
    copy = send.operand(0)
    wanted = with_default(copy.shape)
    yield ResultDemand(wanted, SEND, of=copy)
    yield OperandDemand(0, wanted, SEND, of=copy)


def _recv(recv: Instruction, _view: View) -> Iterator[Demand]:
    yield ResultDemand(with_default(recv.shape), RECV)


def _host_start(start: Instruction, _view: View) -> Iterator[Demand]:
    called = start.to_apply
    if called.execution_thread != HOST_THREAD:
        return
    assert isinstance(start.shape, TupleShape), start
    parameters = tuple_shape(tuple(p.shape for p in called.parameters))
    wanted = tuple_shape((parameters, called.root.shape, *start.shape.elements[2:]))
    yield ResultDemand(wanted, HOST_COMPUTATION, allow_alias=True)


def _host_done(done: Instruction, _view: View) -> Iterator[Demand]:
    called = async_start_of(done).to_apply
    if called.execution_thread == HOST_THREAD:
        yield ResultDemand(called.root.shape, HOST_COMPUTATION, allow_alias=True)
