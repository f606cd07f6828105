"""Small facts about array shapes that the inference rules share (text spec, section 2.4; ``xla/shape_util.h``).

1. Two sizes *agree* when they are equal or one of them is unbounded.
2. Two element types are the *same up to precision* when they are equal or both floating.
3. The *higher* of two types: complex first, then the floating range, the significand, the width, signed over unsigned.
4. A shape that is built anew has the default layout; one that is copied keeps the operand's.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from layoutsim.errors import ShapeError
from layoutsim.ir import UNBOUNDED, ArrayShape, ElementType, Layout, Shape, array_leaves, array_shape, layout

_FLOAT_RANGES: dict[ElementType, tuple[int, int]] = {
    ElementType.F4E2M1FN: (3, 2),
    ElementType.F6E2M3FN: (3, 4),
    ElementType.F6E3M2FN: (5, 3),
    ElementType.F8E3M4: (4, 5),
    ElementType.F8E4M3: (8, 4),
    ElementType.F8E4M3B11FNUZ: (5, 4),
    ElementType.F8E4M3FN: (9, 4),
    ElementType.F8E4M3FNUZ: (8, 4),
    ElementType.F8E5M2: (16, 3),
    ElementType.F8E5M2FNUZ: (16, 3),
    ElementType.F8E8M0FNU: (128, 1),
    ElementType.F16: (16, 11),
    ElementType.BF16: (128, 8),
    ElementType.F32: (128, 24),
    ElementType.F64: (1024, 53),
}
"""Of each floating type the smallest power of two that overflows, and the bits of its significand (leading one included)."""

_COMPONENTS = {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}


def component_type(element_type: ElementType) -> ElementType:
    """Type of the real part; real types are their own."""
    return _COMPONENTS.get(element_type, element_type)


def _precision(element_type: ElementType) -> tuple[bool, int, int, int, bool]:
    part = component_type(element_type)
    range_, significand = _FLOAT_RANGES.get(part, (-1, -1))
    bits = 1 if part.is_pred else part.bits
    return element_type.is_complex, range_, significand, bits, part.is_integral and part.is_signed


def higher_type(*types: ElementType) -> ElementType:
    """The highest of ``types`` under rule (3).

    Raises:
        ShapeError: two different types rank the same, as ``f8e5m2`` and ``f8e5m2fnuz`` do.
    """
    best, *others = types
    for other in others:
        if other is best:
            continue
        if _precision(other) == _precision(best):
            raise ShapeError(f"neither {best} nor {other} is the higher type")
        best = max(best, other, key=_precision)
    return best


def same_type_up_to_precision(a: ElementType, b: ElementType) -> bool:
    """Rule (2)."""
    return a is b or (a.is_floating and b.is_floating)


def sizes_agree(a: int, b: int) -> bool:
    """Rule (1)."""
    return a == b or UNBOUNDED in (a, b)


def same_sizes(a: ArrayShape, b: ArrayShape) -> bool:
    """Equal ranks, and every pair of sizes agrees."""
    return a.dimensions == b.dimensions or (a.rank == b.rank and all(map(sizes_agree, a.dimensions, b.dimensions)))


def compatible_up_to_precision(a: Shape, b: Shape) -> bool:
    """Compatible, where any two floating types count as one."""
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape):
        return same_type_up_to_precision(a.element_type, b.element_type) and same_sizes(a, b)
    ours, theirs = array_leaves(a), array_leaves(b)
    return (
        type(a) is type(b)
        and [index for index, _ in ours] == [index for index, _ in theirs]
        and all(compatible_up_to_precision(x, y) for (_, x), (_, y) in zip(ours, theirs, strict=True))
    )


def is_unbounded(shape: ArrayShape) -> bool:
    """Whether a dimension has no bound."""
    return UNBOUNDED in shape.dimensions


def dynamic_flags(shape: ArrayShape) -> tuple[bool, ...]:
    """One flag for each dimension, also where the shape stores none."""
    return shape.dynamic or (False,) * shape.rank


def new_array(element_type: ElementType, sizes: Iterable[int], dynamic: Iterable[bool] = ()) -> ArrayShape:
    """An array shape with the default layout (4); unbounded sizes set their flag by themselves."""
    sizes, flags = tuple(sizes), tuple(dynamic)
    if UNBOUNDED in sizes:
        flags = tuple(flag or size == UNBOUNDED for flag, size in zip(flags or (False,) * len(sizes), sizes, strict=True))
    return array_shape(element_type, sizes, None, flags)


def scalar(element_type: ElementType) -> ArrayShape:
    """The shape ``element_type[]``."""
    return array_shape(element_type, ())


def with_type(shape: ArrayShape, element_type: ElementType) -> ArrayShape:
    """``shape`` over another element type, layout kept (4); the storage width ``E(n)`` only where the new type has one."""
    kept = shape.layout
    if kept is not None and kept.element_size_bits and element_type.bits >= 8:
        kept = evolve(kept, element_size_bits=0)
    return array_shape(element_type, shape.dimensions, None, shape.dynamic).with_layout(kept)


def with_dynamic(shape: ArrayShape, dynamic: Iterable[bool]) -> ArrayShape:
    """``shape`` with other dynamic flags."""
    return array_shape(shape.element_type, shape.dimensions, None, tuple(dynamic)).with_layout(shape.layout)


def with_size(shape: ArrayShape, dimension: int, size: int, *, dynamic: bool) -> ArrayShape:
    """``shape`` with one dimension resized, layout kept (4)."""
    sizes, flags = list(shape.dimensions), list(dynamic_flags(shape))
    sizes[dimension], flags[dimension] = size, dynamic
    return array_shape(shape.element_type, tuple(sizes), None, tuple(flags)).with_layout(shape.layout)


def permuted(shape: ArrayShape, dimensions: tuple[int, ...]) -> ArrayShape:
    """Dimension ``i`` of the result is ``dimensions[i]`` of ``shape``; the layout moves along, so nothing moves in memory."""
    sizes = tuple(shape.dimensions[d] for d in dimensions)
    flags = tuple(dynamic_flags(shape)[d] for d in dimensions)
    moved: Layout | None = None
    if shape.layout is not None:
        moved = shape.layout.with_order(tuple(dimensions.index(d) for d in shape.layout.minor_to_major))
    return array_shape(shape.element_type, sizes, None, flags).with_layout(moved)


def appended_minor(shape: ArrayShape, size: int) -> ArrayShape:
    """``shape`` with a last dimension of ``size`` elements, the most minor one."""
    order = None if shape.layout is None else shape.layout.with_order((shape.rank, *shape.layout.minor_to_major))
    flags = (*dynamic_flags(shape), False)
    return array_shape(shape.element_type, (*shape.dimensions, size), None, flags).with_layout(order)


def without_dimension(shape: ArrayShape, dimension: int) -> ArrayShape:
    """``shape`` without one dimension; the others keep their order in memory."""
    kept = [d for d in range(shape.rank) if d != dimension]
    order: Layout | None = None
    if shape.layout is not None:
        order = layout(tuple(d - (d > dimension) for d in shape.layout.minor_to_major if d != dimension))
    flags = dynamic_flags(shape)
    sizes = tuple(shape.dimensions[d] for d in kept)
    return array_shape(shape.element_type, sizes, None, tuple(flags[d] for d in kept)).with_layout(order)


def inserted_dimension(shape: ArrayShape, dimension: int, size: int) -> ArrayShape:
    """``shape`` with a new dimension before ``dimension``: the next major one to it in memory, or the most minor at the end."""
    sizes = (*shape.dimensions[:dimension], size, *shape.dimensions[dimension:])
    flags = dynamic_flags(shape)
    order: Layout | None = None
    if shape.layout is not None:
        minor_to_major = [] if dimension < shape.rank else [dimension]
        for d in shape.layout.minor_to_major:
            minor_to_major += [d + (d >= dimension)] + [dimension] * (d == dimension)
        order = layout(tuple(minor_to_major))
    return array_shape(shape.element_type, sizes, None, (*flags[:dimension], False, *flags[dimension:])).with_layout(order)
