"""The reference interpreter: what a module computes, with numpy, on simulated devices.

Every opcode is executed. Some forms of some opcodes are not, and raise :class:`~layoutsim.errors.UnsupportedError` with the
instruction's name:

==================================== =========================================================================================
form                                 why
==================================== =========================================================================================
``send``, ``recv`` to and from hosts there is no host program on the other side; infeeds and outfeeds are ``Options.infeed`` and
                                     ``Interpreter.outfeed``
``send``, ``recv`` without pairs     who sends to whom stands in a frontend attribute that XLA's pipeliner writes
``recv-done`` of a loop's state      a transfer that crosses iterations has no one value to wait for here
dynamic sizes below the bound        values are numpy arrays of the bound's size; XLA too pads what is dynamic before compiling
``stochastic-convert`` to floats     XLA refuses it as well
``rng-bit-generator`` of floats or   XLA defines bits for unsigned and signed integers from a byte on
less than a byte
``ragged-dot``, sizes by batch       group sizes of more than one dimension
unbounded dimensions                 nothing says how large an array is
custom calls nobody knows            ``Options.custom_calls`` registers handlers, ``Options.unknown_custom_calls`` gives zeros
cuDNN calls without ``dim_labels``,  their meaning is in a backend config that differs by release
of unknown activations
==================================== =========================================================================================

``rng`` and ``rng-get-and-update-state`` draw from a generator of the run (``Options.seed``), whose numbers are not XLA's.
"""

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
