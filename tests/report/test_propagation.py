"""How a layout travelled to a copy, as a picture."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

import layoutsim
from layoutsim.report.explain import Explanation
from layoutsim.report.propagation import Band, Box, BoxKind, PropagationPicture, propagation_picture
from layoutsim.report.svg import to_svg

FLAX = Path(__file__).parents[2] / "fixtures" / "xla" / "lora_axis1flax" / "gpu-0.10.2" / "before_layout.hlo.gz"

# The gather wants {0,1} of n4, and four instructions hand that on to the parameter.
LONG = """HloModule m, entry_computation_layout={(f32[8,16]{1,0})->f32[8,64]{0,1}}, num_partitions=4
ENTRY e {
  p = f32[8,16] parameter(0)
  n1 = f32[8,16] negate(p)
  n2 = f32[8,16] exponential(n1)
  n3 = f32[8,16] negate(n2)
  n4 = f32[8,16] exponential(n3)
  ROOT g = f32[8,64] all-gather(n4), dimensions={1}, channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true
}
"""


def _explain(module: layoutsim.Module) -> Explanation:
    result = layoutsim.simulate(module)
    return result.explain(result.transposing_copies[0], remedies=False)


def _contains(band: Band, box: Box) -> bool:
    across = band.x < box.x and box.x + box.width < band.x + band.width
    return across and band.y < box.y and box.y + box.height < band.y + band.height


@pytest.fixture(scope="module")
def flax() -> PropagationPicture:
    return propagation_picture(_explain(layoutsim.load(FLAX)))


def test_the_first_box_is_the_rule_that_demanded_and_the_last_the_copy(flax: PropagationPicture) -> None:
    first, last = flax.boxes[0], flax.boxes[-1]

    assert (first.kind, first.title, first.layout) == (BoxKind.DEMAND, "%all-gather.19 operand 0", "{1,0}")
    assert first.lines[-1] == "programs/lora.py:61"
    assert (last.kind, last.title, last.layout) == (BoxKind.COPY, "%copy.1", "{2,1,0} → {2,0,1}")


def test_what_changes_the_layout_is_marked(flax: PropagationPicture) -> None:
    changing = [(box.title, box.layout) for box in flax.boxes if box.changes]

    assert changing == [
        ("%reshape.91", "{1,0} → {2,1,0}"),
        ("%transpose.16", "{2,1,0} → {2,0,1}"),
        ("%copy.1", "{2,1,0} → {2,0,1}"),
    ]


def test_both_chains_lead_to_the_copy(flax: PropagationPicture) -> None:
    end = flax.boxes[-1]

    assert [arrow.y2 for arrow in flax.arrows].count(end.y) == 2
    assert {box.title for box in flax.boxes if box.kind is BoxKind.DEMAND} == {"%all-gather.19 operand 0", "%param.10"}


def test_boxes_of_a_computation_lie_on_its_band_and_nothing_overlaps(flax: PropagationPicture) -> None:
    assert [band.title for band in flax.bands] == [
        "in %region_3.3_spmd",
        "in %region_0.5_spmd",
        "in %main.7_spmd",
        "in %main.7_spmd",
    ]
    for box in flax.boxes[:-1]:
        assert any(_contains(band, box) for band in flax.bands)
    for column in {box.x for box in flax.boxes}:
        stacked = sorted((box.y, box.y + box.height) for box in flax.boxes if box.x == column)
        assert all(above[1] < below[0] for above, below in pairwise(stacked))
    assert all(box.x + box.width <= flax.width and box.y + box.height <= flax.height for box in flax.boxes)


def test_instructions_that_only_hand_a_layout_on_are_one_box() -> None:
    picture = propagation_picture(_explain(layoutsim.parse(LONG)))
    (folded,) = (box for box in picture.boxes if box.kind is BoxKind.FOLDED)

    assert (folded.title, folded.layout) == ("3 instructions", "{0,1}")
    assert folded.lines == ("hand it on: %n4, %n3, %n2",)


def test_the_svg_is_well_formed_and_escapes_names(flax: PropagationPicture) -> None:
    root = ElementTree.fromstring(to_svg(flax))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]

    assert root.get("role") == "img"
    assert root.get("aria-label") == "How the layouts of copy copy.1 came about"
    assert {"%reshape.91", "{1,0} → {2,1,0}", "programs/lora.py:61", "{2,0,1} is wanted"} <= set(texts)
