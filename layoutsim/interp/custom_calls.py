"""Custom calls that the interpreter knows; users add their own through ``Options.custom_calls`` (text spec, section 8.6)."""

from __future__ import annotations

import numpy as np

from layoutsim.errors import UnsupportedError
from layoutsim.interp.cudnn import CUDNN_CALLS
from layoutsim.interp.kernels_elementwise import total_order
from layoutsim.interp.options import CustomCallHandler, Options, UnknownCustomCall
from layoutsim.interp.values import Value, as_array, fail, fits, zeros
from layoutsim.ir import ArrayShape, Instruction, TupleShape
from layoutsim.ir.payloads import CustomCallPayload

_IDENTITIES = frozenset(
    {
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "MoveToHost",
        "MoveToDevice",
        "LayoutConstraint",
        "Pin",
        "Unpin",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
    }
)
"""Targets that return operand 0: they say where or how a value lives, not what it is."""


def run_custom_call(instruction: Instruction, operands: tuple[Value, ...], options: Options) -> Value:
    """The value of a custom call.

    Raises:
        UnsupportedError: nobody knows the target.
        EvaluationError: a handler's result does not have the instruction's shape.
    """
    target = instruction.payload_as(CustomCallPayload).custom_call_target
    handler = options.custom_calls.get(target) or _builtin(target)
    if handler is None:
        if options.unknown_custom_calls is UnknownCustomCall.ZEROS:
            return zeros(instruction.shape)
        raise UnsupportedError(f'{instruction.name}: no handler for custom call target "{target}" (see Options.custom_calls)')
    result = handler(instruction, operands)
    if not fits(result, instruction.shape):
        raise fail(instruction, f'the handler of custom call target "{target}" gave no value of shape {instruction.shape}')
    return result


def _builtin(target: str) -> CustomCallHandler | None:
    return _first_operand if target in _IDENTITIES else _COMPUTED.get(target)


def _first_operand(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    return operands[0]


def _top_k(instruction: Instruction, operands: tuple[Value, ...]) -> Value:
    """The largest of the last dimension, as many as the result has, with their indices."""
    shape = instruction.shape
    assert isinstance(shape, TupleShape) and isinstance(shape.elements[0], ArrayShape), instruction
    count = shape.elements[0].dimensions[-1]
    x = as_array(operands[0])
    keys = total_order(x) if x.dtype.kind == "f" else x
    order = np.argsort(~keys, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)


def _allocate_buffer(instruction: Instruction, _operands: tuple[Value, ...]) -> Value:
    """Memory whose content nobody may rely on."""
    return zeros(instruction.shape)


_COMPUTED: dict[str, CustomCallHandler] = {"TopK": _top_k, "AllocateBuffer": _allocate_buffer, **CUDNN_CALLS}
