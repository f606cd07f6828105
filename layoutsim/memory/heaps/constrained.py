"""Best fit into several heaps, none larger than a limit (``ConstrainedGlobalDecreasingSizeBestFitHeap``).

1. Sweep the groups in order; place each whose own size at the found offset ends within the limit. The first group of a
   heap is placed whatever its size: the limit is soft.
2. What was not placed goes through the next sweep, into a new heap, until nothing is left. There is always one heap,
   possibly empty; without limit exactly one.

Buffer assignment always uses this variant, for GPU and CPU without limit.
"""

from __future__ import annotations

from attrs import frozen

from layoutsim.memory.heaps.base import Timeline, heap_of, with_empty
from layoutsim.memory.heaps.best_fit import OpenHeap, Order
from layoutsim.memory.problem import Group, Heap, Placement, Problem


@frozen
class ConstrainedBestFit:
    """Best fit with heaps of at most ``limit_bytes`` each; ``None`` means no limit."""

    order: Order = Order.SPATIAL
    limit_bytes: int | None = None

    @property
    def name(self) -> str:
        return f"constrained-{self.order.value}"

    def pack(self, problem: Problem) -> Placement:
        placement = self._pack(problem, None)
        assert placement is not None, "nothing was to be stayed below"
        return placement

    def pack_below(self, problem: Problem, size: int) -> Placement | None:
        """What :meth:`pack` returns, if that is smaller than ``size`` bytes; otherwise ``None``, and sooner."""
        return self._pack(problem, size)

    def _pack(self, problem: Problem, below: int | None) -> Placement | None:
        if below is not None and below <= 0:
            return None
        timeline = Timeline(problem)
        waiting: list[Group] | None = self.order.sort(problem.groups)
        heaps: list[Heap] = []
        while waiting or not heaps:
            heap = OpenHeap(timeline, problem.alignment)
            left = None if below is None else below - sum(heap.size for heap in heaps)
            waiting = self._fill(heap, waiting, left)
            if waiting is None:
                return None
            heaps.append(heap_of(heap.offsets))
        return Placement((with_empty(heaps[0], problem), *heaps[1:]))

    def _fill(self, heap: OpenHeap, waiting: list[Group], below: int | None) -> list[Group] | None:
        """Places what fits, and returns the rest; ``None`` once the heap is not smaller than ``below``."""
        rest: list[Group] = []
        for group in waiting:
            offset = heap.find(group)
            # The limit is held against the root's own size; larger mates may exceed it, as in XLA.
            if self.limit_bytes is None or offset + group.root.size <= self.limit_bytes or not heap.offsets:
                if below is not None and offset + group.size >= below:
                    return None
                heap.commit(group, offset)
            else:
                rest.append(group)
        return rest
