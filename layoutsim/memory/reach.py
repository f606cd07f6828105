"""Which computations' values are in global memory, and which are each thread's own (memory spec, section 9.1, step 2).

1. The entry is global. What ``call``, ``conditional``, ``while`` and async operations call is as their caller is.
2. What fusions, reducers, comparators and custom calls call is thread-local, and so is everything below.
3. No computation may be both.
"""

from __future__ import annotations

from collections import deque

from attrs import frozen

from layoutsim.analysis.call_graph import called_computations
from layoutsim.errors import UnsupportedError
from layoutsim.ir.computation import Computation
from layoutsim.ir.module import Module
from layoutsim.ir.opcode import CallContext


@frozen(eq=False)
class Reach:
    """Computations that the entry reaches, in no particular order of meaning (as the module stores them)."""

    global_: tuple[Computation, ...]
    thread_local: tuple[Computation, ...]


def split_computations(module: Module) -> Reach:
    """Rules (1) to (3).

    Raises:
        UnsupportedError: a computation is wanted both ways.
    """
    is_local: dict[Computation, bool] = {}
    pending = deque([(module.entry, False)])
    while pending:
        computation, local = pending.popleft()
        known = is_local.setdefault(computation, local)
        if known is not local:
            raise UnsupportedError(f"computation {computation.name} is called both by control flow and as an embedded one")
        pending += [call for call in _calls(computation, local) if is_local.get(call[0]) is not call[1]]
    stored = [c for c in module.computations if c in is_local]
    return Reach(tuple(c for c in stored if not is_local[c]), tuple(c for c in stored if is_local[c]))


def _calls(computation: Computation, local: bool) -> list[tuple[Computation, bool]]:
    found: list[tuple[Computation, bool]] = []
    for instruction in computation.instructions:
        called = called_computations(instruction)
        if called:
            embedded = instruction.opcode.spec.calls is CallContext.EMBEDDED
            found += [(callee, local or embedded) for callee in called]
    return found
