"""Answers of the live compiler that were kept (``fixtures/live``): ours agree, from layout assignment to the last buffer."""

from pathlib import Path

import pytest

from layoutsim.experiments.live import check_answer
from layoutsim.oracle import Answer

pytest.importorskip("google.protobuf")

_LIVE = Path(__file__).parents[2] / "fixtures" / "live"


@pytest.mark.parametrize("folder", sorted(_LIVE.iterdir()), ids=lambda folder: folder.name)
def test_ours_agree_with_the_answer(folder: Path) -> None:
    texts = {name: (folder / f"{name}.hlo").read_text() for name in ("before_layout", "after_layout", "final")}
    answer = Answer(
        "0.10.2",
        **texts,
        buffer_assignment=(folder / "buffer-assignment.txt").read_text(),
        before_layout_proto=(folder / "before_layout.hlo.pb").read_bytes(),
    )
    found = check_answer(answer, "xla-gpu-0.10.2")

    assert found.layout is not None and found.layout.agrees
    assert found.buffers is not None and found.buffers.differences == ()
    assert found.pipeline is not None and found.pipeline.buffers.differences == ()
