"""Asynchronous pairs and channels (invariants A1 to A5; list in ``layoutsim.verify``)."""

from __future__ import annotations

from layoutsim.ir import Instruction, Opcode, TupleShape
from layoutsim.ir.payloads import AsyncPayload, CustomCallPayload, SendRecvPayload
from layoutsim.verify.findings import Findings

_USERS = {
    Opcode.ASYNC_START: (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    Opcode.ASYNC_UPDATE: (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    Opcode.ALL_REDUCE_START: (Opcode.ALL_REDUCE_DONE,),
    Opcode.ALL_GATHER_START: (Opcode.ALL_GATHER_DONE,),
    Opcode.COLLECTIVE_PERMUTE_START: (Opcode.COLLECTIVE_PERMUTE_DONE,),
    Opcode.COPY_START: (Opcode.COPY_DONE,),
    Opcode.SEND: (Opcode.SEND_DONE, Opcode.TUPLE),
    Opcode.RECV: (Opcode.RECV_DONE, Opcode.TUPLE),
}
"""Who may use the result of a start; a transfer may also travel through a loop in a tuple (A1)."""

_OPERANDS = {
    Opcode.ASYNC_UPDATE: (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE),
    Opcode.ASYNC_DONE: (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE),
    Opcode.ALL_REDUCE_DONE: (Opcode.ALL_REDUCE_START,),
    Opcode.ALL_GATHER_DONE: (Opcode.ALL_GATHER_START,),
    Opcode.COLLECTIVE_PERMUTE_DONE: (Opcode.COLLECTIVE_PERMUTE_START,),
    Opcode.COPY_DONE: (Opcode.COPY_START,),
    Opcode.SEND_DONE: (Opcode.SEND, Opcode.GET_TUPLE_ELEMENT),
    Opcode.RECV_DONE: (Opcode.RECV, Opcode.GET_TUPLE_ELEMENT),
}
"""What a done finishes (A2)."""

PAIRED = frozenset({*_USERS, *_OPERANDS})
_TRANSFERS = frozenset({Opcode.SEND, Opcode.RECV})


def verify_pairs(findings: Findings) -> None:
    """A1 to A5."""
    host_transfers: dict[int, Instruction] = {}
    for computation in findings.module.computations:
        for instruction in computation.instructions:
            if instruction.opcode not in PAIRED:
                continue
            if instruction.opcode in _USERS:
                _check_users(findings, instruction)
            if instruction.opcode in _OPERANDS:
                _check_operand(findings, instruction)
            if instruction.opcode in _TRANSFERS:
                _check_channel(findings, instruction, host_transfers)


def _check_users(findings: Findings, start: Instruction) -> None:
    """A1."""
    if start.opcode in _TRANSFERS and start.is_root and start.parent in findings.async_bodies:
        return
    users = [user for user in start.users if not _is_control_dependence(user)]
    expected = _USERS[start.opcode]
    if len(users) != 1 or users[0].opcode not in expected:
        found = ", ".join(f"{user.opcode} {user.name}" for user in users) or "nobody"
        findings.add(start, "A1", f"{start.opcode} is used by {found}, expected one {' or '.join(expected)}")


def _is_control_dependence(user: Instruction) -> bool:
    return isinstance(user.payload, CustomCallPayload) and user.payload.custom_call_target == "control_dep"


def _check_operand(findings: Findings, done: Instruction) -> None:
    """A2 and A3."""
    expected = _OPERANDS[done.opcode]
    if done.operand_count != 1 or done.operand(0).opcode not in expected:
        found = ", ".join(f"{o.opcode} {o.name}" for o in done.operands) or "nothing"
        findings.add(done, "A2", f"{done.opcode} has as operands {found}, expected one {' or '.join(expected)}")
        return
    start = done.operand(0)
    if isinstance(done.payload, AsyncPayload) and isinstance(start.payload, AsyncPayload):
        if done.called_computations and done.called_computations != start.called_computations:
            findings.add(done, "A3", f"names another computation than {start.name}, which it continues")
        if done.payload.async_execution_thread != start.payload.async_execution_thread:
            ours, theirs = done.payload.async_execution_thread, start.payload.async_execution_thread
            findings.add(done, "A3", f"is on thread {ours}, expected {theirs} (same as {start.name})")
    if isinstance(start.payload, SendRecvPayload) and done.payload != start.payload:
        findings.add(done, "A4", f"has {_transfer_text(done)}, expected {_transfer_text(start)} (same as {start.name})")


def _transfer_text(instruction: Instruction) -> str:
    payload = instruction.payload_as(SendRecvPayload)
    return f"channel_id {payload.channel_id} and is_host_transfer {str(payload.is_host_transfer).lower()}"


def _check_channel(findings: Findings, transfer: Instruction, seen: dict[int, Instruction]) -> None:
    """A5: host transfers on one channel are alike but for their operands."""
    payload = transfer.payload_as(SendRecvPayload)
    if not payload.is_host_transfer or payload.channel_id is None:
        return
    first = seen.setdefault(payload.channel_id, transfer)
    if first.opcode is not transfer.opcode or first.shape != transfer.shape:
        findings.add(
            transfer,
            "A5",
            f"is {transfer.opcode} {_data(transfer)} on host channel {payload.channel_id}, "
            f"expected {first.opcode} {_data(first)} (same as {first.name})",
        )


def _data(transfer: Instruction) -> str:
    return str(transfer.shape.elements[0]) if isinstance(transfer.shape, TupleShape) else str(transfer.shape)
