"""How far an answer of XLA is from the best possible one, in a line: what reports say of :mod:`layoutsim.experiments.joint`."""

from __future__ import annotations

from attrs import frozen

from layoutsim.errors import LayoutsimError
from layoutsim.experiments.joint.assignment import assign_jointly
from layoutsim.ir.module import Module
from layoutsim.passes.presets import DEFAULT_PRESET
from layoutsim.report.units import exact_bytes


@frozen
class Effort:
    """How hard reports look for the best layouts.

    Attributes:
        seconds: for the solvers.
        most_instructions: larger modules are left alone; ``None`` for no limit.
    """

    seconds: float = 20.0
    most_instructions: int | None = None


UNASKED = Effort(5.0, 6_000)
"""What reports do by themselves: all but one of the recorded modules of up to 6,000 instructions take at most 2.5 s."""


@frozen
class Distance:
    """Bytes moved, times runs: by copies, transposes and reshapes.

    Attributes:
        xla_bytes: by XLA's answer under the preset's rules.
        best_bytes: by the best answer found under the same rules.
        bound_bytes: no answer among those offered moves fewer; ``None`` if nothing is proven.
        is_optimal: ``best_bytes`` is proven to be the least.
        covers_all_orders: every free array had all its orders on offer, so that what is proven holds for all layouts.
    """

    xla_bytes: int
    best_bytes: int
    bound_bytes: int | None
    is_optimal: bool
    covers_all_orders: bool

    def to_json(self) -> dict[str, object]:
        return {
            "xla_bytes": self.xla_bytes,
            "best_bytes": self.best_bytes,
            "bound_bytes": self.bound_bytes,
            "optimal": self.is_optimal,
            "covers_all_orders": self.covers_all_orders,
        }

    def __str__(self) -> str:
        if self.is_optimal and self.xla_bytes == self.best_bytes:
            return f"layouts: as good as can be: {exact_bytes(self.xla_bytes)} moved, and no layouts{self._offered} move fewer"
        over = exact_bytes(self.xla_bytes - self.best_bytes)
        found = f"layouts: {exact_bytes(self.xla_bytes)} moved, {over} more than the best layouts found"
        if self.is_optimal:
            return f"{found}, which are proven to be the best{self._offered}"
        bound = "nothing is proven" if self.bound_bytes is None else f"none move less than {exact_bytes(self.bound_bytes)}"
        return f"{found}; {bound}"

    @property
    def _offered(self) -> str:
        return "" if self.covers_all_orders else " among those offered"


@frozen
class NotKnown:
    """Why a report does not say how far its layouts are from the best."""

    reason: str

    def to_json(self) -> None:
        return None

    def __str__(self) -> str:
        return f"layouts: distance to the best not known: {self.reason}"


def distance_for_report(module: Module, preset: str, effort: Effort = UNASKED) -> Distance | NotKnown:
    """:func:`distance_to_best` for reports that were asked for something else: what stands in its way becomes the answer."""
    most, size = effort.most_instructions, module.instruction_count
    if most is not None and size > most:
        return NotKnown(f"modules above {most:,} instructions take long (--best)")
    try:
        return distance_to_best(module, preset, effort.seconds)
    except LayoutsimError as error:
        return NotKnown(str(error).splitlines()[0])


def distance_to_best(module: Module, preset: str = DEFAULT_PRESET, seconds: float = Effort().seconds) -> Distance:
    """Lay the module out jointly and compare; it stays as it is.

    Args:
        module: as it enters layout assignment.
        preset: whose rules hold.
        seconds: for the solvers; the more, the likelier a proof.

    Raises:
        InputError: the module is scheduled, or scipy (extra ``solve``) is not installed.
        UnsupportedError: the backend's rules cannot be stated without an order of propagation (CPU).
    """
    result = assign_jointly(module, preset, time_limit=seconds)
    xla, joint = result.costs
    return Distance(xla, joint, result.bound, result.is_optimal, result.covers_all_orders)
