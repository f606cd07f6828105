"""Elements narrower than a byte are packed behind layout assignment."""

from pathlib import Path

import pytest

from layoutsim.experiments.simulate import profile_of
from layoutsim.ir import byte_size
from layoutsim.load import load
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.summary import summarize
from layoutsim.passes.presets import preset, preset_names
from layoutsim.passes.sub_byte_size_setter import SubByteSizeSetter
from layoutsim.text import parse_module

FIXTURES = Path(__file__).parents[2] / "fixtures" / "xla" / "packed_types"

MODULE = """
HloModule m, entry_computation_layout={(s4[8,2]{1,0}, s32[8,2]{1,0:E(4)})->(s4[8,2]{0,1}, pred[8,2]{1,0}, u2[8]{0})}

f {
  q = s4[8,2]{0,1} parameter(0)
  ROOT m = s4[8,2]{0,1} negate(q)
}

ENTRY e {
  p = s4[8,2]{1,0} parameter(0)
  w = s32[8,2]{1,0:E(4)} parameter(1)
  c = s4[8,2]{0,1} copy(p)
  n = s4[8,2]{0,1} fusion(c), kind=kLoop, calls=f
  z = pred[8,2]{1,0} compare(w, w), direction=LT
  k = u2[8]{0} constant({...})
  ROOT t = (s4[8,2]{0,1}, pred[8,2]{1,0}, u2[8]{0}) tuple(n, z, k)
}
"""


def test_narrow_types_state_their_width_and_others_none() -> None:
    module = parse_module(MODULE)

    result = SubByteSizeSetter().run(module)

    assert result.changed
    assert [remark.where for remark in result.remarks] == ["q", "m", "p", "w", "c", "n", "k", "t"]
    assert str(module.entry.root.shape) == "(s4[8,2]{0,1:E(4)}, pred[8,2]{1,0}, u2[8]{0:E(2)})"
    assert str(module.find("f", "m").shape) == "s4[8,2]{0,1:E(4)}"
    assert str(module.find("e", "w").shape) == "s32[8,2]{1,0}"
    assert module.entry_layout is not None
    assert [str(shape) for shape in module.entry_layout.parameters] == ["s4[8,2]{1,0:E(4)}", "s32[8,2]{1,0}"]
    assert module.entry_layout.result == module.entry.root.shape


def test_a_packed_array_takes_half_the_bytes() -> None:
    # 8*2 elements: 16 bytes with a byte each, 16*4/8 = 8 bytes packed.
    module = parse_module(MODULE)
    before = byte_size(module.find("e", "c").shape)
    SubByteSizeSetter().run(module)

    assert (before, byte_size(module.find("e", "c").shape)) == (16, 8)


def test_nothing_changes_twice() -> None:
    module = parse_module(MODULE)
    SubByteSizeSetter().run(module)

    assert not SubByteSizeSetter().run(module).changed


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_packs_right_behind_layout_assignment(name: str) -> None:
    names = [p.name for p in preset(name).passes]

    assert names.index("sub-byte-size-setter") == names.index("layout-assignment") + 1


def test_totals_of_a_packed_program_are_those_of_the_compiler() -> None:
    # The bare pipeline with this pass, on both backends: 2,072 and 3,800 bytes (jaxlib 0.10.2).
    totals: dict[str, int] = {}
    for backend in ("gpu", "cpu"):
        pipeline = preset(f"xla-{backend}-0.10.2")
        module = load(next((FIXTURES / f"{backend}-0.10.2").glob("before_layout.hlo*")))
        pipeline.run(module)
        totals[backend] = summarize(assign_buffers(module, profile_of(pipeline))).total_bytes

    assert totals == {"gpu": 2_072, "cpu": 3_800}
