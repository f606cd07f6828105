"""Which attributes an opcode takes in HLO text, and how they become its payload (text spec, sections 1.8 and 3).

:data:`SYNTAX` has an entry for every opcode. An entry names required and optional attributes with their readers, and the
function that builds the payload. Computation-valued attributes have the markers ``COMPUTATION`` and ``COMPUTATIONS``: reading
them needs the module, so the parser does it.
"""

from layoutsim.ir import Opcode
from layoutsim.text.opcodes import collective, contraction, control, elementwise, movement
from layoutsim.text.opcodes.base import (
    CALL_ORDER,
    COMMON,
    FIXED_SHAPE,
    SYNTAX,
    Form,
    Given,
    OpcodeSyntax,
    Reference,
    called_computations,
    fill_layouts,
    fixed_shape,
    no_payload,
)

assert {o for o in Opcode if o not in SYNTAX} == set(), "opcodes without a syntax"

__all__ = [
    "CALL_ORDER",
    "COMMON",
    "FIXED_SHAPE",
    "SYNTAX",
    "Form",
    "Given",
    "OpcodeSyntax",
    "Reference",
    "called_computations",
    "collective",
    "contraction",
    "control",
    "elementwise",
    "fill_layouts",
    "fixed_shape",
    "movement",
    "no_payload",
]
