"""The reference interpreter: what a module computes, with numpy, on simulated devices."""

from layoutsim.interp.compare import Difference, compare_values, tolerance
from layoutsim.interp.evaluator import Interpreter, evaluate
from layoutsim.interp.options import DEFAULT_OPTIONS, Elided, Options, UnknownCustomCall
from layoutsim.interp.values import EvaluationError, Value

__all__ = [
    "DEFAULT_OPTIONS",
    "Difference",
    "Elided",
    "EvaluationError",
    "Interpreter",
    "Options",
    "UnknownCustomCall",
    "Value",
    "compare_values",
    "evaluate",
    "tolerance",
]
