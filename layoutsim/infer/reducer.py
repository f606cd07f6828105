"""What every reducing opcode demands of the computation it applies (text spec, 3.6).

For k operands the computation takes 2k scalars, accumulators first, and returns k of them (for k = 1 also the bare scalar):

1. accumulator parameter i equals result i;
2. initial value i equals result i, up to floating precision;
3. parameter k + i equals the element type of input i, and result i, both up to floating precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutsim.infer.registry import ProgramShape, Site
from layoutsim.infer.shapes import compatible_up_to_precision, scalar
from layoutsim.ir import ArrayShape, ElementType, Shape, TupleShape, compatible


def reducer_results(program: ProgramShape) -> tuple[Shape, ...]:
    """The results of a reducer: elements of its tuple, or the one scalar."""
    return program.result.elements if isinstance(program.result, TupleShape) else (program.result,)


def check_reducer(
    site: Site, program: ProgramShape, initial_values: Sequence[Shape], element_types: Sequence[ElementType]
) -> None:
    """Refuse a reducer that does not fit these initial values and input element types.

    Raises:
        ShapeError: rules (1) to (3), or the number of parameters or results.
    """
    count, results = len(element_types), reducer_results(program)
    if len(program.parameters) != 2 * count:
        site.fail(f"applies a computation with {len(program.parameters)} parameters, expected {2 * count}")
    scalars = all(isinstance(result, ArrayShape) and not result.rank for result in results)
    if not scalars or len(results) != count:
        expected = "a scalar" if count == 1 else f"a tuple of {count} scalars"
        site.fail(f"applies a computation that returns {program.result}, expected {expected}")
    for i, (result, initial, element_type) in enumerate(zip(results, initial_values, element_types, strict=True)):
        accumulator, incoming = program.parameters[i], program.parameters[count + i]
        if not compatible(result, accumulator):  # (1)
            site.fail(f"parameter {i} of its computation has shape {accumulator}, expected {result} (same as its result {i})")
        if not compatible_up_to_precision(result, initial):  # (2)
            site.fail(f"initial value {i} has shape {initial}, expected {result} (same as result {i} of its computation)")
        for expected, of in ((scalar(element_type), f"element of operand {i}"), (result, f"result {i} of the computation")):
            if not compatible_up_to_precision(expected, incoming):  # (3)
                site.fail(f"parameter {count + i} of its computation has shape {incoming}, expected {expected} ({of})")
