"""What-if: settings, their texts and what they do."""

from pathlib import Path

import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.errors import InputError, PassError
from layoutsim.experiments.what_if import Donate, Undonate, apply_settings, find_parameter, parse_setting, what_if
from layoutsim.passes.presets import resolve_preset

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"


def _path(case: str, kind: str = "gpu-0.10.2") -> Path:
    return FIXTURES / f"lora_{case}" / kind / "before_layout.hlo.gz"


@pytest.mark.parametrize(
    "text",
    [
        "entry-layout:2={2,0,1}",
        "entry-layout:w=auto",
        "rule:all-gather=positional",
        "pass:schedule=off",
        "result-layout:1.0={1,0}",
        "result-layout:all=auto",
    ],
)
def test_settings_print_as_they_are_written(text: str) -> None:
    assert parse_setting(text).to_text() == text


@pytest.mark.parametrize(
    "text", ["entry-layout", "entry-layout:w", "entry-layout:w=(1,0)", "pass:x=on", "colour:w=red", "rule:=x"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected"):
        parse_setting(text)


def test_the_right_entry_layout_removes_the_copy_and_its_bytes() -> None:
    module = layoutsim.load(_path("axis1flax"))
    number = next(p.parameter_number for p in module.entry.parameters if str(p.shape).startswith("bf16[16,24,256]"))
    result = what_if(module, [parse_setting(f"entry-layout:{number}={{2,0,1}}")])

    # bf16[16,24,256]: 16*24*256*2 = 196,608 bytes
    assert result.before.transposing_bytes - result.after.transposing_bytes == 196_608
    assert result.before.memory.temp_bytes - result.after.memory.temp_bytes == 196_608


def test_a_layout_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="does not fit parameter"):
        what_if(layoutsim.load(_path("axis0")), [parse_setting("entry-layout:2={1,0}")])


def test_an_unknown_parameter_lists_those_that_are_there() -> None:
    with pytest.raises(InputError, match=r"no parameter 'weights'; parameters: 0: "):
        what_if(layoutsim.load(_path("axis0")), [parse_setting("entry-layout:weights=auto")])


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(PassError, match="no option 'colour'"):
        what_if(layoutsim.load(_path("axis0")), [parse_setting("rule:colour=red")])


TWO = """
HloModule jit_step, entry_computation_layout={(f32[8,4]{1,0}, f32[8,4]{1,0})->(f32[8,4]{1,0}, f32[4,8]{1,0})}

ENTRY main {
  a = f32[8,4] parameter(0), metadata={op_name="state['a']"}
  b = f32[8,4] parameter(1), metadata={op_name="state['b']"}
  c = f32[8,4] add(a, b)
  d = f32[4,8] transpose(c), dimensions={1,0}
  ROOT t = (f32[8,4], f32[4,8]) tuple(c, d)
}
"""


def test_parameters_are_found_by_name_number_and_path() -> None:
    module = layoutsim.parse(TWO)

    assert [find_parameter(module, text).name for text in ("b", "1", "state['b']")] == ["b"] * 3


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no parameter \"state\['c'\]\"; did you mean \"state\['[ab]'\]\"\?"):
        find_parameter(layoutsim.parse(TWO), "state['c']")


def test_an_unknown_pass_names_the_nearest() -> None:
    with pytest.raises(InputError, match="no such pass; did you mean 'schedule'"):
        what_if(layoutsim.parse(TWO), [parse_setting("pass:shedule=off")])


def test_an_unknown_kind_of_setting_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'entry-layout'"):
        parse_setting("entry-layouts:w={1,0}")


def test_a_pass_can_be_put_in_front_of_layout_assignment() -> None:
    _, pipeline = apply_settings(
        layoutsim.parse(TWO), [parse_setting("pass:all-gather-major-dimension=before")], resolve_preset("xla-gpu-0.10.2")
    )

    assert [p.name for p in pipeline.passes][1:4] == ["flatten-call-graph", "all-gather-major-dimension", "layout-assignment"]


def test_a_pass_with_options_can_be_put_behind_layout_assignment() -> None:
    setting = parse_setting("pass:copy-insertion{rules=cpu}=after")
    _, pipeline = apply_settings(layoutsim.parse(TWO), [setting], resolve_preset("xla-gpu-0.10.2"))

    assert setting.to_text() == "pass:copy-insertion{rules=cpu}=after"
    assert [p.to_text() for p in pipeline.passes][3] == "copy-insertion{rules=cpu}"


def test_a_layout_that_is_no_permutation_is_refused() -> None:
    with pytest.raises(InputError, match=r"setting 'entry-layout:a=\{0,0\}': minor_to_major"):
        parse_setting("entry-layout:a={0,0}")


def test_a_result_in_the_layout_that_it_is_computed_in_needs_no_copy() -> None:
    result = what_if(layoutsim.parse(TWO), [parse_setting("result-layout:1={0,1}")])

    # f32[4,8]: 128 bytes
    assert (result.before.transposing_bytes, result.after.transposing_bytes) == (128, 0)


def test_results_are_left_to_the_compiler_too() -> None:
    assert what_if(layoutsim.parse(TWO), [parse_setting("result-layout:1=auto")]).after.transposing_bytes == 0


def test_an_unknown_result_lists_those_that_are_there() -> None:
    with pytest.raises(InputError, match=r"no array 2; arrays: 0, 1"):
        what_if(layoutsim.parse(TWO), [parse_setting("result-layout:2={0,1}")])


def test_a_donated_parameter_saves_the_result() -> None:
    result = what_if(layoutsim.parse(TWO), [Donate("state['a']")])

    # f32[8,4]: 128 bytes
    assert result.before.memory.total_bytes - result.after.memory.total_bytes == 128
    assert result.after.memory.aliased_bytes == 128


def test_donation_and_its_withdrawal_cancel() -> None:
    result = what_if(layoutsim.parse(TWO), [Donate("0"), Undonate("0")])

    assert result.after.memory == result.before.memory


def test_what_is_not_donated_cannot_be_undonated() -> None:
    with pytest.raises(InputError, match="parameter b is not donated; donated: a"):
        what_if(layoutsim.parse(TWO), [Donate("a"), Undonate("b")])


def test_layouts_that_were_left_to_the_compiler_are_shown() -> None:
    result = what_if(layoutsim.parse(TWO), [parse_setting("entry-layout:a=auto"), parse_setting("result-layout:1=auto")])

    assert result.rows().note.splitlines()[1:] == [
        "entry-layout:a=auto became f32[8,4]{1,0}",
        "result-layout:1=auto became f32[4,8]{0,1}",
    ]


def test_a_second_donation_finds_no_result() -> None:
    with pytest.raises(InputError, match=r"parameter b: no result of shape f32\[8,4\] is free"):
        what_if(layoutsim.parse(TWO), [Donate("a"), Donate("b")])


def test_a_parameter_is_donated_once() -> None:
    with pytest.raises(InputError, match="parameter a is donated already"):
        what_if(layoutsim.parse(TWO), [Donate("a"), Donate("a")])


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(_path("axis1flax")), "--set", "rule:loop-invariants=caller"]) == 0
    assert "3 transposing copies before, 0 after" in capsys.readouterr().out
    assert main(["what-if", str(_path("axis1flax")), "--undonate", "0", "--json"]) == 0
    assert '"undonate 0"' in capsys.readouterr().out
    assert main(["what-if", str(_path("axis1flax")), "--undonate", "adapters['a']", "--donate", "0"]) == 0
    assert "donate 0" in capsys.readouterr().out
    assert main(["what-if", str(_path("axis1flax"))]) == 2
    assert "give --set, --donate or --undonate" in capsys.readouterr().err
