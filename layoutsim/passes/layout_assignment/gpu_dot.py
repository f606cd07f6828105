"""GPU: layouts of matrix products (layout spec, 6.3; ``GpuLayoutAssignment::AddDotBackendConstraints``).

cuBLAS takes each operand as a batch of matrices: batch, contracting and free dimensions each in one piece, and no batch
dimension most minor (:func:`is_matrix`). Per operand:

1. fp8 products (before Blackwell), s8 products to s32 and packed operands need the contracting dimensions most minor.
2. Operands with batch dimensions, or several contracting or free ones, keep their layout if it is a matrix; else the default;
   else batch, contracting, free from major to minor.
3. Plain operands that come from an automatic entry parameter get the same, softly. All others are free.

The result of a product with batch dimensions or several free ones takes the first layout its users asked for that is a
matrix, and the default otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from layoutsim.analysis.elementwise import is_elementwise
from layoutsim.ir import ArrayShape, ElementType, Instruction, Opcode, Shape, default_layout, layout
from layoutsim.ir.opcode import ELEMENTWISE_BINARY
from layoutsim.ir.payloads import DotPayload
from layoutsim.passes.layout_assignment.backends import Demand, DemandRule, OperandDemand, ResultDemand, View
from layoutsim.passes.layout_assignment.collective_rules import in_default_order
from layoutsim.passes.layout_assignment.gpu_target import GpuFacts
from layoutsim.passes.layout_assignment.layout_math import Order, is_matrix
from layoutsim.passes.layout_assignment.reasons import Rule
from layoutsim.passes.layout_assignment.rules import array_of, as_array, dimensions_of

_SECTION = "6.3"
MINOR_CONTRACTION = Rule("dot-minor-contraction", _SECTION, "this product needs the contracting dimensions most minor")
MATRIX_OPERAND = Rule(
    "dot-matrix-operand", _SECTION, "a product needs batch, contracting and free dimensions in one piece each"
)
AUTOMATIC_OPERAND = Rule("dot-automatic-operand", _SECTION, "a product prefers a matrix where the parameter's layout is free")
MATRIX_RESULT = Rule("dot-matrix-result", _SECTION, "a product writes batch, rows and columns each in one piece")
RESULT_FOR_USER = Rule("dot-result-for-user", _SECTION, "a user of the product wants this layout, and the product can write it")
TRANSPOSED_DOT = Rule("dot-then-transpose", "6.1", "a product can write its result so that the transpose behind it is free")

_FP8 = frozenset({ElementType.F8E4M3FN, ElementType.F8E5M2FNUZ})


@frozen
class Side:
    """One operand of a product and its groups of dimensions."""

    number: int
    shape: ArrayShape
    batch: tuple[int, ...]
    contracting: tuple[int, ...]

    @property
    def free(self) -> tuple[int, ...]:
        return tuple(d for d in range(self.shape.rank) if d not in self.batch and d not in self.contracting)


def sides(dot: Instruction) -> tuple[Side, Side]:
    """Left and right operand."""
    numbers = dot.payload_as(DotPayload)
    left, right = (array_of(operand.shape) for operand in dot.operands)
    return (
        Side(0, left, numbers.lhs_batch_dims, numbers.lhs_contracting_dims),
        Side(1, right, numbers.rhs_batch_dims, numbers.rhs_contracting_dims),
    )


def dot_rule(facts: GpuFacts, *, pack_along_contraction: bool) -> DemandRule:
    """The demand rule of ``dot``."""

    def demand(dot: Instruction, view: View) -> Iterable[Demand]:
        both = sides(dot)
        contraction_minor = _needs_minor_contraction(dot, both, facts)
        for side in both:
            operand = dot.operand(side.number)
            if contraction_minor or (pack_along_contraction and is_packed(operand, view.notes("packed"))):
                yield OperandDemand(side.number, _contraction_minor(side), MINOR_CONTRACTION)
            elif side.batch or len(side.contracting) > 1 or len(side.free) > 1:
                wanted, _ = _matrix(side)
                yield OperandDemand(side.number, wanted, MATRIX_OPERAND)
            elif _comes_from_automatic(operand, view):
                wanted, is_forced = _matrix(side)
                yield OperandDemand(side.number, wanted, AUTOMATIC_OPERAND, mandatory=False, depth_first=not is_forced)
        left, right = both
        if left.batch or len(left.free) > 1 or len(right.free) > 1:
            yield _result(dot, view)

    return demand


def _needs_minor_contraction(dot: Instruction, both: tuple[Side, Side], facts: GpuFacts) -> bool:
    types = [side.shape.element_type for side in both]
    if array_of(dot.shape).element_type is ElementType.S32 and types == [ElementType.S8, ElementType.S8]:
        return True
    return _FP8.issuperset(types) and not facts.is_blackwell


def is_packed(instruction: Instruction, known: dict[Instruction, bool] | None = None) -> bool:
    """Whether sub-byte elements stand somewhere up the chain of unary and binary elementwise operations.

    Args:
        known: answers found before, kept up to date: products in a row would walk the same chains again and again.
    """
    answers = {} if known is None else known
    pending = [instruction]
    while pending:
        current = pending[-1]
        sources = _elementwise_sources(current)
        if current in answers:
            pending.pop()
        elif _has_sub_byte_elements(current):
            answers[current] = True
        elif unknown := [source for source in sources if source not in answers]:
            pending += unknown
        else:
            answers[current] = any(answers[source] for source in sources)
    return answers[instruction]


def _elementwise_sources(instruction: Instruction) -> tuple[Instruction, ...]:
    is_chain = instruction.operand_count == 1 or instruction.opcode in ELEMENTWISE_BINARY
    return instruction.operands if is_chain else ()


def _has_sub_byte_elements(instruction: Instruction) -> bool:
    array = as_array(instruction.shape)
    return array is not None and array.element_type.bits < 8 and not array.element_type.is_pred


def _contraction_minor(side: Side) -> Shape:
    order = side.shape.layout.minor_to_major if side.shape.layout is not None else ()
    if (
        order
        and set(order[: len(side.contracting)]) <= set(side.contracting)
        and is_matrix(order, side.batch, side.free, side.contracting)
    ):
        return side.shape
    return _from_major(side.shape, (*side.batch, *side.free, *side.contracting))


def _matrix(side: Side) -> tuple[ArrayShape, bool]:
    """The standing layout, the default, or one made to fit; and whether it had to be made."""
    for candidate in (side.shape, in_default_order(side.shape)):
        order = None if candidate.layout is None else candidate.layout.minor_to_major
        if order is not None and is_matrix(order, side.batch, side.contracting, side.free):
            return candidate, False
    return _from_major(side.shape, (*side.batch, *side.contracting, *side.free)), True


def _from_major(shape: ArrayShape, major_to_minor: Order) -> ArrayShape:
    return shape.with_layout(layout(major_to_minor[::-1]))


def _comes_from_automatic(instruction: Instruction, view: View) -> bool:
    """Whether an automatic entry parameter stands up the chain of unary operations, transposes, reshapes, concatenates."""
    assert instruction.parent is not None, instruction
    if not instruction.parent.is_entry:
        return False
    pending = [instruction]
    while pending:
        current = pending.pop()
        while _passes_layout(current):
            current = current.operand(0)
        if current.opcode is Opcode.CONCATENATE:
            pending += current.operands
        elif current.opcode is Opcode.PARAMETER and view.is_automatic_parameter(current):
            return True
    return False


def _passes_layout(instruction: Instruction) -> bool:
    if instruction.opcode in (Opcode.TRANSPOSE, Opcode.RESHAPE):
        return True
    return instruction.operand_count == 1 and is_elementwise(instruction)


def result_is_matrix(dot: Instruction, order: Order) -> bool:
    """Whether a product can write its result in this order: batch, rows (left free), columns (right free)."""
    left, right = sides(dot)
    batch = max(len(left.batch), len(right.batch))
    rows = batch + len(left.free)
    if len(order) != rows + len(right.free):
        return False
    groups = tuple(range(len(order)))
    return is_matrix(order, groups[:batch], groups[batch:rows], groups[rows:])


def _result(dot: Instruction, view: View) -> Demand:
    for user, number in dot.uses:
        wanted = view.operand_shape(user, number)
        array = None if wanted is None else as_array(wanted)
        if array is not None and array.layout is not None and result_is_matrix(dot, array.layout.minor_to_major):
            return ResultDemand(array, RESULT_FOR_USER)
    array = array_of(dot.shape)
    return ResultDemand(array.with_layout(default_layout(array.rank)), MATRIX_RESULT)


def transpose_of_dot(transpose: Instruction, _view: View) -> Iterator[Demand]:
    """A product that only a transpose reads is written so that the transpose's default result is a bitcast."""
    dot = transpose.operand(0)
    if dot.opcode is not Opcode.DOT or dot.user_count > 1:
        return
    wanted = _from_major(array_of(dot.shape), dimensions_of(transpose))
    if result_is_matrix(dot, wanted.minor_to_major):
        yield OperandDemand(0, wanted, TRANSPOSED_DOT)
