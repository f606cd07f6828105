"""Pictures: what they show, asked of matplotlib's own objects."""

from pathlib import Path

import pytest

import layoutsim
from layoutsim.report.colors import COPIES, OTHERS, color_of, groups_in
from layoutsim.report.plots import plot_address_map, plot_propagation, plot_timeline, plot_timelines
from layoutsim.report.timeline import Timeline, timeline

pytest.importorskip("matplotlib")

MODULE = Path(__file__).parents[2] / "fixtures" / "xla" / "lora_axis1flax" / "gpu-0.10.2" / "before_layout.hlo.gz"


@pytest.fixture(scope="module")
def result() -> layoutsim.Simulation:
    return layoutsim.simulate(layoutsim.load(MODULE))


@pytest.fixture(scope="module")
def line(result: layoutsim.Simulation) -> Timeline:
    assert result.assignment is not None
    return timeline(result.assignment)


@pytest.fixture(scope="module")
def marked(result: layoutsim.Simulation) -> list[str]:
    return [copy.name for copy in result.transposing_copies]


def test_the_timeline_marks_the_peak_and_stacks_the_classes(line: Timeline, marked: list[str]) -> None:
    (axis,) = plot_timeline(line, marked=marked).axes
    labels = axis.get_legend_handles_labels()[1]

    # The highest of the stacked areas ends where the curve has its peak.
    assert [text.get_text() for text in axis.texts] == ["1.31 MiB"]
    assert labels[0] == COPIES
    assert labels[-1] == OTHERS
    tops = [path.vertices[:, 1].max() for area in axis.collections for path in area.get_paths()]
    assert max(tops) * 1024**2 == pytest.approx(max(line.live_bytes))


def test_timelines_have_one_scale(line: Timeline, marked: list[str]) -> None:
    axes = plot_timelines({"a": line, "b": line}, marked={"a": marked}).axes

    assert [axis.get_title() for axis in axes] == ["a", "b"]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    assert [len(axis.collections) for axis in axes] == [2, 1]  # only a has marked values


def test_the_address_map_has_a_rectangle_for_every_value(line: Timeline, marked: list[str]) -> None:
    (axis,) = plot_address_map(line, marked=marked).axes

    assert sum(len(group.get_paths()) for group in axis.collections) == len(line.spans)


def test_the_propagation_shows_rule_instruction_layout_and_source(result: layoutsim.Simulation) -> None:
    figure = plot_propagation(result.explain(result.transposing_copies[0], remedies=False))
    texts = {text.get_text() for text in figure.axes[0].texts}

    assert {"%all-gather.19 operand 0", "{1,0}", "programs/lora.py:61", "in %region_3.3_spmd", "%copy.1"} <= texts


def test_every_group_has_a_colour_of_its_own(line: Timeline, marked: list[str]) -> None:
    groups = groups_in(line, marked)

    assert groups[0] == COPIES
    assert len({color_of(group) for group in groups}) == len(groups)
