"""CPU: what each opcode demands (layout spec, 6.5 and 6.6; ``xla/service/cpu/cpu_layout_assignment.cc``).

1. Convolutions that Eigen may run, products that a matrix kernel runs, and ``TopK`` take and write C order.
2. A vector-matrix product with a constant matrix runs faster if the matrix is column-major; done if all users agree.
3. ``all-gather`` and ``reduce-scatter`` need their dimension most major.
4. Every other operand comes in C order, unless it is constrained already or forwarded. Results follow by propagation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from layoutsim.ir import ArrayShape, ElementType, Instruction, Opcode, layout
from layoutsim.ir.payloads import ConvolutionPayload, DotPayload, FusionPayload
from layoutsim.passes.layout_assignment.backends import Backend, Demand, OperandDemand, ResultDemand, View
from layoutsim.passes.layout_assignment.collective_rules import major_dimension_rules, with_plain_default
from layoutsim.passes.layout_assignment.options import CollectiveRule
from layoutsim.passes.layout_assignment.reasons import Rule
from layoutsim.passes.layout_assignment.rules import array_of, as_array

_SECTION = "6.5"
ROW_MAJOR_KERNEL = Rule("row-major-kernel", _SECTION, "the kernel that runs this takes and writes C order")
ROW_MAJOR_OPERAND = Rule("row-major-operand", _SECTION, "the CPU backend takes every operand in C order")
COLUMN_MAJOR_CONSTANT = Rule("column-major-constant", _SECTION, "products with this constant matrix run faster column-major")

COLUMN_MAJOR_THRESHOLD_BYTES = 32
"""With a smaller vector a column-major matrix brings nothing."""

_GEMM_TYPES = frozenset({ElementType.F16, ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128, ElementType.S32})


def cpu_backend(
    *, all_gather: CollectiveRule = CollectiveRule.POSITIONAL, reduce_scatter: CollectiveRule = CollectiveRule.POSITIONAL
) -> Backend:
    """The CPU backend's rules."""
    demands = major_dimension_rules({Opcode.ALL_GATHER: all_gather, Opcode.REDUCE_SCATTER: reduce_scatter}, _SECTION)
    return Backend("cpu", demands, otherwise=_demand)


def _demand(instruction: Instruction, view: View) -> Iterable[Demand]:
    if _needs_row_major(instruction):
        return _all_row_major(instruction)
    number = _column_major_operand(instruction)
    if number is not None:
        operand = instruction.operand(number)
        if operand.opcode is Opcode.CONSTANT and _all_users_want_column_major(operand):
            return _column_major(instruction, number)
    return _row_major_operands(instruction, view)


def _all_row_major(instruction: Instruction) -> Iterator[Demand]:
    yield ResultDemand(with_plain_default(instruction.shape), ROW_MAJOR_KERNEL)
    for number, operand in enumerate(instruction.operands):
        yield OperandDemand(number, with_plain_default(operand.shape), ROW_MAJOR_KERNEL)


def _column_major(instruction: Instruction, number: int) -> Iterator[Demand]:
    shape = array_of(instruction.operand(number).shape)
    yield OperandDemand(number, shape.with_layout(layout(tuple(range(shape.rank)))), COLUMN_MAJOR_CONSTANT)


def _row_major_operands(instruction: Instruction, view: View) -> Iterator[Demand]:
    for number, operand in enumerate(instruction.operands):
        if (
            view.operand_shape(instruction, number) is None
            and as_array(operand.shape) is not None
            and not view.any_forwarded(instruction, number)
        ):
            yield OperandDemand(number, with_plain_default(operand.shape), ROW_MAJOR_OPERAND)


def _needs_row_major(instruction: Instruction) -> bool:  # (1)
    match instruction.opcode:
        case Opcode.CONVOLUTION:
            return _may_be_eigen_convolution(instruction)
        case Opcode.DOT:
            return bool(instruction.payload_as(DotPayload).lhs_batch_dims) or _runs_matrix_kernel(instruction)
        case Opcode.CUSTOM_CALL:
            return instruction.custom_call_target == "TopK"
        case _:
            return False


def _runs_matrix_kernel(dot: Instruction) -> bool:
    """Neither a matrix-vector product nor a tiny one, and of a type that Eigen or the tiled kernel takes."""
    left, right = (array_of(o.shape) for o in dot.operands)
    result = array_of(dot.shape)
    is_real = result.element_type.is_floating or result.element_type.is_integral
    if is_real and (result.rank <= 1 or (result.rank == 2 and 1 in result.dimensions)):
        return False
    if is_real and _is_tiny(left) and _is_tiny(right):
        return False
    if not left.element_count or not right.element_count:
        return False
    return result.element_type in _GEMM_TYPES and left.rank == right.rank == result.rank == 2


def _is_tiny(shape: ArrayShape) -> bool:
    return shape.rank <= 1 or (shape.rank == 2 and min(shape.dimensions) <= 3)


def _may_be_eigen_convolution(convolution: Instruction) -> bool:
    payload = convolution.payload_as(ConvolutionPayload)
    source, kernel = (array_of(o.shape) for o in convolution.operands)
    if not source.element_count or not kernel.element_count:
        return False
    if source.element_type not in (ElementType.F16, ElementType.F32):
        return False
    if any(d.reversal for d in payload.window.dimensions):
        return False
    n = payload.dimension_numbers
    spatial = len(n.output_spatial)
    behind_batch = tuple(range(1, spatial + 1))
    return (
        1 <= spatial <= 3
        and n.input_spatial == n.output_spatial == behind_batch
        and n.kernel_spatial == tuple(range(spatial))
        and n.input_batch == n.output_batch == 0
        and n.input_feature == source.rank - 1
        and n.output_feature == array_of(convolution.shape).rank - 1
        and n.kernel_input_feature == kernel.rank - 2
        and n.kernel_output_feature == kernel.rank - 1
    )


def _column_major_operand(instruction: Instruction) -> int | None:  # (2)
    """The operand that a product, or a fusion around one, would rather have column-major."""
    if instruction.opcode is Opcode.DOT and array_of(instruction.shape).rank <= 1:
        left = array_of(instruction.operand(0).shape)
        if left.rank != 1 or instruction.payload_as(DotPayload).rhs_contracting_dims[:1] != (0,):
            return None
        size_bytes = array_of(instruction.shape).element_type.storage_bytes * left.element_count
        return 1 if size_bytes >= COLUMN_MAJOR_THRESHOLD_BYTES else None
    if instruction.opcode is Opcode.FUSION and instruction.payload_as(FusionPayload).kind == "kOutput":
        return _column_major_fusion_operand(instruction)
    return None


def _column_major_fusion_operand(fusion: Instruction) -> int | None:
    root = fusion.to_apply.root
    if root.opcode is not Opcode.ADD:
        return None
    for dot in root.operands:
        number = _column_major_operand(dot) if dot.opcode is Opcode.DOT else None
        if number is not None:
            operand = dot.operand(number)
            if operand.opcode is Opcode.PARAMETER and operand.user_count == 1:
                return operand.parameter_number
    return None


def _all_users_want_column_major(constant: Instruction) -> bool:
    for user in constant.users:
        number = _column_major_operand(user)
        if number is None or user.operand(number) is not constant or user.operands.count(constant) != 1:
            return False
    return True
