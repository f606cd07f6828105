"""Hypothesis strategies (extra ``testing``).

from hypothesis import given
from layoutsim.testing.strategies import modules

@given(modules())
def test_my_pass_keeps_modules_valid(module): ...

What there is: :func:`layouts`, :func:`array_shapes`, :func:`shapes`, :func:`modules` (loops, branches, calls and, with
``Limits(devices=4)``, collectives), :func:`scheduled` modules and :func:`problems` of packing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from layoutsim.ir import ArrayShape, ElementType, Layout, Module, Shape, array_shape, layout, tuple_shape
from layoutsim.memory.problem import Problem
from layoutsim.testing.modules import random_module
from layoutsim.testing.problems import random_problem, random_schedule
from layoutsim.testing.scope import DEFAULT_LIMITS, Limits

T = TypeVar("T")

ELEMENT_TYPES = tuple(ElementType)
_TILES = ((), ((2,),), ((4,),), ((2, 2),), ((8, 4),), ((4, 2), (2, 1)))


class _Drawn:
    """Decisions drawn one by one, so that Hypothesis shrinks each."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self._draw(st.integers(0, len(options) - 1))]


@st.composite
def modules(draw: st.DrawFn, limits: Limits = DEFAULT_LIMITS) -> Module:
    """Valid modules of every family of opcodes, with entry layouts of every kind; see :mod:`layoutsim.testing.modules`."""
    return random_module(_Drawn(draw), limits)


@st.composite
def scheduled(draw: st.DrawFn, module: Module) -> Module:
    """``module`` itself, under any schedule that respects its dependencies."""
    module.schedule = random_schedule(_Drawn(draw), module)
    return module


@st.composite
def problems(draw: st.DrawFn, max_intervals: int = 16) -> Problem:
    """Packing problems with sharing, empty values and alignment; see :func:`layoutsim.testing.problems.random_problem`."""
    return random_problem(_Drawn(draw), max_intervals)


@st.composite
def layouts(draw: st.DrawFn, rank: int, *, tiles: bool = False) -> Layout:
    """Every order of ``rank`` dimensions; with ``tiles`` also tiled ones."""
    order = tuple(draw(st.permutations(range(rank))))
    chosen = draw(st.sampled_from(_TILES)) if tiles else ()
    return Layout(order, chosen) if chosen else layout(order)


@st.composite
def array_shapes(
    draw: st.DrawFn,
    *,
    max_rank: int = 4,
    max_size: int = 5,
    element_types: Sequence[ElementType] = ELEMENT_TYPES,
    tiles: bool = False,
) -> ArrayShape:
    """Arrays with a layout; sizes 1 and 0 among them."""
    sizes = draw(st.lists(st.integers(0, max_size), max_size=max_rank).map(tuple))
    shape = array_shape(draw(st.sampled_from(element_types)), sizes)
    return shape.with_layout(draw(layouts(len(sizes), tiles=tiles and bool(sizes))))


def shapes(max_leaves: int = 6) -> st.SearchStrategy[Shape]:
    """Arrays, and nested tuples of them."""
    return st.recursive(
        array_shapes(),
        lambda inner: st.lists(inner, max_size=3).map(lambda parts: tuple_shape(tuple(parts))),
        max_leaves=max_leaves,
    )
