"""The command line as a user meets it."""

import json
from pathlib import Path

import pytest

from layoutsim.cli import main

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla"
AXIS0 = str(FIXTURES / "lora_axis0" / "gpu-0.6.1" / "before_layout.hlo.gz")
MINOR = str(FIXTURES / "lora_minor" / "gpu-0.6.1" / "before_layout.hlo.gz")
FINAL = FIXTURES / "lora_axis0" / "gpu-0.10.2-bare"


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, object]:
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_run_lists_copies_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    out = _json(capsys, "run", AXIS0, "--preset", "xla-gpu-0.6.1")

    assert {"preset", "copies", "transposing_copies", "peak_bytes", "temp_bytes"} <= out.keys()
    assert {"argument_bytes", "output_bytes", "lower_bound_bytes"} <= out.keys()
    for copy in out["copies"]:  # type: ignore[attr-defined]
        assert {"name", "computation", "shape", "from_layout", "to_layout", "bytes", "transposing"} <= copy.keys()


def test_the_table_names_the_transposing_copies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", AXIS0, "--preset", "xla-gpu-0.6.1"]) == 0
    out = capsys.readouterr().out

    assert "transposing copies" in out.splitlines()[0]
    assert "temporaries" in out


def test_changed_rules_are_written_in_braces(capsys: pytest.CaptureFixture[str]) -> None:
    out = _json(capsys, "run", AXIS0, "--preset", "xla-gpu-0.6.1{all-gather=ignore-degenerate}")

    assert out["transposing_copies"] == {"count": 0, "bytes": 0}


def test_compare_has_one_entry_for_each_preset(capsys: pytest.CaptureFixture[str]) -> None:
    out = _json(capsys, "compare", AXIS0, "--presets", "xla-gpu-0.6.1,xla-gpu-0.6.2")

    assert [p["preset"] for p in out["presets"]] == ["xla-gpu-0.6.1", "xla-gpu-0.6.2"]  # type: ignore[attr-defined]


def test_explain_leads_to_the_all_gather(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", AXIS0, "--preset", "xla-gpu-0.6.1"]) == 0
    out = capsys.readouterr().out

    assert "[all-gather, 6.1]" in out
    assert "avoided by: " in out


def test_explain_takes_the_name_of_one_copy(capsys: pytest.CaptureFixture[str]) -> None:
    copies = _json(capsys, "run", MINOR, "--preset", "xla-gpu-0.6.1")["copies"]
    name = copies[0]["name"]  # type: ignore[index]
    out = _json(capsys, "explain", MINOR, name, "--preset", "xla-gpu-0.6.1", "--no-remedies")

    assert [c["name"] for c in out["copies"]] == [name]  # type: ignore[attr-defined]


def test_opt_prints_hlo_that_reads_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "out.hlo"
    assert main(["opt", AXIS0, "--passes", "layout-assignment{backend=gpu}", "-o", str(target)]) == 0
    assert main(["opt", str(target), "--passes", "dead-code-elimination"]) == 0

    assert capsys.readouterr().out.startswith("HloModule ")


def test_check_agrees_with_the_recorded_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    out = _json(capsys, "check", str(FINAL))

    assert out["layout"]["mismatches"] == []  # type: ignore[index]
    assert out["buffers"]["differences"] == []  # type: ignore[index]
    assert out["pipeline"]["differences"] == []  # type: ignore[index]


def test_check_says_no_with_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(FIXTURES / "lora_axis0" / "gpu-0.6.1")
    out = _json(capsys, "check", folder, "--stage", "layout", "--preset", "xla-cpu-0.10.2", code=1)

    assert out["layout"]["mismatches"] != []  # type: ignore[index]


def test_memory_compares_with_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    reference = next(FINAL.glob("buffer-assignment*"))
    final = next(FINAL.glob("final*"))
    out = _json(capsys, "memory", str(final), "--reference", str(reference))

    assert out["differences"] == []
    assert out["lower_bound_bytes"] <= out["peak_bytes"] <= out["total_bytes"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no-such-file.hlo"], "no-such-file.hlo"),
        (["run", AXIS0, "--preset", "xla-gpu-0.6.7"], "unknown preset 'xla-gpu-0.6.7'; did you mean 'xla-gpu-0.6."),
        (["run", AXIS0, "--preset", "xla-gpu-0.6.1{all-gather=x}"], "all-gather: expected one of positional, "),
        (["check", AXIS0], "is not a dump folder; to ask the compiler about one module, use --live"),
        (["explain", AXIS0, "no.such.copy"], "no copy named 'no.such.copy'"),
        (["opt", AXIS0, "--passes", "nothing"], "unknown pass 'nothing'"),
        (["check", "no-such-folder"], "no-such-folder is not a dump folder"),
    ],
)
def test_what_the_user_got_wrong_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err

    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", AXIS0, "--best", "long"], "--best: expected a number of seconds, got 'long'"),
        (["run", AXIS0, "--best", "-3"], "--best: expected a number of seconds, got '-3'"),
        (["joint", AXIS0, "--objective", "x"], "--objective: invalid choice: 'x' (choose from"),
    ],
)
def test_values_that_an_option_does_not_take_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)

    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["run"], ["nonsense"], ["run", AXIS0, "--nonsense"], ["check", "x", "--stage", "y"]])
def test_wrong_options_are_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)

    assert exit_info.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_broken_input_is_one_line_with_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.hlo"
    broken.write_text("HloModule m\nENTRY e {\n  ROOT p = f32[2] parametr(0)\n}\n")
    assert main(["run", str(broken)]) == 2
    err = capsys.readouterr().err

    assert f"{broken}:3:" in err
    assert err.count("\n") == 1


def test_a_scheduled_module_cannot_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(next(FINAL.glob("final*")))]) == 2

    assert "scheduled" in capsys.readouterr().err


def test_memory_says_why_two_values_do_not_share(capsys: pytest.CaptureFixture[str]) -> None:
    final = str(next((FIXTURES / "lora_axis1flax" / "gpu-0.10.2-bare").glob("final*")))
    assert main(["memory", final, "--why", "copy.1", "transpose.16"]) == 0

    assert "do not share memory" in capsys.readouterr().out
    assert main(["memory", final, "--why", "copy.1", "nothing"]) == 2


def test_memory_of_a_tpu_module_shows_its_padding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Rows of 10 s32 are padded to 128 (12.8 times), columns of 1024 fit 8: 1024*128*4 = 524,288 bytes.
    module = tmp_path / "tpu.hlo"
    module.write_text(
        "HloModule m, is_scheduled=true\nENTRY e {\n  p = s32[1024,10]{1,0:T(8,128)} parameter(0)\n"
        "  ROOT n = s32[1024,10]{1,0:T(8,128)} negate(p)\n}\n"
    )
    out = _json(capsys, "memory", str(module))

    assert out["argument_bytes"] == 524_288
    assert out["padding"][0]["data_bytes"] == 40_960  # type: ignore[index]
    assert main(["memory", str(module)]) == 0
    assert "least wasteful order" in capsys.readouterr().out


def test_a_donation_that_is_not_usable_is_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    final = str(next((FIXTURES / "lora_axis1flax" / "gpu-0.10.2-bare").glob("final*")))
    assert main(["memory", final, "--donations"]) == 0
    assert "reused" in capsys.readouterr().out
    module = tmp_path / "donor.hlo"
    module.write_text(
        "HloModule m, is_scheduled=true, buffer_donor={ (0, {}) }\nENTRY e {\n  p = f32[8] parameter(0)\n"
        "  ROOT s = f32[4] slice(p), slice={[0:4]}\n}\n"
    )
    assert main(["memory", str(module), "--donations"]) == 1
    assert "not usable" in capsys.readouterr().out


def test_memory_of_an_unscheduled_module_says_which_dump_to_take(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plain = tmp_path / "plain.hlo"
    plain.write_text("HloModule m\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n")

    assert main(["memory", str(plain)]) == 2
    assert "module m is not scheduled" in (err := capsys.readouterr().err)
    assert "after_optimizations.txt" in err


def test_an_unknown_option_leads_to_the_help_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", AXIS0, "--nonsense"])

    assert capsys.readouterr().err == "layoutsim run: unrecognized arguments: --nonsense (see layoutsim run --help)\n"


def test_a_file_of_another_kind_is_told_how_to_get_hlo(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = tmp_path / "readme.md"
    other.write_text("# A title\n")

    assert main(["run", str(other)]) == 2
    assert f"{other}:1:1: expected an instruction name, got '#'; is this HLO? " in capsys.readouterr().err
