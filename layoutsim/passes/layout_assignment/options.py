"""Options of layout assignment, each named for what it decides; the pass's text form uses the values (``backend=gpu``)."""

from __future__ import annotations

from enum import StrEnum


class BackendName(StrEnum):
    """Whose rules apply."""

    GENERIC = "generic"
    GPU = "gpu"
    CPU = "cpu"


class CollectiveRule(StrEnum):
    """When the dimension of a collective counts as most major; chosen for each of the four collectives that have one.

    ``POSITIONAL`` is XLA's: the dimension must be last in ``minor_to_major``. ``IGNORE_DEGENERATE`` keeps a layout in which
    only dimensions of size 1 are more major: it is the same in memory, and XLA's own kernels accept it. Positional, and with
    ``reduce-scatter=ignore-degenerate``::

        copy = f32[1,16,8]{2,0,1} copy(p)                                   s = f32[1,4,8]{2,1,0} reduce-scatter(p),
        s = f32[1,4,8]{2,0,1} reduce-scatter(copy), dimensions={1}    =>        dimensions={1}
        copy.1 = f32[1,4,8]{2,1,0} copy(s)

    ``all-gather=...``, ``all-to-all=...`` and, along dimension 0, ``ragged-all-to-all=...`` do the same. An all-to-all that
    returns a tuple sends whole arrays, so no dimension of it has to be anywhere, whatever the choice.
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
    """Callees before callers (what every backend of XLA does), or the other way round.

    Who is first, chooses::

    callee: p = f32[4,8]{1,0} parameter(0)                    callee: p = f32[4,8]{0,1} parameter(0)
            ROOT n = f32[4,8]{1,0} negate(p)                          ROOT n = f32[4,8]{0,1} negate(p)
    e: w = f32[4,8]{0,1} parameter(0)                   =>    e: w = f32[4,8]{0,1} parameter(0)
       copy = f32[4,8]{1,0} copy(w)                              ROOT c = f32[4,8]{0,1} call(w), to_apply=callee
       c = f32[4,8]{1,0} call(copy), to_apply=callee
       ROOT copy.1 = f32[4,8]{0,1} copy(c)
    """

    FORWARD = "forward"
    REVERSE = "reverse"


class WorkList(StrEnum):
    """In which order constraints are followed.

    ``XLA`` follows those that come from demands, and from transposes and reshapes, at once, and the rest later: a queue with
    two ends. ``DEPTH_FIRST`` follows every new constraint at once; ``BREADTH_FIRST`` in the order in which they were made, so
    that what is near an array decides, and demands do not get far. A product wants its ``s4`` weights packed, and::

        copy = s4[8,4]{0,1} copy(w)                               c = bf16[8,4]{1,0} convert(w)
        c = bf16[8,4]{0,1} convert(copy)                    =>    copy = bf16[8,4]{0,1} copy(c)
        d = bf16[2,4]{1,0} dot(x, c), ...                         d = bf16[2,4]{1,0} dot(x, copy), ...

    ``BREADTH_FIRST`` copies twice the bytes here, and fewer where the demand would have crossed a product of two arrays.
    """

    XLA = "xla"
    DEPTH_FIRST = "depth-first"
    BREADTH_FIRST = "breadth-first"


class CopyComparison(StrEnum):
    """When two layouts differ so that a copy is needed between them.

    ``EXACT`` is XLA's layout assignment: when the orders differ. With ``MODULO_DEGENERATE`` orders that differ only in the
    place of dimensions of size 1 (or of an array without elements) are joined by a ``bitcast``, which costs nothing::

        copy = f32[1,4,8]{2,0,1} copy(p)        =>    bitcast = f32[1,4,8]{2,0,1} bitcast(p)

    The layouts themselves stay those of XLA. (XLA's algebraic simplifier does the same to such copies later; so this is what
    memory looks like once that has run.)
    """

    EXACT = "exact"
    MODULO_DEGENERATE = "modulo-degenerate"


class ReductionPull(StrEnum):
    """Which reductions want their operand laid out so that they run along the most minor dimensions (GPU).

    ``LARGE`` is XLA since late 2025: from 32 reduced elements on. ``LARGE_OR_DIVISOR`` is XLA before: also if the number of
    reduced elements divides 32, the size of a warp.
    """

    LARGE = "large"
    LARGE_OR_DIVISOR = "large-or-divisor"
