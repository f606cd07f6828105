from layoutsim.memory.reference import numbering_of
from layoutsim.memory.report_format import parse_assignment_report
from layoutsim.text import parse_module

MODULE = """
HloModule m, is_scheduled=true

fused {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}

body {
  b = f32[4] parameter(0)
  ROOT f = f32[4] fusion(b), kind=kLoop, calls=fused
}

go {
  c = f32[4] parameter(0)
  ROOT g = pred[] constant(false)
}

ENTRY main {
  p = f32[4] parameter(0)
  k = f32[4] copy(p)
  ROOT w = f32[4] while(k), condition=go, body=body
}
"""
REPORT = """BufferAssignment:
allocation 0: size 16, parameter 0, shape |f32[4]| at ShapeIndex {}:
 value: <4 p @0> (size=16,offset=0): f32[4]{0}
allocation 1: size 16, output shape is |f32[4]|, maybe-live-out:
 value: <3 f @0> (size=16,offset=0): f32[4]{0}
 value: <5 k @0> (size=16,offset=0): f32[4]{0}
allocation 2: size 1, constant:
 value: <0 g @0> (size=1,offset=0): pred[]
"""


def test_computations_stand_in_the_order_of_reported_ids() -> None:
    module = parse_module(MODULE)

    assert [c.name for c in module.computations] == ["fused", "body", "go", "main"]
    assert [c.name for c in numbering_of(parse_assignment_report(REPORT), module)] == ["go", "fused", "body", "main"]


def test_fusion_bodies_fill_the_gaps_between_known_ids() -> None:
    # As above, but f has id 1: the fusion's two values come later, in front of k at the latest.
    late = REPORT.replace("<3 f @0>", "<1 f @0>")
    module = parse_module(
        MODULE.replace("fusion(b), kind=kLoop, calls=fused", "negate(b)").replace(
            "copy(p)", "fusion(p), kind=kLoop, calls=fused"
        )
    )

    assert [c.name for c in numbering_of(parse_assignment_report(late), module)] == ["go", "body", "fused", "main"]


def test_a_gap_that_nothing_fills_leaves_bodies_in_front_of_their_callers() -> None:
    odd = REPORT.replace("<3 f @0>", "<2 f @0>").replace("<4 p @0>", "<5 p @0>").replace("<5 k @0>", "<6 k @0>")
    module = parse_module(MODULE)

    assert [c.name for c in numbering_of(parse_assignment_report(odd), module)] == ["go", "fused", "body", "main"]
