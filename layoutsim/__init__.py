"""Simulate XLA's layout assignment and memory use on an HLO dump, and explain every copy.

>>> import layoutsim
>>> module = layoutsim.load("before_layout.hlo.gz")
>>> result = layoutsim.simulate(module, "xla-gpu-0.10.2")
>>> result.copies, result.memory, result.explain(result.copies[0])
"""

from layoutsim.errors import (
    Diagnostic,
    InputError,
    LayoutError,
    LayoutsimError,
    ParseError,
    PassError,
    ShapeError,
    UnsupportedError,
    VerificationError,
)
from layoutsim.experiments import Comparison, Simulation, compare, simulate
from layoutsim.ir import Computation, Instruction, Layout, Module, Opcode, Shape
from layoutsim.load import load
from layoutsim.memory.summary import MemorySummary
from layoutsim.passes import Pass, PassResult, Pipeline, Remark, parse_pipeline
from layoutsim.passes.presets import preset, preset_names
from layoutsim.report.copies import CopyRecord
from layoutsim.report.explain import Explanation
from layoutsim.text import parse_module as parse

__all__ = [
    "Comparison",
    "Computation",
    "CopyRecord",
    "Diagnostic",
    "Explanation",
    "InputError",
    "Instruction",
    "Layout",
    "LayoutError",
    "LayoutsimError",
    "MemorySummary",
    "Module",
    "Opcode",
    "ParseError",
    "Pass",
    "PassError",
    "PassResult",
    "Pipeline",
    "Remark",
    "Shape",
    "ShapeError",
    "Simulation",
    "UnsupportedError",
    "VerificationError",
    "compare",
    "load",
    "parse",
    "parse_pipeline",
    "preset",
    "preset_names",
    "simulate",
]
