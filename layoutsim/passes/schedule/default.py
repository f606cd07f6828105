"""Which of XLA's schedulers makes the best order of a module (``DefaultMemoryScheduler``; memory spec, 13.1).

1. A scheduler orders every computation outside fusions, callees first; post-processing follows, if there is any.
2. The default tries list, depth-first and post-order scheduling of the whole module, and takes the first of those with the
   least minimum memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from attrs import frozen

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.points_to import PointsTo
from layoutsim.ir import Computation, Instruction, Module
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.passes.schedule.breadth_first import breadth_first_order
from layoutsim.passes.schedule.depth_first import depth_first_order
from layoutsim.passes.schedule.list_scheduler import list_order
from layoutsim.passes.schedule.minimum_memory import MinimumMemory
from layoutsim.passes.schedule.sizes import SizeFunction


class Algorithm(Enum):
    """How to order instructions."""

    BEST = "best"
    LIST = "list"
    DEPTH_FIRST = "depth-first"
    POST_ORDER = "post-order"
    BREADTH_FIRST = "breadth-first"


class Weighing(Enum):
    """Which bytes depth-first scheduling counts for an instruction."""

    VALUES = "values"
    """Values that the dataflow analysis lets it define: none for a loop, a conditional or a call."""
    BUFFERS = "buffers"
    """Logical buffers of the points-to analysis: all of the result for those too. jax 0.6.1 and 0.6.2."""


CANDIDATES = (Algorithm.LIST, Algorithm.DEPTH_FIRST, Algorithm.POST_ORDER)


@frozen(eq=False)
class Candidate:
    """One schedule and its minimum memory."""

    algorithm: Algorithm
    sequences: Mapping[Computation, list[Instruction]]
    peak_bytes: int


class Schedulers:
    """The schedulers for one module as it stands, with the analyses they share."""

    def __init__(
        self,
        module: Module,
        aliases: Aliases,
        size_of: SizeFunction,
        *,
        postprocess: Callable[[list[Instruction]], list[Instruction]] | None = None,
        weighing: Weighing = Weighing.VALUES,
    ) -> None:
        self._module = module
        self._aliases = aliases
        self._size_of = size_of
        self._postprocess = postprocess
        self._weighing = weighing
        self._memory = MinimumMemory(aliases, size_of)
        fused = fusion_bodies(module)
        self._computations = [c for c in module.computations if c not in fused]

    def best(self) -> tuple[Candidate, ...]:
        """The candidates of rule (2), the best one first."""
        found = [self.run(algorithm) for algorithm in CANDIDATES]
        return tuple(sorted(found, key=lambda candidate: candidate.peak_bytes))

    def run(self, algorithm: Algorithm) -> Candidate:
        """The schedule that one algorithm makes of the whole module."""
        order = self._order(algorithm)
        sequences = {computation: order(computation) for computation in self._computations}
        if self._postprocess is not None:
            sequences = {computation: self._postprocess(sequence) for computation, sequence in sequences.items()}
        return Candidate(algorithm, sequences, self._memory.peak_bytes(sequences))

    def _order(self, algorithm: Algorithm) -> Callable[[Computation], list[Instruction]]:
        match algorithm:
            case Algorithm.LIST:
                points_to = PointsTo(self._module)
                return lambda computation: list_order(computation, points_to, self._size_of)
            case Algorithm.DEPTH_FIRST:
                weigh, dataflow = self._weigher(), self._aliases.dataflow
                return lambda computation: depth_first_order(computation, weigh, dataflow.post_order(computation))
            case Algorithm.BREADTH_FIRST:
                return breadth_first_order
            case Algorithm.POST_ORDER | Algorithm.BEST:
                return lambda computation: list(self._aliases.dataflow.post_order(computation))

    def _weigher(self) -> Callable[[Instruction], int]:
        if self._weighing is Weighing.VALUES:
            return self._value_bytes
        points_to = PointsTo(self._module)
        return lambda instruction: sum(self._size_of(buffer.shape) for buffer in points_to.defined_by(instruction))

    def _value_bytes(self, instruction: Instruction) -> int:
        values = {v: None for values in self._aliases.dataflow.value_sets(instruction) for v in values}
        return sum(self._size_of(value.shape) for value in values if value.instruction is instruction)
