"""Who calls whom, and how (``xla/service/call_graph.h``; memory spec, section 1.3).

1. A computation runs in *control-flow* context if it is reached from an uncalled computation over ``call``, ``while``,
   ``conditional`` and ``async-start`` only, and *embedded* if some fusion, reducer, comparator, ... is on the way. One that
   is reached both ways is of context ``BOTH``.
2. Its depth is the length of the longest chain of calls that leads to it.
3. An ``async-update`` and an ``async-done`` name the computation of their ``async-start``, but call nothing.
4. *Nested in* means reached over calls; *dominates* means that every chain of calls passes through it.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from attrs import define, field, frozen

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import CallContext, Opcode

_ASYNC_CHAIN = frozenset({Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE})


class Context(Enum):
    """How a computation is reached; rule (1)."""

    NONE = "none"
    CONTROL_FLOW = "control flow"
    EMBEDDED = "embedded"
    BOTH = "both"

    def joined(self, other: Context) -> Context:
        """The context of a computation that is reached both as ``self`` and as ``other``."""
        if Context.NONE in (self, other):
            return other if self is Context.NONE else self
        return self if self is other else Context.BOTH


@frozen(eq=False)
class CallSite:
    """An instruction that calls computations."""

    instruction: Instruction
    called: tuple[Computation, ...]
    is_control_flow: bool


@define(eq=False)
class CallGraphNode:
    """What the call graph knows of one computation.

    Attributes:
        call_sites: in the order of its instructions.
        caller_sites: one entry for each time it is named, in the order of the callers.
        callees: each once, in the order of the calls.
        callers: each once.
    """

    computation: Computation
    call_sites: list[CallSite] = field(factory=list[CallSite])
    caller_sites: list[CallSite] = field(factory=list[CallSite])
    callees: dict[Computation, None] = field(factory=dict[Computation, None])
    callers: dict[Computation, None] = field(factory=dict[Computation, None])
    context: Context = Context.NONE
    depth: int = 0


def called_computations(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations that this instruction itself calls; rule (3)."""
    return () if instruction.opcode in _ASYNC_CHAIN else instruction.called_computations


def async_start_of(instruction: Instruction) -> Instruction:
    """The ``async-start`` of the chain that an ``async-start``, ``-update`` or ``-done`` belongs to."""
    while instruction.opcode in _ASYNC_CHAIN:
        instruction = instruction.operand(0)
    return instruction


def async_done_of(start: Instruction) -> Instruction | None:
    """The ``async-done`` that ends the chain of an ``async-start``, or ``None``."""
    chain = [start]
    while chain:
        user = next((u for u in chain.pop().users if u.opcode in _ASYNC_CHAIN), None)
        if user is None:
            return None
        if user.opcode is Opcode.ASYNC_DONE:
            return user
        chain.append(user)
    return None


class CallGraph:
    """The call graph of a module as it stands; it does not follow later changes."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._nodes = {computation: CallGraphNode(computation) for computation in module.computations}
        self._nested: dict[Computation, frozenset[Computation]] = {}
        for node in self._nodes.values():
            self._add_call_sites(node)
        self._set_contexts()
        self._set_depths()

    def node(self, computation: Computation) -> CallGraphNode:
        return self._nodes[computation]

    def __getitem__(self, computation: Computation) -> CallGraphNode:
        return self._nodes[computation]

    @property
    def nodes(self) -> tuple[CallGraphNode, ...]:
        """In stored order of the computations."""
        return tuple(self._nodes.values())

    def post_order(self) -> list[Computation]:
        """Computations reached from the entry, callees first: depth first along calls in instruction order."""
        out: dict[Computation, None] = {}
        opened: set[Computation] = set()
        stack = [self.module.entry]
        while stack:
            top = stack[-1]
            if top in opened:
                stack.pop()
                out.setdefault(top)
            else:
                opened.add(top)
                stack += [c for c in reversed(self._nodes[top].callees) if c not in opened]
        return list(out)

    @property
    def is_flattened(self) -> bool:
        """Whether no control-flow computation has more than one call site (async ones excepted)."""
        return all(
            node.context is not Context.BOTH
            and (node.context is not Context.CONTROL_FLOW or len(node.caller_sites) <= 1 or is_async(node))
            for node in self._nodes.values()
        )

    def is_nested_in(self, instruction: Instruction, computation: Computation) -> bool:
        """Whether the instruction is in ``computation`` or in something reached *only* from it; rule (4), dominates."""
        return self.dominates(computation, _parent(instruction))

    def dominates(self, above: Computation, below: Computation) -> bool:
        """Whether every chain of calls to ``below`` passes through ``above``."""
        if above is below:
            return True
        return above in self._dominators(below)

    def nearest_common(self, a: Instruction, b: Instruction) -> tuple[Instruction, Instruction] | None:
        """Instructions of one computation which are, or (transitively) call the computations of, ``a`` and ``b``.

        ``None`` if there are none, or a computation on the way has several callers.
        """
        depth_a, depth_b = self._depth(a), self._depth(b)
        above_a = self._climb(a, depth_a - depth_b)
        above_b = self._climb(b, depth_b - depth_a)
        while above_a is not None and above_b is not None:
            if above_a.parent is above_b.parent:
                return above_a, above_b
            above_a, above_b = self._caller(above_a), self._caller(above_b)
        return None

    def unique_caller(self, computation: Computation) -> Instruction | None:
        """The one instruction that calls ``computation``, or ``None`` if there are several or none."""
        sites = self._nodes[computation].caller_sites
        return sites[0].instruction if len(sites) == 1 else None

    # -- building --------------------------------------------------------------------------------------------------

    def _add_call_sites(self, node: CallGraphNode) -> None:
        for instruction in node.computation.instructions:
            called = called_computations(instruction)
            if not called:
                continue
            site = CallSite(instruction, called, instruction.opcode.spec.calls is CallContext.CONTROL_FLOW)
            node.call_sites.append(site)
            for callee in called:
                node.callees.setdefault(callee)
                below = self._nodes[callee]
                below.caller_sites.append(site)
                below.callers.setdefault(node.computation)

    def _set_contexts(self) -> None:
        pending = deque(node for node in self._nodes.values() if not node.callers)
        for node in pending:
            node.context = Context.CONTROL_FLOW
        while pending:
            node = pending.popleft()
            for site in node.call_sites:
                added = node.context if site.is_control_flow else Context.EMBEDDED
                for callee in site.called:
                    below = self._nodes[callee]
                    context = below.context.joined(added)
                    if context is not below.context:
                        below.context = context
                        pending.append(below)

    def _set_depths(self) -> None:
        pending = deque(node for node in self._nodes.values() if not node.callers)
        while pending:
            node = pending.popleft()
            for callee in node.callees:
                below = self._nodes[callee]
                if below.depth < node.depth + 1:
                    below.depth = node.depth + 1
                    pending.append(below)

    # -- walking up ------------------------------------------------------------------------------------------------

    def _depth(self, instruction: Instruction) -> int:
        return self._nodes[_parent(instruction)].depth

    def _climb(self, instruction: Instruction, levels: int) -> Instruction | None:
        above: Instruction | None = instruction
        for _ in range(levels):
            if above is None:
                return None
            above = self._caller(above)
        return above

    def _caller(self, instruction: Instruction) -> Instruction | None:
        node = self._nodes[_parent(instruction)]
        if len(node.caller_sites) == 1 or (node.caller_sites and is_async(node)):
            return node.caller_sites[0].instruction
        return None

    def _dominators(self, computation: Computation) -> frozenset[Computation]:
        """All computations that every chain of calls to ``computation`` passes through, itself included."""
        known = self._nested.get(computation)
        if known is None:
            above = [self._dominators(caller) for caller in self._nodes[computation].callers]
            common = frozenset[Computation].intersection(*above) if above else frozenset[Computation]()
            known = self._nested[computation] = common | {computation}
        return known


def is_async(node: CallGraphNode) -> bool:
    """Whether an ``async-start`` calls the computation."""
    return any(site.instruction.opcode is Opcode.ASYNC_START for site in node.caller_sites)


def _parent(instruction: Instruction) -> Computation:
    assert instruction.parent is not None, f"{instruction!r} is in no computation"
    return instruction.parent
