"""Passes over loops: random loops compute the same afterwards, and copies of stacks move into the loop that slices them."""

from pathlib import Path

import pytest

import layoutsim
from layoutsim.passes.registry import parse_pass
from layoutsim.testing.execution import first_difference, inputs_for, run
from layoutsim.text import parse_module
from layoutsim.verify import verify
from tests.passes.loops.loop_modules import loop_text

FIXTURES = Path(__file__).parents[3] / "fixtures" / "xla"

PASSES = [
    "while-loop-invariant-code-motion",
    "while-loop-constant-sinking",
    "while-loop-constant-sinking{broadcasts=true}",
    "while-loop-simplifier",
    "while-loop-simplifier{repeat=true}",
]


@pytest.mark.parametrize("text", PASSES)
def test_random_loops_compute_the_same(text: str) -> None:
    for seed in range(60):
        module = parse_module(loop_text(seed))
        inputs = inputs_for(module, seed)
        expected = run(module, inputs)

        parse_pass(text).run(module)
        verify(module)

        assert first_difference(run(module, inputs), expected, module.entry.root.shape) is None, (text, seed)


@pytest.mark.parametrize("text", PASSES)
def test_a_pass_says_whether_it_changed_the_module(text: str) -> None:
    said: list[bool] = []
    for seed in range(60):
        module = parse_module(loop_text(seed))
        before = module.to_text()
        said.append(parse_pass(text).run(module).changed)

        assert said[-1] == (module.to_text() != before), (text, seed)
    assert any(said)


@pytest.mark.parametrize("choose", ["always", "peak"])
def test_copies_of_stacks_move_behind_the_slices_of_the_loop(choose: str) -> None:
    # 24 layers of bf16[128,32], bf16[256,16] and bf16[128,16]: 24 * 8,192 B twice and 24 * 4,096 B, 491,520 B together.
    module = layoutsim.load(FIXTURES / "lora_minor" / "gpu-0.10.2" / "before_layout.hlo.gz")
    before, after = (layoutsim.simulate(module, f"xla-gpu-0.10.2{rules}") for rules in ("", f"{{copy-sinking={choose}}}"))

    entry = module.entry.name
    assert [copy.size_bytes for copy in before.transposing_copies if copy.computation == entry] == [196_608, 196_608, 98_304]
    assert max(copy.size_bytes for copy in after.transposing_copies) == 8_192
    assert before.memory.peak_bytes - after.memory.peak_bytes == 491_520
