"""Shapes: every instruction against its opcode's rule (invariants T1 to T9; list in ``layoutsim.verify``)."""

from __future__ import annotations

import json
import re

from layoutsim.errors import ShapeError
from layoutsim.infer import Site, compatible_up_to_precision, infer_site
from layoutsim.ir import (
    UNBOUNDED,
    ArrayShape,
    ElementType,
    Instruction,
    Opcode,
    Shape,
    array_leaves,
    compatible,
    has_layout,
    index_text,
    shape_text,
    subshape,
)
from layoutsim.ir.payloads import Aliasing, AsyncPayload, CallPayload, CustomCallPayload, FusionPayload
from layoutsim.verify.equality import Ignoring, equal
from layoutsim.verify.findings import Findings

PASSES_DATA_UNCHANGED = frozenset(
    {
        Opcode.CALL,
        Opcode.CONDITIONAL,
        Opcode.CONSTANT,
        Opcode.COPY_DONE,
        Opcode.COPY_START,
        Opcode.DYNAMIC_UPDATE_SLICE,
        Opcode.FUSION,
        Opcode.ASYNC_START,
        Opcode.ASYNC_UPDATE,
        Opcode.ASYNC_DONE,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.INFEED,
        Opcode.OPT_BARRIER,
        Opcode.OUTFEED,
        Opcode.RECV,
        Opcode.RECV_DONE,
        Opcode.SEND,
        Opcode.SEND_DONE,
        Opcode.TUPLE,
        Opcode.WHILE,
    }
)
"""Opcodes that can change neither layouts nor the precision of elements, whatever the options."""

_ANY_PRECISIONS = frozenset(
    {
        *(PASSES_DATA_UNCHANGED - {Opcode.DYNAMIC_UPDATE_SLICE}),
        Opcode.ALL_GATHER,
        Opcode.ALL_GATHER_DONE,
        Opcode.ALL_GATHER_START,
        Opcode.ALL_REDUCE,
        Opcode.ALL_REDUCE_DONE,
        Opcode.ALL_REDUCE_START,
        Opcode.COLLECTIVE_PERMUTE,
        Opcode.COLLECTIVE_PERMUTE_DONE,
        Opcode.COLLECTIVE_PERMUTE_START,
        Opcode.CONVOLUTION,
        Opcode.CUSTOM_CALL,
        Opcode.DOMAIN,
        Opcode.DOT,
        Opcode.PARAMETER,
        Opcode.RAGGED_DOT,
        Opcode.REDUCE_PRECISION,
        Opcode.REDUCE_WINDOW,
        Opcode.SCALED_DOT,
        Opcode.SORT,
    }
)
"""Opcodes whose operands may differ in precision even where mixed precision is not allowed (T3)."""

_EXACT_REDUCERS = frozenset({Opcode.MAP, Opcode.REDUCE, Opcode.REDUCE_WINDOW})
_UNCONSTRAINED_CALLS = frozenset({"LayoutConstraint", "control_dep"})

ACCURACY_IS_CHOSEN = frozenset(
    {
        Opcode.ACOS,
        Opcode.ACOSH,
        Opcode.ASIN,
        Opcode.ASINH,
        Opcode.ATANH,
        Opcode.CBRT,
        Opcode.COS,
        Opcode.COSH,
        Opcode.ERF,
        Opcode.EXP,
        Opcode.EXPM1,
        Opcode.LOG,
        Opcode.LOG1P,
        Opcode.LOGISTIC,
        Opcode.RSQRT,
        Opcode.SIN,
        Opcode.SINH,
        Opcode.SQRT,
        Opcode.TAN,
        Opcode.TANH,
    }
)
"""Opcodes that take ``result_accuracy`` (T9)."""


def verify_shapes(findings: Findings) -> None:
    """T1 to T9."""
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            _check_rule(findings, instruction)
            _check_own(findings, instruction)


def site_of(findings: Findings, instruction: Instruction) -> Site:
    """The application that a shape rule looks at."""
    return Site(
        instruction.opcode,
        tuple([operand.shape for operand in instruction.operands]),
        instruction.payload,
        tuple([findings.program(callee) for callee in instruction.called_computations]),
        instruction.shape,
    )


# -- the opcode's rule ---------------------------------------------------------------------------------------------------


def _check_rule(findings: Findings, instruction: Instruction) -> None:
    """T1 and T2."""
    try:
        inferred = infer_site(site_of(findings, instruction))
    except ShapeError as error:
        findings.add(instruction, "T1", str(error).removeprefix(f"{instruction.opcode}: "))
        return
    stated = instruction.shape
    if inferred is stated or compatible(stated, inferred):
        return
    loose = findings.options.allow_mixed_precision and instruction.opcode not in PASSES_DATA_UNCHANGED
    if not (loose and compatible_up_to_precision(stated, inferred)):
        findings.add(instruction, "T2", f"has shape {_plain(stated)}, expected {_plain(inferred)}")


def _plain(shape: Shape) -> str:
    return shape_text(shape, layouts=False)


def _check_own(findings: Findings, instruction: Instruction) -> None:
    """What is asked of an instruction beside its rule."""
    options = findings.options
    if not options.allow_unbounded_dimensions:
        _check_bounds(findings, instruction)
    if not options.allow_mixed_precision:
        _check_precisions(findings, instruction)
    accuracy = instruction.attributes.result_accuracy
    if accuracy and instruction.opcode not in ACCURACY_IS_CHOSEN:
        findings.add(instruction, "T9", f"has result_accuracy {accuracy}, which {instruction.opcode} does not take")
    match instruction.payload:
        case CustomCallPayload() as payload:
            _check_custom_call(findings, instruction, payload)
        case FusionPayload() as payload:
            _check_aliasing(findings, instruction, payload.output_to_operand_aliasing, instruction.shape)
        case AsyncPayload() as payload if instruction.opcode is Opcode.ASYNC_START:
            _check_aliasing(findings, instruction, payload.output_to_operand_aliasing, instruction.shape)
        case CallPayload(is_composite=True):
            _check_composite(findings, instruction)
        case _:
            pass


def _check_bounds(findings: Findings, instruction: Instruction) -> None:
    """T5."""
    if any(UNBOUNDED in leaf.dimensions for _, leaf in array_leaves(instruction.shape)):
        findings.add(instruction, "T5", f"has shape {_plain(instruction.shape)}, expected no unbounded dimension")


def _check_precisions(findings: Findings, instruction: Instruction) -> None:
    """T3 and T4."""
    if instruction.opcode not in _ANY_PRECISIONS:
        types = dict.fromkeys(
            leaf.element_type
            for operand in instruction.operands
            for _, leaf in array_leaves(operand.shape)
            if leaf.element_type.is_floating
        )
        if len(types) > 1:
            findings.add(instruction, "T3", f"has operands of {' and '.join(types)}, expected one floating type")
    if instruction.opcode in _EXACT_REDUCERS:
        parameters = findings.program(instruction.to_apply).parameters
        for number, (operand, parameter) in enumerate(zip(instruction.operands, parameters, strict=False)):
            _check_exact(findings, instruction, number, operand.shape, parameter)


def _check_exact(findings: Findings, instruction: Instruction, number: int, operand: Shape, parameter: Shape) -> None:
    if not isinstance(operand, ArrayShape) or not isinstance(parameter, ArrayShape):
        return
    if operand.element_type is not parameter.element_type:
        message = f"parameter {number} of {instruction.to_apply.name} has element type {parameter.element_type}"
        findings.add(instruction, "T4", f"{message}, expected {operand.element_type} of operand {number}")


# -- calls with promises -------------------------------------------------------------------------------------------------


def _check_custom_call(findings: Findings, call: Instruction, payload: CustomCallPayload) -> None:
    """T6 and T7."""
    constraints = payload.operand_layout_constraints
    if constraints is not None and payload.custom_call_target not in _UNCONSTRAINED_CALLS:
        if not has_layout(call.shape):
            findings.add(call, "T6", f"has shape {call.shape}, expected a layout where operand layouts are constrained")
        if len(constraints) != call.operand_count:
            findings.add(call, "T6", f"constrains {len(constraints)} operands, expected {call.operand_count}")
        for number, (operand, constraint) in enumerate(zip(call.operands, constraints, strict=False)):
            if not compatible(operand.shape, constraint) or not has_layout(constraint):
                findings.add(call, "T6", f"constrains operand {number} to {constraint}, expected {operand.shape} with a layout")
    if "xla_skip_custom_call_alias_shape_check" not in call.attributes.frontend_attributes:
        _check_aliasing(findings, call, payload.output_to_operand_aliasing, call.shape)
    seed = payload.custom_call_target == "GetRngSeed"
    if seed and (call.operand_count or not compatible(call.shape, ArrayShape(ElementType.U64, ()))):
        findings.add(call, "T6", f"returns {_plain(call.shape)} of {call.operand_count} operands, expected u64[] of none")


def _check_aliasing(findings: Findings, call: Instruction, aliasing: tuple[Aliasing, ...], result: Shape) -> None:
    """T7: both ends exist and have the same shape."""
    ignoring = _ignored_in_aliases(findings, call)
    for alias in aliasing:
        place = f"{index_text(alias.output_index)}: ({alias.operand_number}, {index_text(alias.operand_index)})"
        if not 0 <= alias.operand_number < call.operand_count:
            findings.add(call, "T7", f"aliases {place}, expected one of its {call.operand_count} operands")
            continue
        operand = call.operand(alias.operand_number).shape
        try:
            ours, theirs = subshape(result, alias.output_index), subshape(operand, alias.operand_index)
        except ShapeError as error:
            findings.add(call, "T7", f"aliases {place}, but {error}")
            continue
        if not equal(ours, theirs, ignoring):
            findings.add(call, "T7", f"aliases {place} of shapes {ours} and {theirs}, expected equal ones")


def _ignored_in_aliases(findings: Findings, call: Instruction) -> Ignoring:
    """Nested fusions may differ in tiles and memory space; pins, and asynchronous calls, turn arrays into buffers."""
    if not findings.options.layout_sensitive:
        ignoring = Ignoring.LAYOUTS | Ignoring.DYNAMIC
    elif call.opcode is Opcode.FUSION and call.parent in findings.fusion_bodies:
        ignoring = Ignoring.TILES | Ignoring.MEMORY_SPACE
    else:
        ignoring = Ignoring.NOTHING
    pins = isinstance(call.payload, CustomCallPayload) and call.payload.custom_call_target in ("Pin", "Unpin")
    return ignoring | Ignoring.BUFFERS if pins or call.opcode is Opcode.ASYNC_START else ignoring


def _check_composite(findings: Findings, call: Instruction) -> None:
    """T8."""
    attributes = dict(_FRONTEND_ATTRIBUTE.findall(call.attributes.frontend_attributes))
    if not _unquoted(attributes.get("composite.name", "")):
        findings.add(call, "T8", "is composite without frontend attribute composite.name")
    if "composite.attributes" in attributes and not _unquoted(attributes["composite.attributes"]):
        findings.add(call, "T8", "has an empty frontend attribute composite.attributes")
    version = _unquoted(attributes.get("composite.version", "0"))
    if not re.fullmatch(r"\+?\d+", version):
        findings.add(call, "T8", f"has composite.version {version!r}, expected a non-negative integer")


_FRONTEND_ATTRIBUTE = re.compile(r'([\w.\-]+)=("(?:[^"\\]|\\.)*"|\{[^}]*\})')


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text
