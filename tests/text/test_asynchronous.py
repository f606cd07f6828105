import pytest

from layoutsim.ir import Opcode
from layoutsim.ir.payloads import AsyncPayload
from tests.text.asking import complaint, parse_both

HEAD = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

negate_it {
  p = f32[8]{0} parameter(0)
  ROOT n = f32[8]{0} negate(p)
}

two {
  p = f32[8]{0} parameter(0)
  n = f32[8]{0} negate(p)
  ROOT e = f32[8]{0} exponential(n)
}

swapped {
  p = f32[8]{0} parameter(0)
  q = f32[8]{0} parameter(1)
  ROOT d = f32[8]{0} subtract(q, p)
}

ENTRY e {
  x = f32[8]{0} parameter(0)
"""
SHAPE = "((f32[8]{0}), f32[8]{0}, s32[])"


def _with(*lines: str) -> str:
    return HEAD + "\n".join(f"  {line}" for line in lines) + "\n}\n"


def _last_lines(text: str, count: int) -> list[str]:
    printed = parse_both(text).to_text().replace("%", "")
    return [line.strip() for line in printed.splitlines()[-1 - count : -1]]


def test_sugar_stands_for_a_start_of_a_wrapper() -> None:
    lines = [
        "s = ((f32[8]{0}), f32[1]{0}) reduce-scatter-start(x), replica_groups={}, dimensions={0}, to_apply=sum",
        "ROOT d = f32[1]{0} reduce-scatter-done(s)",
    ]
    module = parse_both(_with(*lines))
    start = module.entry.find("s")
    body = start.to_apply

    assert (start.opcode, module.entry.root.opcode) == (Opcode.ASYNC_START, Opcode.ASYNC_DONE)
    assert (body.name, body.root.opcode, body.root.name) == ("async_wrapped", Opcode.REDUCE_SCATTER, "async_op")
    assert [p.name for p in body.parameters] == ["async_param"]
    assert [c.name for c in body.root.called_computations] == ["sum"]
    assert _last_lines(_with(*lines), 2) == lines


def test_the_generic_form_with_one_operation_prints_with_sugar_only_where_no_name_is_lost() -> None:
    lines = [f"s = {SHAPE} async-start(x), calls=negate_it", "ROOT d = f32[8]{0} async-done(s)"]

    assert _last_lines(_with(*lines), 2) == lines


def test_a_body_of_two_operations_prints_in_generic_form() -> None:
    lines = [f"s = {SHAPE} async-start(x), calls=two", f"u = {SHAPE} async-update(s)", "ROOT d = f32[8]{0} async-done(u)"]

    assert _last_lines(_with(*lines), 3) == lines


def test_a_body_that_swaps_its_parameters_prints_in_generic_form() -> None:
    shape = "((f32[8]{0}, f32[8]{0}), f32[8]{0})"
    lines = [f"s = {shape} async-start(x, x), calls=swapped", "ROOT d = f32[8]{0} async-done(s)"]

    assert _last_lines(_with(*lines), 2) == lines


def test_annotations_of_sugar_hold_for_the_operation_too() -> None:
    lines = [f's = {SHAPE} negate-start(x), sharding={{{{manual}}, {{manual}}, {{manual}}}}, metadata={{op_name="n"}}']
    start = parse_both(_with(*lines)).entry.root

    assert start.to_apply.root.metadata.op_name == "n"
    assert start.to_apply.root.attributes.sharding == ""


def test_threads_go_from_the_start_to_the_chain() -> None:
    module = parse_both(_with(f's = {SHAPE} negate-start(x), async_execution_thread="host"', "d = f32[8]{0} negate-done(s)"))

    assert module.entry.find("s").to_apply.execution_thread == "host"
    assert module.entry.root.payload == AsyncPayload("host")


def test_wrappers_are_numbered() -> None:
    module = parse_both(_with(f"s = {SHAPE} negate-start(x)", f"t = {SHAPE} tanh-start(x)"))

    assert [i.to_apply.name for i in module.entry.instructions[1:]] == ["async_wrapped", "async_wrapped.1"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            [f"s = {SHAPE} negate-start(x)", "d = f32[8] negate-done(s)", "e = f32[8] negate-done(d)"],
            "expected one async-start or async-update as the operand of async-done",
        ),
        (
            [f"s = {SHAPE} negate-start(x)", "d = f32[8] tanh-done(s)"],
            "expected the operation negate of %s, got tanh",
        ),
        (
            [f"s = {SHAPE} negate-start(x)", 'd = f32[8] negate-done(s), async_execution_thread="t"'],
            "expected the thread 'main', got 't'",
        ),
        (
            [f"s = {SHAPE} async-start(x), calls=two", "d = f32[8] async-done(s), calls=negate_it"],
            "expected the computation %two of %s",
        ),
        (
            [f"s = {SHAPE} async-start(x), calls=two", f"t = {SHAPE} async-start(x), calls=two"],
            "expected a computation that no other async-start calls, got %two",
        ),
        (
            ["s = f32[8] negate-start(x)"],
            "expected a shape ((operands), result, ...) on async-start, got f32[8]{0}",
        ),
        (
            [f"s = {SHAPE} negate-start(x)", "u = f32[8] negate-update(s)"],
            f"expected the operand's shape {SHAPE} on async-update, got f32[8]{{0}}",
        ),
        ([f"s = {SHAPE} async-start(x)"], "expected attribute calls on async-start, got none"),
        ([f"s = {SHAPE} reduce-scatter-start(x)"], "expected attribute to_apply on async-start, got none"),
    ],
)
def test_chains_that_do_not_fit_are_refused(lines: list[str], reason: str) -> None:
    line, _, found = complaint(_with(*lines))

    assert found == reason
    assert line == HEAD.count("\n") + len(lines)
