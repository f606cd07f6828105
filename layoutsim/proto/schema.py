"""The protocol buffer messages of an HLO module, declared at run time (text spec, section 7; ``xla/service/hlo.proto``).

:data:`_MESSAGES` lists every message as ``NAME: number field type, ...``. A type is ``string``, ``bytes``, ``bool``, ``i32``,
``i64``, ``f32``, ``f64`` or another message; ``*`` makes it repeated and ``?`` lets absence be told from the default. Enums are
declared as numbers and maps as repeated key-value messages: both have the same bytes. Fields that layoutsim has no use for
are left out; protobuf skips them when reading.

The messages live in a descriptor pool of their own, so that they meet no other copy of XLA's in the same process.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from layoutsim.errors import InputError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto

Message = Any
"""A protobuf message. Its fields come from the table below at run time, so no static type describes them."""

_PACKAGE = "layoutsim.hlo"

_MESSAGES = """
HloProto: 1 hlo_module HloModuleProto, 2 config HloModuleConfigProto
HloSnapshot: 1 hlo HloProto
HloModuleConfigProto: 4 replica_count i64, 5 num_partitions i64, 17 alias_passthrough_params bool

HloModuleProto: 1 name string, 2 entry_computation_name string, 3 computations HloComputationProto*,
  4 host_program_shape ProgramShapeProto, 5 id i64, 6 entry_computation_id i64, 7 schedule HloScheduleProto,
  8 input_output_alias HloInputOutputAliasProto, 11 is_dynamic bool, 17 stack_frame_index StackFrameIndexProto,
  18 buffer_donor HloBufferDonorProto, 19 frontend_attributes FrontendAttributes
HloComputationProto: 1 name string, 2 instructions HloInstructionProto*, 4 program_shape ProgramShapeProto, 5 id i64,
  6 root_id i64, 7 is_fusion_computation bool, 8 execution_thread string
HloScheduleProto: 1 sequences SequenceEntry*
SequenceEntry: 1 key i64, 2 value InstructionSequence
InstructionSequence: 1 instruction_ids i64*
HloInputOutputAliasProto: 1 entries AliasEntryProto*
AliasEntryProto: 1 output_shape_index i64*, 2 parameter_number i64, 3 parameter_shape_index i64*, 4 kind i32
HloBufferDonorProto: 1 entries BufferDonorEntryProto*
BufferDonorEntryProto: 1 parameter_number i64, 2 parameter_shape_index i64*
StackFrameIndexProto: 1 file_names string*, 2 function_names string*, 3 file_locations FileLocation*, 4 stack_frames StackFrame*
FileLocation: 1 file_name_id i32, 2 function_name_id i32, 3 line i32, 4 column i32, 5 end_line i32, 6 end_column i32
StackFrame: 1 file_location_id i32, 2 parent_frame_id i32

HloInstructionProto: 1 name string, 2 opcode string, 3 shape ShapeProto, 7 metadata OpMetadata, 8 literal LiteralProto,
  9 parameter_number i64, 11 fusion_kind string, 13 tuple_index i64, 14 dimensions i64*, 15 window WindowProto,
  16 convolution_dimension_numbers ConvolutionDimensionNumbersProto, 17 slice_dimensions SliceDimensions*,
  18 exponent_bits i32, 19 mantissa_bits i32, 20 dynamic_slice_sizes i64*, 21 padding_config PaddingConfig,
  22 outfeed_config bytes, 23 distribution i32, 24 epsilon f32, 25 feature_index i64, 26 channel_id i64, 27 infeed_config bytes,
  28 custom_call_target string, 29 outfeed_shape ShapeProto, 30 dot_dimension_numbers DotDimensionNumbers, 31 fft_type i32,
  32 fft_length i64*, 33 gather_dimension_numbers GatherDimensionNumbers, 34 gather_slice_sizes i64*, 35 id i64,
  36 operand_ids i64*, 37 control_predecessor_ids i64*, 38 called_computation_ids i64*, 40 sharding OpSharding,
  43 backend_config bytes, 45 all_reduce_id i64, 47 is_host_transfer bool,
  48 scatter_dimension_numbers ScatterDimensionNumbers, 49 replica_groups ReplicaGroup*, 50 feature_group_count i64,
  51 precision_config PrecisionConfig, 52 source_target_pairs SourceTarget*, 54 domain_entry_sharding OpSharding,
  55 domain_exit_sharding OpSharding, 56 constrain_layout bool, 57 operand_shapes_with_layout ShapeProto*,
  58 batch_group_count i64, 59 triangular_solve_options TriangularSolveOptions, 60 is_stable bool,
  61 parameter_replication ParameterReplication, 62 cholesky_options CholeskyOptions, 63 comparison_direction string,
  65 custom_call_has_side_effect bool, 66 delta i64, 67 indices_are_sorted bool, 68 frontend_attributes FrontendAttributes,
  69 unique_indices bool, 70 rng_algorithm i32, 71 use_global_device_ids bool, 72 comparison_type string,
  74 output_operand_aliasing OutputOperandAliasing*, 75 padding_type i32, 76 custom_call_schedule i32,
  77 custom_call_api_version i32, 79 async_execution_thread string, 80 cross_program_prefetch_index i32?, 81 k i64,
  82 statistics_viz StatisticsViz, 85 largest bool, 87 collective_device_list CollectiveDeviceListProto,
  88 original_value OriginalValueProto, 89 is_composite bool, 90 ragged_dot_dimension_numbers RaggedDotDimensionNumbers,
  91 result_accuracy ResultAccuracy, 92 iota_collective_device_list IotaReplicaGroupListProto,
  93 mesh_axes_replica_group_list MeshAxesReplicaGroupListProto, 94 is_reverse bool, 95 num_carries i64, 96 is_associative i32,
  97 conv_kind i32, 98 sparsity_config SparsityConfigProto

ShapeProto: 2 element_type i32, 3 dimensions i64*, 4 tuple_shapes ShapeProto*, 5 layout LayoutProto,
  6 is_dynamic_dimension bool*
ProgramShapeProto: 1 parameters ShapeProto*, 2 result ShapeProto, 3 parameter_names string*
LayoutProto: 1 minor_to_major i64*, 6 tiles TileProto*, 7 element_size_in_bits i64, 8 memory_space i64,
  10 physical_shape ShapeProto, 11 index_primitive_type i32, 12 pointer_primitive_type i32,
  15 dynamic_shape_metadata_prefix_bytes i64, 16 tail_padding_alignment_in_elements i64, 17 split_configs SplitConfigProto*
TileProto: 1 dimensions i64*
SplitConfigProto: 1 dimension i64, 2 split_indices i64*
LiteralProto: 1 shape ShapeProto, 2 preds bool*, 3 u8s bytes, 4 s32s i32*, 5 s64s i64*, 6 u32s u32*, 7 u64s u64*, 8 f32s f32*,
  9 f64s f64*, 10 tuple_literals LiteralProto*, 11 f16s bytes, 12 c64s f32*, 13 bf16s bytes, 15 s8s bytes, 16 u16s bytes,
  17 s16s bytes, 18 c128s f64*, 19 f8e5m2s bytes, 20 f8e4m3fns bytes, 21 s4s bytes, 22 u4s bytes, 23 f8e4m3b11fnuzs bytes,
  24 f8e5m2fnuzs bytes, 25 f8e4m3fnuzs bytes, 26 s2s bytes, 27 u2s bytes, 28 f8e4m3s bytes, 29 f8e3m4s bytes, 30 s1s bytes,
  31 u1s bytes, 32 f4e2m1fns bytes, 33 f8e8m0fnus bytes, 35 f6e3m2fns bytes, 36 f6e2m3fns bytes

OpMetadata: 1 op_type string, 2 op_name string, 3 source_file string, 4 source_line i32, 5 profile_type i32*,
  12 deduplicated_name string, 15 stack_frame_id i32, 16 scheduling_name string, 17 source_end_line i32, 18 source_column i32,
  19 source_end_column i32, 20 metadata_payload PayloadProto
PayloadProto: 1 value bytes
FrontendAttributes: 1 map StringPair*
StringPair: 1 key string, 2 value string
StatisticsViz: 1 stat_index_to_visualize i64, 2 statistics Statistic*
Statistic: 1 stat_name string, 2 stat_val f64
ParameterReplication: 1 replicated_at_leaf_buffers bool*
OriginalValueProto: 1 elements OriginalValueElement*, 2 is_synthetic_call bool
OriginalValueElement: 1 shape_index i64*, 2 original_array OriginalArrayProto?
OriginalArrayProto: 1 instruction_name string, 2 shape_index i64*
ResultAccuracy: 1 mode i32?, 2 tolerance Tolerance?
Tolerance: 1 atol f64, 2 rtol f64, 3 ulps i64

OpSharding: 1 type i32, 2 tile_shape ShapeProto, 3 tile_assignment_dimensions i64*, 4 tile_assignment_devices i64*,
  5 tuple_shardings OpSharding*, 6 replicate_on_last_tile_dim bool, 7 metadata OpMetadata*, 8 last_tile_dims i32*,
  9 iota_reshape_dims i64*, 10 iota_transpose_perm i32*, 11 is_shard_group bool, 12 shard_group_id i64,
  13 shard_group_type i32, 14 named_sharding NamedShardingProto
NamedShardingProto: 2 mesh MeshProto, 3 dim_shardings DimensionShardingProto*, 4 replicated_axes AxisRefProto*,
  5 unreduced_axes AxisRefProto*, 6 metadata OpMetadata*, 7 manual_axes AxisRefProto*
DimensionShardingProto: 1 axes AxisRefProto*, 2 is_closed bool
MeshProto: 1 axes MeshAxisProto*, 2 device_ids i64*, 3 iota_transform IotaTransformProto
MeshAxisProto: 1 name string, 2 size i64
IotaTransformProto: 1 reshape_dims i64*, 2 transpose_perm i32*
AxisRefProto: 1 mesh_axis_index i64, 2 sub_axis_info SubAxisProto
SubAxisProto: 1 pre_size i64, 2 size i64

ReplicaGroup: 1 replica_ids i64*
CollectiveDeviceListProto: 1 replica_groups ReplicaGroup*
IotaReplicaGroupListProto: 1 num_replica_groups i64, 2 num_devices_per_group i64, 3 iota_reshape_dims i64*,
  4 iota_transpose_perm i32*
MeshAxesReplicaGroupListProto: 1 mesh MeshProto, 2 axes AxisRefProto*
SourceTarget: 1 source i64, 2 target i64

WindowProto: 1 dimensions WindowDimensionProto*
WindowDimensionProto: 1 size i64, 2 stride i64, 3 padding_low i64, 4 padding_high i64, 5 window_dilation i64,
  6 base_dilation i64, 7 window_reversal bool
ConvolutionDimensionNumbersProto: 3 kernel_input_feature_dimension i64, 4 kernel_output_feature_dimension i64,
  6 kernel_spatial_dimensions i64*, 7 input_batch_dimension i64, 8 input_feature_dimension i64, 9 output_batch_dimension i64,
  10 output_feature_dimension i64, 11 input_spatial_dimensions i64*, 12 output_spatial_dimensions i64*
SliceDimensions: 1 start i64, 2 limit i64, 3 stride i64
PaddingConfig: 1 dimensions PaddingConfigDimension*
PaddingConfigDimension: 1 edge_padding_low i64, 2 edge_padding_high i64, 3 interior_padding i64
DotDimensionNumbers: 1 lhs_contracting_dimensions i64*, 2 rhs_contracting_dimensions i64*, 3 lhs_batch_dimensions i64*,
  4 rhs_batch_dimensions i64*
RaggedDotDimensionNumbers: 1 dot_dimension_numbers DotDimensionNumbers, 2 lhs_ragged_dimensions i64*,
  3 rhs_group_dimensions i64*
GatherDimensionNumbers: 1 offset_dims i64*, 2 collapsed_slice_dims i64*, 3 start_index_map i64*, 4 index_vector_dim i64,
  5 operand_batching_dims i64*, 6 start_indices_batching_dims i64*
ScatterDimensionNumbers: 1 update_window_dims i64*, 2 inserted_window_dims i64*, 3 scatter_dims_to_operand_dims i64*,
  4 index_vector_dim i64, 5 input_batching_dims i64*, 6 scatter_indices_batching_dims i64*
PrecisionConfig: 1 operand_precision i32*, 2 algorithm i32
TriangularSolveOptions: 1 left_side bool, 2 lower bool, 3 unit_diagonal bool, 4 transpose_a i32
CholeskyOptions: 1 lower bool
OutputOperandAliasing: 1 output_shape_index i64*, 2 operand_index i64, 3 operand_shape_index i64*
SparsityConfigProto: 1 lhs OperandSparsityProto?, 2 rhs OperandSparsityProto?
OperandSparsityProto: 1 num_non_zero i64, 2 block_size i64, 3 dimension i64, 4 stride i64
"""

_SCALARS = {"f64": 1, "f32": 2, "i64": 3, "u64": 4, "i32": 5, "bool": 8, "string": 9, "bytes": 12, "u32": 13}
"""Field type numbers of ``google.protobuf.FieldDescriptorProto``."""


def new(message: str) -> Message:
    """An empty message called ``message``.

    Raises:
        InputError: the package protobuf is not installed.
    """
    return _classes()[message]()


@cache
def _classes() -> dict[str, type[Message]]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise InputError("binary protos need the package protobuf: pip install 'layoutsim[proto]'") from error
    file = descriptor_pb2.FileDescriptorProto(name="layoutsim/hlo.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _declarations():
        _declare(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    found = {name: pool.FindMessageTypeByName(f"{_PACKAGE}.{name}") for name, _ in _declarations()}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in found.items()}


def _declarations() -> list[tuple[str, list[str]]]:
    """``(message name, ["1 name string", ...])`` in the order of the table."""
    out: list[tuple[str, list[str]]] = []
    for line in _MESSAGES.strip().splitlines():
        head, colon, rest = line.partition(":")
        if colon:
            out.append((head, []))
        if line:
            out[-1][1].extend(field.strip() for field in (rest if colon else line).split(",") if field.strip())
    return out


def _declare(message: DescriptorProto, fields: list[str]) -> None:
    for text in fields:
        number, name, kind = text.split()
        base = kind.rstrip("*?")
        field = message.field.add(name=name, number=int(number))
        field.label = field.LABEL_REPEATED if kind.endswith("*") else field.LABEL_OPTIONAL
        if base in _SCALARS:
            field.type = _SCALARS[base]  # pyright: ignore[reportAttributeAccessIssue]
        else:
            field.type = field.TYPE_MESSAGE
            field.type_name = f".{_PACKAGE}.{base}"
        if kind.endswith("?") and base in _SCALARS:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
