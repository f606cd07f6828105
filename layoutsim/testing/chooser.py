"""Where the generator takes its decisions from: a seeded random number generator, or Hypothesis (which shrinks them)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chooser(Protocol):
    """A source of decisions. Small numbers and early options are the simple ones."""

    def integer(self, low: int, high: int) -> int:
        """A number of ``low..high``, both included."""
        ...

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, of which there is at least one."""
        ...


class SeededChooser:
    """Decisions of a seed: equal seeds, equal modules, on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]


def chance(chooser: Chooser, percent: int) -> bool:
    """True in about so many of a hundred cases; false is the simple outcome."""
    return chooser.integer(0, 99) >= 100 - percent


def permutation(chooser: Chooser, count: int) -> tuple[int, ...]:
    """An order of ``0..count-1``."""
    rest = list(range(count))
    return tuple(rest.pop(chooser.integer(0, len(rest) - 1)) for _ in range(count))


def subset(chooser: Chooser, options: Sequence[T], *, at_least: int = 0) -> list[T]:
    """Some of the options, in order."""
    count = chooser.integer(min(at_least, len(options)), len(options))
    chosen = set(permutation(chooser, len(options))[:count])
    return [option for i, option in enumerate(options) if i in chosen]
