"""Joint layout assignment as data: variables with a few orders each, and edges that cost bytes where they disagree.

1. A *variable* is one array, or several that must be laid out alike (what a loop carries, takes and returns). Its *modes* are
   whole ``minor_to_major`` orders; two orders that differ in dimensions of size 1 only are one mode, since they are the same
   bytes.
2. An *edge* is one operand slot (or the result of a computation). It is satisfied if the producer's order is the one that the
   consumer's order asks for, up to dimensions of size 1; otherwise its cost is paid: the array is moved each time it runs.
3. An *assignment* gives each variable one of its modes. Its cost is the sum of the edges that are not satisfied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import factorial

from attrs import define, field

from layoutsim.ir import ShapeIndex
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.layout import Layout
from layoutsim.passes.layout_assignment.layout_math import Order

Follow = Callable[[Order], "Order | None"]
"""From the order on one side of an edge to that on the other side which moves nothing; ``None`` where there is none."""

Assignment = list[int]
"""The number of the mode chosen for each variable."""

MAX_MODES = 24
"""Modes of a variable; all orders of four dimensions. With more dimensions, orders that are found later are left out."""


def restrict(order: Order, dimensions: frozenset[int]) -> Order:
    """The order of ``dimensions`` alone, in their own numbers."""
    return tuple(d for d in order if d in dimensions)


def same_order(order: Order) -> Order:
    """The relation of slots that take what the consumer has."""
    return order


@define(eq=False)
class Variable:
    """Arrays that are laid out alike.

    Attributes:
        dimensions: those whose place means something: not of size 1 in the result or in an operand that must follow it.
        template: a layout whose memory space, tiles and element size the array keeps.
        fit: the order as the rules of its instruction take it, size-1 dimensions moved at most; ``None`` if they refuse it.
        modes: orders to choose from.
        is_pinned: it has one mode for good.
    """

    number: int
    rank: int
    dimensions: frozenset[int]
    template: Layout
    fit: Follow = same_order
    is_pinned: bool = False
    modes: list[Order] = field(factory=list[Order], init=False)
    _known: dict[Order, int] = field(factory=dict[Order, int], init=False)

    def offer(self, order: Order, *, limit: int = MAX_MODES) -> int | None:
        """The mode that ``order`` is, added if it is new and allowed; ``None`` otherwise."""
        key = restrict(order, self.dimensions)
        known = self._known.get(key)
        if known is not None:
            return known
        if (self.is_pinned and self.modes) or len(self.modes) >= limit:
            return None
        fitted = self.fit(order)
        if fitted is None:
            return None
        self._known[key] = len(self.modes)
        self.modes.append(fitted)
        return len(self.modes) - 1


@define(eq=False)
class Edge:
    """An operand slot, or the result of a computation.

    Attributes:
        consumer: ``None`` where the slot asks for fixed orders.
        dimensions: of the array that passes, those that are not of size 1.
        cost: bytes by the objective, paid where the edge is not satisfied.
        tie: bytes by the other objective, which decides between assignments of equal cost.
        wanted: from the consumer's order to the producer's.
        offered: from the producer's order to the consumer's.
        adapted: for slots without consumer: the order in which the slot takes the producer's without moving it.
        preferred: for slots without consumer: the layout that the slot gets otherwise; its tiles and element size hold anyway.
        user: whose slot it is; the root for results.
        slot: operand number, ``None`` for results.
        index: which part of the operand.
        moves_itself: the user (a transpose, reshape or copy) moves the array, no copy in front of it does.
    """

    producer: Variable
    consumer: Variable | None
    dimensions: frozenset[int]
    cost: int
    tie: int
    user: Instruction
    slot: int | None
    index: ShapeIndex
    wanted: Follow = same_order
    offered: Follow = same_order
    adapted: Follow = same_order
    preferred: Layout | None = None
    moves_itself: bool = False

    def producer_key(self, order: Order) -> Order:
        return restrict(order, self.dimensions)

    def consumer_key(self, order: Order) -> Order | None:
        wanted = self.wanted(order)
        return None if wanted is None else restrict(wanted, self.dimensions)

    def satisfied(self, producer: Order, consumer: Order | None) -> bool:
        """Whether nothing moves."""
        if consumer is None:
            return self.adapted(producer) is not None
        return self.producer_key(producer) == self.consumer_key(consumer)


def is_open(variable: Variable | None) -> bool:
    """Whether there is something to choose."""
    return variable is not None and len(variable.modes) > 1


@define(eq=False)
class Problem:
    """All variables and edges of a module."""

    variables: list[Variable]
    edges: list[Edge]

    def is_satisfied(self, edge: Edge, chosen: Sequence[int]) -> bool:
        """Whether nothing moves on ``edge``."""
        producer = edge.producer.modes[chosen[edge.producer.number]]
        consumer = edge.consumer
        return edge.satisfied(producer, None if consumer is None else consumer.modes[chosen[consumer.number]])

    def cost(self, chosen: Sequence[int]) -> int:
        """Bytes by the objective."""
        return self.costs(chosen)[0]

    def costs(self, chosen: Sequence[int]) -> tuple[int, int]:
        """Bytes by the objective, and by the one that decides between equals."""
        paid = [edge for edge in self.edges if not self.is_satisfied(edge, chosen)]
        return sum(edge.cost for edge in paid), sum(edge.tie for edge in paid)

    def swap_objectives(self) -> None:
        """Let the two objectives change places."""
        for edge in self.edges:
            edge.cost, edge.tie = edge.tie, edge.cost


def offer_every_order(problem: Problem) -> bool:
    """Give every variable all orders of its dimensions; whether none has too many (:data:`MAX_MODES`) for that."""
    complete = True
    for variable in problem.variables:
        if variable.is_pinned:
            continue
        if factorial(len(variable.dimensions)) > MAX_MODES:
            complete = False
            continue
        for key in permutations(sorted(variable.dimensions, reverse=True)):
            following = iter(key)
            template = variable.template.minor_to_major
            variable.offer(tuple(next(following) if d in variable.dimensions else d for d in template))
    return complete


def close_modes(problem: Problem) -> None:
    """Carry every mode across every edge, until no variable learns a new one.

    So each variable can follow each of its neighbours, and any demand can travel as far as an edge leads.
    """
    around: list[list[Edge]] = [[] for _ in problem.variables]
    for edge in problem.edges:
        if edge.consumer is None:
            if edge.preferred is not None:
                edge.producer.offer(edge.preferred.minor_to_major)
            continue
        around[edge.producer.number].append(edge)
        around[edge.consumer.number].append(edge)
    waiting = [(variable, order) for variable in problem.variables for order in variable.modes]
    while waiting:
        variable, order = waiting.pop()
        for edge in around[variable.number]:
            for here, there, follow in _directions(edge):
                reached = follow(order) if here is variable and not there.is_pinned else None
                if reached is None:
                    continue
                before = len(there.modes)
                there.offer(reached)
                if len(there.modes) > before:
                    waiting.append((there, there.modes[-1]))


def _directions(edge: Edge) -> tuple[tuple[Variable, Variable, Follow], ...]:
    assert edge.consumer is not None, edge
    return ((edge.producer, edge.consumer, edge.offered), (edge.consumer, edge.producer, edge.wanted))
