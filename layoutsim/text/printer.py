"""Modules as HLO text (text spec, section 6).

The default options lose nothing: reading the text gives an equal module, and printing that gives the same text. Instructions
are printed in the order of the schedule where there is one, else in stored order, or, if an edit left an instruction in front
of what it needs, in post-order.
"""

from __future__ import annotations

import re

from attrs import define, evolve, field

from layoutsim.ir import (
    Attributes,
    Computation,
    ComputationLayout,
    ElementType,
    Instruction,
    Module,
    ModuleConfig,
    Opcode,
    Shape,
    array_shape,
    index_text,
    shape_text,
)
from layoutsim.ir.payloads import AsyncPayload, CallPayload, ConstantPayload, ParameterPayload
from layoutsim.ir.traverse import computations_post_order, post_order
from layoutsim.text.annotation_syntax import written
from layoutsim.text.device_syntax import without_metadata
from layoutsim.text.literal_format import literal_text
from layoutsim.text.payload_text import payload_texts
from layoutsim.text.print_options import ROUND_TRIP, PrintOptions, Subcomputations
from layoutsim.text.quoting import quote

_WRAPPER_NAME = re.compile(r"async_wrapped(\.[0-9]+)?")


def print_module(module: Module, options: PrintOptions = ROUND_TRIP) -> str:
    """The whole module as text, ending in a line feed."""
    parts = [_header(module, options)]
    if module.config.stack_frames and options.print_metadata:
        parts.append(module.config.stack_frames + "\n\n")
    hidden = _hidden_wrappers(module, options)
    for computation in _computation_order(module):
        if computation not in hidden:
            parts.append(print_computation(computation, options, hidden))
    return "\n".join(parts)


def _computation_order(module: Module) -> tuple[Computation, ...]:
    """Stored order while every computation stands behind those it calls; callees first otherwise."""
    seen: set[Computation] = set()
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.called_computations and not seen.issuperset(instruction.called_computations):
                return tuple(computations_post_order(module))
        seen.add(computation)
    return module.computations


def _hidden_wrappers(module: Module, options: PrintOptions) -> frozenset[Computation]:
    """Wrapper computations that ``<op>-start`` makes again when it is read."""
    starts = [
        i for c in module.computations for i in c.instructions if i.opcode is Opcode.ASYNC_START and can_use_sugar(i, options)
    ]
    return frozenset(start.to_apply for start in starts)


def can_use_sugar(start: Instruction, options: PrintOptions = ROUND_TRIP) -> bool:
    """Whether an async-start says everything its wrapper computation says.

    The root must take all parameters in order, have the shapes of the start, and carry the same annotations; unless names may
    be lost, the names must be those that reading makes.
    """
    body = start.to_apply
    root = body.root
    parameters = body.parameters
    if root.opcode is Opcode.PARAMETER or body.instruction_count != len(parameters) + 1 or root.operands != parameters:
        return False
    if root.opcode.value in _HAVE_OWN_ASYNC or root.opcode is Opcode.ASYNC_START:
        return False
    if not _shapes_agree(start, root, parameters) or root.control_predecessors:
        return False
    payload = start.payload_as(AsyncPayload)
    if body.execution_thread != payload.async_execution_thread:
        return False
    if payload.output_to_operand_aliasing and root.opcode in (Opcode.FUSION, Opcode.CUSTOM_CALL):
        return False
    if options.sugar_loses_names:
        return True
    names_kept = bool(_WRAPPER_NAME.fullmatch(body.name)) and root.name == "async_op" and _parameter_names_kept(parameters)
    return names_kept and root.attributes == evolve(start.attributes, sharding="")


_HAVE_OWN_ASYNC = {"all-gather", "all-reduce", "collective-permute", "copy", "send", "recv", "constant"}


def _parameter_names_kept(parameters: tuple[Instruction, ...]) -> bool:
    expected = ["async_param" if not n else f"async_param.{n}" for n in range(len(parameters))]
    return [p.name for p in parameters] == expected


def _shapes_agree(start: Instruction, root: Instruction, parameters: tuple[Instruction, ...]) -> bool:
    from layoutsim.ir import TupleShape

    shape = start.shape
    if not isinstance(shape, TupleShape) or len(shape.elements) < 2 or shape.elements[1] != root.shape:
        return False
    return [p.shape for p in parameters] == [o.shape for o in start.operands]


# -- header ------------------------------------------------------------------------------------------------------------


def _header(module: Module, options: PrintOptions) -> str:
    name = module.name if options.print_ids else ""
    parts = [f"HloModule {name}"]
    config = module.config
    if module.schedule is not None:
        parts.append("is_scheduled=true")
    if module.input_output_aliases:
        parts.append(f"input_output_alias={{ {', '.join(_alias_texts(module))} }}")
    if module.buffer_donors:
        donors = (f"({d.parameter_number}, {index_text(d.parameter_index)})" for d in module.buffer_donors)
        parts.append(f"buffer_donor={{ {', '.join(donors)} }}")
    if config.alias_passthrough_params:
        parts.append("alias_passthrough_params=true")
    if module.entry_layout is not None:
        parts.append(f"entry_computation_layout={_entry_layout_text(module.entry_layout)}")
    return ", ".join([*parts, *_config_texts(config)]) + "\n"


def _alias_texts(module: Module) -> list[str]:
    return [
        f"{index_text(a.output_index)}: ({a.parameter_number}, {index_text(a.parameter_index)}, "
        f"{'must' if a.must_alias else 'may'}-alias)"
        for a in module.input_output_aliases
    ]


def _entry_layout_text(layout: ComputationLayout) -> str:
    """Comments stand here whatever the interval for operands: the layout prints as a shape does."""
    parameters = _with_index_comments(list(map(shape_text, layout.parameters)), PrintOptions())
    return f"{{({', '.join(parameters)})->{shape_text(layout.result)}}}"


def _config_texts(config: ModuleConfig) -> list[str]:
    to_parameters, to_output = (
        config.allow_spmd_sharding_propagation_to_parameters,
        config.allow_spmd_sharding_propagation_to_output,
    )
    pairs = [
        ("allow_spmd_sharding_propagation_to_parameters", to_parameters, to_parameters not in ("", "{false}")),
        ("allow_spmd_sharding_propagation_to_output", to_output, to_output not in ("", "{false}")),
        ("replica_count", str(config.replica_count), config.replica_count != 1),
        ("num_partitions", str(config.num_partitions), config.num_partitions != 1),
        ("frontend_attributes", config.frontend_attributes, bool(config.frontend_attributes)),
        ("origin_recovery_table", config.origin_recovery_table, bool(config.origin_recovery_table)),
    ]
    return [f"{name}={value}" for name, value, shown in pairs if shown]


def _with_index_comments(texts: list[str], options: PrintOptions) -> list[str]:
    interval = options.index_comment_interval
    if not interval or len(texts) <= interval:
        return texts
    return [f"/*index={i}*/{text}" if i and i % interval == 0 else text for i, text in enumerate(texts)]


# -- computations ------------------------------------------------------------------------------------------------------


def print_computation(
    computation: Computation, options: PrintOptions = ROUND_TRIP, hidden: frozenset[Computation] = frozenset()
) -> str:
    """One computation as text, ending in a line feed.

    Args:
        hidden: wrapper computations that are printed as ``<op>-start``.
    """
    printer = _ComputationPrinter(computation, options, hidden)
    lines = [printer.head(), *(printer.line(i) for i in printing_order(computation)), printer.foot()]
    return "\n".join(lines) + "\n"


def printing_order(computation: Computation) -> list[Instruction]:
    """The schedule, or stored order, or post-order where stored order puts an instruction in front of its operand."""
    module = computation.parent
    if module is not None and module.schedule is not None and computation in module.schedule:
        return list(module.schedule.sequence(computation))
    seen: set[Instruction] = set()
    stored = computation.instructions
    for instruction in stored:
        if not seen.issuperset(instruction.operands) or not seen.issuperset(instruction.control_predecessors):
            return post_order(computation)
        seen.add(instruction)
    return list(stored)


@define(eq=False)
class _ComputationPrinter:
    """Prints the instructions of one computation and knows the names it gives them."""

    computation: Computation
    options: PrintOptions
    hidden: frozenset[Computation]
    indent: str = ""
    names: dict[Instruction, str] = field(factory=dict[Instruction, str])

    def head(self) -> str:
        computation, options = self.computation, self.options
        entry = "ENTRY " if computation.parent is not None and computation.is_entry else ""
        name = f"{self._percent()}{computation.name} " if options.print_ids else ""
        if not options.print_program_shape:
            return f"{entry}{name}{{"
        parameters = (f"{p.name}: {_plain_shape(p.shape)}" for p in computation.parameters)
        return f"{entry}{name}({', '.join(parameters)}) -> {_plain_shape(computation.root.shape)} {{"

    def foot(self) -> str:
        thread = self.computation.execution_thread
        return "}" if thread == "main" else f"}}, execution_thread={quote(thread)}"

    def _percent(self) -> str:
        return "%" if self.options.print_percent else ""

    def name(self, instruction: Instruction) -> str:
        if not self.options.canonicalize_instruction_names:
            return self._percent() + instruction.name
        number = len(self.names)
        return self._percent() + self.names.setdefault(instruction, f"tmp_{number}")

    def line(self, instruction: Instruction) -> str:
        root = "ROOT " if instruction is self.computation.root else ""
        shape = shape_text(instruction.shape)
        opcode = self._opcode(instruction)
        operands = self._operands(instruction)
        attributes = self._attributes(instruction)
        tail = f", {', '.join(attributes)}" if attributes else ""
        return f"{self.indent}  {root}{self.name(instruction)} = {shape} {opcode}({operands}){tail}"

    def _opcode(self, instruction: Instruction) -> str:
        suffix = _ASYNC_SUFFIXES.get(instruction.opcode)
        if suffix is None:
            return instruction.opcode.value
        body = _chain_start(instruction).to_apply
        return f"{body.root.opcode}{suffix}" if body in self.hidden else instruction.opcode.value

    def _operands(self, instruction: Instruction) -> str:
        payload = instruction.payload
        if isinstance(payload, ParameterPayload):
            return str(payload.number) if self.options.print_parameter_number else ""
        if isinstance(payload, ConstantPayload):
            return literal_text(payload.literal, large=self.options.print_large_constants)
        texts = [self._operand(operand) for operand in instruction.operands]
        return ", ".join(_with_index_comments(texts, self.options))

    def _operand(self, operand: Instruction) -> str:
        shape = shape_text(operand.shape) if self.options.print_operand_shape else ""
        name = self.name(operand) if self.options.print_operand_names or self.options.canonicalize_instruction_names else ""
        return f"{shape} {name}".strip()

    # -- attributes ------------------------------------------------------------------------------------------------

    def _attributes(self, instruction: Instruction) -> list[str]:
        texts = [*self._specific(instruction)]
        payload = instruction.payload
        if isinstance(payload, CallPayload) and payload.is_composite:
            texts.append("is_composite=true")
        common = instruction.attributes
        if common.parameter_replication:
            texts.insert(0, f"parameter_replication={common.parameter_replication}")
        if common.sharding:
            shown = common.sharding if self.options.print_metadata else without_metadata(common.sharding)
            texts.append(f"sharding={shown}")
        if common.frontend_attributes:
            texts.append(f"frontend_attributes={common.frontend_attributes}")
        if self.options.print_control_dependencies and instruction.control_predecessors:
            names = ", ".join(map(self.name, instruction.control_predecessors))
            texts.append(f"control-predecessors={{{names}}}")
        texts += _annotation_texts(common, self.options)
        return texts

    def _specific(self, instruction: Instruction) -> list[str]:
        """Attributes of the payload, then the called computations."""
        if instruction.opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
            return []
        own = payload_texts(instruction.opcode, instruction.payload, self.options)
        if instruction.opcode is Opcode.ASYNC_START and instruction.to_apply in self.hidden:
            root = instruction.to_apply.root
            inner = [*payload_texts(root.opcode, root.payload, self.options), *self._calls(root)]
            shown = self._calls(instruction) if self.options.subcomputations is Subcomputations.FULL_BODIES else []
            return [*own, *inner, *shown]
        return [*own, *self._calls(instruction)]

    def _calls(self, instruction: Instruction) -> list[str]:
        called = instruction.called_computations
        mode = self.options.subcomputations
        if not called or mode is Subcomputations.OFF:
            return []
        opcode = instruction.opcode
        texts = [self._computation(computation) for computation in called]
        names = _CALL_NAMES.get(opcode)
        if opcode is Opcode.CONDITIONAL and instruction.operand(0).shape == _PRED:
            names = ("true_computation", "false_computation")
        if names is not None:
            pairs = [f"{name}={text}" for name, text in zip(names, texts, strict=True)]
            return pairs[::-1] if opcode is Opcode.WHILE else pairs
        if opcode in _CALL_LISTS:
            opening, comma, closing = ("{", ", ", "}") if mode is Subcomputations.NAME_ONLY else ("{", ",", "\n}")
            return [f"{_CALL_LISTS[opcode]}={opening}{comma.join(texts)}{closing}"]
        by_calls = mode is Subcomputations.FULL_BODIES and opcode not in _APPLY_IN_FULL
        return [f"{'calls' if by_calls else 'to_apply'}={text}" for text in texts]

    def _computation(self, computation: Computation) -> str:
        if self.options.subcomputations is Subcomputations.NAME_ONLY:
            return self._percent() + computation.name
        inner = _ComputationPrinter(computation, self.options, self.hidden, indent=f"{self.indent}  ")
        lines = map(inner.line, post_order(computation))
        return "\n".join(["", f"{inner.indent}{{", *lines, f"{inner.indent}{inner.foot()}"])


_PRED = array_shape(ElementType.PRED, ())
_ASYNC_SUFFIXES = {Opcode.ASYNC_START: "-start", Opcode.ASYNC_UPDATE: "-update", Opcode.ASYNC_DONE: "-done"}
_CALL_NAMES = {
    Opcode.WHILE: ("body", "condition"),
    Opcode.SELECT_AND_SCATTER: ("select", "scatter"),
    Opcode.FUSION: ("calls",),
    Opcode.ASYNC_START: ("calls",),
}
_CALL_LISTS = {Opcode.CONDITIONAL: "branch_computations", Opcode.CUSTOM_CALL: "called_computations"}
_APPLY_IN_FULL = {
    Opcode.CALL,
    Opcode.MAP,
    Opcode.REDUCE_WINDOW,
    Opcode.REDUCE,
    Opcode.ALL_REDUCE,
    Opcode.ALL_REDUCE_START,
    Opcode.SCATTER,
    Opcode.SORT,
}
"""Opcodes whose computation is called ``to_apply`` even where bodies are printed in full; the others say ``calls`` there."""


def _chain_start(instruction: Instruction) -> Instruction:
    while instruction.opcode is not Opcode.ASYNC_START:
        instruction = instruction.operand(0)
    return instruction


def _annotation_texts(common: Attributes, options: PrintOptions) -> list[str]:
    texts: list[str] = []
    if common.statistics:
        texts.append(f"statistics={common.statistics}")
    if common.result_accuracy:
        texts.append(f"result_accuracy={common.result_accuracy}")
    if common.origin:
        texts.append(f"origin={common.origin}")
    if common.metadata_text and options.print_metadata:
        texts.append(f"metadata={common.metadata_text}")
    if common.backend_config and options.print_backend_config:
        texts.append(f"backend_config={written(common.backend_config)}")
    if common.extra:
        texts.append(common.extra)
    return texts


def _plain_shape(shape: Shape) -> str:
    return shape_text(shape, layouts=False)
