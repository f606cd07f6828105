"""What an opcode does with layouts, whatever the backend (layout spec, sections 7.1 to 7.3; ``layout_assignment.cc``).

An instruction *keeps* layouts if its operands of the result's rank must be laid out like the result; XLA says it cannot
change layout. All others may take operands in one layout and deliver another.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from layoutsim.ir import (
    ArrayShape,
    BufferShape,
    Instruction,
    Layout,
    Opcode,
    Shape,
    ShapeIndex,
    TupleShape,
    compatible,
    leaves,
    map_arrays,
    tuple_shape,
)
from layoutsim.ir.payloads import CollectivePayload, CustomCallPayload, DimensionsPayload, FusionPayload
from layoutsim.passes.layout_assignment.layout_math import (
    Order,
    align,
    only_ones_change,
    true_rank,
)


def opcodes(names: str) -> frozenset[Opcode]:
    """The opcodes spelled in ``names``."""
    return frozenset(map(Opcode, names.split()))


KEEPS_LAYOUT = (
    opcodes(  # elementwise
        "abs acos acosh asin asinh atanh ceil count-leading-zeros convert cosine cosh erf exponential exponential-minus-one "
        "floor imag is-finite log log-plus-one logistic negate not popcnt real reduce-precision round-nearest-afz "
        "round-nearest-even rsqrt sign sine sinh sqrt cbrt tan tanh bitcast-convert add and atan2 compare complex divide "
        "maximum minimum multiply mulhi or xor power remainder shift-left shift-right-arithmetic shift-right-logical subtract "
        "stochastic-convert clamp select map"
    )
    | opcodes(  # data movement
        "add-dependency concatenate dynamic-slice dynamic-update-slice pad reverse slice set-dimension-size opt-barrier "
        "scatter sort topk"
    )
    | opcodes("fft reduce-window select-and-scatter triangular-solve cholesky scan while")
    | opcodes(  # collectives
        "all-gather all-gather-start all-gather-done all-to-all ragged-all-to-all collective-broadcast collective-permute "
        "all-reduce all-reduce-start all-reduce-done reduce-scatter"
    )
)


def keeps_layout(instruction: Instruction) -> bool:
    """Whether same-rank operands must have the result's layout (XLA: not InstructionCanChangeLayout)."""
    if instruction.opcode is Opcode.CUSTOM_CALL:
        return instruction.custom_call_target == "LayoutConstraint"
    return instruction.opcode in KEEPS_LAYOUT


def is_constrained_custom_call(instruction: Instruction) -> bool:
    """Whether a custom call states the layouts of its operands."""
    payload = instruction.payload
    return isinstance(payload, CustomCallPayload) and payload.operand_layout_constraints is not None


def output_operand_numbers(instruction: Instruction) -> tuple[int, ...]:
    """The operands whose buffers a custom call's output shares, each once."""
    aliasing = instruction.payload_as(CustomCallPayload).output_to_operand_aliasing
    return tuple(dict.fromkeys(alias.operand_number for alias in aliasing))


def is_constrained_collective(instruction: Instruction) -> bool:
    """Whether a collective's layouts are fixed (``constrain_layout=true``)."""
    payload = instruction.payload
    return isinstance(payload, CollectivePayload) and payload.constrain_layout


def propagates_depth_first(instruction: Instruction) -> bool:
    """Whether a layout that passes through is followed at once: its layouts mean something, and are worth spreading."""
    match instruction.opcode:
        case Opcode.FUSION:
            return instruction.payload_as(FusionPayload).kind == "kCustom"
        case Opcode.GATHER | Opcode.SCATTER | Opcode.TRANSPOSE:
            return True
        case Opcode.RESHAPE:
            source, result = array_of(instruction.operand(0).shape), array_of(instruction.shape)
            return source.rank == 1 or only_ones_change(source.dimensions, result.dimensions)
        case _:
            return False


def as_array(shape: Shape) -> ArrayShape | None:
    """The array, also the one inside a ``b(...)`` buffer; ``None`` for tuples, tokens and opaque values."""
    if isinstance(shape, ArrayShape):
        return shape
    return shape.array if isinstance(shape, BufferShape) else None


@cache
def layout_leaves(shape: Shape) -> tuple[tuple[ShapeIndex, ArrayShape], ...]:
    """Every part that has a layout, with its index: arrays and the arrays inside ``b(...)`` buffers."""
    found = ((index, as_array(part)) for index, part in leaves(shape))
    return tuple((index, array) for index, array in found if array is not None)


@cache
def orders_match(a: Shape, b: Shape, *, dynamic_matters: bool = False) -> bool:
    """Whether two compatible shapes have the same ``minor_to_major`` at every leaf (or none at both)."""
    if a is b:
        return True
    if not compatible(a, b):
        return False
    pairs = zip(layout_leaves(a), layout_leaves(b), strict=True)
    return all(_order(x) == _order(y) and (not dynamic_matters or x.dynamic == y.dynamic) for (_, x), (_, y) in pairs)


def _order(leaf: ArrayShape) -> Order | None:
    return None if leaf.layout is None else leaf.layout.minor_to_major


def with_layouts(shape: Shape, found: Mapping[ShapeIndex, Layout], at: ShapeIndex = ()) -> Shape:
    """``shape`` with the layout of each leaf in ``found``; the other leaves as they are."""
    match shape:
        case TupleShape():
            return tuple_shape(tuple(with_layouts(part, found, (*at, i)) for i, part in enumerate(shape.elements)))
        case ArrayShape():
            return shape.with_layout(found[at]) if at in found else shape
        case BufferShape():
            return BufferShape(shape.array.with_layout(found[at])) if at in found else shape
        case _:
            return shape


def array_of(shape: Shape) -> ArrayShape:
    """The array, where the caller knows that there is one."""
    array = as_array(shape)
    assert array is not None, f"{shape} is not an array"
    return array


@cache
def is_at_most_rank_1(shape: Shape) -> bool:
    """Whether every array in the shape has rank 0 or 1; such values are never propagated."""
    if isinstance(shape, TupleShape):
        return all(is_at_most_rank_1(element) for element in shape.elements)
    array = as_array(shape)
    return array is None or array.rank <= 1


@cache
def without_memory_space(shape: Shape) -> Shape:
    """``shape`` in default memory; what lives on the host is decided after layout assignment."""
    return map_arrays(shape, lambda leaf: leaf if leaf.layout is None else leaf.with_layout(leaf.layout.with_memory_space(0)))


def dimensions_of(instruction: Instruction) -> tuple[int, ...]:
    """The ``dimensions`` attribute."""
    return instruction.payload_as(DimensionsPayload).dimensions


def reshape_operand_order(source: ArrayShape, result: ArrayShape, order: Order) -> Order | None:
    """The operand order that makes a reshape with result order ``order`` a bitcast; ``None`` where both are true vectors."""
    if true_rank(source.dimensions) == 1 and true_rank(result.dimensions) == 1:
        return None
    return align(result.dimensions, order, source.dimensions)


def reshape_result_order(source: ArrayShape, result: ArrayShape, order: Order) -> Order | None:
    """The result order that makes a reshape of an operand with order ``order`` a bitcast."""
    return reshape_operand_order(result, source, order)


def row_reduction_operand_order(instruction: Instruction, order: Order) -> Order:
    """The operand order in which a reduce with result order ``order`` runs along the most minor dimensions."""
    reduced = dimensions_of(instruction)
    kept = [d for d in range(array_of(instruction.operand(0).shape).rank) if d not in reduced]
    return (*reversed(reduced), *(kept[d] for d in order))
