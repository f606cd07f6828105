"""From a module to the bytes of a ``HloModuleProto`` that XLA reads (text spec, section 7).

1. Instruction ids are ``computation id << 32 | position in the stored order``, as new XLA writers number them: a reader
   stores instructions by id. Computation ids start at 1.
2. Instructions are listed in post-order. Computations keep their stored order if callees stand before callers in it, as they
   usually do; otherwise a post-order takes its place.
3. A module proto has no place for replica and partition counts, ``alias_passthrough_params`` and the sharding propagation
   lists: they are lost, as in XLA.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutsim.ir import Computation, Instruction, Module, Opcode, Shape
from layoutsim.ir.attributes import Attributes
from layoutsim.ir.traverse import computations_post_order, post_order
from layoutsim.proto.metadata import (
    write_frontend_attributes,
    write_metadata,
    write_origin,
    write_result_accuracy,
    write_statistics,
)
from layoutsim.proto.payloads import write_payload
from layoutsim.proto.schema import Message, new
from layoutsim.proto.shapes import write_shape
from layoutsim.proto.sharding import write_sharding
from layoutsim.proto.stack_frames import write_stack_frames


def module_to_bytes(module: Module) -> bytes:
    """The module as a bare ``HloModuleProto``.

    Raises:
        ElidedLiteralError: a constant's elements are unknown.
        InputError: the package protobuf is not installed.
    """
    return _ModuleWriter(module).write().SerializeToString(deterministic=True)


class _ModuleWriter:
    """Ids given so far, and shapes that are messages already."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.computation_ids: dict[Computation, int] = {}
        self.instruction_ids: dict[Instruction, int] = {}
        self.shapes: dict[Shape, Message] = {}

    def write(self) -> Message:
        module = self.module
        proto = new("HloModuleProto")
        proto.name = module.name
        proto.entry_computation_name = module.entry.name
        for computation in _computation_order(module):
            self._computation(computation, proto.computations.add())
        proto.entry_computation_id = self.computation_ids[module.entry]
        self._program_shape(proto.host_program_shape)
        self._aliasing(proto)
        if module.schedule is not None:
            self._schedule(proto.schedule)
        if module.config.frontend_attributes:
            write_frontend_attributes(module.config.frontend_attributes, proto.frontend_attributes)
        if module.config.stack_frames:
            write_stack_frames(module.config.stack_frames, proto.stack_frame_index)
        return proto

    def _computation(self, computation: Computation, proto: Message) -> None:
        number = self.computation_ids[computation] = len(self.computation_ids) + 1
        proto.name = computation.name
        proto.id = number
        proto.execution_thread = computation.execution_thread
        for position, instruction in enumerate(computation.instructions):
            self.instruction_ids[instruction] = number << 32 | position
        for instruction in post_order(computation):
            self._instruction(instruction, proto.instructions.add())
        proto.root_id = self.instruction_ids[computation.root]
        for parameter in computation.parameters:
            proto.program_shape.parameters.append(self._shape(parameter.shape))
            proto.program_shape.parameter_names.append(parameter.name)
        proto.program_shape.result.CopyFrom(self._shape(computation.root.shape))

    def _instruction(self, instruction: Instruction, proto: Message) -> None:
        proto.name = instruction.name
        proto.opcode = instruction.opcode.value
        proto.shape.CopyFrom(self._shape(instruction.shape))
        proto.id = self.instruction_ids[instruction]
        proto.operand_ids.extend(self.instruction_ids[operand] for operand in instruction.operands)
        proto.control_predecessor_ids.extend(self.instruction_ids[p] for p in instruction.control_predecessors)
        if instruction.opcode not in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
            proto.called_computation_ids.extend(self.computation_ids[c] for c in instruction.called_computations)
        write_payload(instruction.payload, proto)
        _write_attributes(instruction.attributes, instruction.shape, proto)

    def _shape(self, shape: Shape) -> Message:
        if shape not in self.shapes:
            self.shapes[shape] = write_shape(shape)
        return self.shapes[shape]

    def _program_shape(self, proto: Message) -> None:
        entry, layout = self.module.entry, self.module.entry_layout
        parameters = layout.parameters if layout is not None else tuple(p.shape for p in entry.parameters)
        proto.parameters.extend(map(self._shape, parameters))
        proto.result.CopyFrom(self._shape(layout.result if layout is not None else entry.root.shape))
        proto.parameter_names.extend(p.name for p in entry.parameters)

    def _aliasing(self, proto: Message) -> None:
        for alias in self.module.input_output_aliases:
            proto.input_output_alias.entries.add(
                output_shape_index=alias.output_index,
                parameter_number=alias.parameter_number,
                parameter_shape_index=alias.parameter_index,
                kind=2 if alias.must_alias else 1,
            )
        for donor in self.module.buffer_donors:
            proto.buffer_donor.entries.add(parameter_number=donor.parameter_number, parameter_shape_index=donor.parameter_index)

    def _schedule(self, proto: Message) -> None:
        assert self.module.schedule is not None
        for computation, sequence in self.module.schedule.sequences.items():
            entry = proto.sequences.add(key=self.computation_ids[computation])
            entry.value.instruction_ids.extend(self.instruction_ids[instruction] for instruction in sequence)


def _computation_order(module: Module) -> Sequence[Computation]:
    seen: set[Computation] = set()
    for computation in module.computations:
        if any(callee not in seen for i in computation.instructions for callee in i.called_computations):
            return computations_post_order(module)
        seen.add(computation)
    return module.computations


def _write_attributes(attributes: Attributes, shape: Shape, proto: Message) -> None:
    if attributes.metadata_text:
        write_metadata(attributes.metadata_text, proto.metadata)
    if attributes.sharding:
        write_sharding(attributes.sharding, proto.sharding)
    if attributes.frontend_attributes:
        write_frontend_attributes(attributes.frontend_attributes, proto.frontend_attributes)
    if attributes.statistics:
        write_statistics(attributes.statistics, proto.statistics_viz)
    if attributes.result_accuracy:
        write_result_accuracy(attributes.result_accuracy, proto.result_accuracy)
    if attributes.origin:
        write_origin(attributes.origin, shape, proto.original_value)
    if attributes.parameter_replication:
        flags = [flag.strip() == "true" for flag in attributes.parameter_replication.strip("{}").split(",")]
        proto.parameter_replication.replicated_at_leaf_buffers.extend(flags)
    proto.backend_config = attributes.backend_config.encode("utf-8", "surrogateescape")
