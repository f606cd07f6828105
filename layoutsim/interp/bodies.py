"""Bodies of reductions, scatters, sorts and maps: scalar computations evaluated for many elements at once.

A body of elementwise instructions on scalars runs unchanged on arrays of any equal (or broadcastable) dimensions: element i of
every instruction is what the body computes for element i. Bodies with anything else (loops, calls of unknown code, ...) run
element by element.
"""

from __future__ import annotations

import numpy as np

from layoutsim.interp.registry import Runner
from layoutsim.interp.values import Array, Value, as_array
from layoutsim.ir import ArrayShape, Computation, Instruction, Opcode, TupleShape
from layoutsim.ir.opcode import ELEMENTWISE
from layoutsim.ir.payloads import ComparePayload

_PLUMBING = frozenset(
    {
        Opcode.PARAMETER,
        Opcode.CONSTANT,
        Opcode.TUPLE,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.BROADCAST,
        Opcode.RESHAPE,
        Opcode.OPT_BARRIER,
    }
)
_CALLERS = frozenset({Opcode.CALL, Opcode.FUSION})
_SIMPLE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


class Body:
    """A computation on scalars, applied to arrays."""

    def __init__(self, computation: Computation, runner: Runner) -> None:
        self.computation = computation
        self.runner = runner
        self._is_pointwise = is_pointwise(computation)

    def apply(self, *arguments: Array) -> tuple[Array, ...]:
        """The results for every element, as many as the body's root has."""
        arguments = tuple(map(np.asarray, arguments))  # a row of a vector is a numpy scalar
        if self._is_pointwise:
            root = self.runner.run(self.computation, arguments)
            sizes = np.broadcast_shapes(*(argument.shape for argument in arguments))
            return tuple(np.broadcast_to(as_array(part), sizes) for part in _parts(root))
        return self._apply_one_by_one(np.broadcast_arrays(*arguments))

    def _apply_one_by_one(self, arguments: tuple[Array, ...] | list[Array]) -> tuple[Array, ...]:
        sizes = arguments[0].shape
        rows = zip(*(argument.reshape(-1) for argument in arguments), strict=True)
        results = [_parts(self.runner.run(self.computation, tuple(np.asarray(x) for x in row))) for row in rows]
        columns = zip(*results, strict=True)
        return tuple(np.array([as_array(x) for x in column]).reshape(sizes) for column in columns)


def _parts(root: Value) -> tuple[Value, ...]:
    return root if isinstance(root, tuple) else (root,)


def is_pointwise(computation: Computation) -> bool:
    """Whether the computation may run on arrays in place of scalars."""
    return all(map(_is_pointwise, computation.instructions))


def _is_pointwise(instruction: Instruction) -> bool:
    if not _is_scalar(instruction):
        return False
    if instruction.opcode in _CALLERS:
        return is_pointwise(instruction.to_apply)
    if instruction.opcode is Opcode.BITCAST_CONVERT:
        return _bits(instruction) == _bits(instruction.operand(0))
    return instruction.opcode in ELEMENTWISE or instruction.opcode in _PLUMBING


def _is_scalar(instruction: Instruction) -> bool:
    shape = instruction.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return all(isinstance(part, ArrayShape) and not part.dimensions for part in parts)


def _bits(instruction: Instruction) -> int:
    assert isinstance(instruction.shape, ArrayShape)
    return instruction.shape.element_type.bits


def simple_operation(computation: Computation) -> str:
    """``add``, ``maximum``, ... where the body is just that on its two parameters; ``second`` where it returns the second.

    Empty for every other body.
    """
    root = computation.root
    if root.opcode is Opcode.PARAMETER:
        return "second" if len(computation.parameters) == 2 and root.parameter_number == 1 else ""
    if root.opcode.value not in _SIMPLE or len(computation.parameters) != 2:
        return ""
    numbers = sorted(o.parameter_number for o in root.operands if o.opcode is Opcode.PARAMETER)
    same_type = all(o.shape == root.shape for o in root.operands)
    return root.opcode.value if numbers == [0, 1] and same_type else ""


def comparison_of_first_pair(computation: Computation) -> ComparePayload | None:
    """The comparison where a comparator is one ``compare`` of parameters 0 and 1, in that order."""
    root = computation.root
    if root.opcode is not Opcode.COMPARE or any(o.opcode is not Opcode.PARAMETER for o in root.operands):
        return None
    return root.payload_as(ComparePayload) if [o.parameter_number for o in root.operands] == [0, 1] else None
