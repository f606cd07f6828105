"""Run random modules on the real CPU compiler and in the interpreter, compare the numbers, and reduce what differs.

    python -m layoutsim.testing.numbers --count 1000 [--first SEED] [--devices 1] [--kind operations] [--out DIR]

Each seed makes one module (:func:`~layoutsim.testing.modules.random_module`, or one of single operations over all types and
attributes, :func:`~layoutsim.testing.operations.random_operations`) and its inputs. The real compiler
(:mod:`layoutsim.oracle`) compiles it with all passes and runs it on that many devices of its own. It is asked twice:

1. For every value of the entry. Each instruction is evaluated by the interpreter *on the operands that the compiler
   computed*, and must give what the compiler has there, within the tolerance of the element type
   (:mod:`layoutsim.interp.compare`). So rounding does not add up, and a difference names its instruction. Sums may be rounded
   once, or after every step (``Options.strict_sequential``), as the compiler does with narrow types.
2. For the module's own results, from the inputs to the end, with everything fused that XLA fuses. What (1) holds for, but
   differs here, did so by rounding that later operations made larger: :attr:`Verdict.ROUNDING` counts it apart.

It needs jax in this environment, or ``LAYOUTSIM_ORACLE_PYTHON``. What cannot be compared is left out before: custom calls and
opcodes that XLA's CPU backend has no code for, ``rng`` (numbers of a generator of its own), infeeds and outfeeds (nobody
feeds), tokens as parameters, collectives that not all devices reach, or of packed elements. A run goes on where it stopped by
``--first``; each module that differs is printed at once, and a reduced one goes to ``DIR`` as ``KIND-DEVICES-SEED.hlo``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np
from attrs import define, evolve, field, frozen

from layoutsim.errors import LayoutsimError
from layoutsim.interp import DEFAULT_OPTIONS, Interpreter, Value, compare_values
from layoutsim.interp.values import TOKEN_VALUE, Array, DivergenceError, arrays_of, value_from
from layoutsim.ir import (
    ArrayShape,
    ComputationLayout,
    Instruction,
    Module,
    Opcode,
    Shape,
    TupleShape,
    array_leaves,
    leaves,
    tuple_shape,
    with_default_layout,
)
from layoutsim.ir.clone import clone_module
from layoutsim.ir.opcode import COLLECTIVES, ELEMENTWISE
from layoutsim.ir.payloads import TupleIndexPayload
from layoutsim.oracle import WHOLE_PIPELINE, Execution, Oracle
from layoutsim.testing.execution import Inputs, first_difference, inputs_for, run
from layoutsim.testing.modules import in_post_order, random_module, step_names
from layoutsim.testing.operations import operation_inputs, random_operations
from layoutsim.testing.reduce import reduce_module
from layoutsim.testing.scope import Limits

LEFT_OUT = frozenset({"free_call", "constrained_call", "aliased_call", "ragged_dot"})
"""Steps that make what the real CPU compiler has no code for."""

_NOT_COMPARED = frozenset({Opcode.RNG, Opcode.INFEED, Opcode.OUTFEED})

SECONDS_A_MODULE = 60.0


class Verdict(StrEnum):
    """What a comparison came to."""

    AGREES = "agree"
    ROUNDING = "agree instruction by instruction, and differ in the end"
    NOT_COMPARED = "not compared"
    COMPILER_REFUSES = "refused by the compiler"
    COMPILER_DIES = "the compiler dies or does not end"
    ONLY_WE_REFUSE = "refused by us only"
    WE_CRASH = "we crash"
    DIFFERS = "differ"


_FAILURES = (Verdict.DIFFERS, Verdict.ONLY_WE_REFUSE, Verdict.WE_CRASH)


@frozen
class Comparison:
    """One module's outcome, with the difference or refusal in words, and the instruction it is about."""

    verdict: Verdict
    details: str = ""
    opcode: Opcode | None = None

    @property
    def is_failure(self) -> bool:
        return self.verdict in _FAILURES


@frozen
class Kind:
    """What is compared: a module and its inputs from a seed."""

    module: Callable[[int], Module]
    inputs: Callable[[Module, int], Inputs]


def programs(devices: int) -> Kind:
    """Random programs of what the real CPU compiler can run."""
    only = step_names(executable=True) - LEFT_OUT
    limits = Limits(devices=devices, backend="cpu", executable=True, only=only)
    return Kind(lambda seed: random_module(seed, limits), inputs_for)


OPERATIONS = Kind(random_operations, lambda module, seed: Inputs((operation_inputs(module, seed),), DEFAULT_OPTIONS))
"""Single operations over all types and attributes."""


def compare_numbers(module: Module, oracle: Oracle, seed: int = 0, kind: Kind | None = None) -> Comparison:
    """The interpreter against the real compiler, on inputs of this seed."""
    if reason := _why_not_compared(module):
        return Comparison(Verdict.NOT_COMPARED, reason)
    oracle.start()  # a compiler that is not there is no finding
    plain = _with_plain_interface(module)
    try:
        inputs = _with_equal_flags((kind or programs(oracle.devices)).inputs(plain, seed))
        return _compare(plain, inputs, oracle)
    except DivergenceError:
        return Comparison(Verdict.NOT_COMPARED, "a collective that not all devices reach")
    except LayoutsimError as error:
        return Comparison(Verdict.ONLY_WE_REFUSE, f"{type(error).__name__}: {error}")
    except Exception as error:  # a slip of ours is a finding like others, and the run goes on
        return Comparison(Verdict.WE_CRASH, f"{type(error).__name__}: {error}")


def _with_equal_flags(inputs: Inputs) -> Inputs:
    """Scalar integers and flags are those of the first device on all: selectors of branches with collectives in them."""

    def equal(value: Value, first: Value) -> Value:
        is_flag = isinstance(value, np.ndarray) and not value.shape and value.dtype.kind in "biu"
        return first if is_flag else value

    rows = [tuple(map(equal, row, inputs.arguments[0])) for row in inputs.arguments]
    return evolve(inputs, arguments=tuple(rows))


def _why_not_compared(module: Module) -> str:
    opcodes = {i.opcode for c in module.computations for i in c.instructions} & _NOT_COMPARED
    if opcodes:
        return ", ".join(sorted(opcodes))
    if any(i.opcode in COLLECTIVES and _is_narrow(i.shape) for c in module.computations for i in c.instructions):
        return "a collective of elements below a byte, of which XLA's CPU backend moves whole bytes"
    shapes = [shape for parameter in module.entry.parameters for _, shape in leaves(parameter.shape)]
    return "" if all(isinstance(shape, ArrayShape) for shape in shapes) else "parameters that are no arrays"


def _is_narrow(shape: Shape) -> bool:
    return any(leaf.element_type.bits < 8 and not leaf.element_type.is_pred for _, leaf in array_leaves(shape))


def _with_plain_interface(module: Module) -> Module:
    """A copy with default entry layouts and no aliases: they change where values lie, and not what they are."""
    copy = clone_module(module)
    copy.input_output_aliases, copy.buffer_donors = (), ()
    _set_default_entry_layout(copy)
    return copy


def _set_default_entry_layout(module: Module) -> None:
    parameters = tuple(with_default_layout(p.shape) for p in module.entry.parameters)
    module.entry_layout = ComputationLayout(parameters, with_default_layout(module.entry.root.shape))


def _compare(module: Module, inputs: Inputs, oracle: Oracle) -> Comparison:
    every_value, exposed = _with_every_value(module)
    answer = _execute(every_value, inputs, oracle)
    if answer.results is None:
        return _refusal(answer)
    if (found := _first_wrong_instruction(every_value, exposed, inputs, answer.results)) is not None:
        return found
    answer = _execute(module, inputs, oracle)
    if answer.results is None:
        return _refusal(answer)
    shape = module.entry.root.shape
    expected = tuple(_value(shape, iter(row)) for row in answer.results)
    difference = first_difference(run(module, inputs), expected, shape)
    if difference is None:
        return Comparison(Verdict.AGREES)
    return Comparison(Verdict.ROUNDING, f"device {difference[0]}: {difference[1]}")


def _execute(module: Module, inputs: Inputs, oracle: Oracle) -> Execution:
    shapes = [p.shape for p in module.entry.parameters]
    types = [str(leaf.element_type) for shape in shapes for _, leaf in array_leaves(shape)]
    return oracle.execute(module, [list(arrays_of(row)) for row in inputs.arguments], types)


def _refusal(answer: Execution) -> Comparison:
    verdict = Verdict.COMPILER_DIES if answer.aborted else Verdict.COMPILER_REFUSES
    return Comparison(verdict, answer.note.strip()[:300])


def _value(shape: Shape, arrays: Iterator[Array]) -> Value:
    """The value of ``shape`` with these leaves."""
    if isinstance(shape, TupleShape):
        return tuple(_value(element, arrays) for element in shape.elements)
    return value_from(next(arrays), shape) if isinstance(shape, ArrayShape) else TOKEN_VALUE


# -- instruction by instruction (1) ------------------------------------------------------------------------------------------


def _with_every_value(module: Module) -> tuple[Module, list[Instruction]]:
    """A copy whose result is every value of the entry but parameters, and the instructions in the result's order."""
    copy = clone_module(module)
    entry = copy.entry
    exposed = [i for i in entry.instructions if i.opcode is not Opcode.PARAMETER]
    parts = [part for instruction in exposed for part in _parts(instruction)]
    entry.root = entry.add(Opcode.TUPLE, tuple_shape(tuple(part.shape for part in parts)), parts)
    _set_default_entry_layout(copy)
    return copy, exposed


def _parts(instruction: Instruction) -> Iterator[Instruction]:
    """Instructions for the array leaves of a value, made where needed."""
    shape, computation = instruction.shape, instruction.parent
    assert computation is not None
    if isinstance(shape, TupleShape):
        for i, element in enumerate(shape.elements):
            part = computation.add(Opcode.GET_TUPLE_ELEMENT, element, [instruction], payload=TupleIndexPayload(i))
            yield from _parts(part)
    elif isinstance(shape, ArrayShape):
        yield instruction


def _first_wrong_instruction(
    module: Module, exposed: Sequence[Instruction], inputs: Inputs, results: Sequence[Sequence[Array]]
) -> Comparison | None:
    """The first instruction whose value on the compiler's operands is not the compiler's, however its sums are rounded."""
    ways = [Interpreter(module, evolve(inputs.options, strict_sequential=strict)) for strict in (False, True)]
    devices = tuple(range(ways[0].devices.count))
    rows = [iter(row) for row in results]
    theirs: dict[Instruction, tuple[Value, ...]] = {
        p: tuple(row[p.parameter_number] for row in ways[0].prepare(inputs.arguments)) for p in module.entry.parameters
    }
    theirs |= {instruction: tuple(_value(instruction.shape, row) for row in rows) for instruction in exposed}
    for instruction in exposed:
        operands = [theirs[operand] for operand in instruction.operands]
        found = _difference(ways[0], instruction, devices, operands, theirs[instruction])
        if found and _difference(ways[1], instruction, devices, operands, theirs[instruction]):
            return Comparison(Verdict.DIFFERS, found, instruction.opcode)
    return None


def _difference(
    interpreter: Interpreter,
    instruction: Instruction,
    devices: tuple[int, ...],
    operands: list[tuple[Value, ...]],
    theirs: tuple[Value, ...],
) -> str:
    """Where our value of an instruction is out of tolerance, or an empty string."""
    with np.errstate(all="ignore"):
        ours = interpreter.evaluate_instruction(instruction, devices, operands)
    for device, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if found := compare_values(a, b, instruction.shape, each=instruction.opcode in ELEMENTWISE):
            return f"device {device}, {instruction.name}: {found[0]}"
    return ""


# -- runs --------------------------------------------------------------------------------------------------------------------


@define
class Run:
    """Counts of a run.

    Attributes:
        reasons: how often what was not compared or refused, by the first line of the reason.
        opcodes: how often each opcode was in a module that agreed.
    """

    verdicts: Counter[Verdict] = field(factory=Counter[Verdict])
    reasons: Counter[str] = field(factory=Counter[str])
    opcodes: Counter[Opcode] = field(factory=Counter[Opcode])
    failures: dict[int, Comparison] = field(factory=dict[int, Comparison])
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(self.verdicts.items()))
        lines = [f"{self.verdicts.total()} modules in {self.seconds:.0f} s: {counts}"]
        lines += [f"  {count:5} {reason}" for reason, count in self.reasons.most_common(20)]
        covered = ", ".join(f"{opcode} {count}" for opcode, count in self.opcodes.most_common())
        return "\n".join([*lines, f"opcodes in modules that agree: {covered}"])


def run_numbers(
    seeds: Iterable[int],
    oracle: Oracle,
    *,
    kind: Kind | None = None,
    report: Callable[[int, Comparison], None] = lambda seed, comparison: None,
) -> Run:
    """Compare the modules of these seeds; ``report`` hears of each failure when it is found."""
    kind = kind or programs(oracle.devices)
    outcome, start = Run(), time.monotonic()
    for seed in seeds:
        module = kind.module(seed)
        comparison = compare_numbers(module, oracle, seed, kind)
        outcome.verdicts[comparison.verdict] += 1
        if comparison.verdict in (Verdict.AGREES, Verdict.ROUNDING):
            outcome.opcodes.update({i.opcode for c in module.computations for i in c.instructions})
        if comparison.is_failure:
            outcome.failures[seed] = comparison
            report(seed, comparison)
        elif comparison.verdict is not Verdict.AGREES:
            outcome.reasons[_reason(comparison)] += 1
    outcome.seconds = time.monotonic() - start
    return outcome


def _reason(comparison: Comparison) -> str:
    """What is counted together: the verdict and the first line of its details."""
    return f"{comparison.verdict}: {comparison.details.partition(chr(10))[0][:120]}"


def reduce_failure(oracle: Oracle, found: Comparison, seed: int, kind: Kind, *, max_tries: int = 400) -> Module:
    """The smallest module found that fails with the same verdict at an instruction of the same opcode."""

    def fails(candidate: Module) -> bool:
        again = compare_numbers(in_post_order(candidate), oracle, seed, kind)
        return (again.verdict, again.opcode) == (found.verdict, found.opcode)

    return reduce_module(kind.module(seed), fails, max_tries=max_tries)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit code, 1 where something differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="modules to compare")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--devices", type=int, default=1, help="devices that collectives run on (default: 1)")
    parser.add_argument("--kind", choices=("programs", "operations"), default="programs", help="(default: programs)")
    parser.add_argument("--out", type=Path, help="folder for reduced modules that differ")
    parser.add_argument("--reduce", type=int, default=10, help="reduce at most so many")
    options = parser.parse_args(arguments)
    kind = OPERATIONS if options.kind == "operations" else programs(options.devices)
    seeds = range(options.first, options.first + options.count)
    with Oracle("cpu", WHOLE_PIPELINE, options.devices, timeout=SECONDS_A_MODULE) as oracle:
        outcome = run_numbers(seeds, oracle, kind=kind, report=_print_failure)
        print(f"{oracle.release} on {options.devices} devices: seeds {seeds.start}..{seeds.stop - 1}, {outcome}")
        for seed, found in list(outcome.failures.items())[: options.reduce if options.out else 0]:
            reduced = reduce_failure(oracle, found, seed, kind)
            options.out.mkdir(parents=True, exist_ok=True)
            again = compare_numbers(reduced, oracle, seed, kind)
            (options.out / f"{options.kind}-{options.devices}-{seed}.hlo").write_text(reduced.to_text())
            (options.out / f"{options.kind}-{options.devices}-{seed}.txt").write_text(f"{again.verdict}: {again.details}\n")
    return 1 if outcome.failures else 0


def _print_failure(seed: int, comparison: Comparison) -> None:
    print(f"seed {seed} {comparison.verdict}: {comparison.details[:500]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
