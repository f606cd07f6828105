"""The HLO in docstrings of passes and options is what they do, and every variant has some.

An example is a difference: lines without a sign are on both sides, ``-`` is before, ``+`` after; ``HloModule`` and ``ENTRY``
may be left out. Its head names the pass. Compared are signature, opcodes, and what is computed how and in which layouts, not
names. For options of layout assignment and copy insertion, before is what the pass leaves without the option, copies included;
for entry layouts, what layout assignment leaves without them.
"""

from __future__ import annotations

import ast
import re
import typing
from collections import Counter
from enum import Enum
from pathlib import Path

import pytest
from attrs import fields, frozen

import layoutsim.passes
from layoutsim.experiments.what_if import apply_settings, parse_setting
from layoutsim.ir import Module, Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.ir.shape import with_default_layout
from layoutsim.passes import Pipeline
from layoutsim.passes.dead_code import DeadCodeElimination
from layoutsim.passes.registry import parse_pass, pass_class, pass_names
from layoutsim.passes.tuple_simplifier import TupleSimplifier
from layoutsim.text import parse_module
from tests.passes.loops.test_loop_passes_against_xla import expression

ROOT = Path(layoutsim.passes.__file__).parents[1]
_EXAMPLE = re.compile(r"((?:``[^`\n]+``(?: and )?)+)::\n\n((?:    .*\n)+)")
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
    return [
        Example(place, head, as_module(side(block, "-")), as_module(side(block, "+")))
        for heads, block in blocks
        for head in re.findall(r"``([^`]+)``", heads)
    ]


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


# -- every variant has one -----------------------------------------------------------------------------------------------------

RELEASES = "a rule of a release or device, which presets choose"
EXCLUDED = {
    "layout-assignment": {
        "backend": "every example names it",
        "target": RELEASES,
        "convolution-fusion": RELEASES,
        "pack-along-contraction": RELEASES,
        "constrain-ragged-dot": RELEASES,
        "constrain-bitcast-convert": RELEASES,
        "transparent-copies": RELEASES,
        "outputs-follow-aliases": RELEASES,
    },
    "copy-insertion": {
        "rules": RELEASES,
        "region-analysis": "off in every preset; XLA's own tests of it are in test_copy_insertion",
    },
    "copy-sinking": {"rules": RELEASES},
    "schedule": dict.fromkeys(("algorithm", "rules", "weighing", "gpu", "overlap-all-gathers"), "an order, not other HLO"),
    "post-scheduling-copies": dict.fromkeys(("rules", "region-analysis", "collective-memory"), RELEASES),
}
"""Options without an example, and why."""

BARE = {"layout-assignment", "schedule", "post-scheduling-copies", "loop-schedule-linearizer"}
"""Passes that are always run with options, or that change an order or memory only."""


def options_of(head: str) -> dict[str, str]:
    """The options of a pass as its head gives them."""
    words = head.partition("{")[2].removesuffix("}").split()
    return dict(word.split("=", 1) for word in words)


def wanted_values(name: str) -> list[tuple[str, str]]:
    """Options of a pass with the values that need an example; ``""`` where any will do."""
    found: list[tuple[str, str]] = []
    hints = typing.get_type_hints(pass_class(name))
    for field in fields(pass_class(name)):
        option, kind = field.name.replace("_", "-"), hints[field.name]
        if option in EXCLUDED.get(name, {}):
            continue
        if isinstance(kind, type) and issubclass(kind, Enum):
            found += [(option, value.value) for value in kind if value is not field.default]
        else:
            found.append((option, ""))
    return found


@pytest.mark.parametrize("name", pass_names())
def test_every_pass_and_every_value_of_its_options_has_an_example(name: str) -> None:
    heads = [example.head for example in EXAMPLES if example.head.partition("{")[0] == name]
    given = [pair for head in heads for pair in options_of(head).items()]
    missing = [w for w in wanted_values(name) if not any(w[0] == key and w[1] in ("", value) for key, value in given)]

    assert missing == []
    assert name in BARE or heads


@pytest.mark.parametrize("wanted", ["entry-layout:w={", "entry-layout:w=auto"])
def test_entry_layouts_given_and_left_to_the_compiler_have_an_example(wanted: str) -> None:
    assert any(example.head.startswith(wanted) for example in EXAMPLES)
