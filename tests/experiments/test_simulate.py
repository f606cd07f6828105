"""The main job on the shipped LoRA step (``fixtures/programs/lora.py``): 24 layers, three frozen stacks, 8 devices."""

from pathlib import Path

import pytest

import layoutsim
from layoutsim.errors import InputError, PassError
from layoutsim.experiments.simulate import profile_of
from layoutsim.passes.presets import resolve_preset
from layoutsim.passes.registry import parse_pipeline
from layoutsim.text import parse_module

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"


def _module(case: str, release: str) -> layoutsim.Module:
    return layoutsim.load(FIXTURES / f"lora_{case}" / f"gpu-{release}" / "before_layout.hlo.gz")


def _entry_copies(case: str, release: str) -> tuple[int, int]:
    result = layoutsim.simulate(_module(case, release), f"xla-gpu-{release}", measure_memory=False)
    copies = [c for c in result.transposing_copies if c.computation == result.module.entry.name]
    return len(copies), sum(c.size_bytes for c in copies)


# As the real compiler of each release has it (after_layout of the same folders).
@pytest.mark.parametrize(
    ("case", "release", "copies"),
    [
        ("axis0", "0.6.1", 5),
        ("axis0", "0.6.2", 0),
        ("axis0", "0.10.2", 0),
        ("axis1", "0.6.1", 2),
        ("axis1", "0.6.2", 3),
        ("axis1", "0.10.2", 0),
        ("axis1flax", "0.6.1", 2),
        ("axis1flax", "0.6.2", 3),
        ("axis1flax", "0.10.2", 3),
        ("minor", "0.6.1", 5),
        ("minor", "0.6.2", 3),
        ("minor", "0.10.2", 3),
        ("mixed", "0.6.1", 5),
        ("mixed", "0.6.2", 1),
        ("mixed", "0.10.2", 1),
    ],
)
def test_transposing_copies_at_entry(case: str, release: str, copies: int) -> None:
    assert _entry_copies(case, release)[0] == copies


def test_the_copies_are_copies_of_the_stacks() -> None:
    # bf16[16,24,256] and bf16[32,24,128]: 16*24*256*2 = 32*24*128*2 = 196,608; bf16[16,24,128]: 16*24*128*2 = 98,304
    result = layoutsim.simulate(_module("axis1flax", "0.10.2"))

    assert [c.size_bytes for c in result.transposing_copies] == [196_608, 196_608, 98_304]


@pytest.mark.parametrize("rules", ["xla-gpu-0.6.1{all-gather=ignore-degenerate}", "xla-gpu-0.6.2"])
def test_either_fix_removes_the_copies_of_the_original_report(rules: str) -> None:
    assert layoutsim.simulate(_module("axis0", "0.6.1"), rules, measure_memory=False).transposing_copies == ()


def test_the_doubling_costs_what_the_copies_weigh() -> None:
    module = _module("axis0", "0.6.1")
    doubled, fixed = (layoutsim.simulate(module, p).memory.temp_bytes for p in ("xla-gpu-0.6.1", "xla-gpu-0.6.2"))
    stacks = [c for c in layoutsim.simulate(module, "xla-gpu-0.6.1").transposing_copies if c.size_bytes > 50_000]

    assert doubled - fixed >= sum(c.size_bytes for c in stacks)


def test_the_module_given_stays_as_it_is() -> None:
    module = _module("axis0", "0.6.1")
    before = module.to_text()
    layoutsim.simulate(module, "xla-gpu-0.6.1")

    assert module.to_text() == before


def test_two_runs_give_equal_results() -> None:
    module = _module("mixed", "0.6.1")

    assert layoutsim.simulate(module).to_json() == layoutsim.simulate(module).to_json()


def test_a_pipeline_can_be_passed_instead_of_a_preset() -> None:
    pipeline = parse_pipeline("layout-assignment{backend=gpu},copy-insertion,schedule")

    assert layoutsim.simulate(_module("axis0", "0.10.2"), pipeline).preset == pipeline.to_text()


def test_a_pipeline_without_layout_assignment_is_refused() -> None:
    with pytest.raises(PassError, match="has no layout-assignment"):
        layoutsim.simulate(_module("axis0", "0.10.2"), "dead-code-elimination,copy-insertion")


@pytest.mark.parametrize(("release", "alignment"), [("0.6.1", 128), ("0.6.2", 256)])
def test_changed_rules_keep_the_alignment_of_their_release(release: str, alignment: int) -> None:
    assert profile_of(resolve_preset(f"xla-gpu-{release}{{all-gather=ignore-degenerate}}")).alignment == alignment


def test_memory_that_was_not_measured_is_an_error() -> None:
    result = layoutsim.simulate(_module("axis0", "0.10.2"), measure_memory=False)

    with pytest.raises(InputError, match="memory was not measured"):
        _ = result.memory


def test_a_comparison_is_found_by_preset() -> None:
    comparison = layoutsim.compare(_module("axis0", "0.6.1"), ["xla-gpu-0.6.1", "xla-gpu-0.6.2"])

    assert comparison["xla-gpu-0.6.2"].transposing_copies == ()
    with pytest.raises(KeyError, match="was not compared"):
        _ = comparison["xla-cpu-0.10.2"]


def test_results_show_themselves_as_html() -> None:
    module = _module("axis0", "0.6.1")
    comparison = layoutsim.compare(module, ["xla-gpu-0.6.1", "xla-gpu-0.6.2"])

    assert "<table>" in comparison._repr_html_()
    assert "transposing copies" in comparison["xla-gpu-0.6.1"]._repr_html_()


def test_a_rule_set_that_copies_the_value_to_another_layout_is_no_remedy() -> None:
    # A gather along the minor dimension needs its copy under every rule set, if not always to the same layout.
    result = layoutsim.simulate(_module("minor", "0.6.1"), "xla-gpu-0.6.1", measure_memory=False)
    largest = result.transposing_copies[0]

    assert result.explain(largest).remedies == ()


def test_a_copy_of_packed_elements_has_their_bytes() -> None:
    # s4[64,32] is asked for in another layout: 64*32*4/8 = 1,024 bytes.
    module = parse_module(
        "HloModule m, entry_computation_layout={(s4[64,32]{1,0})->s4[64,32]{0,1}}\n"
        "ENTRY e {\n  p = s4[64,32]{1,0} parameter(0)\n  ROOT n = s4[64,32]{0,1} negate(p)\n}\n"
    )
    result = layoutsim.simulate(module)

    assert [copy.size_bytes for copy in result.transposing_copies] == [1_024]
    assert result.memory.argument_bytes == 1_024
