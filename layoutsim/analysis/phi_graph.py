"""Phis and their inputs, reduced to the phis that are needed (``xla/service/hlo_phi_graph.h``; memory spec, section 2.4).

Repeated until nothing changes, over the nodes in the order in which they were first named:

1. a phi is no input of its own;
2. a phi whose inputs are all one value is that value;
3. if exactly one value that is no phi is reached from a phi over inputs, every phi reached is that value.

So what a loop only passes on is its initial value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from attrs import define, field

from layoutsim.analysis.values import Value


@define(eq=False)
class _Node:
    value: Value
    is_phi: bool = False
    is_dead: bool = False
    inputs: list[_Node] = field(factory=list["_Node"])
    readers: list[_Node] = field(factory=list["_Node"])


class PhiGraph:
    """The phis of an analysis while it runs."""

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._node_of: dict[Value, _Node] = {}
        self._values_of: dict[_Node, list[Value]] = {}

    def register(self, phi: Value, inputs: Sequence[Value]) -> None:
        """Set the inputs of a phi, anew or for the first time."""
        node = self._node(phi)
        node.is_phi = True
        node.inputs = [self._node(value) for value in inputs]

    def has_inputs(self, phi: Value, inputs: Sequence[Value]) -> bool:
        """Whether ``inputs`` are the registered ones, in any order and number."""
        return {node.value for node in self._node_of[phi].inputs} == set(inputs)

    def resolved(self, value: Value) -> Value:
        """The value that a phi turned out to be after :meth:`optimize`."""
        node = self._node_of.get(value)
        return value if node is None else node.value

    def optimize(self) -> None:
        """Rules (1) to (3), to a fixed point."""
        for node in self._nodes:
            for source in node.inputs:
                source.readers.append(node)
        while self._optimize_once():
            pass

    def _optimize_once(self) -> bool:
        changed = False
        checked: set[_Node] = set()
        for node in self._nodes:
            if not node.is_phi or node.is_dead:
                continue
            node.inputs = [source for source in node.inputs if source is not node]
            node.readers = [reader for reader in node.readers if reader is not node]
            assert node.inputs, f"phi {node.value} has no input but itself"
            if all(source is node.inputs[0] for source in node.inputs):
                self._replace(node, node.inputs[0])
                changed = True
            elif node not in checked:
                changed |= self._collapse_closure(node, checked)
        return changed

    def _collapse_closure(self, start: _Node, checked: set[_Node]) -> bool:
        """Rule (3) for what is reached from ``start``; nodes seen are added to ``checked``."""
        reached: dict[_Node, None] = {}
        pending = deque([start])
        only: _Node | None = None
        while pending:
            node = pending.popleft()
            if node in reached:
                continue
            reached[node] = None
            checked.add(node)
            pending += node.inputs
            if not node.is_phi:
                if only is not None and only is not node:
                    return False
                only = node
        if only is None:
            return False
        for node in reached:
            if node.is_phi:
                self._replace(node, only)
        return True

    def _replace(self, node: _Node, new: _Node) -> None:
        if node.is_dead:
            return
        if new.is_dead:
            self._replace(node, self._node_of[new.value])
            return
        for reader in node.readers:
            reader.inputs = [new if source is node else source for source in reader.inputs]
        for source in node.inputs:
            source.readers = [new if reader is node else reader for reader in source.readers]
        for value in self._values_of[node]:
            self._node_of[value] = new
        self._values_of[new] += self._values_of.pop(node)
        self._values_of[node] = []
        node.is_dead = True

    def _node(self, value: Value) -> _Node:
        node = self._node_of.get(value)
        if node is None:
            node = self._node_of[value] = _Node(value)
            self._nodes.append(node)
            self._values_of[node] = [value]
        return node
