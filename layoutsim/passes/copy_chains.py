"""Chains: the values of each buffer in order of definition, linked so that copy elision can merge them (memory spec, 12.2).

1. Only buffers that some copy reads or defines have chains; no other can ever change.
2. The values of a chain are in order of definition. Where that is open, a numbering of all instructions decides: entry first,
   parameters before the rest, then the schedule or post-order, what an instruction calls in front of it (of a loop the
   condition before the body).
3. Each node carries the uses its value has now; they move when copies go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cmp_to_key
from itertools import pairwise

from attrs import define

from layoutsim.analysis.ordering import ValueOrdering
from layoutsim.analysis.values import Use, Value
from layoutsim.ir import Computation, Instruction, Module, Opcode
from layoutsim.ir.traverse import fusion_bodies, post_order


@define(eq=False)
class ChainNode:
    """A value in its chain, with the uses it has now.

    Attributes:
        settled: the first of the nodes that are known to be over one before the other, up to this one; forgotten when that may
            have changed.
    """

    value: Value
    uses: list[Use]
    previous: ChainNode | None = None
    next: ChainNode | None = None
    settled: ChainNode | None = None

    @property
    def head(self) -> ChainNode:
        node = self
        while node.previous is not None:
            node = node.previous
        return node

    @property
    def tail(self) -> ChainNode:
        node = self
        while node.next is not None:
            node = node.next
        return node

    def forward(self) -> Iterator[ChainNode]:
        """This node and those behind it."""
        node: ChainNode | None = self
        while node is not None:
            yield node
            node = node.next

    def backward(self) -> Iterator[ChainNode]:
        """This node and those in front of it, nearest first."""
        node: ChainNode | None = self
        while node is not None:
            yield node
            node = node.previous


class Merge(Enum):
    """Where one chain goes in the other; rules (2) and (3)."""

    DESTINATION_INTO_SOURCE = "destination behind its source"
    SOURCE_INTO_DESTINATION = "source in place of the copy"


def copies_of(module: Module) -> list[Instruction]:
    """Every ``copy`` outside fusions, in stored order."""
    fused = fusion_bodies(module)
    outside = (computation for computation in module.computations if computation not in fused)
    return [i for computation in outside for i in computation.instructions if i.opcode is Opcode.COPY]


def link_chain(values: Sequence[Value], ordering: ValueOrdering, numbers: dict[Instruction, int]) -> list[ChainNode]:
    """The chain of a buffer; rule (2)."""

    def compare(a: Value, b: Value) -> int:
        hint = numbers.get(a.instruction, 0) < numbers.get(b.instruction, 0)
        first, second = (a, b) if hint else (b, a)
        if ordering.is_defined_before(first, second):
            return -1 if hint else 1
        if ordering.is_defined_before(second, first):
            return 1 if hint else -1
        return -1 if hint else 1

    ordered = sorted(values, key=cmp_to_key(compare)) if len(values) > 1 else values
    nodes = [ChainNode(value, list(value.uses)) for value in ordered]
    for node, following in pairwise(nodes):
        node.next, following.previous = following, node
    return nodes


def splice_behind(node: ChainNode, first: ChainNode, last: ChainNode) -> None:
    """Insert the whole chain ``first .. last`` behind ``node``."""
    last.next = node.next
    if node.next is not None:
        node.next.previous = last
    node.next, first.previous = first, node


def global_numbers(module: Module, last_first: frozenset[Instruction] = frozenset()) -> dict[Instruction, int]:
    """The numbering of rule (2).

    Args:
        last_first: conditionals of which the last branch comes first.
    """
    numbers: dict[Instruction, int] = {}
    seen: set[Computation] = set()
    for root in (module.entry, *module.computations):
        if root not in seen:
            _number(root, module, last_first, seen, numbers)
    return numbers


def _number(
    computation: Computation,
    module: Module,
    last_first: frozenset[Instruction],
    seen: set[Computation],
    numbers: dict[Instruction, int],
) -> None:
    seen.add(computation)
    for parameter in computation.parameters:
        numbers[parameter] = len(numbers)
    schedule = module.schedule
    scheduled = schedule is not None and computation in schedule
    order = schedule.sequences[computation] if schedule is not None and scheduled else post_order(computation)
    for instruction in order:
        if instruction.opcode is Opcode.PARAMETER:
            continue
        called = instruction.called_computations
        for callee in reversed(called) if instruction.opcode is Opcode.WHILE or instruction in last_first else called:
            if callee not in seen:
                _number(callee, module, last_first, seen, numbers)
        numbers[instruction] = len(numbers)
