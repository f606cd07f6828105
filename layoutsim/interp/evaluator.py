"""The reference interpreter: what a module computes, on one device or on many in lock step (text spec, sections 5.3 and 8).

1. Every instruction is evaluated once each time its computation runs, in schedule order or else in post-order, for all
   devices before the next one; a collective exchanges values between them and goes on.
2. A loop runs for the devices whose condition holds, a conditional for each branch with the devices that chose it. A collective
   that only some members of a group reach is an error ("divergent").
3. Where operands are the same objects on every device, the result is computed once and shared.
4. Values are dropped after their last use.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

import numpy as np
from attrs import frozen

from layoutsim.errors import InputError, UnsupportedError
from layoutsim.interp import (
    kernels_contraction,
    kernels_elementwise,
    kernels_gather,
    kernels_linear,
    kernels_movement,
    kernels_random,
    kernels_reduction,
    kernels_sort,
)
from layoutsim.interp.bodies import Body
from layoutsim.interp.collectives import GROUP_FUNCTIONS, permuted, started, without_group
from layoutsim.interp.custom_calls import run_custom_call
from layoutsim.interp.devices import Devices, infer_devices, mode_of
from layoutsim.interp.literals import literal_value
from layoutsim.interp.options import DEFAULT_OPTIONS, Options
from layoutsim.interp.registry import KERNELS, Call
from layoutsim.interp.rounding import finish
from layoutsim.interp.values import (
    TOKEN_VALUE,
    Array,
    DivergenceError,
    Value,
    as_array,
    as_tuple,
    fail,
    value_from,
    zeros,
)
from layoutsim.ir import Computation, Instruction, Module, Opcode, TupleShape, total_bytes
from layoutsim.ir.payloads import (
    CollectivePayload,
    CollectivePermutePayload,
    RngGetAndUpdateStatePayload,
    RngPayload,
    SendRecvPayload,
)
from layoutsim.ir.traverse import post_order

_REGISTERED = (
    kernels_contraction,
    kernels_elementwise,
    kernels_gather,
    kernels_linear,
    kernels_movement,
    kernels_random,
    kernels_reduction,
    kernels_sort,
)

PerDevice = tuple[Value, ...]
"""A value for each active device."""

Handler = Callable[[Instruction, tuple[int, ...], list[PerDevice]], list[Value]]


def evaluate(module: Module, *arguments: object, options: Options = DEFAULT_OPTIONS) -> Value:
    """What a module for one device returns.

    Args:
        arguments: one for each entry parameter: arrays, scalars, nested tuples.

    Raises:
        InputError: the module runs on several devices (use :class:`Interpreter`), or an argument does not fit its parameter.
        UnsupportedError: the module uses something that is not modelled.
        EvaluationError: the module cannot be executed.
    """
    interpreter = Interpreter(module, options)
    if interpreter.devices.count != 1:
        raise InputError(f"module {module.name} runs on {interpreter.devices.count} devices: use Interpreter(module).run")
    return interpreter.run([arguments])[0]


@frozen
class Plan:
    """A computation's instructions in order; behind each, what is not needed any more."""

    order: tuple[Instruction, ...]
    releases: tuple[tuple[Instruction, ...], ...]


@frozen
class _OneDevice:
    """Runs computations for a kernel on its device."""

    machine: Interpreter
    device: int

    def run(self, computation: Computation, arguments: tuple[Value, ...]) -> Value:
        return self.machine.run_computation(computation, (self.device,), [arguments])[0]


class Interpreter:
    """Executes one module.

    Attributes:
        devices: how many replicas and partitions are simulated.
        outfeed: what the module sent out, ``(device, value)`` in order.
    """

    def __init__(self, module: Module, options: Options = DEFAULT_OPTIONS) -> None:
        self.module = module
        self.options = options
        self.devices: Devices = infer_devices(module, options.replicas, options.partitions)
        self.outfeed: list[tuple[int, Value]] = []
        self._plans: dict[Computation, Plan] = {}
        self._constants: dict[Instruction, Value] = {}
        self._groups: dict[Instruction, list[list[int]]] = {}
        self._random = np.random.default_rng(options.seed)
        self._counters: dict[int, int] = defaultdict(int)
        self._infed: dict[int, int] = defaultdict(int)
        self._mail: dict[tuple[int | None, int], deque[Value]] = defaultdict(deque)
        self._handlers = self._handler_table()

    def run(self, arguments: Sequence[Sequence[object]]) -> tuple[Value, ...]:
        """The entry's result on every device.

        Args:
            arguments: for each device one value for each entry parameter; a single list serves all devices.
        """
        devices = tuple(range(self.devices.count))
        return tuple(self.run_computation(self.module.entry, devices, self.prepare(arguments)))

    def prepare(self, arguments: Sequence[Sequence[object]]) -> list[PerDevice]:
        """Arguments as values, one row for each device."""
        if len(arguments) == 1:
            arguments = list(arguments) * self.devices.count
        if len(arguments) != self.devices.count:
            raise InputError(f"expected arguments for {self.devices.count} devices, got {len(arguments)}")
        known: dict[int, Value] = {}
        return [self._arguments(given, self.module.entry, known) for given in arguments]

    def _arguments(self, given: Sequence[object], entry: Computation, known: dict[int, Value]) -> PerDevice:
        parameters = entry.parameters
        if len(given) != len(parameters):
            raise InputError(f"expected {len(parameters)} arguments for {self.module.name}, got {len(given)}")
        for data, parameter in zip(given, parameters, strict=True):
            if id(data) not in known:  # one object on all devices stays one (3)
                known[id(data)] = value_from(data, parameter.shape, f"argument {parameter.parameter_number} ({parameter.name})")
        return tuple(known[id(data)] for data in given)

    # -- computations ------------------------------------------------------------------------------------------------------

    def run_computation(
        self, computation: Computation, devices: tuple[int, ...], arguments: Sequence[tuple[Value, ...]]
    ) -> list[Value]:
        """The root's value on each of ``devices``, given the parameters of each."""
        plan = self.plan(computation)
        values: dict[Instruction, PerDevice] = {}
        for instruction, released in zip(plan.order, plan.releases, strict=True):
            if instruction.opcode is Opcode.PARAMETER:
                number = instruction.parameter_number
                values[instruction] = tuple(given[number] for given in arguments)
            else:
                operands = [values[operand] for operand in instruction.operands]
                values[instruction] = tuple(self.evaluate_instruction(instruction, devices, operands))
            for dead in released:
                del values[dead]
        return list(values[computation.root])

    def plan(self, computation: Computation) -> Plan:
        """The order in which a computation runs (1)."""
        plan = self._plans.get(computation)
        if plan is None:
            schedule = self.module.schedule
            is_scheduled = schedule is not None and computation in schedule
            order = schedule.sequence(computation) if schedule is not None and is_scheduled else post_order(computation)
            plan = self._plans[computation] = Plan(tuple(order), _releases(order, computation.root))
        return plan

    def evaluate_instruction(
        self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]
    ) -> list[Value]:
        """The instruction's value on each of ``devices``; ``operands`` hold a value for each of them."""
        if total_bytes(instruction.shape) > self.options.max_value_bytes:
            raise fail(instruction, f"{instruction.shape} is larger than the limit of {self.options.max_value_bytes} bytes")
        handler = self._handlers.get(instruction.opcode)
        if handler is not None:
            return handler(instruction, devices, operands)
        if all(_is_shared(operand) for operand in operands):
            return [self._kernel(instruction, devices[0], tuple(o[0] for o in operands))] * len(devices)
        return [self._kernel(instruction, device, tuple(o[i] for o in operands)) for i, device in enumerate(devices)]

    def _kernel(self, instruction: Instruction, device: int, operands: tuple[Value, ...]) -> Value:
        call = Call(instruction, operands, _OneDevice(self, device), self.options)
        value = KERNELS[instruction.opcode](call)
        return np.asarray(value) if isinstance(value, np.generic) else value

    # -- opcodes that a kernel cannot do -------------------------------------------------------------------------------------

    def _handler_table(self) -> dict[Opcode, Handler]:
        table: dict[Opcode, Handler] = {
            Opcode.CONSTANT: self._constant,
            Opcode.PARTITION_ID: self._partition_id,
            Opcode.REPLICA_ID: self._replica_id,
            Opcode.CALL: self._call,
            Opcode.FUSION: self._call,
            Opcode.WHILE: self._while,
            Opcode.CONDITIONAL: self._conditional,
            Opcode.ASYNC_START: self._async_start,
            Opcode.CUSTOM_CALL: self._custom_call,
            Opcode.COLLECTIVE_PERMUTE: self._permute,
            Opcode.COLLECTIVE_PERMUTE_START: self._permute,
            Opcode.SEND: self._send,
            Opcode.SEND_DONE: self._token,
            Opcode.RECV: self._recv,
            Opcode.RECV_DONE: self._recv_done,
            Opcode.RNG: self._rng,
            Opcode.RNG_GET_AND_UPDATE_STATE: self._rng_state,
            Opcode.INFEED: self._infeed,
            Opcode.OUTFEED: self._outfeed,
        }
        return table | dict.fromkeys(GROUP_FUNCTIONS, self._collective)

    def _constant(self, instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        return [self.constant_value(instruction)] * len(devices)

    def constant_value(self, instruction: Instruction) -> Value:
        """The value of a constant, the same object each time."""
        if instruction not in self._constants:
            name = instruction.name
            self._constants[instruction] = literal_value(instruction.constant.literal, self.options.elided_constants, name)
        return self._constants[instruction]

    def _partition_id(self, _instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        return [np.array(self.devices.partition_of(device), np.uint32) for device in devices]

    def _replica_id(self, _instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        return [np.array(self.devices.replica_of(device), np.uint32) for device in devices]

    def _custom_call(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        rows = zip(*operands, strict=True) if operands else [()] * len(devices)
        return [run_custom_call(instruction, tuple(row), self.options) for row in rows]

    def _token(self, _instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        return [TOKEN_VALUE] * len(devices)

    # -- control flow ------------------------------------------------------------------------------------------------------

    def _call(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        return self.run_computation(instruction.to_apply, devices, _rows(operands, devices))

    def _async_start(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        """The result is computed here, so that later changes cannot reach it."""
        rows = _rows(operands, devices)
        results = self.run_computation(instruction.to_apply, devices, rows)
        return [async_value(instruction, row, result) for row, result in zip(rows, results, strict=True)]

    def _while(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        states = list(operands[0])
        active = list(range(len(devices)))
        for _ in range(self.options.max_trips):
            running = tuple(devices[i] for i in active)
            conditions = self.run_computation(instruction.condition, running, [(states[i],) for i in active])
            active = [i for i, go_on in zip(active, conditions, strict=True) if bool(as_array(go_on))]
            if not active:
                return states
            running = tuple(devices[i] for i in active)
            new = self.run_computation(instruction.body, running, [(states[i],) for i in active])
            for i, state in zip(active, new, strict=True):
                states[i] = state
        raise fail(instruction, f"still running after {self.options.max_trips} iterations")

    def _conditional(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        branches = instruction.called_computations
        chosen = [branch_number(as_array(selector), len(branches)) for selector in operands[0]]
        results: list[Value] = [TOKEN_VALUE] * len(devices)
        for number, branch in enumerate(branches):
            members = [i for i, choice in enumerate(chosen) if choice == number]
            if not members:
                continue
            arguments = [(operands[number + 1][i],) for i in members]
            found = self.run_computation(branch, tuple(devices[i] for i in members), arguments)
            for i, value in zip(members, found, strict=True):
                results[i] = value
        return results

    # -- collectives -------------------------------------------------------------------------------------------------------

    def _collective(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        place = {device: i for i, device in enumerate(devices)}
        rows = _rows(operands, devices)
        results: dict[int, Value] = {}
        function = GROUP_FUNCTIONS[instruction.opcode]
        for group in self._groups_of(instruction):
            if not self._all_here(instruction, group, place):
                continue
            body = None
            if instruction.called_computations:
                body = Body(instruction.to_apply, _OneDevice(self, group[0]))
            members = [rows[place[device]] for device in group]
            for device, value in zip(group, function(instruction, members, body), strict=True):
                results[place[device]] = started(instruction, rows[place[device]], value)
        return [results[i] if i in results else without_group(instruction, rows[i]) for i in range(len(devices))]

    def _groups_of(self, instruction: Instruction) -> list[list[int]]:
        if instruction not in self._groups:
            ids = instruction.payload_as(CollectivePayload).replica_groups.groups()
            self._groups[instruction] = self.devices.participants(mode_of(instruction), ids)
        return self._groups[instruction]

    def _all_here(self, instruction: Instruction, group: Sequence[int], place: dict[int, int]) -> bool:
        """Whether all members run this instruction now; an error if only some do (2)."""
        here = [device for device in group if device in place]
        if here and len(here) != len(group):
            missing = sorted(set(group) - set(here))
            message = f"divergent collective: devices {here} wait for {missing}, which run other code"
            raise DivergenceError(str(fail(instruction, message)))
        return bool(here)

    def _permute(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        payload = instruction.payload_as(CollectivePermutePayload)
        pairs = self.devices.pairs(mode_of(instruction), payload.source_target_pairs)
        place = {device: i for i, device in enumerate(devices)}
        rows = _rows(operands, devices)
        source_of: dict[int, int] = {}
        for source, target in pairs:
            if self._all_here(instruction, (source, target) if source != target else (source,), place):
                source_of[target] = source
        out: list[Value] = []
        for device, row in zip(devices, rows, strict=True):
            source = source_of.get(device)
            value = permuted(instruction, row, None if source is None else rows[place[source]])
            out.append(started(instruction, row, value))
        return out

    # -- point to point, host, random --------------------------------------------------------------------------------------

    def _send(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        """(data, context, token); the data waits for the receivers."""
        payload = instruction.payload_as(SendRecvPayload)
        if payload.is_host_transfer:
            raise UnsupportedError(f"{instruction.name}: transfers to the host are not modelled")
        targets = dict(self._send_recv_pairs(instruction))
        for device, data in zip(devices, operands[0], strict=True):
            if device in targets:
                self._mail[payload.channel_id, targets[device]].append(data)
        return [(data, np.zeros((), np.uint32), TOKEN_VALUE) for data in operands[0]]

    def _send_recv_pairs(self, instruction: Instruction) -> list[tuple[int, int]]:
        pairs = source_target_pairs(instruction.attributes.frontend_attributes)
        if pairs is None:
            raise UnsupportedError(f"{instruction.name}: needs the frontend attribute _xla_send_recv_source_target_pairs")
        partitions = self.devices.partitions
        if partitions > 1:
            return [(r * partitions + s, r * partitions + t) for r in range(self.devices.replicas) for s, t in pairs]
        return pairs

    def _recv(self, instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        payload = instruction.payload_as(SendRecvPayload)
        if payload.is_host_transfer:
            raise UnsupportedError(f"{instruction.name}: transfers from the host are not modelled")
        return [zeros(instruction.shape)] * len(devices)

    def _recv_done(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        """(data, token); zeros on a device that nobody sends to."""
        source = instruction.operand(0)
        if source.opcode is not Opcode.RECV:
            raise UnsupportedError(f"{instruction.name}: receives that cross a loop iteration are not modelled")
        receivers = {target for _, target in self._send_recv_pairs(source)}
        channel = instruction.payload_as(SendRecvPayload).channel_id
        out: list[Value] = []
        for device, started_value in zip(devices, operands[0], strict=True):
            data = as_tuple(started_value)[0]
            if device in receivers:
                if not self._mail[channel, device]:
                    raise fail(instruction, f"device {device} waits for a send on channel {channel} that has not run")
                data = self._mail[channel, device].popleft()
            out.append((data, TOKEN_VALUE))
        return out

    def _infeed(self, instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        shape = instruction.shape
        assert isinstance(shape, TupleShape), instruction
        out: list[Value] = []
        for device in devices:
            number = self._infed[device]
            if number >= len(self.options.infeed):
                raise fail(instruction, f"infeed number {number} on device {device}, but Options.infeed has no more values")
            self._infed[device] += 1
            out.append((value_from(self.options.infeed[number], shape.elements[0], f"infeed {number}"), TOKEN_VALUE))
        return out

    def _outfeed(self, _instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        self.outfeed += zip(devices, operands[0], strict=True)
        return [TOKEN_VALUE] * len(devices)

    def _rng(self, instruction: Instruction, devices: tuple[int, ...], operands: list[PerDevice]) -> list[Value]:
        """Numbers of this run's generator; they are not XLA's."""
        distribution = instruction.payload_as(RngPayload).distribution
        shape = Call(instruction, (), _OneDevice(self, 0), self.options).shape
        out: list[Value] = []
        for i in range(len(devices)):
            first, second = (as_array(operand[i]) for operand in operands)
            if distribution == "rng_normal":
                drawn = self._random.normal(float(first), float(second), shape.dimensions)
            elif shape.element_type.is_integral:
                drawn = self._random.integers(int(first), max(int(first) + 1, int(second)), shape.dimensions)
            else:
                drawn = float(first) + (float(second) - float(first)) * self._random.random(shape.dimensions)
            out.append(
                finish(np.asarray(drawn) >= 0.5 if shape.element_type.is_pred else np.asarray(drawn), shape.element_type)
            )
        return out

    def _rng_state(self, instruction: Instruction, devices: tuple[int, ...], _operands: list[PerDevice]) -> list[Value]:
        """A 128-bit counter, low word first; the old value is returned."""
        delta = instruction.payload_as(RngGetAndUpdateStatePayload).delta
        out: list[Value] = []
        for device in devices:
            counter = self._counters[device]
            out.append(np.array([counter & (2**64 - 1), counter >> 64], np.uint64))
            self._counters[device] = (counter + delta) & (2**128 - 1)
        return out


def _releases(order: Sequence[Instruction], root: Instruction) -> tuple[tuple[Instruction, ...], ...]:
    """For each instruction the values that nobody reads after it (4)."""
    last: dict[Instruction, int] = {}
    for number, instruction in enumerate(order):
        last[instruction] = number
        for operand in instruction.operands:
            last[operand] = number
    out: list[list[Instruction]] = [[] for _ in order]
    for instruction, number in last.items():
        if instruction is not root:
            out[number].append(instruction)
    return tuple(map(tuple, out))


def _is_shared(values: PerDevice) -> bool:
    return all(value is values[0] for value in values)


def _rows(operands: list[PerDevice], devices: tuple[int, ...]) -> list[tuple[Value, ...]]:
    """The operands of each device."""
    return list(zip(*operands, strict=True)) if operands else [()] * len(devices)


def async_value(start: Instruction, operands: tuple[Value, ...], result: Value) -> Value:
    """The value of an ``async-start``: ((operands), result, contexts...)."""
    shape = start.shape
    assert isinstance(shape, TupleShape), start
    return (operands, result, *map(zeros, shape.elements[2:]))


def branch_number(selector: Array, count: int) -> int:
    """Which branch a conditional takes: true is 0; an index out of range is the last."""
    if selector.dtype == np.bool_:
        return 0 if selector else 1
    return int(selector) if 0 <= selector < count else count - 1


def source_target_pairs(frontend_attributes: str) -> list[tuple[int, int]] | None:
    """The pairs of ``_xla_send_recv_source_target_pairs={{0,1},{1,2}}``, ``None`` where there are none."""
    match = re.search(r'_xla_send_recv_source_target_pairs="?(\{[\d,{}\s]*\})', frontend_attributes)
    if match is None:
        return None
    return [(int(s), int(t)) for s, t in re.findall(r"\{\s*(\d+)\s*,\s*(\d+)\s*\}", match.group(1))]
