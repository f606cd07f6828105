"""Several heap algorithms on the same problem; the first with the smallest size wins (``ChooseBestHeapAlgorithm``)."""

from __future__ import annotations

from attrs import field, frozen

from layoutsim.errors import InputError
from layoutsim.memory.heaps.base import BoundedHeapAlgorithm, HeapAlgorithm
from layoutsim.memory.heaps.best_fit import Order
from layoutsim.memory.heaps.constrained import ConstrainedBestFit
from layoutsim.memory.problem import Placement, Problem


@frozen
class ChooseBest:
    """The smallest placement of several algorithms; earlier ones win ties."""

    algorithms: tuple[HeapAlgorithm, ...] = field(converter=tuple)

    def __attrs_post_init__(self) -> None:
        if not self.algorithms:
            raise InputError("choose-best needs at least one heap algorithm")

    @property
    def name(self) -> str:
        return "choose-best"

    def pack(self, problem: Problem) -> Placement:
        best = self.algorithms[0].pack(problem)
        for algorithm in self.algorithms[1:]:
            if isinstance(algorithm, BoundedHeapAlgorithm):
                best = algorithm.pack_below(problem, best.size) or best
            else:
                best = min(best, algorithm.pack(problem), key=lambda placement: placement.size)
        return best


def xla_heap(limit_bytes: int | None = None) -> ChooseBest:
    """What XLA packs temporaries with: the better of spatial and temporal best fit; spatial wins ties."""
    return ChooseBest((ConstrainedBestFit(Order.SPATIAL, limit_bytes), ConstrainedBestFit(Order.TEMPORAL, limit_bytes)))
