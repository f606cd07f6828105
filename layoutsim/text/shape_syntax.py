"""Shapes and layouts in HLO text (text spec, sections 2.2 and 2.3).

:func:`read_shape` leaves a layout that is not written unset, except on scalars; the caller decides whether that means the
default layout (:func:`layoutsim.ir.with_default_layout`) or "automatic".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from layoutsim.errors import LayoutError
from layoutsim.ir import (
    OPAQUE,
    TOKEN,
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    ElementType,
    Layout,
    Shape,
    ShapeIndex,
    array_shape,
    default_layout,
    layout,
    tuple_shape,
)
from layoutsim.ir.layout import SplitConfig
from layoutsim.text.lexer import Kind, Lexer

T = TypeVar("T")

_UNSIGNED = {ElementType.U1, ElementType.U2, ElementType.U4, ElementType.U8, ElementType.U16, ElementType.U32, ElementType.U64}
_DIM_LEVELS = ("D", "C", "S", "H")


def read_list(lexer: Lexer, opening: str, closing: str, item: Callable[[Lexer], T], what: str = "") -> list[T]:
    """``opening (item (',' item)*)? closing``."""
    lexer.expect(opening, what)
    items: list[T] = []
    if not lexer.eat(closing):
        items.append(item(lexer))
        while lexer.eat(","):
            items.append(item(lexer))
        lexer.expect(closing, f"',' or {closing!r}")
    return items


def can_start_shape(lexer: Lexer) -> bool:
    """Whether the current token begins a shape."""
    if lexer.kind == Kind.PRIMITIVE or lexer.kind == "(":
        return True
    return lexer.at_word("b") and lexer.following_kind() == "("


def read_shape(lexer: Lexer) -> Shape:
    """A shape of any kind; arrays without a written layout have none.

    Raises:
        ParseError: the text is no shape, or its layout does not fit.
    """
    lexer.deeper()
    try:
        if lexer.kind == "(":
            return tuple_shape(tuple(read_list(lexer, "(", ")", read_shape)))
        if lexer.at_word("b") and lexer.following_kind() == "(":
            return _read_buffer(lexer)
        return _read_array(lexer)
    finally:
        lexer.depth -= 1


def _read_buffer(lexer: Lexer) -> Shape:
    lexer.advance()
    lexer.advance()
    start = lexer.start
    array = read_shape(lexer)
    if not isinstance(array, ArrayShape):
        raise lexer.source.error(f"expected an array inside b(...), got {array}", start)
    lexer.expect(")")
    return BufferShape(array)


def _read_array(lexer: Lexer) -> Shape:
    primitive = lexer.expect(Kind.PRIMITIVE, "a shape")
    start = lexer.start
    sizes = read_list(lexer, "[", "]", _read_size)
    if primitive in ("token", "opaque"):
        if sizes:
            raise lexer.source.error(f"expected no dimensions in {primitive}[]", start)
        return TOKEN if primitive == "token" else OPAQUE
    dimensions = tuple(size for size, _ in sizes)
    element_type = ElementType(primitive)
    if math.prod(dimensions) * element_type.storage_bytes >= 2**63:
        raise lexer.source.error(f"expected fewer than 2**63 bytes, got {primitive}{list(dimensions)}", start)
    shape = array_shape(element_type, dimensions, dynamic=tuple(flag for _, flag in sizes))
    return shape.with_layout(_read_layout_if_any(lexer, len(dimensions)))


def _read_size(lexer: Lexer) -> tuple[int, bool]:
    """A dimension size and whether it is dynamic."""
    if lexer.eat("?"):
        return UNBOUNDED, True
    dynamic = lexer.eat("<=")
    start = lexer.start
    size = lexer.integer("a dimension size")
    if size < 0:
        raise lexer.source.error(f"expected a dimension size of at least 0, got {size}", start)
    return size, dynamic


def _read_layout_if_any(lexer: Lexer, rank: int) -> Layout | None:
    """A ``{`` begins a layout only in front of an integer or a colon; elsewhere it begins a computation body."""
    if lexer.kind != "{" or lexer.following_kind() not in (Kind.INT, ":"):
        return default_layout(0) if rank == 0 else None
    start = lexer.start
    result = read_layout(lexer)
    if result.rank != rank:
        raise lexer.source.error(f"expected a layout of rank {rank}, got rank {result.rank}", start)
    return result


def read_layout(lexer: Lexer) -> Layout:
    """``{1,0:T(8,128)E(4)S(1)}``; the properties come in one fixed order."""
    start = lexer.start
    lexer.expect("{")
    order: list[int] = []
    if lexer.kind == Kind.INT:
        order.append(lexer.integer())
        while lexer.eat(","):
            order.append(lexer.integer())
    try:
        result = layout(tuple(order))
        if lexer.eat(":"):
            result = _read_properties(lexer, result.minor_to_major)
    except LayoutError as error:
        raise lexer.source.error(str(error), start) from error
    lexer.expect("}", "'}' or a layout property in the order D T L # * E S SC M")
    return result


def _read_properties(lexer: Lexer, order: tuple[int, ...]) -> Layout:
    if lexer.at_word("D"):
        lexer.advance()
        read_list(lexer, "(", ")", _skip_dim_level)
    tiles = _read_tiles(lexer)
    alignment = _read_number(lexer, "L", 1)
    index_type = _read_type(lexer, "#")
    pointer_type = _read_type(lexer, "*")
    element_bits = _read_number(lexer, "E", 0)
    memory_space = _read_number(lexer, "S", 0)
    splits = _read_splits(lexer)
    if lexer.at_word("P"):
        lexer.fail("no physical shape P(...), which only sparse arrays had")
    prefix = _read_number(lexer, "M", 0)
    return Layout(order, tiles, alignment, index_type, pointer_type, element_bits, memory_space, splits, prefix)


def _skip_dim_level(lexer: Lexer) -> None:
    """``D``, ``C``, ``S`` or ``H`` with ``+`` or ``~``: of sparse arrays, read and dropped."""
    if lexer.kind != Kind.IDENTIFIER or lexer.value not in _DIM_LEVELS:
        lexer.fail("D, C, S or H")
    lexer.advance()
    lexer.eat("+")
    lexer.eat("~")


def _read_tiles(lexer: Lexer) -> tuple[tuple[int | None, ...], ...]:
    tiles: list[tuple[int | None, ...]] = []
    if lexer.at_word("T"):
        lexer.advance()
        tiles.append(tuple(read_list(lexer, "(", ")", _read_tile_size)))
        while lexer.kind == "(":
            tiles.append(tuple(read_list(lexer, "(", ")", _read_tile_size)))
    return tuple(tiles)


def _read_tile_size(lexer: Lexer) -> int | None:
    return None if lexer.eat("*") else lexer.integer("a tile size or *")


def _read_number(lexer: Lexer, letter: str, default: int) -> int:
    if not lexer.at_word(letter):
        return default
    lexer.advance()
    lexer.expect("(")
    value = lexer.integer()
    lexer.expect(")")
    return value


def _read_type(lexer: Lexer, mark: str) -> ElementType | None:
    if not lexer.eat(mark):
        return None
    lexer.expect("(")
    if lexer.kind != Kind.PRIMITIVE or lexer.value not in _UNSIGNED:
        lexer.fail("an unsigned element type")
    result = ElementType(lexer.value)
    lexer.advance()
    lexer.expect(")")
    return result


def _read_splits(lexer: Lexer) -> tuple[SplitConfig, ...]:
    splits: list[SplitConfig] = []
    if lexer.at_word("SC"):
        lexer.advance()
        splits.append(_read_split(lexer))
        while lexer.kind == "(":
            splits.append(_read_split(lexer))
    return tuple(splits)


def _read_split(lexer: Lexer) -> SplitConfig:
    lexer.expect("(")
    dimension = lexer.integer()
    lexer.expect(":")
    indices = [lexer.integer()]
    while lexer.eat(","):
        indices.append(lexer.integer())
    lexer.expect(")")
    return SplitConfig(dimension, tuple(indices))


def read_shape_index(lexer: Lexer) -> ShapeIndex:
    """``{1,0}``."""
    return tuple(read_list(lexer, "{", "}", lambda inner: inner.integer("a shape index")))
