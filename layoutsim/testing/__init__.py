"""Help for testing passes, layoutsim's own and yours.

* :func:`check_pass` and :func:`check_heap` try a pass, a pipeline or a heap algorithm of yours on random inputs.
* :func:`random_module`, :func:`random_schedule` and :func:`random_problem` make such inputs from a seed;
  :mod:`layoutsim.testing.strategies` draws them with Hypothesis (extra ``testing``).
* :func:`reduce_module` makes a failing module small.
"""

from layoutsim.testing.check import CheckFailedError, CheckReport, Failure, check_heap, check_pass
from layoutsim.testing.modules import random_module
from layoutsim.testing.problems import random_problem, random_schedule
from layoutsim.testing.reduce import reduce_module
from layoutsim.testing.scope import Limits

__all__ = [
    "CheckFailedError",
    "CheckReport",
    "Failure",
    "Limits",
    "check_heap",
    "check_pass",
    "random_module",
    "random_problem",
    "random_schedule",
    "reduce_module",
]
