"""No opcode is forgotten by the interpreter."""

from layoutsim.interp import evaluator  # fills the table
from layoutsim.interp.registry import BY_EVALUATOR, KERNELS
from layoutsim.ir import Module, Opcode
from layoutsim.text import parse_module


def test_every_opcode_has_a_kernel_or_is_handled_by_the_evaluator() -> None:
    assert set(Opcode) - KERNELS.keys() - BY_EVALUATOR.keys() == set()


def test_no_opcode_is_in_both_tables() -> None:
    assert KERNELS.keys() & BY_EVALUATOR.keys() == set()


def test_the_evaluator_handles_what_it_says() -> None:
    module: Module = parse_module("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }")
    handled = evaluator.Interpreter(module)._handlers.keys() | {Opcode.PARAMETER}

    assert handled == BY_EVALUATOR.keys()
