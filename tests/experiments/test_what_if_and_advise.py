"""What-if and advice on the shipped LoRA step."""

import re
from pathlib import Path

import pytest

import layoutsim
from layoutsim.cli import main
from layoutsim.errors import InputError, PassError
from layoutsim.experiments.advise import advise
from layoutsim.experiments.what_if import parse_setting, what_if

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"


def _path(case: str, kind: str = "gpu-0.10.2") -> Path:
    return FIXTURES / f"lora_{case}" / kind / "before_layout.hlo.gz"


@pytest.mark.parametrize(
    "text", ["entry-layout:2={2,0,1}", "entry-layout:w=auto", "rule:all-gather=positional", "pass:schedule=off"]
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


@pytest.mark.parametrize("case", ["axis1flax", "minor"])
def test_advice_is_the_layout_that_the_real_compiler_chooses_when_it_may(case: str) -> None:
    best = next(a for a in advise(layoutsim.load(_path(case))).advice if a.audience == "jax")
    advised = {
        name: tuple(int(d) for d in order.split(", "))
        for order, name in re.findall(r"major_to_minor=\(([\d, ]+)\).*?  # (.*)", best.code)
    }
    automatic = layoutsim.load(FIXTURES / f"lora_{case}_auto" / "gpu-0.10.2" / "after_layout.hlo.gz")
    stacks = [p for p in automatic.entry.parameters if "frozen" in p.metadata.op_name]

    assert advised == {p.metadata.op_name: p.shape.layout.major_to_minor for p in stacks}  # type: ignore[union-attr]
    assert best.remaining_copy_bytes < 100_000


def test_nothing_to_advise_is_said() -> None:
    report = advise(layoutsim.load(_path("axis0")))

    assert report.advice == ()
    assert report.to_text().endswith("nothing tried helps")


def test_what_is_right_for_one_release_is_warned_of_for_another() -> None:
    report = advise(layoutsim.load(_path("axis0", "gpu-0.6.1")), "xla-gpu-0.6.1")
    best = next(a for a in report.advice if a.audience == "jax")

    assert any("under xla-gpu-0.10.2 it adds" in warning for warning in best.warnings)


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(_path("axis1flax")), "--set", "rule:loop-invariants=caller"]) == 0
    assert "3 transposing copies before, 0 after" in capsys.readouterr().out
    assert main(["what-if", str(_path("axis1flax")), "--undonate", "0", "--json"]) == 0
    assert '"undonate 0"' in capsys.readouterr().out
    assert main(["advise", str(_path("mixed"))]) == 0
    assert "Format(Layout(major_to_minor=" in capsys.readouterr().out
    assert main(["what-if", str(_path("axis1flax"))]) == 2
