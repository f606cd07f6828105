"""Layout assignment under every rule set: each array has a layout, and what must hold does, by a judge that shares no code."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutsim.ir import Module
from layoutsim.testing.layout_judge import layout_faults
from layoutsim.testing.strategies import modules
from layoutsim.verify import verify
from tests.properties.test_passes import LIMITS, faults, limits, tried

VARIANTS = [
    "layout-assignment",
    "layout-assignment{backend=cpu}",
    "layout-assignment{backend=gpu}",
    "layout-assignment{backend=gpu all-gather=ignore-degenerate}",
    "layout-assignment{backend=gpu reduce-scatter=ignore-degenerate all-to-all=ignore-degenerate "
    "ragged-all-to-all=ignore-degenerate}",
    "layout-assignment{backend=cpu all-gather=ignore-degenerate reduce-scatter=ignore-degenerate}",
    "layout-assignment{backend=gpu reshape-alignment=size-1-most-major}",
    "layout-assignment{backend=gpu computation-order=reverse}",
    "layout-assignment{backend=gpu work-list=depth-first copies=modulo-degenerate}",
    "layout-assignment{backend=gpu work-list=breadth-first}",
    "layout-assignment{backend=gpu priorities=reduce-operand:-1+loop-back-edge:1}",
    "layout-assignment{backend=gpu priorities=use-to-definition:1+definition-to-use:2+bitcast-operand:3+bitcast-result:-3}",
    "layout-assignment{backend=gpu convolution-layout=nchw convolution-fusion=true}",
]


@pytest.mark.parametrize("variant", VARIANTS)
@given(data=st.data())
def test_variant_keeps_every_claim(variant: str, data: st.DataObject) -> None:
    module = data.draw(limits("cpu" if "cpu" in variant else "gpu").flatmap(modules))
    assume(not verify(module))

    assert faults(tried(variant, module)) == {}


@given(modules(LIMITS))
def test_a_given_entry_layout_is_never_changed(module: Module) -> None:
    """Whatever the entry was given before is in what is published after."""
    assume(not verify(module))
    trial = tried("flatten-call-graph,layout-assignment{backend=gpu}", module)

    assert [fault for fault in layout_faults(module, trial.final, "gpu") if "entry layout" in fault] == []
