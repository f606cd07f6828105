"""Orders of instructions and computations. XLA's own orders are part of its behaviour, so each is written out here.

* :func:`post_order`: operands before users (layout spec, 13.2; buffer spec, 1.2).
* :func:`visitor_order`: XLA's DFS visitor, unreachable roots first, then from the root (layout spec, 13.3).
* :func:`computations_post_order`: callees before callers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from layoutsim.ir.computation import Computation
from layoutsim.ir.instruction import Instruction
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import Opcode

_OPEN, _DONE = 1, 2


def post_order(computation: Computation, seeds: Iterable[Instruction] | None = None) -> list[Instruction]:
    """Iterative DFS from every instruction without users, in list order.

    Of a node's children the control predecessors come first, the last one first of all, then the operands in order. Dead
    instructions are included.

    Args:
        seeds: all instructions without users, where another order of them is wanted.
    """
    out: list[Instruction] = []
    state: dict[Instruction, int] = {}
    for seed in computation.instructions if seeds is None else seeds:
        if not seed.user_count and seed not in state:
            _post_order_from(seed, state, out)
    return out


def _post_order_from(seed: Instruction, state: dict[Instruction, int], out: list[Instruction]) -> None:
    stack = [seed]
    while stack:
        node = stack[-1]
        if node not in state:
            state[node] = _OPEN
            stack += [o for o in reversed(node.operands) if state.get(o) != _DONE]
            stack += [p for p in node.control_predecessors if state.get(p) != _DONE]
        else:
            stack.pop()
            if state[node] != _DONE:
                state[node] = _DONE
                out.append(node)


def visitor_order(
    computation: Computation, sort_children: Callable[[list[Instruction]], list[Instruction]] | None = None
) -> list[Instruction]:
    """XLA's visitor: roots that nothing reaches first (list order), the computation's root last.

    Children are the operands in order, then the control predecessors in order; the first child is visited first.
    """
    roots = [i for i in computation.instructions if not i.user_count and not i.control_successors and not i.is_root]
    out: list[Instruction] = []
    state: dict[Instruction, int] = {}
    for seed in [*roots, computation.root]:
        stack = [seed]
        while stack:
            node = stack[-1]
            if node not in state:
                state[node] = _OPEN
                children = [*node.operands, *node.control_predecessors]
                children = children if sort_children is None else sort_children(children)
                stack += [c for c in reversed(children) if state.get(c) != _DONE]
            else:
                stack.pop()
                if state[node] != _DONE:
                    state[node] = _DONE
                    out.append(node)
    return out


def computations_post_order(module: Module) -> list[Computation]:
    """Reachable and unreachable computations, callees before callers.

    DFS over call edges from each computation that nobody calls, in stored order (the entry last), following a computation's
    instructions in post-order and each instruction's called computations in order.
    """
    called = {c for computation in module.computations for i in computation.instructions for c in i.called_computations}
    seeds = [c for c in module.computations if c not in called and c is not module.entry] + [module.entry]
    out: dict[Computation, None] = {}
    opened: set[Computation] = set()
    for seed in seeds:
        stack = [seed]
        while stack:
            node = stack[-1]
            if node not in opened:
                opened.add(node)
                callees = [c for i in post_order(node) for c in i.called_computations]
                stack += [c for c in reversed(callees) if c not in out]
            else:
                stack.pop()
                out.setdefault(node)
    return list(out)


def is_fusion_body(computation: Computation, fusion_bodies: frozenset[Computation]) -> bool:
    """Whether ``computation`` is called by a fusion; see :func:`fusion_bodies`."""
    return computation in fusion_bodies


def fusion_bodies(module: Module) -> frozenset[Computation]:
    """The computations that are bodies of fusion instructions."""
    return frozenset(
        callee
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode is Opcode.FUSION
        for callee in instruction.called_computations
    )
