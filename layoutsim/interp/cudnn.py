"""The custom calls that XLA's GPU compiler puts in place of convolutions (``xla/service/gpu/cublas_cudnn.h``).

Window, dimension labels and group count are always those of the *forward* convolution of input and kernel to output:

* ``__cudnn$convForward(input, kernel)`` is that convolution.
* ``__cudnn$convBackwardInput(output gradient, kernel)`` and ``__cudnn$convBackwardFilter(input, output gradient)`` are its
  transposes in the input and in the kernel.
* ``__cudnn$convBiasActivationForward(input, kernel, bias[, side])`` is
  ``activation(result scale * convolution + side scale * side + bias)``.

The result is a tuple of the array and scratch memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from layoutsim.errors import UnsupportedError
from layoutsim.interp.kernels_contraction import accumulator, convolve
from layoutsim.interp.options import CustomCallHandler
from layoutsim.interp.rounding import finish
from layoutsim.interp.values import Array, Value, as_array, zeros
from layoutsim.interp.windows import grid, positions, under
from layoutsim.ir import ArrayShape, Instruction, TupleShape
from layoutsim.ir.payloads import ConvolutionDimensionNumbers, CustomCallPayload, Window


def _numbers(instruction: Instruction) -> ConvolutionDimensionNumbers:
    numbers = instruction.payload_as(CustomCallPayload).dimension_numbers
    if numbers is None:
        raise UnsupportedError(f"{instruction.name}: a convolution without dim_labels is not modelled")
    return numbers


def _window(instruction: Instruction) -> Window:
    return instruction.payload_as(CustomCallPayload).window or Window()


def _result_shape(instruction: Instruction) -> ArrayShape:
    shape = instruction.shape.elements[0] if isinstance(instruction.shape, TupleShape) else instruction.shape
    assert isinstance(shape, ArrayShape), instruction
    return shape


def _packed(instruction: Instruction, result: Array) -> Value:
    """The array in the result's type, with scratch memory where the instruction has it."""
    value = finish(result, _result_shape(instruction).element_type)
    shape = instruction.shape
    return (value, *map(zeros, shape.elements[1:])) if isinstance(shape, TupleShape) else value


def _input_order(n: ConvolutionDimensionNumbers) -> list[int]:
    return [n.input_batch, *n.input_spatial, n.input_feature]


def _kernel_order(n: ConvolutionDimensionNumbers) -> list[int]:
    return [*n.kernel_spatial, n.kernel_input_feature, n.kernel_output_feature]


def _output_order(n: ConvolutionDimensionNumbers) -> list[int]:
    return [n.output_batch, *n.output_spatial, n.output_feature]


def _operand(instruction: Instruction, value: Value, order: Sequence[int]) -> Array:
    """An operand in the accumulator's type, with dimensions in a fixed order."""
    return accumulator(as_array(value), _result_shape(instruction).element_type).transpose(order)


def _groups(instruction: Instruction) -> int:
    return instruction.payload_as(CustomCallPayload).feature_group_count


def _forward(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    return _packed(instruction, _convolved(instruction, operands))


def _convolved(instruction: Instruction, operands: tuple[Value, ...]) -> Array:
    n, window, groups = _numbers(instruction), _window(instruction), _groups(instruction)
    x = np.split(_operand(instruction, operands[0], _input_order(n)), groups, axis=-1)
    w = np.split(_operand(instruction, operands[1], _kernel_order(n)), groups, axis=-1)
    result = np.concatenate([convolve(a, b, window) for a, b in zip(x, w, strict=True)], axis=-1)
    return result.transpose(np.argsort(_output_order(n)))


def _backward_input(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    n, window, groups = _numbers(instruction), _window(instruction), _groups(instruction)
    dy = np.split(_operand(instruction, operands[0], _output_order(n)), groups, axis=-1)
    w = np.split(_operand(instruction, operands[1], _kernel_order(n)), groups, axis=-1)
    sizes = [_result_shape(instruction).dimensions[d] for d in _input_order(n)]
    parts = [_input_gradient(a, b, sizes[1:-1], window) for a, b in zip(dy, w, strict=True)]
    return _packed(instruction, np.concatenate(parts, axis=-1).transpose(np.argsort(_input_order(n))))


def _input_gradient(dy: Array, weights: Array, sizes: Sequence[int], window: Window) -> Array:
    """``[batch, spatial..., in]``: each window position sends its products back to the elements under it."""
    result = np.zeros((dy.shape[0], *sizes, weights.shape[-2]), dy.dtype)
    for position in positions(window):
        indices, present = under(position, sizes, window)
        sent = np.matmul(dy, weights[_kernel_place(position, window)].T)
        sent = np.where(grid(present)[None, ..., None], sent, np.zeros((), dy.dtype))
        batch: Array = np.arange(len(dy))
        count: int = weights.shape[-2]
        features: Array = np.arange(count)
        np.add.at(result, np.ix_(batch, *indices, features), sent)
    return result


def _backward_filter(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    n, window, groups = _numbers(instruction), _window(instruction), _groups(instruction)
    x = np.split(_operand(instruction, operands[0], _input_order(n)), groups, axis=-1)
    dy = np.split(_operand(instruction, operands[1], _output_order(n)), groups, axis=-1)
    parts = [_kernel_gradient(a, b, window) for a, b in zip(x, dy, strict=True)]
    return _packed(instruction, np.concatenate(parts, axis=-1).transpose(np.argsort(_kernel_order(n))))


def _kernel_gradient(x: Array, dy: Array, window: Window) -> Array:
    """``[spatial..., in, out]``: the elements under each window position times the gradients, summed over places."""
    result = np.zeros((*(of.size for of in window.dimensions), x.shape[-1], dy.shape[-1]), x.dtype)
    axes = list(range(dy.ndim - 1))
    for position in positions(window):
        indices, present = under(position, x.shape[1:-1], window)
        found = x[(slice(None), *np.ix_(*indices), slice(None))]
        found = np.where(grid(present)[None, ..., None], found, np.zeros((), x.dtype))
        result[_kernel_place(position, window)] = np.tensordot(found, dy, axes=(axes, axes))
    return result


def _kernel_place(position: Sequence[int], window: Window) -> tuple[int, ...]:
    return tuple(of.size - 1 - p if of.reversal else p for p, of in zip(position, window.dimensions, strict=True))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _identity(x: Array) -> Array:
    return x


def _relu6(x: Array) -> Array:
    return np.clip(x, 0, 6)


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(x))


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"kNone": _identity, "kRelu": _relu, "kRelu6": _relu6, "kElu": _elu}


def _bias_activation(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    n = _numbers(instruction)
    config = json.loads(instruction.attributes.backend_config or "{}").get("cudnn_conv_backend_config", {})
    activation = _ACTIVATIONS.get(config.get("activation_mode", "kNone"))
    if activation is None:
        raise UnsupportedError(f"{instruction.name}: activation {config['activation_mode']} is not modelled")
    result = _convolved(instruction, operands) * np.float32(config.get("conv_result_scale", 1))
    bias = as_array(operands[2]).astype(result.dtype)
    result = result + bias.reshape([-1 if d == n.output_feature else 1 for d in range(result.ndim)])
    if len(operands) > 3:
        result = result + as_array(operands[3]).astype(result.dtype) * np.float32(config.get("side_input_scale", 0))
    return _packed(instruction, activation(result))


CUDNN_CALLS: dict[str, CustomCallHandler] = {
    "__cudnn$convForward": _forward,
    "__cudnn$convBackwardInput": _backward_input,
    "__cudnn$convBackwardFilter": _backward_filter,
    "__cudnn$convBiasActivationForward": _bias_activation,
}
"""Handlers by target."""
