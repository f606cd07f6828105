"""The table of kernels: what each opcode computes on one device.

A kernel is a function of a :class:`Call` (the instruction, its operands' values and the means to run computations). It is
registered with ``@kernel("add subtract")``; :data:`BY_EVALUATOR` lists the opcodes that the evaluator itself handles because
they need more than one device or start computations of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

from layoutsim.interp.options import Options
from layoutsim.interp.values import Array, Value, as_array
from layoutsim.ir import ArrayShape, Computation, ElementType, Instruction, Opcode


class Runner(Protocol):
    """Runs computations on behalf of a kernel, on the kernel's device."""

    def run(self, computation: Computation, arguments: tuple[Value, ...]) -> Value:
        """The value of the computation's root."""
        ...


@frozen
class Call:
    """One instruction being executed on one device."""

    instruction: Instruction
    operands: tuple[Value, ...]
    runner: Runner
    options: Options

    @property
    def shape(self) -> ArrayShape:
        """The result's shape, known to be an array."""
        shape = self.instruction.shape
        assert isinstance(shape, ArrayShape), self.instruction
        return shape

    @property
    def element_type(self) -> ElementType:
        return self.shape.element_type

    def array(self, number: int) -> Array:
        """Operand ``number``, known to be an array."""
        return as_array(self.operands[number])

    @property
    def arrays(self) -> tuple[Array, ...]:
        return tuple(map(as_array, self.operands))

    def operand_shape(self, number: int) -> ArrayShape:
        """Shape of operand ``number``, known to be an array."""
        shape = self.instruction.operand(number).shape
        assert isinstance(shape, ArrayShape), self.instruction
        return shape


Kernel = Callable[[Call], Value]

KERNELS: dict[Opcode, Kernel] = {}

_OWN = "parameter constant call fusion while conditional async-start custom-call partition-id replica-id"
_COLLECTIVE = (
    "all-gather all-gather-start all-reduce all-reduce-start reduce-scatter all-to-all ragged-all-to-all collective-broadcast "
    "collective-permute collective-permute-start send recv send-done recv-done"
)
_STATEFUL = "rng rng-get-and-update-state infeed outfeed"

BY_EVALUATOR: dict[Opcode, str] = {
    **dict.fromkeys(map(Opcode, _OWN.split()), "runs computations, or reads what belongs to the run or the device"),
    **dict.fromkeys(map(Opcode, _COLLECTIVE.split()), "exchanges values between devices"),
    **dict.fromkeys(map(Opcode, _STATEFUL.split()), "reads or changes state of the run"),
}
"""Opcodes without a kernel, with the reason."""


def kernel(opcodes: str) -> Callable[[Kernel], Kernel]:
    """Register the decorated function as the kernel of these opcodes."""

    def register(function: Kernel) -> Kernel:
        for name in opcodes.split():
            opcode = Opcode(name)
            assert opcode not in KERNELS and opcode not in BY_EVALUATOR, f"{opcode} has a kernel already"
            KERNELS[opcode] = function
        return function

    return register
