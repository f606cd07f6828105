"""Passes over loops leave what XLA's own ones leave (``fixtures/passes/loops``), compared as expressions behind tuples."""

from pathlib import Path

import pytest

from layoutsim.ir import Computation, Instruction, Module, Opcode
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.registry import parse_pass
from layoutsim.passes.tuple_simplifier import TupleSimplifier
from layoutsim.text import parse_module

RECORDED = Path(__file__).parents[3] / "fixtures" / "passes" / "loops"
OURS = {"simplify-while-loops": "while-loop-simplifier"}
"""XLA's name of a pass to ours, where they differ."""

PAIRS = sorted(path.name.removesuffix(".before.hlo") for path in RECORDED.glob("*.before.hlo"))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pass_leaves_what_the_real_one_leaves(pair: str) -> None:
    before, after = (parse_module((RECORDED / f"{pair}.{side}.hlo").read_text()) for side in ("before", "after"))
    xla_name = pair.rsplit(".", 1)[1]
    untouched = expression(parse_module((RECORDED / f"{pair}.before.hlo").read_text()))

    parse_pass(OURS.get(xla_name, xla_name)).run(before)

    assert expression(before) == expression(after)
    if pair.startswith("elementwise."):
        assert expression(before) != untouched  # the comparison can tell


@pytest.mark.parametrize("xla_name", ["while-loop-invariant-code-motion", "while-loop-constant-sinking"])
def test_what_the_real_passes_made_is_left_alone(xla_name: str) -> None:
    last = {pair.split(".")[0]: pair for pair in PAIRS if "_simplified." not in pair and pair.endswith(xla_name)}
    assert last
    for pair in last.values():
        module = parse_module((RECORDED / f"{pair}.after.hlo").read_text())

        assert not parse_pass(xla_name).run(module).changed, pair


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.unchanged.*.hlo")), ids=lambda path: path.name.split(".")[0])
def test_a_pass_leaves_alone_what_the_real_one_leaves_alone(path: Path) -> None:
    xla_name = path.name.split(".")[2]

    assert not parse_pass(xla_name).run(parse_module(path.read_text())).changed


def expression(module: Module) -> object:
    """The entry as a nested value without names: equal for modules that compute the same in the same way."""
    TupleSimplifier().run(module)
    DeadCodeElimination().run(module)
    known: dict[Computation, tuple[object, ...]] = {}

    def of_computation(computation: Computation) -> tuple[object, ...]:
        if computation not in known:
            numbers: dict[object, int] = {}
            of_instruction: dict[Instruction, int] = {}
            for instruction in from_root(computation.root):
                key = (
                    str(instruction.shape),
                    instruction.opcode,
                    tuple(of_instruction[operand] for operand in instruction.operands),
                    "" if instruction.opcode is Opcode.WHILE else str(instruction.payload),
                    tuple(of_computation(callee) for callee in instruction.called_computations),
                )
                of_instruction[instruction] = numbers.setdefault(key, len(numbers))
            known[computation] = tuple(numbers)
        return known[computation]

    return of_computation(module.entry)


def from_root(root: Instruction) -> list[Instruction]:
    """What ``root`` is computed from, operands first."""
    done: dict[Instruction, None] = {}
    stack = [root]
    while stack:
        missing = [operand for operand in stack[-1].operands if operand not in done]
        if missing:
            stack += reversed(missing)
        else:
            done.setdefault(stack.pop())
    return list(done)
