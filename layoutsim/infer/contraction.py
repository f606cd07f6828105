"""Shape rules of contractions: dots and convolutions (text spec, 3.6 and 3.10).

A stated element type is accepted as it is (XLA's ``preferred_element_type``); without one the higher operand type is inferred.
All results have the default layout.
"""

from __future__ import annotations

import re
from enum import Enum

from layoutsim.infer.registry import Site, shape_rule
from layoutsim.infer.shapes import dynamic_flags, higher_type, new_array, sizes_agree
from layoutsim.infer.windows import window_sizes
from layoutsim.ir import UNBOUNDED, ArrayShape, ElementType, Opcode, Shape, TupleShape
from layoutsim.ir.payloads import ConvolutionDimensionNumbers, ConvolutionPayload, DotPayload, RaggedDotPayload

Ints = tuple[int, ...]


def _result_type(site: Site, left: ArrayShape, right: ArrayShape) -> ElementType:
    if isinstance(site.stated, ArrayShape):
        return site.stated.element_type
    return higher_type(left.element_type, right.element_type)


# -- dots ----------------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.DOT)
def _dot(site: Site) -> Shape:
    return _dot_result(site, site.payload_as(DotPayload))


def _dot_result(site: Site, dot: DotPayload, *, groups: Ints = (), leading: tuple[tuple[int, bool], ...] = ()) -> ArrayShape:
    """``leading`` dimensions, batch dimensions in the left order, free left ones, free right ones that are not ``groups``."""
    left, right = site.array(0), site.array(1)
    _check_dot(site, left, right, dot)
    left_free = _free(left.rank, dot.lhs_contracting_dims, dot.lhs_batch_dims)
    right_free = _free(right.rank, dot.rhs_contracting_dims, dot.rhs_batch_dims, groups)
    dimensions = [*leading]
    for shape, kept in ((left, [*dot.lhs_batch_dims, *left_free]), (right, right_free)):
        flags = dynamic_flags(shape)
        dimensions += [(shape.dimensions[d], flags[d]) for d in kept]
    return new_array(_result_type(site, left, right), (size for size, _ in dimensions), (flag for _, flag in dimensions))


def _free(rank: int, *taken: Ints) -> list[int]:
    return [d for d in range(rank) if not any(d in dims for dims in taken)]


def _check_dot(site: Site, left: ArrayShape, right: ArrayShape, dot: DotPayload) -> None:
    for name, shape, contracting, batch in (
        ("lhs", left, dot.lhs_contracting_dims, dot.lhs_batch_dims),
        ("rhs", right, dot.rhs_contracting_dims, dot.rhs_batch_dims),
    ):
        numbers = (*contracting, *batch)
        if len(set(numbers)) != len(numbers) or any(not 0 <= d < shape.rank for d in numbers):
            site.fail(f"has {name} dimensions {numbers}, expected distinct numbers in 0..{shape.rank - 1}")
    for name, lefts, rights in (
        ("contracting", dot.lhs_contracting_dims, dot.rhs_contracting_dims),
        ("batch", dot.lhs_batch_dims, dot.rhs_batch_dims),
    ):
        if len(lefts) != len(rights):
            site.fail(f"has {len(lefts)} lhs and {len(rights)} rhs {name} dimensions, expected as many")
        for a, b in zip(lefts, rights, strict=True):
            if not sizes_agree(left.dimensions[a], right.dimensions[b]):
                site.fail(f"{name} dimension {b} of operand 1, {right}, has another size than dimension {a} of {left}")


@shape_rule(Opcode.SCALED_DOT)
def _scaled_dot(site: Site) -> Shape:
    """A dot of operands 0 and 1. XLA's parser infers from operands 0 and 2, an old order; its verifier does as we do."""
    dot = site.payload_as(DotPayload)
    for number, contracting in ((0, dot.lhs_contracting_dims), (1, dot.rhs_contracting_dims)):
        _check_scale(site, number, contracting)
    if not site.array(2).rank and not site.array(3).rank:
        site.fail("both scales are scalars, expected at most one")
    return _dot_result(site, dot)


def _check_scale(site: Site, number: int, contracting: Ints) -> None:
    operand, scale = site.array(number), site.array(number + 2)
    ones = all(size == 1 for size in scale.dimensions) and any(size != 1 for size in operand.dimensions)
    if scale.element_type is operand.element_type is ElementType.BF16 and ones:
        return  # how a missing scale is written
    if scale.rank != operand.rank:
        site.fail(f"operand {number + 2} has shape {scale}, expected rank {operand.rank} (same as operand {number})")
    if len(contracting) != 1:
        site.fail(f"has {len(contracting)} contracting dimensions, expected one where operand {number} is scaled")
    for d, (size, part) in enumerate(zip(operand.dimensions, scale.dimensions, strict=True)):
        if part == 0 or size % part:
            site.fail(
                f"operand {number + 2} has size {part} in dimension {d}, expected a divisor of {size} of operand {number}"
            )


class RaggedMode(Enum):
    """Which kind of left dimension is ragged."""

    NON_CONTRACTING = "non-contracting"
    """``[b,m,k], [g,b,k,n], [b,g] -> [b,m,n]``"""
    CONTRACTING = "contracting"
    """``[b,m,k], [b,k,n], [b,g] -> [g,b,m,n]``"""
    BATCH = "batch"
    """``[b,m,k], [b,k,n], [g] -> [b,m,n]``"""


def ragged_mode(payload: RaggedDotPayload) -> RaggedMode:
    """The mode of a ragged dot with one ragged dimension."""
    (ragged,) = payload.lhs_ragged_dims
    if ragged in payload.dot.lhs_batch_dims:
        return RaggedMode.BATCH
    return RaggedMode.CONTRACTING if ragged in payload.dot.lhs_contracting_dims else RaggedMode.NON_CONTRACTING


@shape_rule(Opcode.RAGGED_DOT)
def _ragged_dot(site: Site) -> Shape:
    left, right, sizes = site.arrays()
    payload = site.payload_as(RaggedDotPayload)
    _check_dot(site, left, right, payload.dot)
    if len(payload.lhs_ragged_dims) != 1 or not 0 <= payload.lhs_ragged_dims[0] < left.rank:
        site.fail(f"has lhs_ragged_dims {payload.lhs_ragged_dims}, expected one of the {left.rank} dimensions of {left}")
    mode = ragged_mode(payload)
    _check_group_sizes(site, payload, mode)
    _check_group_dims(site, payload, mode)
    group = (sizes.dimensions[-1], dynamic_flags(sizes)[-1])
    leading = (group,) if mode is RaggedMode.CONTRACTING else ()
    return _dot_result(site, payload.dot, groups=payload.rhs_group_dims, leading=leading)


def _check_group_sizes(site: Site, payload: RaggedDotPayload, mode: RaggedMode) -> None:
    """Either one size for each group, or that for everything in front of the ragged dimension."""
    left, sizes = site.array(0), site.array(2)
    if sizes.rank == 1:
        return
    ragged, dot = payload.lhs_ragged_dims[0], payload.dot
    kinds = {
        RaggedMode.BATCH: dot.lhs_batch_dims,
        RaggedMode.CONTRACTING: dot.lhs_contracting_dims,
        RaggedMode.NON_CONTRACTING: tuple(_free(left.rank, dot.lhs_contracting_dims, dot.lhs_batch_dims)),
    }
    before = kinds[mode][: kinds[mode].index(ragged)]
    prefix = before if mode is RaggedMode.BATCH else (*dot.lhs_batch_dims, *before)
    expected = tuple(left.dimensions[d] for d in prefix)
    if sizes.rank != len(expected) + 1 or sizes.dimensions[:-1] != expected:
        site.fail(f"operand 2 has shape {sizes}, expected one dimension, or the dimensions {expected} and then the groups")


def _check_group_dims(site: Site, payload: RaggedDotPayload, mode: RaggedMode) -> None:
    right, groups = site.array(1), payload.rhs_group_dims
    expected = 1 if mode is RaggedMode.NON_CONTRACTING else 0
    if len(groups) != expected:
        site.fail(f"has {len(groups)} rhs_group_dims, expected {expected} where the ragged dimension is {mode.value}")
    for d in groups:
        free = _free(right.rank, payload.dot.rhs_contracting_dims, payload.dot.rhs_batch_dims)
        if d not in free:
            site.fail(f"has rhs_group_dims {groups}, expected a free dimension of {right}")
        if not sizes_agree(right.dimensions[d], site.array(2).dimensions[-1]):
            site.fail(f"operand 1 has size {right.dimensions[d]} in dimension {d}, expected the number of groups of operand 2")


# -- convolution ---------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.CONVOLUTION)
def _convolution(site: Site) -> Shape:
    inputs, kernel = site.array(0), _kernel(site)
    payload = site.payload_as(ConvolutionPayload)
    numbers = payload.dimension_numbers
    _check_dimension_numbers(site, inputs, kernel, payload)
    _check_features(site, inputs, kernel, payload)
    spatial = [inputs.dimensions[d] for d in numbers.input_spatial]
    sizes, flags = [0] * inputs.rank, [False] * inputs.rank
    sizes[numbers.output_batch] = _divided(inputs.dimensions[numbers.input_batch], payload.batch_group_count)
    sizes[numbers.output_feature] = kernel.dimensions[numbers.kernel_output_feature]
    for d, size in zip(numbers.output_spatial, window_sizes(site, spatial, payload.window), strict=True):
        sizes[d] = size
    input_flags, kernel_flags = dynamic_flags(inputs), dynamic_flags(kernel)
    flags[numbers.output_batch] = input_flags[numbers.input_batch]
    for out, a, b in zip(numbers.output_spatial, numbers.input_spatial, numbers.kernel_spatial, strict=True):
        flags[out] = input_flags[a] or kernel_flags[b]
    return new_array(_result_type(site, inputs, kernel), sizes, flags)


def _divided(size: int, count: int) -> int:
    return size if size == UNBOUNDED else size // count


def _kernel(site: Site) -> ArrayShape:
    """Operand 1; a sparse kernel is a tuple of its values and their places."""
    shape = site.operands[1]
    if isinstance(shape, TupleShape) and len(shape.elements) == 2 and isinstance(shape.elements[0], ArrayShape):
        return shape.elements[0]
    return site.array(1)


def _check_dimension_numbers(site: Site, inputs: ArrayShape, kernel: ArrayShape, payload: ConvolutionPayload) -> None:
    numbers = payload.dimension_numbers
    rank = len(numbers.input_spatial) + 2
    if len(payload.window.dimensions) != rank - 2:
        site.fail(f"has a window of {len(payload.window.dimensions)} dimensions, expected {rank - 2} spatial ones")
    for number, shape in ((0, inputs), (1, kernel)):
        if shape.rank != rank:
            site.fail(f"operand {number} has shape {shape}, expected rank {rank}")
    for name, numbered in _numberings(numbers):
        if sorted(numbered) != list(range(rank)):
            site.fail(f"has {name} dimensions {numbered}, expected each of 0..{rank - 1} once")
    sizes = tuple(dimension.size for dimension in payload.window.dimensions)
    spatial = tuple(kernel.dimensions[d] for d in numbers.kernel_spatial)
    if sizes != spatial:
        site.fail(f"has window size {sizes}, expected {spatial} of operand 1, {kernel}")


def _numberings(numbers: ConvolutionDimensionNumbers) -> tuple[tuple[str, Ints], ...]:
    return (
        ("input", (numbers.input_batch, numbers.input_feature, *numbers.input_spatial)),
        ("kernel", (numbers.kernel_input_feature, numbers.kernel_output_feature, *numbers.kernel_spatial)),
        ("output", (numbers.output_batch, numbers.output_feature, *numbers.output_spatial)),
    )


def _check_features(site: Site, inputs: ArrayShape, kernel: ArrayShape, payload: ConvolutionPayload) -> None:
    numbers, features, batches = payload.dimension_numbers, payload.feature_group_count, payload.batch_group_count
    if features < 1 or batches < 1 or (features > 1 and batches > 1):
        site.fail(f"has feature_group_count {features} and batch_group_count {batches}, expected positive, and one of them 1")
    incoming, outgoing = inputs.dimensions[numbers.input_feature], kernel.dimensions[numbers.kernel_output_feature]
    per_group = kernel.dimensions[numbers.kernel_input_feature] * _sparse_block(site, payload)
    if incoming != UNBOUNDED and incoming != features * per_group:
        site.fail(f"operand 0 has {incoming} features, expected {features} groups of {per_group} of operand 1, {kernel}")
    for count in (features, batches):
        if outgoing != UNBOUNDED and outgoing % count:
            site.fail(f"operand 1 has {outgoing} output features, expected a multiple of the group count {count}")
    batch = inputs.dimensions[numbers.input_batch]
    if batch != UNBOUNDED and batch % batches:
        site.fail(f"operand 0 has batch size {batch}, expected a multiple of batch_group_count {batches}")
    if dynamic_flags(kernel)[numbers.kernel_output_feature]:
        site.fail(f"operand 1 has shape {kernel}, expected a static output feature dimension")


def _sparse_block(site: Site, payload: ConvolutionPayload) -> int:
    """Input features that one stored kernel value stands for: N of a 1:N sparse kernel."""
    match = re.search(r"rhs=\{[^}]*sparsity=(\d+)x(\d+)", payload.sparsity_config)
    if match is None:
        return 1
    if match.group(1) != "1":
        site.fail(f"has sparsity {match.group(1)}x{match.group(2)}, expected 1xN")
    return int(match.group(2))
