"""Options of layout assignment, each named for what it decides; the pass's text form uses the values (``backend=gpu``).

Examples are differences: lines with ``-`` are what XLA's rules give, lines with ``+`` what the option gives instead. Tests run
them.
"""

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
    only dimensions of size 1 are more major: it is the same in memory, and XLA's own kernels accept it. An all-to-all that
    returns a tuple sends whole arrays, so no dimension of it has to be anywhere, whatever the choice.

    ``layout-assignment{backend=gpu all-gather=ignore-degenerate}``::

          p = f32[1,4,8]{2,1,0} parameter(0)
        - copy = f32[1,4,8]{2,0,1} copy(p)
        - g = f32[1,32,8]{2,0,1} all-gather(copy), replica_groups=[1,8]<=[8], dimensions={1}
        - ROOT copy.1 = f32[1,32,8]{2,1,0} copy(g)
        + ROOT g = f32[1,32,8]{2,1,0} all-gather(p), replica_groups=[1,8]<=[8], dimensions={1}

    ``layout-assignment{backend=gpu reduce-scatter=ignore-degenerate}``::

          add {
            a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT c = f32[] add(a, b)
          }
          ENTRY e {
            p = f32[1,16,8]{2,1,0} parameter(0)
        -   copy = f32[1,16,8]{2,0,1} copy(p)
        -   s = f32[1,4,8]{2,0,1} reduce-scatter(copy), replica_groups=[1,4]<=[4], dimensions={1}, to_apply=add
        -   ROOT copy.1 = f32[1,4,8]{2,1,0} copy(s)
        +   ROOT s = f32[1,4,8]{2,1,0} reduce-scatter(p), replica_groups=[1,4]<=[4], dimensions={1}, to_apply=add
          }

    ``layout-assignment{backend=gpu all-to-all=ignore-degenerate}``::

          p = f32[1,16,8]{2,1,0} parameter(0)
        - copy = f32[1,16,8]{2,0,1} copy(p)
        - a = f32[1,16,8]{2,0,1} all-to-all(copy), replica_groups=[1,8]<=[8], dimensions={1}
        - ROOT copy.1 = f32[1,16,8]{2,1,0} copy(a)
        + ROOT a = f32[1,16,8]{2,1,0} all-to-all(p), replica_groups=[1,8]<=[8], dimensions={1}

    ``layout-assignment{backend=gpu ragged-all-to-all=ignore-degenerate}``::

          p = f32[4,1,8]{2,0,1} parameter(0)
        - copy = f32[4,1,8]{2,1,0} copy(p)
          o = f32[4,1,8]{2,0,1} parameter(1)
        - copy.1 = f32[4,1,8]{2,1,0} copy(o)
          n = s32[2] parameter(2)
        - r = f32[4,1,8]{2,1,0} ragged-all-to-all(copy, copy.1, n, n, n, /*index=5*/n), replica_groups={{0,1}}
        - ROOT copy.2 = f32[4,1,8]{2,0,1} copy(r)
        + ROOT r = f32[4,1,8]{2,0,1} ragged-all-to-all(p, o, n, n, n, /*index=5*/n), replica_groups={{0,1}}
    """

    POSITIONAL = "positional"
    IGNORE_DEGENERATE = "ignore-degenerate"


class ReshapeAlignment(StrEnum):
    """Where a reshape that can be a bitcast puts dimensions of size 1 (GPU backend).

    ``IN_PLACE`` is XLA since April 2026 (jaxlib 0.10.1): they keep their neighbours. ``SIZE_1_MOST_MAJOR`` is XLA before.

    ``layout-assignment{backend=gpu reshape-alignment=size-1-most-major}``::

          p = f32[10,20]{0,1} parameter(0)
        - r = f32[1,10,1,20]{1,0,3,2} reshape(p)
        - n = f32[1,10,1,20]{1,0,3,2} negate(r)
        + r = f32[1,10,1,20]{1,3,2,0} reshape(p)
        + n = f32[1,10,1,20]{1,3,2,0} negate(r)
          ROOT s = f32[10,20]{0,1} reshape(n)
    """

    IN_PLACE = "in-place"
    SIZE_1_MOST_MAJOR = "size-1-most-major"


class ConvolutionLayout(StrEnum):
    """Layout of cuDNN convolutions: chosen by the device, or forced (``xla_gpu_force_conv_nchw`` and ``_nhwc``).

    ``layout-assignment{backend=gpu convolution-layout=nchw}``::

          p = f32[2,8,8,16]{3,2,1,0} parameter(0)
        + copy = f32[2,8,8,16]{2,1,3,0} copy(p)
          k = f32[3,3,16,32]{3,2,1,0} parameter(1)
        - copy = f32[3,3,16,32]{2,1,0,3} copy(k)
        - c = (f32[2,6,6,32]{3,2,1,0}, u8[0]) custom-call(p, copy), window={size=3x3}, dim_labels=b01f_01io->b01f,
        -   custom_call_target="__cudnn$convForward"
        - ROOT r = f32[2,6,6,32]{3,2,1,0} get-tuple-element(c), index=0
        + copy.1 = f32[3,3,16,32]{1,0,2,3} copy(k)
        + c = (f32[2,6,6,32]{2,1,3,0}, u8[0]) custom-call(copy, copy.1), window={size=3x3}, dim_labels=b01f_01io->b01f,
        +   custom_call_target="__cudnn$convForward"
        + r = f32[2,6,6,32]{2,1,3,0} get-tuple-element(c), index=0
        + ROOT copy.2 = f32[2,6,6,32]{3,2,1,0} copy(r)

    ``layout-assignment{backend=gpu convolution-layout=nhwc}``::

          p = f64[2,8,8,16]{3,2,1,0} parameter(0)
        - copy = f64[2,8,8,16]{2,1,3,0} copy(p)
          k = f64[3,3,16,32]{3,2,1,0} parameter(1)
        - copy.1 = f64[3,3,16,32]{1,0,2,3} copy(k)
        - c = (f64[2,6,6,32]{2,1,3,0}, u8[0]) custom-call(copy, copy.1), window={size=3x3}, dim_labels=b01f_01io->b01f,
        -   custom_call_target="__cudnn$convForward"
        - r = f64[2,6,6,32]{2,1,3,0} get-tuple-element(c), index=0
        - ROOT copy.2 = f64[2,6,6,32]{3,2,1,0} copy(r)
        + copy = f64[3,3,16,32]{2,1,0,3} copy(k)
        + c = (f64[2,6,6,32]{3,2,1,0}, u8[0]) custom-call(p, copy), window={size=3x3}, dim_labels=b01f_01io->b01f,
        +   custom_call_target="__cudnn$convForward"
        + ROOT r = f64[2,6,6,32]{3,2,1,0} get-tuple-element(c), index=0
    """

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

    Who is first, chooses. ``layout-assignment{backend=gpu computation-order=reverse}``::

          callee {
        -   p = f32[4,8]{1,0} parameter(0)
        -   ROOT n = f32[4,8]{1,0} negate(p)
        +   p = f32[4,8]{0,1} parameter(0)
        +   ROOT n = f32[4,8]{0,1} negate(p)
          }
          ENTRY e {
            w = f32[4,8]{0,1} parameter(0)
        -   copy = f32[4,8]{1,0} copy(w)
        -   c = f32[4,8]{1,0} call(copy), to_apply=callee
        -   ROOT copy.1 = f32[4,8]{0,1} copy(c)
        +   ROOT c = f32[4,8]{0,1} call(w), to_apply=callee
          }
    """

    FORWARD = "forward"
    REVERSE = "reverse"


class WorkList(StrEnum):
    """In which order constraints are followed.

    ``XLA`` follows those that come from demands, and from transposes and reshapes, at once, and the rest later: a queue with
    two ends. ``DEPTH_FIRST`` follows every new constraint at once; ``BREADTH_FIRST`` in the order in which they were made, so
    that what is near an array decides, and demands do not get far. A product wants its ``s4`` weights packed, and
    ``layout-assignment{backend=gpu work-list=breadth-first}``::

          x = bf16[2,8]{1,0} parameter(0)
          w = s4[8,4]{1,0} parameter(1)
        - copy = s4[8,4]{0,1} copy(w)
        - c = bf16[8,4]{0,1} convert(copy)
        - ROOT d = bf16[2,4]{1,0} dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        + c = bf16[8,4]{1,0} convert(w)
        + copy = bf16[8,4]{0,1} copy(c)
        + ROOT d = bf16[2,4]{1,0} dot(x, copy), lhs_contracting_dims={1}, rhs_contracting_dims={0}

    copies twice the bytes here, and fewer where the demand would have crossed a product of two arrays. What follows from a
    broadcast comes before what follows from its operand with
    ``layout-assignment{backend=gpu work-list=depth-first}``::

          p = f32[4,3,8]{2,1,0} parameter(0)
        - t = f32[4,8,3]{1,2,0} transpose(p), dimensions={0,2,1}
        - copy = f32[4,8,3]{2,1,0} copy(t)
        - b = f32[4,8,2,3]{3,2,1,0} broadcast(copy), dimensions={0,1,3}
        + copy = f32[4,3,8]{1,2,0} copy(p)
        + t = f32[4,8,3]{2,1,0} transpose(copy), dimensions={0,2,1}
        + b = f32[4,8,2,3]{3,2,1,0} broadcast(t), dimensions={0,1,3}
          ROOT r = (f32[4,8,2,3]{3,2,1,0}) tuple(b)
    """

    XLA = "xla"
    DEPTH_FIRST = "depth-first"
    BREADTH_FIRST = "breadth-first"


class CopyComparison(StrEnum):
    """When two layouts differ so that a copy is needed between them.

    ``EXACT`` is XLA's layout assignment: when the orders differ. With ``MODULO_DEGENERATE`` orders that differ only in the
    place of dimensions of size 1 (or of an array without elements) are joined by a ``bitcast``, which costs nothing.
    ``layout-assignment{backend=gpu copies=modulo-degenerate}``::

          p = f32[1,4,8]{2,1,0} parameter(0)
        - copy = f32[1,4,8]{2,0,1} copy(p)
        - ROOT c = f32[4] custom-call(copy), custom_call_target="c", operand_layout_constraints={f32[1,4,8]{2,0,1}}
        + bitcast = f32[1,4,8]{2,0,1} bitcast(p)
        + ROOT c = f32[4] custom-call(bitcast), custom_call_target="c", operand_layout_constraints={f32[1,4,8]{2,0,1}}

    The layouts themselves stay those of XLA. (XLA's algebraic simplifier does the same to such copies later; so this is what
    memory looks like once that has run.)
    """

    EXACT = "exact"
    MODULO_DEGENERATE = "modulo-degenerate"


class ReductionPull(StrEnum):
    """Which reductions want their operand laid out so that they run along the most minor dimensions (GPU).

    ``LARGE`` is XLA since late 2025: from 32 reduced elements on. ``LARGE_OR_DIVISOR`` is XLA before: also if the number of
    reduced elements divides 32, the size of a warp.

    ``layout-assignment{backend=gpu reduction-pull=large-or-divisor}``::

          add {
            a = f32[] parameter(0)
            b = f32[] parameter(1)
            ROOT c = f32[] add(a, b)
          }
          ENTRY e {
            p = f32[16,8,4]{2,1,0} parameter(0)
        +   copy = f32[16,8,4]{0,2,1} copy(p)
            z = f32[] constant(0)
        -   ROOT r = f32[8,4]{1,0} reduce(p, z), dimensions={0}, to_apply=add
        +   ROOT r = f32[8,4]{1,0} reduce(copy, z), dimensions={0}, to_apply=add
          }
    """

    LARGE = "large"
    LARGE_OR_DIVISOR = "large-or-divisor"
