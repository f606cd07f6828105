"""Passes over modules. Each is a frozen object of options; :mod:`layoutsim.passes.registry` finds them by name."""

from layoutsim.passes.base import Pass, PassResult, Remark
from layoutsim.passes.pipeline import PassRun, Pipeline, PipelineResult
from layoutsim.passes.registry import parse_pass, parse_pipeline, pass_names

__all__ = [
    "Pass",
    "PassResult",
    "PassRun",
    "Pipeline",
    "PipelineResult",
    "Remark",
    "parse_pass",
    "parse_pipeline",
    "pass_names",
]
