"""The HLO before and after in a pass's docstring is what the pass does."""

import re
from importlib import import_module

import pytest

from layoutsim.passes.registry import parse_pass
from layoutsim.text import parse_module
from tests.passes.loops.test_loop_passes_against_xla import expression

ARROW = "=>"

# Module, number of the example in its docstring, the pass, and the parameter that the example leaves out.
EXAMPLES = [
    ("all_gather_degenerate_dims", 0, "all-gather-remove-degenerate-dims", ""),
    ("collective_degenerate_dims", 0, "reduce-scatter-remove-degenerate-dims", ""),
    ("collective_degenerate_dims", 1, "all-to-all-remove-degenerate-dims", ""),
    ("all_gather_major_dimension", 0, "all-gather-major-dimension", "p = s4[3,7,4]{2,1,0} parameter(0)"),
    ("reduce_scatter_major_dimension", 0, "reduce-scatter-major-dimension", "p = s4[3,7,8]{2,1,0} parameter(0)"),
]


@pytest.mark.parametrize(("place", "number", "name", "parameter"), EXAMPLES, ids=[f"{e[2]}" for e in EXAMPLES])
def test_the_example_is_what_the_pass_does(place: str, number: int, name: str, parameter: str) -> None:
    before, after = example(import_module(f"layoutsim.passes.{place}").__doc__ or "", number)
    module, expected = (parse_module(as_module([parameter, *lines])) for lines in (before, after))
    untouched = expression(parse_module(as_module([parameter, *before])))

    parse_pass(name).run(module)

    assert expression(module) == expression(expected)
    assert expression(module) != untouched


def example(docstring: str, number: int) -> tuple[list[str], list[str]]:
    """The left and the right column of an example, cut where the right one begins on the line of the arrow."""
    block = re.findall(r"::\n\n((?:    .*\n?)+)", docstring)[number].splitlines()
    line = next(line for line in block if ARROW in line)
    right = re.search(rf"{ARROW}\s*", line)
    assert right is not None
    column = right.end()
    lefts = [text[:column].replace(ARROW, "").strip() for text in block]
    return joined(lefts), joined([text[column:].strip() for text in block])


def joined(lines: list[str]) -> list[str]:
    """Without empty lines; what goes on after a comma belongs to the line above."""
    whole: list[str] = []
    for line in filter(None, lines):
        if whole and whole[-1].endswith(","):
            whole[-1] += f" {line}"
        else:
            whole.append(line)
    return whole


def as_module(lines: list[str]) -> str:
    lines = [line for line in lines if line]
    if not any(line.startswith("ROOT") for line in lines):
        lines[-1] = f"ROOT {lines[-1]}"
    needs_sum = "\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
    body = "\n  ".join(re.sub(r"(reduce-scatter\([^)]*\))", r"\1, to_apply=add", line) for line in lines)
    return f"HloModule m\n{needs_sum if 'to_apply' in body else ''}\nENTRY e {{\n  {body}\n}}\n"
