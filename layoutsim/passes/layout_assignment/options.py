"""Options of layout assignment, each named for what it decides; the pass's text form uses the values (``backend=gpu``)."""

from __future__ import annotations

from enum import StrEnum


class BackendName(StrEnum):
    """Whose rules apply."""

    GENERIC = "generic"
    GPU = "gpu"
    CPU = "cpu"


class AllGatherRule(StrEnum):
    """When a collective's dimension counts as most major (all-gather, reduce-scatter, all-to-all, ragged-all-to-all).

    ``POSITIONAL`` is XLA's: the dimension must be last in ``minor_to_major``. ``IGNORE_DEGENERATE`` keeps a layout in which
    only dimensions of size 1 are more major, since it is the same in memory (layout spec, 12.4).
    """

    POSITIONAL = "positional"
    IGNORE_DEGENERATE = "ignore-degenerate"


class ReshapeAlignment(StrEnum):
    """Where a reshape that can be a bitcast puts dimensions of size 1 (GPU backend).

    ``IN_PLACE`` is XLA since April 2026 (jaxlib 0.10.1): they keep their neighbours. ``SIZE_1_MOST_MAJOR`` is XLA before.
    """

    IN_PLACE = "in-place"
    SIZE_1_MOST_MAJOR = "size-1-most-major"


class ConvolutionLayout(StrEnum):
    """Layout of cuDNN convolutions: chosen by the device, or forced (``xla_gpu_force_conv_nchw`` and ``_nhwc``)."""

    BY_DEVICE = "by-device"
    NCHW = "nchw"
    NHWC = "nhwc"


class LoopInvariants(StrEnum):
    """Who chooses the layout of what a loop only reads: its body (what XLA does), or its caller where the body does not care.

    See :mod:`layoutsim.passes.layout_assignment.loop_invariants`.
    """

    BODY = "body"
    CALLER = "caller"


class ComputationOrder(StrEnum):
    """Callees before callers (what every backend of XLA does), or the other way round."""

    FORWARD = "forward"
    REVERSE = "reverse"


class ReductionPull(StrEnum):
    """Which reductions want their operand laid out so that they run along the most minor dimensions (GPU).

    ``LARGE`` is XLA since late 2025: from 32 reduced elements on. ``LARGE_OR_DIVISOR`` is XLA before: also if the number of
    reduced elements divides 32, the size of a warp.
    """

    LARGE = "large"
    LARGE_OR_DIVISOR = "large-or-divisor"
