"""Hypothesis strategies (extra ``testing``).

from hypothesis import given
from layoutsim.testing.strategies import modules

@given(modules())
def test_my_pass_keeps_modules_valid(module): ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from layoutsim.ir import Module
from layoutsim.testing.modules import random_module
from layoutsim.testing.scope import DEFAULT_LIMITS, Limits

T = TypeVar("T")


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
