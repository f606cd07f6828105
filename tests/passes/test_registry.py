"""The text form of passes and pipelines."""

from typing import ClassVar

import pytest
from attrs import frozen

from layoutsim.errors import PassError
from layoutsim.ir import Module
from layoutsim.passes import Pass, PassResult, Pipeline, parse_pipeline, pass_names
from layoutsim.passes.registry import did_you_mean, parse_pass, pass_class, split_outside_braces


@frozen
class Nothing(Pass):
    name: ClassVar[str] = "nothing"
    times: int = 1
    loud: bool = False

    def run(self, module: Module) -> PassResult:
        return PassResult(changed=False)


@pytest.mark.parametrize("name", pass_names())
def test_every_registered_pass_exists_and_reads_back_its_own_text(name: str) -> None:
    made = parse_pass(name)

    assert made.name == name
    assert parse_pass(made.to_text()) == made


def test_only_options_that_differ_from_their_defaults_are_printed() -> None:
    assert Nothing().to_text() == "nothing"
    assert Nothing(times=3, loud=True).to_text() == "nothing{times=3 loud=true}"


def test_separators_inside_braces_do_not_separate() -> None:
    assert split_outside_braces("a{x={2,0,1} y=1},b", ",") == ["a{x={2,0,1} y=1}", "b"]


def test_an_unknown_pass_names_the_nearest() -> None:
    with pytest.raises(PassError, match="unknown pass 'layout-asignment'; did you mean 'layout-assignment'"):
        parse_pipeline("layout-asignment")


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(PassError, match="layout-assignment has no option 'bakend'; did you mean 'backend'"):
        parse_pipeline("layout-assignment{bakend=gpu}")


def test_an_unknown_value_lists_the_choices() -> None:
    with pytest.raises(PassError, match=r"expected one of .*positional.*, got 'postional'"):
        parse_pipeline("layout-assignment{all-gather=postional}")


def test_a_pipeline_prints_and_reads_back() -> None:
    text = "all-gather-remove-degenerate-dims,layout-assignment{all-gather=ignore-degenerate}"

    assert parse_pipeline(text).to_text() == text


def test_a_pipeline_can_be_changed() -> None:
    pipeline = Pipeline((Nothing(), Nothing(times=2)))

    assert pipeline.then(Nothing(times=5)).to_text() == "nothing,nothing{times=2},nothing{times=5}"
    assert pipeline.replacing(Nothing(loud=True)).to_text() == "nothing{loud=true},nothing{loud=true}"
    assert pipeline.without("nothing").to_text() == ""


def test_classes_are_found_by_name() -> None:
    assert pass_class("layout-assignment").name == "layout-assignment"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("layout-asignment", "; did you mean 'layout-assignment'?"),  # a slip
        ("copy", "; did you mean 'copy-insertion' or 'copy-sinking'?"),  # a part
        ("simplify-while", "; known: layout-assignment, copy-insertion, copy-sinking, schedule"),  # neither
    ],
)
def test_what_was_meant_is_near_or_holds_the_word(word: str, said: str) -> None:
    assert did_you_mean(word, ["layout-assignment", "copy-insertion", "copy-sinking", "schedule"]) == said
