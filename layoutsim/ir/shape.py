"""Shapes: arrays with an optional layout, tuples, tokens, opaque values and buffers (``xla/shape.h``; text spec 2.2, 2.4).

Shapes are values: frozen, hashed once, compared by content. A *shape index* is a tuple of ints that leads from a shape to
one of its parts: ``()`` is the whole, ``(1, 0)`` the first part of the second part. A *leaf* is a part that is not a tuple.

Relations between shapes (all follow tuples):

* ``a == b``: same types, dimensions, dynamic flags and whole layouts.
* :func:`compatible`: the same without layouts and dynamic flags.
* :func:`same_order`: compatible, and every leaf has the same ``minor_to_major`` (XLA's "minor to major only" comparison).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from attrs import field, frozen

from layoutsim.errors import LayoutError, ShapeError
from layoutsim.ir.element_type import ElementType
from layoutsim.ir.layout import Layout, default_layout, layout

ShapeIndex = tuple[int, ...]

UNBOUNDED = -(2**63)
"""Size of a dimension written ``?``; its dynamic flag is set too."""

POINTER_BYTES = 8


@frozen(cache_hash=True, repr=False)
class ArrayShape:
    """``f32[2,3]{1,0}``.

    Attributes:
        dimensions: sizes; a dynamic dimension holds its bound, or :data:`UNBOUNDED`.
        layout: ``None`` while unset (automatic entry layouts, shapes before layout assignment).
        dynamic: one flag per dimension, or ``()`` when every dimension is static.
        element_count: product of the dimensions.

    Raises:
        LayoutError: the layout's rank differs from the shape's.
    """

    element_type: ElementType
    dimensions: tuple[int, ...] = field(converter=tuple)
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = field(default=(), converter=tuple)
    element_count: int = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.layout is not None and self.layout.rank != len(self.dimensions):
            raise LayoutError(
                f"layout {self.layout} has rank {self.layout.rank}, expected rank {len(self.dimensions)} of {self.dimensions}"
            )
        count = 1
        for size in self.dimensions:
            count *= size
        object.__setattr__(self, "element_count", count)

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def is_dynamic(self) -> bool:
        return bool(self.dynamic)

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """Order of dimensions.

        Raises:
            LayoutError: the layout is unset.
        """
        if self.layout is None:
            raise LayoutError(f"shape {self} has no layout")
        return self.layout.minor_to_major

    def with_layout(self, new: Layout | None) -> ArrayShape:
        return self if new is self.layout else _array(self.element_type, self.dimensions, new, self.dynamic)

    def with_static_dimensions(self) -> ArrayShape:
        """The same array with every dimension static, at its bound."""
        return _array(self.element_type, self.dimensions, self.layout, ())

    def with_order(self, minor_to_major: tuple[int, ...]) -> ArrayShape:
        """The same array with a plain layout of this order."""
        return self.with_layout(layout(minor_to_major))

    def __repr__(self) -> str:
        return f"<{shape_text(self)}>"

    def __str__(self) -> str:
        return shape_text(self)


@frozen(cache_hash=True, repr=False)
class TupleShape:
    """``(f32[2], s32[])``; may be empty and nested."""

    elements: tuple[Shape, ...] = field(converter=tuple)

    def __repr__(self) -> str:
        return f"<{shape_text(self)}>"

    def __str__(self) -> str:
        return shape_text(self)


@frozen(cache_hash=True, repr=False)
class TokenShape:
    """``token[]``: orders effects, holds no data."""

    def __str__(self) -> str:
        return "token[]"

    __repr__ = __str__


@frozen(cache_hash=True, repr=False)
class OpaqueShape:
    """``opaque[]``: a value that only the backend understands."""

    def __str__(self) -> str:
        return "opaque[]"

    __repr__ = __str__


@frozen(cache_hash=True, repr=False)
class BufferShape:
    """``b(f32[4])``: a mutable buffer that holds one array."""

    array: ArrayShape

    def __repr__(self) -> str:
        return f"<{shape_text(self)}>"

    def __str__(self) -> str:
        return shape_text(self)


Shape = ArrayShape | TupleShape | TokenShape | OpaqueShape | BufferShape

TOKEN = TokenShape()
OPAQUE = OpaqueShape()
EMPTY_TUPLE = TupleShape(())


@cache
def _array(element_type: ElementType, dimensions: tuple[int, ...], of: Layout | None, dynamic: tuple[bool, ...]) -> ArrayShape:
    return ArrayShape(element_type, dimensions, of, dynamic)


def array_shape(
    element_type: ElementType,
    dimensions: tuple[int, ...],
    minor_to_major: tuple[int, ...] | None = None,
    dynamic: tuple[bool, ...] = (),
) -> ArrayShape:
    """An interned array shape with a plain layout, the default one unless ``minor_to_major`` is given."""
    chosen = default_layout(len(dimensions)) if minor_to_major is None else layout(minor_to_major)
    return _array(element_type, dimensions, chosen, dynamic if any(dynamic) else ())


@cache
def tuple_shape(elements: tuple[Shape, ...]) -> TupleShape:
    """An interned tuple shape."""
    return TupleShape(elements)


def is_array(shape: Shape) -> bool:
    """Whether ``shape`` is an array (``isinstance`` narrows types; this reads better in conditions)."""
    return isinstance(shape, ArrayShape)


def subshape(shape: Shape, index: ShapeIndex) -> Shape:
    """The part of ``shape`` at ``index``.

    Raises:
        ShapeError: the index leads nowhere.
    """
    part = shape
    for i in index:
        if not isinstance(part, TupleShape) or not 0 <= i < len(part.elements):
            raise ShapeError(f"shape {shape} has no part at index {index}")
        part = part.elements[i]
    return part


@cache
def subshapes(shape: Shape) -> tuple[tuple[ShapeIndex, Shape], ...]:
    """Every part with its index in pre-order, tuples included: ``{}``, ``{0}``, ``{0,0}``, ``{1}``, ..."""
    out: list[tuple[ShapeIndex, Shape]] = [((), shape)]
    if isinstance(shape, TupleShape):
        for i, element in enumerate(shape.elements):
            out += [((i, *index), part) for index, part in subshapes(element)]
    return tuple(out)


@cache
def leaves(shape: Shape) -> tuple[tuple[ShapeIndex, Shape], ...]:
    """The leaves (parts that are not tuples) with their indices, in pre-order."""
    return tuple((index, part) for index, part in subshapes(shape) if not isinstance(part, TupleShape))


@cache
def array_leaves(shape: Shape) -> tuple[tuple[ShapeIndex, ArrayShape], ...]:
    """The array leaves with their indices, in pre-order."""
    return tuple((index, part) for index, part in subshapes(shape) if isinstance(part, ArrayShape))


def replace_subshape(shape: Shape, index: ShapeIndex, new: Shape) -> Shape:
    """``shape`` with the part at ``index`` replaced."""
    if not index:
        return new
    if not isinstance(shape, TupleShape) or not 0 <= index[0] < len(shape.elements):
        raise ShapeError(f"shape {shape} has no part at index {index}")
    elements = list(shape.elements)
    elements[index[0]] = replace_subshape(elements[index[0]], index[1:], new)
    return tuple_shape(tuple(elements))


def map_arrays(shape: Shape, change: Callable[[ArrayShape], ArrayShape]) -> Shape:
    """``shape`` with every array leaf replaced by ``change(leaf)``; the array inside a buffer counts as a leaf."""
    match shape:
        case ArrayShape():
            return change(shape)
        case TupleShape():
            return tuple_shape(tuple(map_arrays(element, change) for element in shape.elements))
        case BufferShape():
            return BufferShape(change(shape.array))
        case _:
            return shape


@cache
def with_static_dimensions(shape: Shape) -> Shape:
    """``shape`` with the dimensions of every array static at their bounds."""
    return map_arrays(shape, ArrayShape.with_static_dimensions)


@cache
def without_layout(shape: Shape) -> Shape:
    """``shape`` with every layout unset."""
    return map_arrays(shape, lambda leaf: leaf.with_layout(None))


@cache
def with_default_layout(shape: Shape) -> Shape:
    """``shape`` with the default layout on every array."""
    return map_arrays(shape, lambda leaf: leaf.with_layout(default_layout(leaf.rank)))


@cache
def static_shape(shape: Shape) -> Shape:
    """``shape`` without bounded-dynamic flags."""
    return map_arrays(shape, lambda leaf: _array(leaf.element_type, leaf.dimensions, leaf.layout, _unbounded_flags(leaf)))


def _unbounded_flags(leaf: ArrayShape) -> tuple[bool, ...]:
    flags = tuple(size == UNBOUNDED for size in leaf.dimensions)
    return flags if any(flags) else ()


def compatible(a: Shape, b: Shape) -> bool:
    """Same tree, element types and dimensions; layouts and bounded-dynamic flags are ignored."""
    return a is b or _compatible(a, b)


@cache
def _compatible(a: Shape, b: Shape) -> bool:
    match a, b:
        case ArrayShape(), ArrayShape():
            return a.element_type is b.element_type and _sizes_match(a.dimensions, b.dimensions)
        case TupleShape(), TupleShape():
            return len(a.elements) == len(b.elements) and all(map(compatible, a.elements, b.elements))
        case BufferShape(), BufferShape():
            return compatible(a.array, b.array)
        case _:
            return type(a) is type(b)


def _sizes_match(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    if a == b:
        return True
    return len(a) == len(b) and all(x == y or UNBOUNDED in (x, y) for x, y in zip(a, b, strict=True))


def same_order(a: Shape, b: Shape, *, dynamic_matters: bool = False) -> bool:
    """Compatible, and all array leaves have equal ``minor_to_major`` (or both none)."""
    return a is b or _same_order(a, b, dynamic_matters)


@cache
def _same_order(a: Shape, b: Shape, dynamic_matters: bool) -> bool:
    if not compatible(a, b):
        return False
    pairs = zip(array_leaves(a), array_leaves(b), strict=True)
    return all(_order(x) == _order(y) and (not dynamic_matters or x.dynamic == y.dynamic) for (_, x), (_, y) in pairs)


def _order(leaf: ArrayShape) -> tuple[int, ...] | None:
    return None if leaf.layout is None else leaf.layout.minor_to_major


def has_layout(shape: Shape) -> bool:
    """Whether every array leaf has a layout (trivially true without arrays)."""
    return all(leaf.layout is not None for _, leaf in array_leaves(shape))


@cache
def byte_size(shape: Shape, pointer_bytes: int = POINTER_BYTES) -> int:
    """Bytes of a value's own buffer: arrays without tile padding, tuples as a table of pointers, tokens nothing.

    Sub-byte elements take a byte each unless the layout states ``E(n)`` (buffer spec, section 1.1).
    """
    match shape:
        case ArrayShape():
            if shape.layout is not None and shape.layout.element_size_bits:
                return -(-shape.element_count * shape.layout.element_size_bits // 8)
            return shape.element_count * shape.element_type.storage_bytes
        case TupleShape():
            return pointer_bytes * len(shape.elements)
        case BufferShape():
            return byte_size(shape.array, pointer_bytes)
        case TokenShape():
            return 0
        case OpaqueShape():
            return pointer_bytes


@cache
def total_bytes(shape: Shape) -> int:
    """Bytes of all array leaves together, pointer tables not counted."""
    return sum(byte_size(leaf) for _, leaf in leaves(shape))


def order_or_default(shape: ArrayShape) -> tuple[int, ...]:
    """``minor_to_major``; the default order where there is no layout, as a reader of HLO text fills it in.

    Layout assignment leaves arrays inside fusions without a layout.
    """
    return (shape.layout or default_layout(shape.rank)).minor_to_major


def true_rank(shape: ArrayShape) -> int:
    """Number of dimensions whose size is not 1."""
    return sum(size != 1 for size in shape.dimensions)


@cache
def shape_text(shape: Shape, *, layouts: bool = True, index_comments: bool = True) -> str:
    """HLO text of a shape; every fifth tuple element carries an ``/*index=N*/`` comment unless switched off."""
    match shape:
        case ArrayShape():
            suffix = ""
            if layouts and shape.layout is not None:
                suffix = shape.layout.to_text()
                suffix = "" if suffix == "{}" else suffix
            return f"{shape.element_type}[{','.join(map(_size_text, *_sizes_and_flags(shape)))}]{suffix}"
        case TupleShape():
            parts = [shape_text(element, layouts=layouts, index_comments=index_comments) for element in shape.elements]
            if index_comments:
                parts = [f"/*index={i}*/{part}" if i and i % 5 == 0 else part for i, part in enumerate(parts)]
            return f"({', '.join(parts)})"
        case BufferShape():
            return f"b({shape_text(shape.array, layouts=layouts)})"
        case TokenShape() | OpaqueShape():
            return str(shape)


def _sizes_and_flags(shape: ArrayShape) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    return shape.dimensions, shape.dynamic or (False,) * shape.rank


def _size_text(size: int, dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if dynamic else str(size)


def index_text(index: ShapeIndex) -> str:
    """``{1,0}``."""
    return "{" + ",".join(map(str, index)) + "}"
