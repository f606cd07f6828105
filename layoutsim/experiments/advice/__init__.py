"""Advice: changes of a program and of the compiler's rules, tried by simulation and ranked by the memory they save."""

from layoutsim.experiments.advice.advise import advise
from layoutsim.experiments.advice.report import Advice, AdviceReport

__all__ = ["Advice", "AdviceReport", "advise"]
