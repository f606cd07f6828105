"""Attributes of elementwise opcodes and of those without any (text spec, sections 3.2 to 3.4)."""

from __future__ import annotations

from layoutsim.ir import ArrayShape, ElementType
from layoutsim.ir.opcode import ELEMENTWISE
from layoutsim.ir.payloads import ComparePayload, DomainPayload, Payload, ReducePrecisionPayload
from layoutsim.text.annotation_syntax import read_result_accuracy
from layoutsim.text.opcodes.base import SYNTAX, Given, declare, read_integer
from layoutsim.text.value_syntax import read_domain, word

WITH_ACCURACY = (
    "acos acosh asin asinh atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine "
    "sinh sqrt tan tanh"
)


def default_comparison(element_type: ElementType) -> str:
    """The comparison type that need not be written."""
    if element_type.is_floating or element_type.is_complex:
        return "FLOAT"
    return "SIGNED" if element_type.is_signed else "UNSIGNED"


def _compare(given: Given) -> Payload:
    found = given.word("type") or None
    if found and given.operands and isinstance(shape := given.operands[0].shape, ArrayShape):
        found = None if found == default_comparison(shape.element_type) else found
    return ComparePayload(given.word("direction"), found)


def _domain(given: Given) -> Payload | None:
    return given.optional("domain", DomainPayload)


declare(WITH_ACCURACY, optional={"result_accuracy": read_result_accuracy})
declare(
    "compare",
    _compare,
    required={"direction": word("EQ", "NE", "GE", "GT", "LE", "LT")},
    optional={"type": word("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")},
    looks_at_operands=True,
)
declare(
    "reduce-precision",
    lambda given: ReducePrecisionPayload(given.integer("exponent_bits"), given.integer("mantissa_bits")),
    required={"exponent_bits": read_integer, "mantissa_bits": read_integer},
)
declare("domain", _domain, required={"domain": read_domain})
declare(" ".join(sorted(ELEMENTWISE - SYNTAX.keys())))
declare("opt-barrier bitcast add-dependency parameter constant after-all replica-id partition-id")
declare("all-gather-done all-reduce-done collective-permute-done copy-done")
