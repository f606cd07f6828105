"""The generic pass on elementwise, movement and reshape (layout spec, 15.A)."""

import pytest
from attrs import evolve

from layoutsim.errors import LayoutError
from layoutsim.ir import Opcode
from layoutsim.passes.layout_assignment import GENERIC, OperandDemand, Rule
from layoutsim.passes.layout_assignment.layout_math import transpose_is_bitcast
from tests.passes.layout_assignment.running import Run


@pytest.mark.parametrize("order", ["1,0", "0,1"])
def test_equal_entry_layouts_reach_everything(order: str) -> None:  # A1
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[42,12]{{{order}}}, f32[42,12]{{{order}}})->f32[42,12]{{{order}}}}}
ENTRY e {{
  p = f32[42,12] parameter(0)
  q = f32[42,12] parameter(1)
  ROOT a = f32[42,12] add(p, q)
}}"""
    )

    assert run.layouts("p", "q", "a") == dict.fromkeys("pqa", f"{{{order}}}")
    assert run.copies == []


def test_a_parameter_that_disagrees_with_the_result_is_copied_for_the_add() -> None:  # A2
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[42,12]{1,0}, f32[42,12]{0,1})->f32[42,12]{1,0}}
ENTRY e {
  p = f32[42,12] parameter(0)
  q = f32[42,12] parameter(1)
  ROOT a = f32[42,12] add(p, q)
}"""
    )

    assert run.layouts("p", "q", "a") == {"p": "{1,0}", "q": "{0,1}", "a": "{1,0}"}
    assert run.operands("a") == ["p", "copy{1,0}(q)"]


def test_fusions_are_laid_out_at_their_edges_only() -> None:  # A3
    run = Run(
        """
HloModule m, entry_computation_layout={()->f32[2,2]{0,1}}
f {
  x = f32[2,2] parameter(0)
  y = f32[2,2] parameter(1)
  a = f32[2,2] add(x, y)
  n = f32[2,2] negate(a)
  ROOT r = f32[2,2] negate(n)
}
ENTRY e {
  c = f32[2,2]{0,1} constant({{1,2},{3,4}})
  d = f32[2,2]{0,1} constant({{1,2},{3,4}})
  ROOT u = f32[2,2] fusion(c, d), kind=kLoop, calls=f
}"""
    )

    assert run.layouts("x", "y", "r", "a", "n") == {"x": "{0,1}", "y": "{0,1}", "r": "{0,1}", "a": "-", "n": "-"}


def test_elements_of_a_tuple_may_differ_in_layout() -> None:  # A4
    run = Run(
        """
HloModule m, entry_computation_layout={()->f32[2,2]{1,0}}
ENTRY e {
  c = f32[2,2]{0,1} constant({{1,2},{3,4}})
  d = f32[2,2]{1,0} constant({{5,6},{7,8}})
  t = (f32[2,2], f32[2,2]) tuple(c, d)
  g = f32[2,2] get-tuple-element(t), index=0
  ROOT n = f32[2,2] negate(g)
}"""
    )

    assert run.layout("n") == "{1,0}"
    assert run.layout("t") == f"({run.layout('c')}, {run.layout('d')})"
    assert run.layout("g") == run.layout("c")


def test_nested_tuples_that_must_differ_are_copied_leaf_by_leaf() -> None:  # A5
    run = Run(
        """
HloModule m, entry_computation_layout={()->((f32[2,2]{1,0}), (f32[2,2]{0,1}))}
ENTRY e {
  c = f32[2,2]{1,0} constant({{1,2},{3,4}})
  t = (f32[2,2]) tuple(c)
  ROOT n = ((f32[2,2]), (f32[2,2])) tuple(t, t)
}"""
    )

    assert run.entry_layout == "() -> (({1,0}), ({0,1}))"
    assert run.copies == ["root {1,0} of e: {1,0} to {0,1}"]
    assert run.expression(run.root) == "tuple(n[0], tuple(copy{0,1}(n[1][0])))"


def test_a_reshape_carries_the_order_of_real_dimensions() -> None:  # A6
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[1,2,3,1]{0,2,1,3})->f32[3,1,2]{2,1,0}}
ENTRY e {
  p = f32[1,2,3,1] parameter(0)
  l = f32[1,2,3,1] log(p)
  r = f32[3,1,2] reshape(l)
  ROOT t = f32[3,1,2] tanh(r)
}"""
    )
    log_order = run.layout("l").strip("{}").split(",")
    reshape_order = run.layout("r").strip("{}").split(",")

    assert log_order.index("1") > log_order.index("2")
    assert reshape_order.index("0") > reshape_order.index("2")


def test_a_transpose_becomes_a_bitcast_between_fixed_layouts() -> None:  # A7
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[42,12]{1,0})->f32[12,42]{0,1}}
ENTRY e {
  p = f32[42,12] parameter(0)
  l = f32[42,12] log(p)
  t = f32[12,42] transpose(l), dimensions={1,0}
  ROOT h = f32[12,42] tanh(t)
}"""
    )

    assert run.layouts("l", "t", "h") == {"l": "{1,0}", "t": "{0,1}", "h": "{0,1}"}
    assert run.copies == []


def test_a_broadcast_takes_the_layout_its_transpose_wants() -> None:  # A8
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[3,4]{1,0})->f32[4,3,2]{2,1,0}}
ENTRY e {
  p = f32[3,4] parameter(0)
  b = f32[2,3,4] broadcast(p), dimensions={1,2}
  ROOT t = f32[4,3,2] transpose(b), dimensions={2,1,0}
}"""
    )

    assert run.layout("b") == "{0,1,2}"


def test_a_value_with_two_users_follows_the_one_behind_the_result() -> None:  # A9
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[4]{0})->(f32[4,3]{1,0}, f32[2,3,4]{2,1,0})}
ENTRY e {
  p = f32[4] parameter(0)
  b = f32[3,4] broadcast(p), dimensions={1}
  t = f32[4,3] transpose(b), dimensions={1,0}
  h = f32[3,4] tanh(b)
  b2 = f32[2,3,4] broadcast(h), dimensions={1,2}
  ROOT u = (f32[4,3], f32[2,3,4]) tuple(t, b2)
}"""
    )

    assert run.layouts("b", "t", "h") == {"b": "{0,1}", "t": "{1,0}", "h": "{0,1}"}


def test_a_backend_is_a_value_with_rules_added() -> None:  # A10: forces operands to the result's layout
    rule = Rule("like-operand-0", "test", "all operands are laid out like the first")

    def like_first(instruction, _view):
        yield OperandDemand(1, instruction.operand(0).shape, rule)

    run = Run(
        """
HloModule m, entry_computation_layout={(f32[50,1]{0,1}, f32[50,1]{1,0})->f32[100]{0}}
ENTRY e {
  p = f32[50,1]{0,1} parameter(0)
  q = f32[50,1] parameter(1)
  c = f32[50,2] concatenate(p, q), dimensions={1}
  ROOT r = f32[100] reshape(c)
}""",
        evolve(GENERIC, demands={Opcode.CONCATENATE: like_first}),
    )
    first, second = run["c"].operands

    assert str(first.shape.layout) == str(second.shape.layout) == run.layout("c")


@pytest.mark.parametrize("order", ["2,0,3,1", "3,2,1,0"])
def test_a_transpose_of_a_parameter_becomes_a_bitcast(order: str) -> None:  # A11
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[3,5,6,7]{{{order}}})->f32[6,7,3,5]}}
ENTRY e {{
  p = f32[3,5,6,7] parameter(0)
  ROOT t = f32[6,7,3,5] transpose(p), dimensions={{2,3,0,1}}
}}"""
    )
    source, result = run.root.operand(0).shape, run.root.shape

    assert transpose_is_bitcast(source.minor_to_major, result.minor_to_major, (2, 3, 0, 1))


def test_a_transpose_becomes_a_bitcast_for_its_user() -> None:  # A12
    run = Run(
        """
HloModule m, entry_computation_layout={()->f32[6,7,3,5]{3,2,1,0}}
ENTRY e {
  c = f32[] constant(1)
  b = f32[3,5,6,7] broadcast(c), dimensions={}
  ROOT t = f32[6,7,3,5] transpose(b), dimensions={2,3,0,1}
}"""
    )

    assert run.layouts("b", "t") == {"b": "{1,0,3,2}", "t": "{3,2,1,0}"}


def test_a_fusion_that_transposes_inside_runs() -> None:  # A15
    run = Run(
        """
HloModule m
f {
  y = f32[2,2,2] parameter(1)
  t = f32[2,2,2] transpose(y), dimensions={0,2,1}
  x = f32[] parameter(0)
  b = f32[2,2,2] broadcast(x), dimensions={}
  ROOT d = f32[2,2,2] divide(t, b)
}
ENTRY e {
  p = f32[2,2,2] parameter(1)
  q = f32[] parameter(0)
  u = f32[2,2,2] fusion(q, p), kind=kLoop, calls=f
  ROOT r = (f32[2,2,2]) tuple(u)
}"""
    )

    assert run.layouts("t", "d", "y") == {"t": "-", "d": "{2,1,0}", "y": "{2,1,0}"}


def test_tuple_elements_inside_a_fusion_inherit_the_parameters_layouts() -> None:  # A16
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[2,2,2]{0,1,2}, (f32[2,2,2]{1,2,0}, f32[2,2,2]{2,0,1})))->f32[2,2,2]{2,1,0}}
f {
  x = (f32[2,2,2], (f32[2,2,2], f32[2,2,2])) parameter(0)
  g0 = f32[2,2,2] get-tuple-element(x), index=0
  g1 = (f32[2,2,2], f32[2,2,2]) get-tuple-element(x), index=1
  ga = f32[2,2,2] get-tuple-element(g1), index=0
  gb = f32[2,2,2] get-tuple-element(g1), index=1
  a = f32[2,2,2] add(ga, gb)
  ROOT r = f32[2,2,2] add(g0, a)
}
ENTRY e {
  p = (f32[2,2,2], (f32[2,2,2], f32[2,2,2])) parameter(0)
  ROOT u = f32[2,2,2] fusion(p), kind=kLoop, calls=f
}"""
    )

    assert run.layouts("g0", "ga", "gb", "g1", "r") == {
        "g0": "{0,1,2}",
        "ga": "{1,2,0}",
        "gb": "{2,0,1}",
        "g1": "({1,2,0}, {2,0,1})",
        "r": "{2,1,0}",
    }


def test_a_bitcast_is_refused() -> None:  # A19
    with pytest.raises(LayoutError, match="Unexpected bitcast operation seen during layout assignment"):
        Run(
            """
HloModule m
ENTRY e {
  c = f32[2,2]{0,1} constant({{1,2},{3,4}})
  ROOT b = f32[2,2]{0,1} bitcast(c)
}"""
        )


def test_a_slice_operand_is_copied_rather_than_the_slice_changing_layout() -> None:  # A23
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[3,4]{1,0}, f32[4,5]{0,1})->f32[3,4]{1,0}}
ENTRY e {
  p = f32[3,4] parameter(0)
  q = f32[4,5] parameter(1)
  s = f32[3,4] slice(q), slice={[1:4],[1:5]}
  ROOT a = f32[3,4] add(p, s)
}"""
    )

    assert run.operands("s") == ["copy{1,0}(q)"]
    assert len(run.copies) == 1


def test_bitcast_convert_to_more_dimensions_takes_its_operand_in_its_own_layout() -> None:  # A24
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[2,64]{0,1})->u4[2,64,8]{1,2,0:E(4)}}
ENTRY e {
  p = f32[2,64]{0,1} parameter(0)
  ROOT b = u4[2,64,8]{1,2,0:E(4)} bitcast-convert(p)
}"""
    )

    assert run.operands("b") == ["copy{1,0}(p)"]


def test_bitcast_convert_to_fewer_dimensions_takes_its_operand_in_its_own_layout() -> None:  # A25
    run = Run(
        """
HloModule m, entry_computation_layout={(s8[16,3,2]{2,1,0})->u16[16,3]{0,1}}
ENTRY e {
  p = s8[16,3,2] parameter(0)
  ROOT b = u16[16,3]{0,1} bitcast-convert(p)
}"""
    )

    assert run.operands("b") == ["copy{2,0,1}(p)"]


def test_a_dynamic_slice_operand_is_copied_and_its_indices_are_not() -> None:  # A26
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[3,4]{1,0}, f32[4,5]{0,1}, s32[], s32[])->f32[3,4]{1,0}}
ENTRY e {
  p = f32[3,4] parameter(0)
  q = f32[4,5] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  s = f32[3,4] dynamic-slice(q, i, j), dynamic_slice_sizes={3,4}
  ROOT a = f32[3,4] add(p, s)
}"""
    )

    assert run.operands("s") == ["copy{1,0}(q)", "i", "j"]


def test_a_concatenate_operand_is_copied() -> None:  # A27
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[3,8]{1,0}, f32[3,5]{0,1}, f32[3,3]{1,0})->f32[3,8]{1,0}}
ENTRY e {
  p = f32[3,8] parameter(0)
  q = f32[3,5] parameter(1)
  r = f32[3,3] parameter(2)
  c = f32[3,8] concatenate(q, r), dimensions={1}
  ROOT a = f32[3,8] add(p, c)
}"""
    )

    assert run.operands("c") == ["copy{1,0}(q)", "r"]


def test_a_convolution_is_not_constrained_without_a_backend() -> None:  # A28
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[128,3,230,230]{2,3,1,0}, f32[7,7,3,64]{3,2,0,1})->f32[128,64,112,112]{3,2,1,0}}
ENTRY e {
  p = f32[128,3,230,230] parameter(0)
  k = f32[7,7,3,64] parameter(1)
  ROOT c = f32[128,64,112,112] convolution(p, k), window={size=7x7 stride=2x2}, dim_labels=bf01_01io->bf01
}"""
    )

    assert run.copies == []


def test_the_results_layout_travels_back_through_a_slice() -> None:  # A29
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[4,5]{1,0})->f32[3,4]{0,1}}
ENTRY e {
  p = f32[4,5] parameter(0)
  ROOT s = f32[3,4] slice(p), slice={[1:4],[1:5]}
}"""
    )

    assert run.operands("s") == ["copy{0,1}(p)"]
    assert run.layout("s") == "{0,1}"


def test_a_diamond_agrees_on_one_layout_for_the_add() -> None:  # A42
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,12]{1,0}, f32[12,8]{1,0})->(f32[12,8]{1,0}, f32[12,8]{0,1})}
ENTRY e {
  p = f32[8,12] parameter(0)
  q = f32[12,8] parameter(1)
  t = f32[12,8] transpose(p), dimensions={1,0}
  a = f32[12,8] add(t, q)
  ROOT u = (f32[12,8], f32[12,8]) tuple(a, t)
}"""
    )
    first, second = run["a"].operands

    assert str(run.root.operand(0).shape.layout) == "{1,0}"
    assert run.layout("t") == "{0,1}"
    assert first.shape.layout == second.shape.layout


def test_dynamic_dimensions_stay_dynamic() -> None:  # A45
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[1,<=16]{0,1})->f32[1,16]{0,1}}
ENTRY e {
  p = f32[1,<=16]{0,1} parameter(0)
  ROOT a = f32[1,<=16]{0,1} abs(p)
}"""
    )

    assert run.layouts("p", "a") == {"p": "{0,1}", "a": "{0,1}"}
    assert run["a"].shape.dynamic == (False, True)


def test_a_gather_chain_ends_in_a_bitcast() -> None:  # A48
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[32,650]{1,0}, s32[16,1,18]{0,1,2})->f32[16,1,18,32]{3,1,2,0}}
ENTRY e {
  p = f32[32,650]{1,0} parameter(0)
  t = f32[650,32]{0,1} transpose(p), dimensions={1,0}
  i = s32[16,1,18]{0,1,2} parameter(1)
  r1 = s32[288,1]{1,0} reshape(i)
  g = f32[288,1,32]{2,1,0} gather(t, r1), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,32}
  ROOT r3 = f32[16,1,18,32]{3,2,1,0} reshape(g)
}"""
    )

    assert run.layouts("r1", "r3") == {"r1": "{1,0}", "r3": "{3,1,2,0}"}
