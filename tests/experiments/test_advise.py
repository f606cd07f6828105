"""Advice on the shipped LoRA step: the right layouts, as code, ranked, with warnings; and rule sets for compiler engineers."""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import attrs
import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.experiments.advice import Advice, AdviceReport, advise, change
from layoutsim.experiments.advice.jax_arguments import layout_code
from layoutsim.experiments.advice.rule_sets import NOT_TRIED, OPTIONS, PASSES, rule_sets
from layoutsim.experiments.simulate import profile_of
from layoutsim.experiments.what_if import parse_setting, what_if
from layoutsim.ir import Opcode
from layoutsim.ir.layout import layout
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.presets import SWITCHES, resolve_preset

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"


def _module(case: str, kind: str = "gpu-0.10.2") -> layoutsim.Module:
    return layoutsim.load(FIXTURES / f"lora_{case}" / kind / "before_layout.hlo.gz")


@cache
def _report(case: str, release: str) -> AdviceReport:
    return advise(_module(case, f"gpu-{release}"), f"xla-gpu-{release}")


def _best_layouts(case: str, release: str = "0.10.2") -> Advice:
    return next(a for a in _report(case, release).advice if a.title.startswith("pass "))


def _orders(code: str) -> dict[str, tuple[int, ...]]:
    found = re.search(r"^ORDERS = (\{.*?^\})", code, re.MULTILINE | re.DOTALL)
    assert found is not None, code
    return ast.literal_eval(found[1])


@pytest.mark.parametrize("case", ["axis1flax", "minor"])
def test_advice_is_the_layout_that_the_real_compiler_chooses_when_it_may(case: str) -> None:
    best = _best_layouts(case)
    automatic = layoutsim.load(FIXTURES / f"lora_{case}_auto" / "gpu-0.10.2" / "after_layout.hlo.gz")
    stacks = [p for p in automatic.entry.parameters if "frozen" in p.metadata.op_name]

    assert _orders(best.code) == {p.metadata.op_name: p.shape.layout.major_to_minor for p in stacks}  # type: ignore[union-attr]


# Bytes of the three stacks in 24 layers of bf16: attention 16 x 128, up 16 x 256, down 32 x 128.
@pytest.mark.parametrize(("case", "saved"), [("axis1flax", 491_520), ("minor", 491_520), ("mixed", 196_608)])
def test_the_advised_layouts_remove_every_copy_of_a_stack(case: str, saved: int) -> None:
    best = _best_layouts(case)

    assert (best.saved_bytes, best.saved_temp_bytes) == (saved, saved)
    # the smallest stack has 24*16*128*2 = 98,304; minor copies what it has gathered of one layer
    assert best.remaining_copy_bytes < 98_304


def test_the_settings_of_advice_give_what_it_says() -> None:
    best = _best_layouts("minor")
    result = what_if(_module("minor"), [parse_setting(text) for text in best.settings])

    assert result.before.memory.temp_bytes - result.after.memory.temp_bytes == best.saved_temp_bytes
    assert result.after.transposing_bytes == best.remaining_copy_bytes


def test_each_argument_is_also_measured_alone() -> None:
    singles = [a for a in _report("minor", "0.10.2").advice if a.title.startswith("pass ") and len(_orders(a.code)) == 1]

    # attention 24*128*16*2, down and up 24*256*16*2
    assert sorted(a.saved_bytes for a in singles) == [98_304, 196_608, 196_608]


def test_in_large_modules_arguments_are_measured_together_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "_LARGE_MODULE", 10)
    layouts = [a for a in advise(_module("minor")).advice if a.title.startswith("pass ")]

    assert [len(_orders(a.code)) for a in layouts] == [3]


def test_advice_is_ranked_by_all_memory() -> None:
    saved = [a.saved_bytes for a in _report("axis0", "0.6.1").advice]

    assert saved == sorted(saved, reverse=True)


def test_nothing_to_advise_is_said() -> None:
    report = _report("axis0", "0.10.2")

    assert report.advice == ()
    assert report.to_text().endswith("nothing tried helps")


def test_what_is_right_for_one_release_is_warned_of_for_another() -> None:
    best = _best_layouts("axis0", "0.6.1")

    # the three stacks
    assert "under xla-gpu-0.10.2 it adds 491,520 B (480.00 KiB) of transposing copies" in best.warnings


def test_the_code_names_the_classes_of_its_release() -> None:
    old = _best_layouts("axis0", "0.6.1").code

    assert old.startswith("from jax.experimental.layout import DeviceLocalLayout as Layout, Layout as Format\n")
    assert _best_layouts("minor").code.startswith("from jax.experimental.layout import Format, Layout\n")


def test_the_code_lays_out_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    """Run as it is printed, with stand-ins for jax: the real thing is recorded in fixtures/recompiled."""
    for name, text in {
        "jax/__init__.py": "",
        "jax/experimental/__init__.py": "",
        "jax/experimental/layout.py": "def Layout(major_to_minor): return major_to_minor\ndef Format(*parts): return parts\n",
        "jax/tree_util.py": "def keystr(path): return path\n"
        "def tree_map_with_path(f, tree): return {k: f(f'[{k!r}]', v) for k, v in tree.items()}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    code = "frozen_shardings = {'attention': 'A', 'up': 'U', 'down': 'D'}\n" + _best_layouts("mixed").code
    script = f"{code}\nprint(frozen_shardings)\n"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert ran.stdout == "{'attention': 'A', 'up': 'U', 'down': ((2, 0, 1), 'D')}\n"


DONATED = """
HloModule jit_step, input_output_alias={ {}: (0, {}, may-alias) }, entry_computation_layout={(f32[64,32]{1,0})->f32[64,32]{1,0}}

ENTRY main {
  w = f32[64,32] parameter(0), metadata={op_name="w"}
  s = f32[64,32]{0,1} custom-call(w), custom_call_target="sort", operand_layout_constraints={f32[64,32]{0,1}}
  ROOT r = f32[64,32] negate(s)
}
"""


def test_a_donated_argument_is_laid_out_together_with_its_result() -> None:
    (best,) = [a for a in advise(layoutsim.parse(DONATED)).advice if a.title.startswith("pass ")]

    assert best.title == "pass w as {0,1}; return result as {0,1}"
    assert best.settings == ("entry-layout:0={0,1}", "result-layout:all={0,1}")
    assert best.remaining_copy_bytes == 0
    assert "results[0] = Format(Layout(major_to_minor=(1, 0)), results[0])  # f32[64,32]" in best.code


RETURNED = """
HloModule jit_step, entry_computation_layout={(f32[64,32]{1,0})->(f32[64,32]{1,0}, f32[32,64]{1,0})}

ENTRY main {
  x = f32[64,32] parameter(0), metadata={op_name="x"}
  y = f32[64,32] negate(x)
  t = f32[32,64] transpose(y), dimensions={1,0}
  ROOT r = (f32[64,32], f32[32,64]) tuple(y, t)
}
"""


def test_a_result_is_taken_in_the_layout_that_it_is_computed_in() -> None:
    (best,) = [a for a in advise(layoutsim.parse(RETURNED)).advice if a.title.startswith("return ")]

    assert (best.title, best.settings) == ("return result {1} as {0,1}", ("result-layout:1={0,1}",))
    assert best.remaining_copy_bytes == 0
    assert best.code.splitlines()[-2] == "results[1] = Format(Layout(major_to_minor=(1, 0)), results[1])  # f32[32,64]"


def test_arguments_whose_names_are_no_paths_are_given_flat() -> None:
    module = layoutsim.parse(DONATED.replace(', metadata={op_name="w"}', ""))

    assert layout_code(module, {0: layout((0, 1))}, {}, "xla-gpu-0.10.2").splitlines()[-1] == (
        "in_shardings[0] = Format(Layout(major_to_minor=(1, 0)), in_shardings[0])  # w, f32[64,32]"
    )


ALIKE = """
HloModule jit_step, entry_computation_layout={(f32[64,32]{1,0}, f32[8,8]{1,0}, f32[64,32]{1,0})->f32[64,32]{1,0}}

ENTRY main {
  a = f32[64,32] parameter(0)
  b = f32[8,8] parameter(1)
  c = f32[64,32] parameter(2)
  ROOT r = f32[64,32] add(a, c)
}
"""


def test_items_of_the_same_shape_and_layout_are_given_in_a_loop() -> None:
    module = layoutsim.parse(ALIKE)
    code = layout_code(module, {0: layout((0, 1)), 2: layout((0, 1)), 1: layout((1, 0))}, {}, "xla-gpu-0.10.2")
    in_shardings = ["a", "b", "c"]
    body = code.partition("\n")[2]
    names = "Format = lambda *parts: parts\nLayout = lambda major_to_minor: major_to_minor\n"
    exec(names + body, {"in_shardings": in_shardings})

    assert body.count("Format(") == 2
    assert in_shardings == [((1, 0), "a"), ((0, 1), "b"), ((1, 0), "c")]


def test_code_that_was_shown_is_not_shown_again() -> None:
    text = _report("axis1flax", "0.10.2").to_text()

    assert text.count("    def laid_out(argument, shardings):") == 1
    assert text.count("    # and the rest of the code above, unchanged") == 3


TWO_RESULTS = """
HloModule jit_step, entry_computation_layout={(f32[64,64]{1,0}, f32[512,512]{1,0})->(f32[64,64]{1,0}, f32[512,512]{1,0})}

ENTRY main {
  small = f32[64,64] parameter(0), metadata={op_name="small"}
  large = f32[512,512] parameter(1), metadata={op_name="large"}
  less = f32[64,64] negate(small)
  root = f32[512,512] sqrt(large)
  more = f32[512,512] exponential(root)
  ROOT r = (f32[64,64], f32[512,512]) tuple(less, more)
}
"""


def test_a_donation_that_saves_less_than_a_hundredth_is_no_advice() -> None:
    """4*64*64 = 16,384 of about 2 * 4*512*512 + 4*512*512 bytes; the other saves 4*512*512 = 1,048,576."""
    titles = [a.title for a in advise(layoutsim.parse(TWO_RESULTS)).advice]

    assert any(title.startswith("donate large") for title in titles)
    assert not any(title.startswith("donate small") for title in titles)


TWO_SORTS = """
HloModule jit_step, entry_computation_layout={(f32[64,32]{1,0}, f32[64,32]{1,0})->f32[]}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  v = f32[64,32] parameter(0), metadata={op_name="v"}
  w = f32[64,32] parameter(1), metadata={op_name="w"}
  s = f32[64,32]{0,1} custom-call(v), custom_call_target="sort", operand_layout_constraints={f32[64,32]{0,1}}
  t = f32[64,32]{0,1} custom-call(w), custom_call_target="sort", operand_layout_constraints={f32[64,32]{0,1}}
  z = f32[] constant(0)
  x = f32[] reduce(s, z), dimensions={0,1}, to_apply=sum
  y = f32[] reduce(t, z), dimensions={0,1}, to_apply=sum
  ROOT r = f32[] add(x, y)
}
"""


def test_arguments_whose_layouts_save_no_memory_alone_are_advised_together_only() -> None:
    layouts = [a for a in advise(layoutsim.parse(TWO_SORTS)).advice if a.title.startswith("pass ")]

    assert [a.title for a in layouts] == ["pass v as {0,1}, w as {0,1}"]


# -- rule sets -----------------------------------------------------------------------------------------------------------


def test_every_option_is_tried_or_not_on_purpose() -> None:
    options = {f.name.replace("_", "-") for kind in (LayoutAssignment, CopyInsertion) for f in attrs.fields(kind)}

    assert options == OPTIONS.keys() | NOT_TRIED
    assert not OPTIONS.keys() & NOT_TRIED


def test_every_pass_that_presets_can_be_switched_to_is_tried() -> None:
    assert PASSES.keys() == {switch.pass_name for switch in SWITCHES.values()}


@pytest.mark.parametrize("preset", ["xla-gpu-0.6.1", "xla-gpu-0.10.2{all-gather=ignore-degenerate}", "xla-cpu-0.10.2"])
def test_the_text_of_a_rule_set_is_the_rule_set(preset: str) -> None:
    sets = rule_sets(_module("axis0"), preset)

    assert all(resolve_preset(r.text).passes == r.pipeline.passes for r in sets)
    assert resolve_preset(preset).passes not in {r.pipeline.passes for r in sets}
    assert len({(r.pipeline.passes, profile_of(r.pipeline)) for r in sets}) == len(sets)


def test_passes_are_tried_on_modules_with_what_they_are_about() -> None:
    step, small = (rule_sets(m, "xla-gpu-0.10.2") for m in (_module("axis0"), layoutsim.parse(RETURNED)))
    about = {Opcode.WHILE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER}
    put_in = {name for name, option in PASSES.items() if not about.isdisjoint(option.about)} - {
        "all-gather-remove-degenerate-dims"
    }

    assert {r.decisive.name for r in step if r.decisive is not None} == put_in
    assert "without all-gather-remove-degenerate-dims" in {r.title for r in step}
    assert all(r.decisive is None for r in small)


def test_sinking_the_copies_of_the_stacks_into_the_loops_saves_them() -> None:
    sunk = "xla-gpu-0.10.2{copy-sinking=always}"
    (best,) = [a for a in _report("axis1flax", "0.10.2").advice if sunk in (a.preset, *a.as_good)]

    # the three stacks
    assert best.saved_temp_bytes == 491_520


def test_rule_sets_that_help_are_named_with_the_place_in_xla() -> None:
    advice = _report("axis0", "0.6.1").advice
    by_title = {a.title: a for a in advice if a.audience == "xla"}

    best = by_title["layout-assignment with all-gather=ignore-degenerate"]
    assert best.remaining_copy_bytes == 0
    assert "GpuLayoutAssignment" in best.code


def test_rule_sets_that_do_the_same_are_one_piece_of_advice() -> None:
    advice = [a for a in _report("axis0", "0.6.1").advice if a.audience == "xla"]
    effects = [(a.saved_bytes, a.saved_temp_bytes, a.saved_peak_bytes, a.remaining_copy_bytes) for a in advice]

    assert len(set(effects)) == len(effects)
    # what 0.6.2 did about it, and the releases that have it
    fixed = {"xla-gpu-0.6.1{all-gather-remove-degenerate-dims=on}", "xla-gpu-0.6.2", "xla-gpu-0.10.2"}
    assert any(fixed <= set(a.as_good) and a.preset == "xla-gpu-0.6.1{all-gather=ignore-degenerate}" for a in advice)


def test_the_command_prints_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FIXTURES / "lora_mixed" / "gpu-0.10.2" / "before_layout.hlo.gz")
    assert main(["advise", path]) == 0
    assert "Format(Layout(major_to_minor=" in capsys.readouterr().out
    assert main(["advise", path, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["advice"][0]
    assert (first["audience"], first["saved_bytes"], first["settings"]) == ("jax", 196_608, ["entry-layout:3={1,0,2}"])
