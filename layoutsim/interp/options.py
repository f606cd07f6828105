"""Choices of a run: limits, constants without elements, custom calls, random numbers, host transfers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from attrs import field, frozen

if TYPE_CHECKING:
    from layoutsim.interp.values import Value
    from layoutsim.ir import Instruction


class Elided(Enum):
    """What an elided constant (``{...}``) is worth."""

    REFUSE = "refuse"
    ZEROS = "zeros"
    SEEDED = "seeded"
    """Small pseudo-random values that depend on the constant's name only."""


class UnknownCustomCall(Enum):
    """What to do at a custom call that no handler knows."""

    REFUSE = "refuse"
    ZEROS = "zeros"


CustomCallHandler = Callable[["Instruction", tuple["Value", ...]], "Value"]


@frozen(kw_only=True)
class Options:
    """How a module is executed.

    Attributes:
        replicas: simulated replicas; the module's count, or what its collectives imply, if absent.
        partitions: simulated partitions, likewise.
        max_value_bytes: an instruction with a larger result is refused.
        max_trips: iterations after which a loop is given up.
        custom_calls: handlers by target, tried before the built-in ones.
        seed: of ``rng``.
        infeed: values for ``infeed``, one a call and device, in order.
        strict_sequential: reductions round after every step, in row-major order, instead of once at the end.
    """

    replicas: int | None = None
    partitions: int | None = None
    max_value_bytes: int = 1 << 31
    max_trips: int = 1_000_000
    elided_constants: Elided = Elided.REFUSE
    unknown_custom_calls: UnknownCustomCall = UnknownCustomCall.REFUSE
    custom_calls: Mapping[str, CustomCallHandler] = field(factory=dict[str, CustomCallHandler])
    seed: int = 0
    infeed: tuple[object, ...] = ()
    strict_sequential: bool = False


DEFAULT_OPTIONS = Options()
