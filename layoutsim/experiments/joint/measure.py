"""Bytes that a laid out module moves only to change layouts: the figure by which XLA's answer and ours are compared.

1. A ``copy`` counts if it orders dimensions of size greater than 1 differently; all others become bitcasts later.
2. A ``transpose`` or ``reshape`` counts if it is no bitcast. XLA's layout assignment allows these without counting them; here
   they count, because a later pass turns each into a physical transposition. An answer that only shifts the work from copies
   to transposes would otherwise look better than it is.
3. Sizes are those of packed elements: 4-bit elements lie in 4 bits once the compiler is through.
4. Each counts with its size times the runs of its computation (both branches of a conditional count as taken; a loop of
   unknown trip count counts once, and is named).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from layoutsim.analysis.trip_count import execution_counts
from layoutsim.ir import ArrayShape, Computation, Instruction, Module, Opcode
from layoutsim.ir.traverse import fusion_bodies
from layoutsim.passes.layout_assignment.layout_math import equal_without_ones, reshape_is_bitcast, transpose_operand_order
from layoutsim.passes.layout_assignment.rules import array_of, dimensions_of


@frozen
class Moved:
    """Bytes moved to change layouts.

    Attributes:
        copied_once: by copies, each counted once.
        copied: by copies, times runs.
        transposed_once: by transposes and reshapes that are no bitcasts, each counted once.
        transposed: the same, times runs.
    """

    copied_once: int
    copied: int
    transposed_once: int
    transposed: int

    @property
    def total(self) -> int:
        """All bytes moved in one run of the entry."""
        return self.copied + self.transposed

    @property
    def held(self) -> int:
        """Bytes of all results that exist only to change a layout, each once: the memory they take if all live at a time."""
        return self.copied_once + self.transposed_once


def measure(module: Module, runs: Mapping[str, int]) -> Moved:
    """What ``module``, whose layouts are assigned, moves.

    Args:
        module: may hold copies that hide trip counts.
        runs: of each computation by name, counted before copies were inserted (:func:`runs_of`).
    """
    copied_once = copied = transposed_once = transposed = 0
    for computation in module.computations:
        times = runs.get(computation.name, 0)
        for instruction in moving(computation) if times else ():
            size = packed_size(array_of(instruction.shape))
            if instruction.opcode is Opcode.COPY:
                copied_once += size
                copied += size * times
            else:
                transposed_once += size
                transposed += size * times
    return Moved(copied_once, copied, transposed_once, transposed)


def packed_size(array: ArrayShape) -> int:
    """Bytes of an array whose sub-byte elements are packed."""
    bits = 8 if array.element_type.is_pred else array.element_type.bits
    return (array.element_count * bits + 7) // 8


def runs_of(module: Module) -> dict[str, int]:
    """Runs of each reachable computation outside fusions, by name; those in loops of unknown trip count count once."""
    bodies = fusion_bodies(module)
    return {c.name: 1 if n is None else n for c, n in execution_counts(module).items() if c not in bodies}


def computations_of_unknown_runs(module: Module) -> tuple[str, ...]:
    """Names of the computations whose number of runs cannot be told."""
    return tuple(computation.name for computation, runs in execution_counts(module).items() if runs is None)


def moving(computation: Computation) -> Iterator[Instruction]:
    """The instructions that move bytes only to change a layout."""
    for instruction in computation.instructions:
        if instruction.opcode in (Opcode.COPY, Opcode.TRANSPOSE, Opcode.RESHAPE) and _moves(instruction):
            yield instruction


def _moves(instruction: Instruction) -> bool:
    source, result = instruction.operand(0).shape, instruction.shape
    if not isinstance(source, ArrayShape) or not isinstance(result, ArrayShape) or result.element_count == 0:
        return False
    order = source.minor_to_major
    if instruction.opcode is Opcode.RESHAPE:
        return not reshape_is_bitcast(source.dimensions, order, result.dimensions, result.minor_to_major)
    wanted = result.minor_to_major
    if instruction.opcode is Opcode.TRANSPOSE:
        wanted = transpose_operand_order(wanted, dimensions_of(instruction))
    return not equal_without_ones(source.dimensions, order, wanted)
