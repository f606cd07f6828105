"""Custom calls with and without layouts, buffers, host memory (layout spec, 15.A)."""

import pytest

from layoutsim.passes.layout_assignment import CopyKind
from tests.passes.layout_assignment.running import WITHOUT_LAYOUTS, Run


@pytest.mark.parametrize(("operand", "result"), [("0,2,1", "3,2,0,1"), ("0,1,2", "0,2,3,1")])
def test_a_free_custom_call_takes_what_the_entry_gives(operand: str, result: str) -> None:  # A31
    run = Run(
        f"""
HloModule m, entry_computation_layout={{(f32[42,2,3]{{{operand}}})->f32[1,2,3,4]{{{result}}}}}
ENTRY e {{
  p = f32[42,2,3] parameter(0)
  ROOT c = f32[1,2,3,4] custom-call(p), custom_call_target="baz"
}}"""
    )

    assert run.layouts("p", "c") == {"p": f"{{{operand}}}", "c": f"{{{result}}}"}
    assert run.copies == []


CONSTRAINED = """
HloModule m, entry_computation_layout={(f32[4,4]{1,0}, f32[2,3]{1,0})->f32[1,2,3,4]{2,1,0,3}}
ENTRY e {
  p = f32[4,4] parameter(0)
  q = f32[2,3] parameter(1)
  ROOT? c = f32[1,2,3,4]{3,2,0,1} custom-call(p, q), custom_call_target="baz",
    operand_layout_constraints={f32[4,4]{0,1}, f32[2,3]{1,0}}
  MORE
}"""


def test_a_constrained_custom_call_is_wrapped_in_copies() -> None:  # A32
    run = Run(CONSTRAINED.replace("ROOT?", "ROOT").replace("MORE", ""))

    assert run.operands("c") == ["copy{0,1}(p)", "q"]
    assert run.expression(run.root) == "copy{2,1,0,3}(c)"
    assert run.layout("c") == "{3,2,0,1}"


def test_elementwise_users_stay_in_the_layout_of_a_constrained_call() -> None:  # A33
    run = Run(CONSTRAINED.replace("ROOT?", "").replace("MORE", "ROOT x = f32[1,2,3,4] exponential(c)"))

    assert run.expression(run.root) == "copy{2,1,0,3}(x)"
    assert run.layouts("x", "c") == {"x": "{3,2,0,1}", "c": "{3,2,0,1}"}


def test_a_constrained_call_that_writes_over_an_operand_gets_a_copy_of_it() -> None:  # A34
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8,128]{1,0}, f32[8,128]{1,0})->f32[8,128]{1,0}}
ENTRY e {
  p = f32[8,128] parameter(0)
  q = f32[8,128] parameter(1)
  ROOT c = f32[8,128]{1,0} custom-call(p, q), custom_call_target="x",
    operand_layout_constraints={f32[8,128]{1,0}, f32[8,128]{1,0}}, custom_call_has_side_effect=true,
    output_to_operand_aliasing={{}: (0, {})}
}"""
    )

    assert run.layout("c") == "{1,0}"
    assert run.operands("c") == ["copy{1,0}(p)", "q"]
    assert [c.kind for c in run.result.copies] == [CopyKind.PROTECTIVE]


def test_a_constrained_call_without_operands() -> None:  # A35
    run = Run(
        """
HloModule m, entry_computation_layout={()->f32[1,2,3,4]{2,1,0,3}}
ENTRY e {
  ROOT c = f32[1,2,3,4]{3,2,0,1} custom-call(), custom_call_target="baz", operand_layout_constraints={}
}"""
    )

    assert run.expression(run.root) == "copy{2,1,0,3}(c)"
    assert run.layout("c") == "{3,2,0,1}"


def test_a_constrained_call_with_a_tuple_operand() -> None:  # A36
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[4,4]{1,0}, f32[2,3]{1,0})->f32[1,2,3,4]{2,1,0,3}}
ENTRY e {
  p = f32[4,4] parameter(0)
  q = f32[2,3] parameter(1)
  t = (f32[4,4], f32[2,3]) tuple(p, q)
  ROOT c = f32[1,2,3,4]{3,2,0,1} custom-call(t), custom_call_target="baz",
    operand_layout_constraints={(f32[4,4]{1,0}, f32[2,3]{0,1})}
}"""
    )

    assert run.operands("c") == ["tuple(t[0], copy{0,1}(t[1]))"]
    assert run.expression(run.root) == "copy{2,1,0,3}(c)"


def test_a_constrained_call_with_a_tuple_result() -> None:  # A37
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[4,4]{1,0})->(f32[4,4]{1,0}, f32[2,3]{1,0})}
ENTRY e {
  p = f32[4,4] parameter(0)
  ROOT c = (f32[4,4]{1,0}, f32[2,3]{0,1}) custom-call(p), custom_call_target="baz",
    operand_layout_constraints={f32[4,4]{1,0}}
}"""
    )

    assert run.layout("c") == "({1,0}, {0,1})"
    assert run.expression(run.root) == "tuple(c[0], copy{1,0}(c[1]))"


def test_memory_spaces_do_not_reach_instructions() -> None:  # A38
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[4,4]{1,0:S(5)})->(f32[4,4]{1,0:S(5)}, f32[4,4]{0,1})}
ENTRY e {
  p = f32[4,4] parameter(0)
  d = f32[4,4] custom-call(p), custom_call_target="MoveToDevice"
  ROOT t = (f32[4,4], f32[4,4]) tuple(p, d)
}"""
    )

    assert run.layout("p") == "{1,0}"
    assert str(run.root.shape) == "(f32[4,4]{1,0}, f32[4,4]{0,1})"


def test_a_partly_set_result_keeps_its_memory_space() -> None:  # A39
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[8]{0}, f32[8]{0})->(f32[8]{0:S(5)}, f32[8])}
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  ROOT t = (f32[8], f32[8]) tuple(p, q)
}"""
    )

    assert run.entry_layout == "({0}, {0}) -> ({0:S(5)}, {0})"


def test_a_partly_set_parameter_keeps_its_memory_space() -> None:  # A40
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[8]{0:S(5)}, f32[8]))->f32[8]{0}}
ENTRY e {
  p = (f32[8], f32[8]) parameter(0)
  g = f32[8] get-tuple-element(p), index=0
  h = f32[8] get-tuple-element(p), index=1
  ROOT a = f32[8] add(g, h)
}"""
    )

    assert run.entry_layout == "(({0:S(5)}, {0})) -> {0}"


def test_a_requested_leaf_of_a_partly_set_result_is_only_a_wish() -> None:  # A41
    run = Run(
        """
HloModule m, entry_computation_layout={((f32[2,3]{0,1:S(5)}, f32[2,3]))->(f32[2,3]{1,0:S(5)}, f32[2,3])}
ENTRY e {
  p = (f32[2,3], f32[2,3]) parameter(0)
  g = f32[2,3] get-tuple-element(p), index=0
  h = f32[2,3] get-tuple-element(p), index=1
  ROOT t = (f32[2,3], f32[2,3]) tuple(g, h)
}"""
    )

    assert run.entry_layout == "(({0,1:S(5)}, {1,0})) -> ({0,1:S(5)}, {1,0})"
    assert run.copies == []


def test_an_in_place_custom_call_takes_a_copy_in_its_outputs_layout() -> None:  # A49
    run = Run(
        """
HloModule m, entry_computation_layout={(f32[256,8]{0,1})->f32[256,8]{1,0}}
called {
  x = f32[256,8] parameter(0)
  one = f32[] constant(1)
  ones = f32[256,8] broadcast(one), dimensions={}
  ROOT a = f32[256,8] add(x, ones)
}
ENTRY e {
  p = f32[256,8] parameter(0)
  ROOT c = f32[256,8] custom-call(p), custom_call_target="baz", to_apply=called, custom_call_has_side_effect=true,
    output_to_operand_aliasing={{}: (0, {})}
}"""
    )

    assert run.layouts("p", "c") == {"p": "{0,1}", "c": "{1,0}"}
    assert run.operands("c") == ["copy{1,0}(p)"]


BUFFERS = """
HloModule m, entry_computation_layout={(s32[2,8]PARAMETER)->s32[2,8]RESULT}
ENTRY e {
  p = s32[2,8] parameter(0)
  b0 = b(s32[2,8]PIN) custom-call(p), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}PINNED
  b1 = b(s32[2,8]MIDDLE) custom-call(b0), custom_call_target="CallBack", output_to_operand_aliasing={{}: (0, {})}FIXED
  ROOT v = s32[2,8] custom-call(b1), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
}"""


def _buffers(**replaced: str) -> Run:
    text = BUFFERS
    for word in ("PARAMETER", "RESULT", "PINNED", "PIN", "MIDDLE", "FIXED"):
        text = text.replace(word, replaced.get(word.lower(), ""))
    return Run(text, options=WITHOUT_LAYOUTS)


def test_a_chain_of_buffers_has_default_layouts_when_nothing_is_fixed() -> None:  # A58
    assert _buffers().layouts("b0", "b1", "v") == {"b0": "b({1,0})", "b1": "b({1,0})", "v": "{1,0}"}


def test_a_fixed_result_travels_back_along_buffers() -> None:  # A59
    run = _buffers(result="{0,1}")

    assert run.layouts("p", "b0", "b1", "v") == {"p": "{0,1}", "b0": "b({0,1})", "b1": "b({0,1})", "v": "{0,1}"}
    assert run.copies == []


def test_a_fixed_parameter_travels_forward_along_buffers() -> None:  # A60
    run = _buffers(parameter="{0,1}")

    assert run.layouts("p", "b0", "b1", "v") == {"p": "{0,1}", "b0": "b({0,1})", "b1": "b({0,1})", "v": "{0,1}"}
    assert run.copies == []


def test_an_output_over_an_operand_has_the_operands_layout() -> None:  # A61
    run = Run(
        """
HloModule m, entry_computation_layout={(s32[2,8]{0,1})->s32[2,8]}
ENTRY e {
  p = s32[2,8] parameter(0)
  ROOT c = s32[2,8] custom-call(p), custom_call_target="x", output_to_operand_aliasing={{}: (0, {})}
}""",
        options=WITHOUT_LAYOUTS,
    )

    assert run.entry_layout == "({0,1}) -> {0,1}"


def test_only_the_aliased_output_of_a_tuple_follows_the_operand() -> None:  # A62
    run = Run(
        """
HloModule m, entry_computation_layout={(s32[2,8]{0,1})->(s32[2,8], s32[2,8])}
ENTRY e {
  p = s32[2,8] parameter(0)
  ROOT c = (s32[2,8], s32[2,8]) custom-call(p), custom_call_target="x", output_to_operand_aliasing={{0}: (0, {})}
}""",
        options=WITHOUT_LAYOUTS,
    )

    assert run.layout("c") == "({0,1}, {1,0})"


PINNED = ", operand_layout_constraints={s32[2,8]{0,1}}"


def test_a_layout_at_the_start_of_a_buffer_chain_copies_the_array_in_front() -> None:  # A63
    run = _buffers(pin="{0,1}", pinned=PINNED)

    assert run.layouts("p", "b0", "b1", "v") == {"p": "{0,1}", "b0": "b({0,1})", "b1": "b({0,1})", "v": "{0,1}"}
    assert run.operands("b0") == ["copy{0,1}(p)"]


def test_the_copy_in_front_of_an_in_place_call_does_not_hide_a_layout_change() -> None:
    run = _buffers(parameter="{1,0}", pin="{0,1}", pinned=PINNED)

    assert run.operands("b0") == ["copy{0,1}(copy{0,1}(p))"]
    assert [c.kind for c in run.result.copies] == [CopyKind.PROTECTIVE, CopyKind.OPERAND]


def test_a_layout_in_the_middle_of_a_buffer_chain_copies_a_buffer() -> None:  # A64: XLA's verifier refuses the result
    run = _buffers(middle="{0,1}", fixed=", operand_layout_constraints={b(s32[2,8]{0,1})}")

    assert "copyb({0,1})(b0)" in run.operands("b1")


def test_a_buffer_chain_between_two_layouts_copies_a_buffer() -> None:  # A65
    run = _buffers(pin="{0,1}", pinned=PINNED, result="{1,0}")

    assert any(c.copy.operand(0).name in ("b0", "b1") or run.expression(c.copy).startswith("copyb") for c in run.result.copies)
