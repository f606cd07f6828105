"""Layouts: the order of an array's dimensions in linear memory (``xla/layout.h``; text spec, section 2.2).

Layouts are values: frozen, compared by content, and shared. :func:`layout` and :func:`default_layout` return interned
objects, so that equal plain layouts are usually the same object.
"""

from __future__ import annotations

from functools import cache

from attrs import Attribute, evolve, field, frozen

from layoutsim.errors import LayoutError
from layoutsim.ir.element_type import ElementType

COMBINE_WITH_NEXT_MINOR = None
"""A tile dimension written ``*``: it is merged with the next more minor dimension."""

HOST_MEMORY_SPACE = 5
"""Memory space number of pinned host memory, as ``S(5)`` in HLO text."""


@frozen(cache_hash=True)
class SplitConfig:
    """``SC(dimension:split,...)``: the dimension is split over cores before these indices."""

    dimension: int
    split_indices: tuple[int, ...] = field(converter=tuple)


@frozen(cache_hash=True)
class Layout:
    """Order of dimensions in linear memory; ``minor_to_major[0]`` varies fastest, so ``(1, 0)`` is C order.

    Attributes:
        minor_to_major: a permutation of ``0..rank-1``.
        tiles: each a tuple of sizes, ``None`` for ``*``.
        tail_padding_alignment: in elements, ``L(n)``.
        element_size_bits: ``E(n)``; 0 means the element type's own storage size.
        memory_space: ``S(n)``; 0 is default device memory, 5 the host.
        metadata_prefix_bytes: ``M(n)``, bytes of dynamic-size metadata before the data.

    Raises:
        LayoutError: ``minor_to_major`` is not a permutation.
    """

    minor_to_major: tuple[int, ...] = field(converter=tuple)
    tiles: tuple[tuple[int | None, ...], ...] = ()
    tail_padding_alignment: int = 1
    index_type: ElementType | None = None
    pointer_type: ElementType | None = None
    element_size_bits: int = 0
    memory_space: int = 0
    split_configs: tuple[SplitConfig, ...] = ()
    metadata_prefix_bytes: int = 0

    @minor_to_major.validator  # pyright: ignore[reportAttributeAccessIssue, reportUntypedFunctionDecorator, reportUnknownMemberType]
    def _is_permutation(self, _attribute: Attribute[tuple[int, ...]], value: tuple[int, ...]) -> None:
        if sorted(value) != list(range(len(value))):
            raise LayoutError(f"minor_to_major must be a permutation of 0..{len(value) - 1}, got {value}")

    @property
    def rank(self) -> int:
        return len(self.minor_to_major)

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        return self.minor_to_major[::-1]

    @property
    def is_plain(self) -> bool:
        """Nothing but an order of dimensions: no tiles, default memory space, no other property."""
        return self is layout(self.minor_to_major) or self == layout(self.minor_to_major)

    def with_order(self, minor_to_major: tuple[int, ...]) -> Layout:
        """The same properties with another order of dimensions."""
        return layout(minor_to_major) if self.is_plain else evolve(self, minor_to_major=minor_to_major)

    def with_memory_space(self, memory_space: int) -> Layout:
        if memory_space == self.memory_space:
            return self
        return _shared(evolve(self, memory_space=memory_space))

    def to_text(self) -> str:
        """As HLO text prints it, braces included: ``{1,0:T(8,128)S(1)}``."""
        properties = "".join(_property_texts(self))
        return f"{{{','.join(map(str, self.minor_to_major))}{':' if properties else ''}{properties}}}"

    def __str__(self) -> str:
        return self.to_text()


def _property_texts(of: Layout) -> list[str]:
    """The properties that differ from their defaults, in the one order that XLA's parser takes."""
    out: list[str] = []
    if of.tiles:
        out.append("T" + "".join("(" + ",".join("*" if d is None else str(d) for d in tile) + ")" for tile in of.tiles))
    if of.tail_padding_alignment != 1:
        out.append(f"L({of.tail_padding_alignment})")
    if of.index_type is not None:
        out.append(f"#({of.index_type})")
    if of.pointer_type is not None:
        out.append(f"*({of.pointer_type})")
    if of.element_size_bits:
        out.append(f"E({of.element_size_bits})")
    if of.memory_space:
        out.append(f"S({of.memory_space})")
    if of.split_configs:
        splits = (f"({c.dimension}:{','.join(map(str, c.split_indices))})" for c in of.split_configs)
        out.append("SC" + "".join(splits))
    if of.metadata_prefix_bytes:
        out.append(f"M({of.metadata_prefix_bytes})")
    return out


@cache
def layout(minor_to_major: tuple[int, ...]) -> Layout:
    """The plain layout with this order (interned)."""
    return Layout(minor_to_major)


@cache
def _shared(of: Layout) -> Layout:
    """One object for all equal layouts."""
    plain = Layout(of.minor_to_major)
    return layout(of.minor_to_major) if of == plain else of


@cache
def default_layout(rank: int) -> Layout:
    """``{rank-1,...,1,0}``, C order (interned)."""
    return layout(tuple(range(rank - 1, -1, -1)))
