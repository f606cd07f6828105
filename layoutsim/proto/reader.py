"""From the bytes of a binary proto to a module (text spec, section 7).

1. Containers: ``HloProto`` (``.hlo.pb`` dumps), ``HloSnapshot`` and a bare ``HloModuleProto``, told apart by which of them
   holds computations with instructions.
2. Ids are keys: of computations in the module, of instructions in their computation. Instructions are stored by ascending
   id, whatever order they are listed in, as in XLA.
3. Operands, control predecessors and called computations stand before what refers to them, as XLA demands; so a cycle
   cannot be written down.
4. Instruction shapes without a layout get the default one, as in text; entry layouts without one stay automatic.
5. A bare module proto holds no replica and partition counts (``HloModuleProtoWithConfig`` does): they can be passed in.
6. Fields without a meaning here (profiles, unknown ones of newer writers, the origin recovery table) are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TypeVar

from layoutsim.errors import LayoutError, ParseError, ShapeError
from layoutsim.ir import (
    NO_ATTRIBUTES,
    ArrayShape,
    Attributes,
    BufferDonor,
    Computation,
    ComputationLayout,
    InputOutputAlias,
    Instruction,
    Module,
    ModuleConfig,
    Opcode,
    Schedule,
    Shape,
    default_layout,
    map_arrays,
    subshape,
)
from layoutsim.ir.opcode import CallContext
from layoutsim.ir.payloads import AsyncPayload
from layoutsim.proto.metadata import (
    frontend_attributes_text,
    metadata_text,
    origin_text,
    result_accuracy_text,
    statistics_text,
)
from layoutsim.proto.payload_registry import Source
from layoutsim.proto.payloads import read_payload
from layoutsim.proto.schema import Message, new
from layoutsim.proto.shapes import ShapeReader
from layoutsim.proto.sharding import sharding_text
from layoutsim.proto.stack_frames import stack_frames_text

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def module_from_bytes(
    data: bytes, path: str = "", *, replica_count: int | None = None, num_partitions: int | None = None
) -> Module:
    """The module in a binary proto.

    Args:
        path: for messages.
        replica_count: what the proto does not say (rule 5); 1 if absent.
        num_partitions: likewise.

    Raises:
        ParseError: the bytes are not a valid HLO proto.
        InputError: the package protobuf is not installed.
    """
    try:
        proto, config = _find_module(data)
        module = _ModuleReader(proto).read()
    except (ParseError, ShapeError, LayoutError) as error:
        reason = error.reason if isinstance(error, ParseError) else str(error)
        raise ParseError(f"{path}: {reason}" if path else reason) from error
    replicas = replica_count or max(1, config.replica_count)
    partitions = num_partitions or max(1, config.num_partitions)
    module.config = ModuleConfig(
        replica_count=replicas,
        num_partitions=partitions,
        alias_passthrough_params=config.alias_passthrough_params,
        frontend_attributes=frontend_attributes_text(proto.frontend_attributes),
        stack_frames=stack_frames_text(proto.stack_frame_index),
    )
    return module


def _find_module(data: bytes) -> tuple[Message, Message]:
    """The module's message and its configuration (rule 1)."""
    hlo = _parsed("HloProto", data)
    if hlo is not None and _holds_instructions(hlo.hlo_module):
        return hlo.hlo_module, hlo.config
    snapshot = _parsed("HloSnapshot", data)
    if snapshot is not None and _holds_instructions(snapshot.hlo.hlo_module):
        return snapshot.hlo.hlo_module, snapshot.hlo.config
    module = _parsed("HloModuleProto", data)
    if module is not None and _holds_instructions(module):
        return module, new("HloModuleConfigProto")
    raise ParseError("not a binary HLO proto (HloProto, HloSnapshot or HloModuleProto), or a truncated one")


def _parsed(name: str, data: bytes) -> Message | None:
    message = new(name)
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(data)
    except (DecodeError, RecursionError):
        return None
    return message


def _holds_instructions(module: Message) -> bool:
    return bool(module.computations) and all(c.instructions and c.instructions[0].opcode for c in module.computations)


class _ModuleReader:
    """One module being read: the computations so far, by id, and the shapes seen."""

    def __init__(self, proto: Message) -> None:
        self.proto = proto
        self.shapes = ShapeReader()
        self.computations: dict[int, Computation] = {}
        self.instructions: dict[int, dict[int, Instruction]] = {}

    def read(self) -> Module:
        proto = self.proto
        module = Module(proto.name)
        entry_id = self._entry_id()
        for part in proto.computations:
            computation = self._computation(part)
            if part.id in self.computations:
                raise ParseError(f"two computations have the id {part.id}")
            self.computations[part.id] = computation
            module.add_computation(computation, is_entry=part.id == entry_id)
        _check_names_unique((c.name for c in module.computations), "computations")
        if entry_id not in self.computations:
            raise ParseError(f"no computation has the entry's id {entry_id}")
        module.entry_layout = self._entry_layout(module)
        module.input_output_aliases = self._aliases(module)
        donors = proto.buffer_donor.entries
        module.buffer_donors = tuple(sorted(BufferDonor(d.parameter_number, tuple(d.parameter_shape_index)) for d in donors))
        if proto.HasField("schedule"):
            module.schedule = self._schedule()
        return module

    def _entry_id(self) -> int:
        """The entry's id; old writers give only its name."""
        if self.proto.entry_computation_id or not self.proto.entry_computation_name:
            return self.proto.entry_computation_id
        name = self.proto.entry_computation_name
        return next((c.id for c in self.proto.computations if c.name == name), 0)

    # -- computations ------------------------------------------------------------------------------------------------------

    def _computation(self, proto: Message) -> Computation:
        computation = Computation(_checked_name(proto.name, "computation"), proto.execution_thread or "main")
        known: dict[int, Instruction] = {}
        self.instructions[proto.id] = known
        for part in proto.instructions:
            try:
                instruction = self._instruction(part, known)
            except ParseError as error:
                raise ParseError(f"{proto.name}/{part.name}: {error.reason}") from error
            if part.id in known:
                raise ParseError(f"{proto.name}: two instructions have the id {part.id}")
            known[part.id] = instruction
        for key in sorted(known):
            computation.adopt(known[key])
        _check_names_unique((i.name for i in computation.instructions), f"instructions of {proto.name}")
        _check_parameters(computation)
        if proto.root_id not in known:
            raise ParseError(f"{proto.name}: no instruction has the root's id {proto.root_id}")
        computation.root = known[proto.root_id]
        return computation

    def _instruction(self, proto: Message, known: dict[int, Instruction]) -> Instruction:
        opcode = _opcode(proto.opcode)
        shape = _laid_out(self.shapes.read(proto.shape))
        operands = [_known(known, i, "operand") for i in proto.operand_ids]
        arity = opcode.spec.arity
        if arity is not None and len(operands) != arity:
            raise ParseError(f"{opcode} has {len(operands)} operands, expected {arity}")
        called = tuple(_known(self.computations, i, "called computation") for i in proto.called_computation_ids)
        payload = read_payload(opcode, Source(proto, shape, tuple(operands), self.shapes))
        if opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
            called, payload = (), _thread_of_start(operands[0], opcode)  # old writers repeat the start's body here
        _check_called(opcode, len(called), operands)
        attributes = _attributes(proto, shape)
        instruction = Instruction(
            _checked_name(proto.name, "instruction"), opcode, shape, payload, operands, called, attributes
        )
        for before in proto.control_predecessor_ids:
            instruction.add_control_predecessor(_known(known, before, "control predecessor"))
        return instruction

    # -- module-wide -------------------------------------------------------------------------------------------------------

    def _entry_layout(self, module: Module) -> ComputationLayout:
        """The program shape; without one, what the entry's parameters and root say."""
        entry = module.entry
        if not self.proto.HasField("host_program_shape"):
            return ComputationLayout(tuple(p.shape for p in entry.parameters), entry.root.shape)
        shape = self.proto.host_program_shape
        if len(shape.parameters) != len(entry.parameters):
            raise ParseError(f"the program shape has {len(shape.parameters)} parameters, the entry {len(entry.parameters)}")
        return ComputationLayout(tuple(map(self.shapes.read, shape.parameters)), self.shapes.read(shape.result))

    def _aliases(self, module: Module) -> tuple[InputOutputAlias, ...]:
        out: list[InputOutputAlias] = []
        for entry in self.proto.input_output_alias.entries:
            output = tuple(entry.output_shape_index)
            subshape(module.entry.root.shape, output)
            out.append(InputOutputAlias(output, entry.parameter_number, tuple(entry.parameter_shape_index), entry.kind == 2))
        return tuple(sorted(out, key=lambda alias: alias.output_index))

    def _schedule(self) -> Schedule:
        sequences: dict[Computation, list[Instruction]] = {}
        for entry in self.proto.schedule.sequences:
            computation = _known(self.computations, entry.key, "scheduled computation")
            known = self.instructions[entry.key]
            sequence = [_known(known, i, "scheduled instruction") for i in entry.value.instruction_ids]
            if len(set(sequence)) != computation.instruction_count or len(sequence) != computation.instruction_count:
                raise ParseError(f"the schedule of {computation.name} does not hold each of its instructions once")
            sequences[computation] = sequence
        return Schedule({c: sequences[c] for c in self.computations.values() if c in sequences})


def _known(table: dict[int, T], key: int, what: str) -> T:
    if key not in table:
        raise ParseError(f"{what} with id {key} does not exist, or stands behind its user")
    return table[key]


@cache
def _opcode(text: str) -> Opcode:
    try:
        return Opcode(text)
    except ValueError:
        raise ParseError(f"unknown opcode {text!r}") from None


def _checked_name(name: str, what: str) -> str:
    if not _NAME.fullmatch(name):
        raise ParseError(f"{name!r} is not a name of HLO text, expected letters, digits, '_', '.' and '-' in the {what}'s name")
    return name


def _check_names_unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ParseError(f"two {what} are called {name}")
        seen.add(name)


def _check_parameters(computation: Computation) -> None:
    numbers = sorted(i.parameter_number for i in computation.instructions if i.opcode is Opcode.PARAMETER)
    if numbers != list(range(len(numbers))):
        raise ParseError(f"{computation.name}: parameter numbers are {numbers[:10]}, expected each from 0 on once")


_CALLED_COUNTS = {Opcode.WHILE: 2, Opcode.SELECT_AND_SCATTER: 2}
"""Where it is neither none nor one."""


def _check_called(opcode: Opcode, count: int, operands: list[Instruction]) -> None:
    """As many computations as the opcode has attributes for."""
    if opcode is Opcode.CUSTOM_CALL or opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
        return
    if opcode is Opcode.CONDITIONAL:
        is_pred = bool(operands) and isinstance(operands[0].shape, ArrayShape) and operands[0].shape.element_type.is_pred
        expected = 2 if is_pred else max(1, len(operands) - 1)
    else:
        expected = _CALLED_COUNTS.get(opcode, int(opcode.spec.calls is not CallContext.NONE))
    if count != expected:
        raise ParseError(f"{opcode} calls {count} computations, expected {expected}")


def _thread_of_start(start: Instruction, opcode: Opcode) -> AsyncPayload:
    if not isinstance(start.payload, AsyncPayload) or start.opcode is Opcode.ASYNC_DONE:
        raise ParseError(f"operand of {opcode} is {start.opcode}, expected async-start or async-update")
    return AsyncPayload(start.payload.async_execution_thread)


@cache
def _laid_out(shape: Shape) -> Shape:
    """``shape`` with the default layout where there is none (rule 4)."""
    return map_arrays(shape, lambda leaf: leaf if leaf.layout is not None else leaf.with_layout(default_layout(leaf.rank)))


def _attributes(proto: Message, shape: Shape) -> Attributes:
    """The common attributes as canonical texts."""
    found = {
        "metadata_text": metadata_text(proto.metadata) if proto.HasField("metadata") else "",
        "sharding": sharding_text(proto.sharding) if proto.HasField("sharding") else "",
        "frontend_attributes": frontend_attributes_text(proto.frontend_attributes),
        "backend_config": proto.backend_config.decode("utf-8", "surrogateescape"),
        "statistics": statistics_text(proto.statistics_viz),
        "parameter_replication": _flags_text(proto.parameter_replication.replicated_at_leaf_buffers),
        "result_accuracy": result_accuracy_text(proto.result_accuracy) if proto.HasField("result_accuracy") else "",
        "origin": origin_text(proto.original_value, shape) if proto.HasField("original_value") else "",
    }
    return Attributes(**found) if any(found.values()) else NO_ATTRIBUTES


def _flags_text(flags: Iterable[bool]) -> str:
    texts = ["true" if flag else "false" for flag in flags]
    return "{" + ",".join(texts) + "}" if texts else ""
