"""Running a module on made-up inputs, so that two versions of it can be compared.

1. Arguments differ between devices and elements: small integers (which index operands need) and normal floats.
2. A custom call that nobody knows returns a mixture of its operands that depends on every element, so that a wrong operand
   shows in the result.
3. Random numbers and infeeds come in the order in which instructions run, which a pass may change; modules with more than
   one such instruction are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import frozen

from layoutsim.interp import Difference, Interpreter, Options, Value, compare_values
from layoutsim.interp.options import CustomCallHandler
from layoutsim.interp.values import TOKEN_VALUE, arrays_of, value_from
from layoutsim.ir import ArrayShape, Instruction, Module, Opcode, Shape, TupleShape
from layoutsim.ir.payloads import CustomCallPayload

MAX_TRIPS = 1000
_FEEDS = 200
_IN_ORDER = (Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE, Opcode.INFEED, Opcode.OUTFEED)
_KNOWN_CALLS = frozenset({"MoveToHost", "MoveToDevice", "LayoutConstraint", "Sharding", "Pin", "Unpin", "TopK"})

Array = np.ndarray[Any, np.dtype[Any]]


@frozen(eq=False)
class Inputs:
    """What a module is run on.

    Attributes:
        arguments: for each device, for each entry parameter.
        options: of the interpreter.
    """

    arguments: tuple[tuple[Value, ...], ...]
    options: Options


def why_not_comparable(module: Module) -> str:
    """Why results before and after a pass may differ by right, or an empty string (3)."""
    for opcode in _IN_ORDER:
        count = sum(i.opcode is opcode for c in module.computations for i in c.instructions)
        if count > 1:
            return f"{count} instructions {opcode}, whose order is free"
    return ""


def inputs_for(module: Module, seed: int) -> Inputs:
    """Inputs of a module; equal seeds and parameter shapes, equal arguments.

    Raises:
        EvaluationError: the module's collectives contradict its number of devices.
    """
    generator = np.random.default_rng(seed)
    infeeds = [i.shape for c in module.computations for i in c.instructions if i.opcode is Opcode.INFEED]
    fed = tuple(_value(generator, s.elements[0]) for s in infeeds[:1] if isinstance(s, TupleShape)) * _FEEDS
    options = Options(custom_calls=_handlers(module), infeed=fed, max_trips=MAX_TRIPS)
    count = Interpreter(module, options).devices.count
    shapes = [p.shape for p in module.entry.parameters]
    return Inputs(tuple(tuple(_value(generator, shape) for shape in shapes) for _ in range(count)), options)


def run(module: Module, inputs: Inputs) -> tuple[Value, ...]:
    """The result on each device.

    Raises:
        EvaluationError: the module cannot be executed.
        UnsupportedError: it holds what the interpreter does not model.
    """
    with np.errstate(all="ignore"):
        return Interpreter(module, inputs.options).run(inputs.arguments)


def first_difference(actual: tuple[Value, ...], expected: tuple[Value, ...], shape: Shape) -> tuple[int, Difference] | None:
    """The first device whose result is out of tolerance, and where."""
    for device, (a, b) in enumerate(zip(actual, expected, strict=True)):
        if found := compare_values(a, b, shape):
            return device, found[0]
    return None


# -- values --------------------------------------------------------------------------------------------------------------


def _value(generator: np.random.Generator, shape: Shape) -> Value:
    match shape:
        case TupleShape():
            return tuple(_value(generator, element) for element in shape.elements)
        case ArrayShape():
            return value_from(_numbers(generator, shape), shape)
        case _:
            return value_from(None, shape)


def _numbers(generator: np.random.Generator, shape: ArrayShape) -> Array:
    kind, sizes = shape.element_type, shape.dimensions
    if kind.is_pred:
        return generator.random(sizes) < 0.5
    if kind.is_floating:
        return generator.normal(size=sizes).astype(np.float32)
    if kind.is_integral:
        low = 0 if str(kind).startswith("u") else -2
        return generator.integers(low, min(6, 1 << (kind.bits - 2)) if kind.bits > 2 else 1, sizes)
    return generator.normal(size=sizes) + 1j * generator.normal(size=sizes)


# -- custom calls (2) ------------------------------------------------------------------------------------------------------


def _handlers(module: Module) -> Mapping[str, CustomCallHandler]:
    calls = [i for c in module.computations for i in c.instructions if i.opcode is Opcode.CUSTOM_CALL]
    targets = {i.payload_as(CustomCallPayload).custom_call_target: None for i in calls}
    return {target: _mixture for target in targets if target not in _KNOWN_CALLS}


def _mixture(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    arrays = list(arrays_of(operands))
    with np.errstate(all="ignore"):
        return _mixed_value(instruction.shape, arrays)


def _mixed_value(shape: Shape, arrays: list[Array]) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(_mixed_value(element, arrays) for element in shape.elements)
    return value_from(_mixed(shape, arrays), shape) if isinstance(shape, ArrayShape) else TOKEN_VALUE


def _mixed(shape: ArrayShape, arrays: list[Array]) -> Array:
    """Position by position where dimensions agree, a weighted sum of all elements otherwise."""
    total = np.arange(shape.element_count, dtype=np.float64).reshape(shape.dimensions) / 8
    for number, array in enumerate(arrays):
        values = np.real(array).astype(np.float64) % 64
        if array.shape == shape.dimensions:
            total = total + values / (number + 2)
        elif values.size:
            total = total + float(values.reshape(-1) @ np.cos(np.arange(values.size))) / (values.size * (number + 2))
    return np.floor(total) % 16 if shape.element_type.is_integral else total > 1 if shape.element_type.is_pred else total


__all__ = ["Inputs", "first_difference", "inputs_for", "run", "why_not_comparable"]
