"""Shape rules of reductions, windows, scans, sorts, transforms and solvers (text spec, 3.6).

Results are built anew in default layout, except where a rule returns an operand's shape (select-and-scatter, sort, fft,
cholesky, triangular-solve, batch-norm).
"""

from __future__ import annotations

from layoutsim.infer.reducer import check_reducer, reducer_results
from layoutsim.infer.registry import ProgramShape, Site, shape_rule
from layoutsim.infer.shapes import (
    compatible_up_to_precision,
    component_type,
    dynamic_flags,
    inserted_dimension,
    new_array,
    same_sizes,
    same_type_up_to_precision,
    scalar,
    sizes_agree,
    with_size,
    with_type,
    without_dimension,
)
from layoutsim.infer.windows import window_sizes
from layoutsim.ir import UNBOUNDED, ArrayShape, ElementType, Opcode, Shape, TupleShape, compatible, tuple_shape
from layoutsim.ir.payloads import (
    BatchNormPayload,
    DimensionsPayload,
    FftPayload,
    ScanPayload,
    SortPayload,
    TopKPayload,
    TriangularSolvePayload,
    WindowPayload,
)


def _one_or_tuple(program: ProgramShape, shapes: list[Shape]) -> Shape:
    return tuple_shape(tuple(shapes)) if isinstance(program.result, TupleShape) else shapes[0]


def _inputs_and_initials(site: Site) -> tuple[list[ArrayShape], list[ArrayShape]]:
    """The first half of the operands, of equal dimensions, and the second."""
    if not site.operands or len(site.operands) % 2:
        site.fail(f"has {len(site.operands)} operands, expected an even number: inputs and initial values")
    arrays, count = site.arrays(), len(site.operands) // 2
    _check_same_sizes(site, arrays[:count])
    return arrays[:count], arrays[count:]


def _check_same_sizes(site: Site, shapes: list[ArrayShape]) -> None:
    for number, shape in enumerate(shapes):
        if not same_sizes(shapes[0], shape):
            site.fail(f"operand {number} has shape {shape}, expected the dimensions of operand 0, {shapes[0]}")


@shape_rule(Opcode.REDUCE)
def _reduce(site: Site) -> Shape:
    inputs, initials = _inputs_and_initials(site)
    dimensions, program = site.payload_as(DimensionsPayload).dimensions, site.program()
    site.distinct("dimensions", dimensions, inputs[0].rank)
    check_reducer(site, program, initials, [shape.element_type for shape in inputs])
    kept = [d for d in range(inputs[0].rank) if d not in dimensions]
    sizes, flags = inputs[0].dimensions, dynamic_flags(inputs[0])
    results: list[Shape] = []
    for result in reducer_results(program):
        assert isinstance(result, ArrayShape), result
        results.append(new_array(result.element_type, (sizes[d] for d in kept), (flags[d] for d in kept)))
    return _one_or_tuple(program, results)


@shape_rule(Opcode.REDUCE_WINDOW)
def _reduce_window(site: Site) -> Shape:
    inputs, initials = _inputs_and_initials(site)
    program, window = site.program(), site.payload_as(WindowPayload).window
    check_reducer(site, program, initials, [shape.element_type for shape in inputs])
    sizes, flags = window_sizes(site, inputs[0].dimensions, window), dynamic_flags(inputs[0])
    return _one_or_tuple(program, [new_array(initial.element_type, sizes, flags) for initial in initials])


@shape_rule(Opcode.SELECT_AND_SCATTER)
def _select_and_scatter(site: Site) -> Shape:
    operand, source, initial = site.arrays()
    select, scatter = site.program(0, count=2), site.program(1, count=2)
    element = scalar(operand.element_type)
    if select.result != scalar(ElementType.PRED) or len(select.parameters) != 2:
        site.fail(f"selects by {select}, expected ({element}, {element}) -> pred[]")
    if not all(compatible_up_to_precision(element, parameter) for parameter in select.parameters):
        site.fail(f"selects by {select}, expected ({element}, {element}) -> pred[]")
    check_reducer(site, scatter, [initial], [source.element_type])
    sizes = window_sizes(site, operand.dimensions, site.payload_as(WindowPayload).window)
    windowed = new_array(operand.element_type, sizes, dynamic_flags(operand))
    if not compatible_up_to_precision(source, windowed):
        site.fail(f"operand 1 has shape {source}, expected {windowed}, the windows of operand 0")
    return operand


@shape_rule(Opcode.MAP)
def _map(site: Site) -> Shape:
    if not site.operands:
        site.fail("has no operands, expected at least one")
    shapes, program = site.arrays(), site.program()
    _check_same_sizes(site, shapes)
    dimensions = site.payload_as(DimensionsPayload).dimensions
    # XLA forgets the dimensions of a map whose shape is stated.
    if site.stated is None and dimensions != tuple(range(shapes[0].rank)):
        site.fail(f"has dimensions {dimensions}, expected all {shapes[0].rank} dimensions in order")
    if len(program.parameters) != len(shapes):
        site.fail(f"applies a computation with {len(program.parameters)} parameters, expected {len(shapes)}")
    for number, (shape, parameter) in enumerate(zip(shapes, program.parameters, strict=True)):
        if not compatible_up_to_precision(scalar(shape.element_type), parameter):
            site.fail(f"parameter {number} of its computation has shape {parameter}, expected {shape.element_type}[]")
    if not isinstance(program.result, ArrayShape) or program.result.rank:
        site.fail(f"applies a computation that returns {program.result}, expected a scalar")
    return new_array(program.result.element_type, shapes[0].dimensions, dynamic_flags(shapes[0]))


@shape_rule(Opcode.SCAN)
def _scan(site: Site) -> Shape:
    """Outputs with the scanned dimension, then carries; the body sees inputs without it."""
    payload, program = site.payload_as(ScanPayload), site.program()
    roots = reducer_results(program)
    inputs, outputs = len(site.operands) - payload.num_carries, len(roots) - payload.num_carries
    if payload.num_carries < 0 or inputs < 0 or outputs < 0 or not (inputs or outputs):
        site.fail(f"has {len(site.operands)} operands and {len(roots)} results, expected inputs or outputs beside the carries")
    if len(program.parameters) != len(site.operands):
        site.fail(f"applies a computation with {len(program.parameters)} parameters, expected {len(site.operands)}")
    length = _scan_length(site, inputs, payload.dimension)
    for number, (operand, parameter) in enumerate(zip(site.operands, program.parameters, strict=True)):
        expected = operand if number >= inputs else without_dimension(site.array(number), payload.dimension)
        if not compatible_up_to_precision(expected, parameter):
            site.fail(f"parameter {number} of its computation has shape {parameter}, expected {expected}")
    for number in range(payload.num_carries):
        parameter, root = program.parameters[inputs + number], roots[outputs + number]
        if not compatible_up_to_precision(parameter, root):
            site.fail(f"carry {number} of its computation has shape {root}, expected {parameter} (same as its parameter)")
    results = [_stacked(site, root, payload.dimension, length) for root in roots[:outputs]] + list(roots[outputs:])
    return _one_or_tuple(program, results)


def _scan_length(site: Site, inputs: int, dimension: int) -> int:
    """Size of the scanned dimension in the inputs; without inputs, in the stated result."""
    shapes = site.arrays()[:inputs]
    if not shapes:
        stated = site.stated_shape()
        first = stated.elements[0] if isinstance(stated, TupleShape) and stated.elements else stated
        shapes = [first] if isinstance(first, ArrayShape) else []
    for number, shape in enumerate(shapes):
        if not 0 <= dimension < shape.rank or shape.dimensions[dimension] != shapes[0].dimensions[dimension]:
            site.fail(f"operand {number} has shape {shape}, expected the scanned dimension {dimension} of equal size in all")
    return shapes[0].dimensions[dimension] if shapes else 0


def _stacked(site: Site, root: Shape, dimension: int, length: int) -> Shape:
    if not isinstance(root, ArrayShape) or not 0 <= dimension <= root.rank:
        site.fail(f"its computation returns {root}, expected an array that dimension {dimension} can be added to")
    return inserted_dimension(root, dimension, length)


# -- sorting -------------------------------------------------------------------------------------------------------------


@shape_rule(Opcode.SORT)
def _sort(site: Site) -> Shape:
    if not site.operands:
        site.fail("has no operands, expected at least one")
    shapes, program = site.arrays(), site.program()
    _check_same_sizes(site, shapes)
    dimension = site.payload_as(SortPayload).dimension
    if not 0 <= dimension < shapes[0].rank:
        site.fail(f"has dimension {dimension}, expected one of the {shapes[0].rank} dimensions of {shapes[0]}")
    if not compatible(program.result, scalar(ElementType.PRED)):
        site.fail(f"compares by a computation that returns {program.result}, expected pred[]")
    if len(program.parameters) != 2 * len(shapes):
        site.fail(f"compares by a computation with {len(program.parameters)} parameters, expected {2 * len(shapes)}")
    for number, parameter in enumerate(program.parameters):
        element = scalar(shapes[number // 2].element_type)
        if not compatible_up_to_precision(element, parameter):
            site.fail(f"parameter {number} of its computation has shape {parameter}, expected {element}")
    return shapes[0] if len(shapes) == 1 else tuple_shape(site.operands)


@shape_rule(Opcode.TOPK)
def _topk(site: Site) -> Shape:
    operand, k = site.array(0), site.payload_as(TopKPayload).k
    if not operand.rank or not 0 <= k <= operand.dimensions[-1]:
        site.fail(f"has k {k}, expected at most the last dimension of operand 0, {operand}")
    sizes, flags = (*operand.dimensions[:-1], k), (*dynamic_flags(operand)[:-1], False)
    return tuple_shape((new_array(operand.element_type, sizes, flags), new_array(ElementType.S32, sizes, flags)))


# -- transforms and solvers ----------------------------------------------------------------------------------------------


@shape_rule(Opcode.FFT)
def _fft(site: Site) -> Shape:
    operand, payload = site.array(0), site.payload_as(FftPayload)
    rank, length = len(payload.fft_length), payload.fft_length
    if not 1 <= rank <= 3 or rank > operand.rank:
        site.fail(f"has {rank} numbers in fft_length, expected 1 to 3 and at most the rank of operand 0, {operand}")
    if payload.fft_type == "RFFT":
        if operand.element_type not in (ElementType.F32, ElementType.F64):
            site.fail(f"operand 0 has element type {operand.element_type}, expected f32 or f64")
        _check_lengths(site, operand, length, length)
        whole = ElementType.C64 if operand.element_type is ElementType.F32 else ElementType.C128
        return _with_last(with_type(operand, whole), length[-1] // 2 + 1) if length[-1] else with_type(operand, whole)
    if not operand.element_type.is_complex:
        site.fail(f"operand 0 has element type {operand.element_type}, expected a complex type")
    if payload.fft_type == "IRFFT":
        half = 0 if operand.dimensions[-1] == length[-1] == 0 else length[-1] // 2 + 1
        _check_lengths(site, operand, (*length[:-1], half), length)
        return _with_last(with_type(operand, component_type(operand.element_type)), length[-1])
    return operand


def _check_lengths(site: Site, operand: ArrayShape, expected: tuple[int, ...], length: tuple[int, ...]) -> None:
    found = operand.dimensions[-len(expected) :]
    if not all(map(sizes_agree, found, expected)):
        site.fail(f"operand 0 has shape {operand}, expected last dimensions {expected} for fft_length {length}")


def _with_last(shape: ArrayShape, size: int) -> ArrayShape:
    dynamic = dynamic_flags(shape)[-1] and shape.dimensions[-1] != UNBOUNDED
    return with_size(shape, shape.rank - 1, size, dynamic=dynamic)


@shape_rule(Opcode.CHOLESKY)
def _cholesky(site: Site) -> Shape:
    return _square(site)


def _square(site: Site) -> ArrayShape:
    operand = site.array(0)
    if not (operand.element_type.is_floating or operand.element_type.is_complex):
        site.fail(f"operand 0 has element type {operand.element_type}, expected a floating or complex type")
    if operand.rank < 2 or not sizes_agree(*operand.dimensions[-2:]):
        site.fail(f"operand 0 has shape {operand}, expected two last dimensions of equal size")
    return operand


@shape_rule(Opcode.TRIANGULAR_SOLVE)
def _triangular_solve(site: Site) -> Shape:
    a, b, payload = _square(site), site.array(1), site.payload_as(TriangularSolvePayload)
    if a.element_type is not b.element_type or a.rank != b.rank or a.dimensions[:-2] != b.dimensions[:-2]:
        site.fail(f"operand 1 has shape {b}, expected element type, rank and batch dimensions of operand 0, {a}")
    shared = b.dimensions[-2 if payload.left_side else -1]
    if not sizes_agree(a.dimensions[-1], shared):
        side = "left" if payload.left_side else "right"
        site.fail(f"operand 1 has shape {b}, expected size {a.dimensions[-1]} where operand 0 is on the {side}, not {shared}")
    if not payload.transpose_a:
        site.fail("has no transpose_a, expected NO_TRANSPOSE, TRANSPOSE or ADJOINT")
    return b


# -- batch normalisation -------------------------------------------------------------------------------------------------


@shape_rule(Opcode.BATCH_NORM_TRAINING)
def _batch_norm_training(site: Site) -> Shape:
    operand, feature = _batch_norm(site, vectors=(1, 2))
    return tuple_shape((operand, feature, feature))


@shape_rule(Opcode.BATCH_NORM_INFERENCE)
def _batch_norm_inference(site: Site) -> Shape:
    return _batch_norm(site, vectors=(1, 2, 3, 4))[0]


@shape_rule(Opcode.BATCH_NORM_GRAD)
def _batch_norm_grad(site: Site) -> Shape:
    operand, feature = _batch_norm(site, vectors=(1, 2, 3))
    if not compatible_up_to_precision(operand, site.array(4)):
        site.fail(f"operand 4 has shape {site.operands[4]}, expected {operand} (same as operand 0)")
    return tuple_shape((operand, feature, feature))


def _batch_norm(site: Site, *, vectors: tuple[int, ...]) -> tuple[ArrayShape, ArrayShape]:
    """The operand and a vector of its features; operands ``vectors`` must be such vectors."""
    operand, index = site.array(0), site.payload_as(BatchNormPayload).feature_index
    if not operand.element_type.is_floating:
        site.fail(f"operand 0 has element type {operand.element_type}, expected a floating type")
    if not 0 <= index < operand.rank:
        site.fail(f"has feature_index {index}, expected one of the {operand.rank} dimensions of {operand}")
    count = operand.dimensions[index]
    for number in vectors:
        vector = site.array(number)
        same_type = same_type_up_to_precision(vector.element_type, operand.element_type)
        if vector.rank != 1 or not same_type or not sizes_agree(vector.dimensions[0], count):
            site.fail(f"operand {number} has shape {vector}, expected {operand.element_type}[{count}]")
    return operand, new_array(operand.element_type, (count,), (dynamic_flags(operand)[index],))
