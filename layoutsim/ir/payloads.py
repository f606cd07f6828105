"""Opcode-specific attributes as frozen values, one class per family of opcodes (text spec, section 3).

Field names are XLA's attribute names. Attributes that every opcode takes are in :mod:`layoutsim.ir.attributes`; computations
that an instruction calls are edges of the graph and stand in ``Instruction.called_computations``.
"""

from __future__ import annotations

from attrs import field, frozen

from layoutsim.ir.literal import Literal
from layoutsim.ir.replica_groups import ListReplicaGroups, ReplicaGroups
from layoutsim.ir.shape import Shape, ShapeIndex

Ints = tuple[int, ...]

NO_GROUPS = ListReplicaGroups()
"""``replica_groups={}``: one group of everybody."""


@frozen(cache_hash=True)
class Aliasing:
    """One ``out_index: (operand, operand_index)`` of ``output_to_operand_aliasing``."""

    output_index: ShapeIndex
    operand_number: int
    operand_index: ShapeIndex = ()


@frozen(cache_hash=True)
class WindowDimension:
    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1
    base_dilation: int = 1
    reversal: bool = False


@frozen(cache_hash=True)
class Window:
    """``window={size=3x3 stride=2x2 pad=1_1x0_0 lhs_dilate=.. rhs_dilate=.. rhs_reversal=..}``."""

    dimensions: tuple[WindowDimension, ...] = ()


@frozen(cache_hash=True)
class ConvolutionDimensionNumbers:
    """``dim_labels``: which dimension is batch, feature or spatial, for input, kernel and output.

    Attributes:
        text: the label as written, kept because ``?`` marks dimensions that the numbers do not show.
    """

    input_batch: int
    input_feature: int
    input_spatial: Ints
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: Ints
    output_batch: int
    output_feature: int
    output_spatial: Ints
    text: str = field(default="", eq=False)


@frozen(cache_hash=True)
class ComparePayload:
    """``type`` is ``None`` for the default of the operand's element type."""

    direction: str
    type: str | None = None


@frozen(cache_hash=True)
class ReducePrecisionPayload:
    exponent_bits: int
    mantissa_bits: int


@frozen(cache_hash=True)
class DomainPayload:
    """Entry and exit shardings as text."""

    kind: str
    entry: str
    exit: str


@frozen(cache_hash=True)
class ParameterPayload:
    number: int


@frozen(eq=False)
class ConstantPayload:
    literal: Literal


@frozen(cache_hash=True)
class IotaPayload:
    iota_dimension: int


@frozen(cache_hash=True)
class DimensionsPayload:
    """broadcast, transpose, reverse, concatenate, reduce, map, get-dimension-size, set-dimension-size."""

    dimensions: Ints


@frozen(cache_hash=True)
class ReshapePayload:
    inferred_dimension: int = -1


@frozen(cache_hash=True)
class SlicePayload:
    starts: Ints
    limits: Ints
    strides: Ints


@frozen(cache_hash=True)
class DynamicSlicePayload:
    dynamic_slice_sizes: Ints


@frozen(cache_hash=True)
class PadPayload:
    """Low and high may be negative; interior is not."""

    low: Ints
    high: Ints
    interior: Ints


@frozen(cache_hash=True)
class GatherPayload:
    offset_dims: Ints
    collapsed_slice_dims: Ints
    start_index_map: Ints
    index_vector_dim: int
    slice_sizes: Ints
    operand_batching_dims: Ints = ()
    start_indices_batching_dims: Ints = ()
    indices_are_sorted: bool = False


@frozen(cache_hash=True)
class ScatterPayload:
    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    index_vector_dim: int
    input_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()
    indices_are_sorted: bool = False
    unique_indices: bool = False


@frozen(cache_hash=True)
class TupleIndexPayload:
    """get-tuple-element's ``index``."""

    index: int


@frozen(cache_hash=True)
class DotPayload:
    """dot and scaled-dot; empty precision means all default, empty algorithm unset."""

    lhs_contracting_dims: Ints = ()
    rhs_contracting_dims: Ints = ()
    lhs_batch_dims: Ints = ()
    rhs_batch_dims: Ints = ()
    operand_precision: tuple[str, ...] = ()
    algorithm: str = ""


@frozen(cache_hash=True)
class RaggedDotPayload:
    dot: DotPayload
    lhs_ragged_dims: Ints
    rhs_group_dims: Ints = ()


@frozen(cache_hash=True)
class ConvolutionPayload:
    window: Window
    dimension_numbers: ConvolutionDimensionNumbers
    feature_group_count: int = 1
    batch_group_count: int = 1
    convolution_kind: str = ""
    operand_precision: tuple[str, ...] = ()
    sparsity_config: str = ""


@frozen(cache_hash=True)
class WindowPayload:
    """reduce-window and select-and-scatter."""

    window: Window = Window()


@frozen(cache_hash=True)
class ScanPayload:
    """``is_associative`` is ``None`` where unset."""

    dimension: int
    num_carries: int
    is_reverse: bool = False
    is_associative: bool | None = None


@frozen(cache_hash=True)
class FftPayload:
    fft_type: str
    fft_length: Ints


@frozen(cache_hash=True)
class CholeskyPayload:
    lower: bool = False


@frozen(cache_hash=True)
class TriangularSolvePayload:
    """``transpose_a`` is NO_TRANSPOSE, TRANSPOSE, ADJOINT, or empty where unset."""

    left_side: bool = False
    lower: bool = False
    unit_diagonal: bool = False
    transpose_a: str = ""


@frozen(cache_hash=True)
class SortPayload:
    dimension: int
    is_stable: bool = False


@frozen(cache_hash=True)
class TopKPayload:
    k: int
    largest: bool = True
    is_stable: bool = True


@frozen(cache_hash=True)
class BatchNormPayload:
    epsilon: float
    feature_index: int


@frozen(cache_hash=True)
class CallPayload:
    is_composite: bool = False


@frozen(cache_hash=True)
class FusionPayload:
    """``kind`` is kLoop, kInput, kOutput or kCustom."""

    kind: str
    output_to_operand_aliasing: tuple[Aliasing, ...] = ()


@frozen(cache_hash=True)
class CustomCallPayload:
    """``operand_layout_constraints`` is ``None`` where the call does not constrain layouts (an empty list does)."""

    custom_call_target: str
    window: Window | None = None
    dimension_numbers: ConvolutionDimensionNumbers | None = None
    feature_group_count: int = 1
    batch_group_count: int = 1
    operand_precision: tuple[str, ...] = ()
    padding_type: str = ""
    operand_layout_constraints: tuple[Shape, ...] | None = None
    custom_call_has_side_effect: bool = False
    literal: Literal | None = None
    output_to_operand_aliasing: tuple[Aliasing, ...] = ()
    schedule: str = ""
    api_version: str = ""


@frozen(cache_hash=True)
class AsyncPayload:
    """async-start, -update, -done; the last two repeat the start's thread."""

    async_execution_thread: str = "main"
    output_to_operand_aliasing: tuple[Aliasing, ...] = ()


@frozen(cache_hash=True)
class InfeedPayload:
    infeed_config: str = ""


@frozen(cache_hash=True)
class OutfeedPayload:
    outfeed_shape: Shape
    outfeed_config: str = ""


@frozen(cache_hash=True)
class SendRecvPayload:
    """send, send-done, recv, recv-done; ``channel_id`` is ``None`` where absent."""

    channel_id: int | None = None
    is_host_transfer: bool = False


@frozen(cache_hash=True)
class CopyStartPayload:
    cross_program_prefetch_index: int | None = None


@frozen(cache_hash=True)
class RngPayload:
    distribution: str


@frozen(cache_hash=True)
class RngBitGeneratorPayload:
    algorithm: str


@frozen(cache_hash=True)
class RngGetAndUpdateStatePayload:
    delta: int


@frozen(cache_hash=True)
class CollectivePayload:
    """all-gather, all-reduce, reduce-scatter, all-to-all, collective-broadcast, ragged-all-to-all, and starts.

    Attributes:
        dimension: gather, scatter or split dimension; ``None`` where the form has none (all-reduce, tuple all-to-all).
        channel_id: ``None`` where absent.
    """

    replica_groups: ReplicaGroups = NO_GROUPS
    channel_id: int | None = None
    constrain_layout: bool = False
    use_global_device_ids: bool = False
    dimension: int | None = None


@frozen(cache_hash=True)
class CollectivePermutePayload:
    source_target_pairs: tuple[tuple[int, int], ...]
    channel_id: int | None = None
    slice_sizes: tuple[Ints, ...] = ()


Payload = (
    ComparePayload
    | ReducePrecisionPayload
    | DomainPayload
    | ParameterPayload
    | ConstantPayload
    | IotaPayload
    | DimensionsPayload
    | ReshapePayload
    | SlicePayload
    | DynamicSlicePayload
    | PadPayload
    | GatherPayload
    | ScatterPayload
    | TupleIndexPayload
    | DotPayload
    | RaggedDotPayload
    | ConvolutionPayload
    | WindowPayload
    | ScanPayload
    | FftPayload
    | CholeskyPayload
    | TriangularSolvePayload
    | SortPayload
    | TopKPayload
    | BatchNormPayload
    | CallPayload
    | FusionPayload
    | CustomCallPayload
    | AsyncPayload
    | InfeedPayload
    | OutfeedPayload
    | SendRecvPayload
    | CopyStartPayload
    | RngPayload
    | RngBitGeneratorPayload
    | RngGetAndUpdateStatePayload
    | CollectivePayload
    | CollectivePermutePayload
)
