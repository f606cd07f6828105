"""The HLO in docstrings of passes and options is what they do, and every variant has some.

An example is a difference: lines without a sign are on both sides, ``-`` is before, ``+`` after. Its head names the pass. For
options of layout assignment and copy insertion, before is what the pass leaves without the option, copies included; for entry
layouts, what layout assignment leaves without them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from attrs import frozen

import layoutsim.experiments.advice.rule_sets as advice
import layoutsim.passes
from layoutsim.experiments.what_if import apply_settings, parse_setting
from layoutsim.ir import Module, Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.ir.shape import with_default_layout
from layoutsim.passes import Pipeline
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.presets import SWITCHES
from layoutsim.passes.registry import parse_pass
from layoutsim.passes.tuple_simplifier import TupleSimplifier
from layoutsim.text import parse_module
from tests.passes.loops.test_loop_passes_against_xla import expression

ROOT = Path(layoutsim.passes.__file__).parents[1]
_EXAMPLE = re.compile(r"``([^`\n]+)``::\n\n((?:    .*\n)+)")
_LAYOUTS = "layout-assignment{backend=gpu}"


@frozen
class Example:
    """A pass with its options, or a setting of ``what-if``, and HLO before and after."""

    place: str
    head: str
    before: str
    after: str


def examples() -> list[Example]:
    found: list[Example] = []
    for path in (*sorted((ROOT / "passes").rglob("*.py")), ROOT / "experiments" / "what_if.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                found += examples_in(str(path.relative_to(ROOT)), ast.get_docstring(node) or "")
    return found


def examples_in(place: str, docstring: str) -> list[Example]:
    blocks = [
        (head, block) for head, block in _EXAMPLE.findall(f"{docstring}\n") if re.search(r"^    [-+] ", block, re.MULTILINE)
    ]
    return [Example(place, head, as_module(side(block, "-")), as_module(side(block, "+"))) for head, block in blocks]


def side(block: str, sign: str) -> list[str]:
    """The lines of one side; what goes on behind a comma at the end of a line belongs to it."""
    lines = [line[6:] for line in block.splitlines() if line[4:5] in ("", " ", sign)]
    whole: list[str] = []
    for line in lines:
        if whole and whole[-1].endswith(","):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    return whole


def as_module(lines: list[str]) -> str:
    head = lines.pop(0) if lines[0].startswith("HloModule") else "HloModule m"
    if not any(line.startswith("ENTRY") for line in lines):
        lines = ["ENTRY e {", *lines, "}"]
    return "\n".join([head, *lines, ""])


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{e.head}" for e in EXAMPLES])
def test_the_example_is_what_happens(example: Example) -> None:
    before, after = parse_module(example.before), parse_module(example.after)
    assert seen(before) != seen(after)
    name, _, options = example.head.partition("{")
    given = before
    if name == "layout-assignment" or (name == "copy-insertion" and options):
        given = without_copies(before)
        assert seen(done(given, _LAYOUTS if name != "copy-insertion" else name)) == seen(before)

    assert seen(done(given, example.head)) == seen(after)


def done(module: Module, head: str) -> Module:
    """A copy of the module behind a pass, or without its copies behind layout assignment once a setting was made."""
    work, what = clone_module(module), head
    if head.startswith("entry-layout:"):
        work, _ = apply_settings(without_copies(work), [parse_setting(head)], Pipeline((parse_pass(_LAYOUTS),), "layouts"))
        what = _LAYOUTS
    parse_pass(what).run(work)
    return work


def without_copies(module: Module) -> Module:
    """The module as it was before layouts were assigned and copies inserted; the caller's layouts stay."""
    module = clone_module(module)
    for computation in module.computations:
        for instruction in list(computation.instructions):
            if instruction.opcode is Opcode.COPY:
                source = instruction.operand(0)
                for user in list(instruction.users):
                    for number, operand in enumerate(user.operands):
                        if operand is instruction:
                            user.replace_operand(number, source)
                if instruction.is_root:
                    computation.root = source
                computation.erase(instruction)
    TupleSimplifier().run(module)
    DeadCodeElimination().run(module)
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode is not Opcode.PARAMETER or not computation.is_entry:
                instruction.shape = with_default_layout(instruction.shape)
    assert module.entry_layout is not None
    module.entry.root.shape = module.entry_layout.result
    return module


def seen(module: Module) -> object:
    """What a reader would compare: the instructions, and what is computed how and in which layouts."""
    opcodes = Counter(i.opcode for computation in module.computations for i in computation.instructions)
    return str(module.entry_layout), opcodes, len(module.computations), expression(clone_module(module))


HEADS = [example.head for example in EXAMPLES]


@pytest.mark.parametrize("option", [*advice.OPTIONS, "priorities"])
def test_every_option_has_an_example(option: str) -> None:
    assert any(f"{option}=" in head for head in HEADS)


@pytest.mark.parametrize("name", sorted({switch.pass_name for switch in SWITCHES.values()} | set(advice.PASSES)))
def test_every_pass_that_can_be_switched_has_an_example(name: str) -> None:
    assert any(head.partition("{")[0] == name for head in HEADS)


@pytest.mark.parametrize("wanted", ["entry-layout:w={", "entry-layout:w=auto"])
def test_entry_layouts_given_and_left_to_the_compiler_have_an_example(wanted: str) -> None:
    assert any(head.startswith(wanted) for head in HEADS)
