"""Structure: ownership, use edges, order, names and calls (invariants S1 to S11; list in ``layoutsim.verify``)."""

from __future__ import annotations

from collections.abc import Iterable

from layoutsim.analysis.side_effects import has_own_side_effect
from layoutsim.ir import CallContext, Computation, Instruction, Module, Opcode
from layoutsim.verify.findings import Findings

_ASYNC_CHAIN = frozenset({Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE})
_PLUMBING = frozenset({Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT})
_COLLECTIVES_GROUP = "_collectives_group"
"""Frontend attribute of an ``async-start`` whose body is a group of collectives."""


def verify_structure(findings: Findings) -> None:
    """S1 to S5, S7 and S8: what every other check relies on."""
    module = findings.module
    _check_entry(findings, module)
    for computation in module.computations:
        if not _is_owned(findings, computation, module):
            continue
        _check_edges(findings, computation)
        _check_acyclic(findings, computation)
        _check_parameters(findings, computation)
        _check_callees(findings, computation)
    _check_calls_end(findings, module)


def verify_names_and_bodies(findings: Findings) -> None:
    """S6, S9, S10 and S11."""
    module = findings.module
    _check_unique_names(findings, module)
    findings.fusion_bodies = _bodies_of(findings, module, Opcode.FUSION)
    findings.async_bodies = _bodies_of(findings, module, Opcode.ASYNC_START)
    if module.entry in findings.fusion_bodies:
        findings.add(module.entry, "S2", "the entry is the body of a fusion")
    for body in (c for c in module.computations if c in findings.fusion_bodies):
        _check_fusion_body(findings, body)
    if findings.options.check_threads:
        _check_threads(findings, module)


# -- ownership and edges -------------------------------------------------------------------------------------------------


def _check_entry(findings: Findings, module: Module) -> None:
    if not module.name:
        findings.add(module, "S1", "the module has no name")
    if module._entry is None or module._entry not in module._computations:
        findings.add(module, "S2", "the module has no entry computation")


def _is_owned(findings: Findings, computation: Computation, module: Module) -> bool:
    """S1 and S2; whether the other checks can look into the computation."""
    before = len(findings.diagnostics)
    if computation.parent is not module:
        findings.add(computation, "S1", "the computation's parent is not the module that lists it")
    if not computation.name:
        findings.add(computation, "S1", "the computation has no name")
    if computation._root is None or computation._root not in computation:
        findings.add(computation, "S2", f"the root {computation._root!r} is not in the computation")
    for instruction in computation.instructions:
        if instruction.parent is not computation:
            findings.add(instruction, "S1", f"its parent is {instruction.parent}, expected {computation}, which lists it")
        if not instruction.name:
            findings.add(computation, "S1", f"an instruction has no name: {instruction!r}")
    return len(findings.diagnostics) == before


def _check_edges(findings: Findings, computation: Computation) -> None:
    """S3 and S4."""
    using: dict[Instruction, dict[Instruction, None]] = {i: {} for i in computation.instructions}
    for instruction in computation.instructions:
        for number, operand in enumerate(instruction._operands):
            if operand.parent is not computation:
                place = "no computation" if operand.parent is None else operand.parent.name
                findings.add(instruction, "S3", f"operand {number}, {operand.name}, is in {place}, expected {computation.name}")
            else:
                using[operand][instruction] = None
    for instruction, expected in using.items():
        users = instruction._users
        if len(users) != len(expected) or any(user not in expected for user in users):
            found = ", ".join(user.name for user in users) or "nobody"
            wanted = ", ".join(user.name for user in expected) or "nobody"
            findings.add(instruction, "S4", f"its recorded users are {found}, expected {wanted}, which have it as an operand")


def _check_acyclic(findings: Findings, computation: Computation) -> None:
    """S5: if each instruction follows what it waits for there is no cycle; only otherwise search for one."""
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        if not (seen.issuperset(instruction._operands) and seen.issuperset(instruction.control_predecessors)):
            _find_cycle(findings, computation)
            return
        seen.add(instruction)


def _find_cycle(findings: Findings, computation: Computation) -> None:
    """Take away what waits for nothing, again and again; what is left waits for itself."""
    waiting = {i: len({*i._operands, *i.control_predecessors}) for i in computation.instructions}
    ready = [i for i, count in waiting.items() if not count]
    while ready:
        done = ready.pop()
        del waiting[done]
        for after in dict.fromkeys((*done._users, *done.control_successors)):
            if after in waiting:
                waiting[after] -= 1
                if not waiting[after]:
                    ready.append(after)
    own = [i for i in waiting if all(o.parent is computation for o in i._operands)]
    if own and len(own) == len(waiting):
        names = ", ".join(i.name for i in own[:8])
        findings.add(computation, "S5", f"instructions wait for one another or for themselves: {names}")


def _check_parameters(findings: Findings, computation: Computation) -> None:
    """S7."""
    numbers = sorted(i.parameter_number for i in computation.instructions if i.opcode is Opcode.PARAMETER)
    if numbers != list(range(len(numbers))):
        findings.add(computation, "S7", f"parameters are numbered {numbers}, expected 0..{len(numbers) - 1} once each")


# -- calls ---------------------------------------------------------------------------------------------------------------


def _check_callees(findings: Findings, computation: Computation) -> None:
    """S8, for one computation's instructions."""
    for instruction in computation.instructions:
        if not instruction.called_computations:
            continue
        if instruction.opcode.spec.calls is CallContext.NONE:
            findings.add(instruction, "S8", f"{instruction.opcode} calls a computation, and no {instruction.opcode} can")
        for callee in instruction.called_computations:
            if callee not in findings.module._computations:
                findings.add(instruction, "S8", f"calls {callee.name}, which is not in the module")


def _check_calls_end(findings: Findings, module: Module) -> None:
    """S8: no computation reaches itself through calls."""
    callees = {
        c: dict.fromkeys(callee for i in c.instructions for callee in i.called_computations) for c in module.computations
    }
    finished: set[Computation] = set()
    for start in module.computations:
        path: dict[Computation, Iterable[Computation]] = {start: iter(callees[start])}
        while path:
            caller, rest = next(reversed(path.items()))
            callee = next(iter(rest), None)
            if callee is None:
                finished.add(caller)
                del path[caller]
            elif callee in path:
                findings.add(caller, "S8", f"calls {callee.name}, through which it was reached")
                return
            elif callee not in finished and callee in callees:
                path[callee] = iter(callees[callee])


def _bodies_of(findings: Findings, module: Module, opcode: Opcode) -> frozenset[Computation]:
    """Computations called by instructions of ``opcode``; each has one caller (S9, S11)."""
    callers: dict[Computation, Instruction] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode is not opcode:
                continue
            for callee in instruction.called_computations:
                if callee in callers:
                    invariant = "S9" if opcode is Opcode.FUSION else "S11"
                    findings.add(instruction, invariant, f"its body {callee.name} is the body of {callers[callee].name} too")
                else:
                    callers[callee] = instruction
                if opcode is Opcode.ASYNC_START:
                    _check_async_body(findings, instruction, callee)
    return frozenset(callers)


def _check_async_body(findings: Findings, start: Instruction, body: Computation) -> None:
    """S11: one operation, or a group that runs as one."""
    inner = [i for i in body.instructions if i.opcode is not Opcode.PARAMETER]
    only_transfers = all(i.opcode in (Opcode.SEND, Opcode.RECV, Opcode.TUPLE) for i in inner)
    only_plumbing = all(i is body.root or i.opcode in _PLUMBING for i in inner)
    group = _COLLECTIVES_GROUP in start.attributes.frontend_attributes
    if not (only_transfers or only_plumbing or group):
        extra = next(i for i in inner if i is not body.root and i.opcode not in _PLUMBING)
        findings.add(start, "S11", f"its body {body.name} holds {extra.name} beside its root, expected parameters only")


def _check_fusion_body(findings: Findings, body: Computation) -> None:
    """S9: the root is used by nobody, everything else by somebody."""
    if body.root.user_count:
        findings.add(body.root, "S9", f"the root of a fusion is used by {body.root.users[0].name}, expected no users")
    for instruction in body.instructions:
        if instruction.user_count or instruction is body.root or has_own_side_effect(instruction):
            continue
        findings.add(instruction, "S9", f"has no users in fusion body {body.name}, expected at least one")


def _check_threads(findings: Findings, module: Module) -> None:
    """S10."""
    for computation in module.computations:
        for instruction in computation.instructions:
            for callee in instruction.called_computations:
                expected = computation.execution_thread
                if instruction.opcode is Opcode.ASYNC_START or instruction.opcode in _ASYNC_CHAIN:
                    expected = getattr(instruction.payload, "async_execution_thread", expected)
                if callee.execution_thread != expected:
                    findings.add(
                        instruction, "S10", f"calls {callee.name} on thread {callee.execution_thread}, expected {expected}"
                    )


def _check_unique_names(findings: Findings, module: Module) -> None:
    """S6."""
    computations: set[str] = set()
    seen: dict[str, Instruction] = {}
    for computation in module.computations:
        if computation.name in computations:
            findings.add(computation, "S6", "another computation has the same name")
        computations.add(computation.name)
        if not findings.options.unique_names:
            seen = {}
        for instruction in computation.instructions:
            first = seen.setdefault(instruction.name, instruction)
            if first is not instruction and first.parent is not None:
                findings.add(instruction, "S6", f"an instruction of {first.parent.name} has the same name")
