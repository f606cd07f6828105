"""The schedule (invariants H1 to H3; list in ``layoutsim.verify``; ``HloSchedule::Verify``)."""

from __future__ import annotations

from layoutsim.ir import Computation, Instruction, Opcode, Schedule
from layoutsim.verify.findings import Findings


def verify_schedule(findings: Findings) -> None:
    """H1 to H3; nothing where the module has no schedule."""
    schedule = findings.module.schedule
    if schedule is None:
        return
    needed = _scheduled_computations(findings, schedule)
    for computation in findings.module.computations:
        if computation in schedule:
            _check_sequence(findings, computation, schedule.sequence(computation))
        elif computation in needed:
            findings.add(computation, "H1", "the schedule has no sequence for this computation")
    for computation in schedule.sequences:
        if computation not in findings.module._computations:
            findings.add(computation, "H1", "the schedule has a sequence for a computation that is not in the module")


def _scheduled_computations(findings: Findings, schedule: Schedule) -> frozenset[Computation]:
    """Every live computation on a scheduled thread that is no fusion's body."""
    threads = {computation.execution_thread for computation in schedule.sequences}
    live: dict[Computation, None] = {}
    pending = [findings.module.entry]
    while pending:
        computation = pending.pop()
        if computation not in live:
            live[computation] = None
            pending += [
                callee
                for instruction in computation.instructions
                if instruction.opcode is not Opcode.FUSION
                for callee in instruction.called_computations
            ]
    return frozenset(c for c in live if c.execution_thread in threads and c not in findings.fusion_bodies)


def _check_sequence(findings: Findings, computation: Computation, sequence: tuple[Instruction, ...]) -> None:
    positions: dict[Instruction, int] = {}
    for position, instruction in enumerate(sequence):
        if instruction.parent is not computation:
            findings.add(computation, "H2", f"its sequence lists {instruction.name}, which is not in the computation")
        elif instruction in positions:
            findings.add(instruction, "H2", "is scheduled twice, expected once")
        positions.setdefault(instruction, position)
    for instruction in computation.instructions:
        if instruction not in positions:
            findings.add(instruction, "H2", "is not scheduled")
            continue
        _check_order(findings, instruction, positions)


def _check_order(findings: Findings, instruction: Instruction, positions: dict[Instruction, int]) -> None:
    """H3."""
    own = positions[instruction]
    for role, earlier in (("operand", instruction.operands), ("control predecessor", instruction.control_predecessors)):
        for before in earlier:
            if positions.get(before, -1) >= own:
                findings.add(instruction, "H3", f"is scheduled at {own}, its {role} {before.name} at {positions[before]}")
