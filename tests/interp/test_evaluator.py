"""The interpreter's front door: arguments, limits, custom calls, constants without elements, infeed and random numbers."""

import ml_dtypes
import numpy as np
import pytest

from layoutsim.errors import InputError, UnsupportedError
from layoutsim.interp import Elided, EvaluationError, Interpreter, Options, UnknownCustomCall, Value, evaluate
from layoutsim.ir import ElidedLiteralError, Instruction
from layoutsim.text import parse_module


def entry(body: str, more: str = ""):
    return parse_module(f"HloModule m\n{more}ENTRY e {{\n{body}\n}}")


def test_arguments_may_be_lists_numbers_and_nested_tuples() -> None:
    module = entry("""p = (f32[2], (s32[])) parameter(0)
      x = f32[2] get-tuple-element(p), index=0
      q = (s32[]) get-tuple-element(p), index=1
      ROOT t = (f32[2], (s32[])) tuple(x, q)""")

    x, (n,) = evaluate(module, ([1, 2], (7,)))

    assert (x.dtype, x.tolist(), n.dtype, n.tolist()) == (np.float32, [1, 2], np.int32, 7)


def test_bf16_arguments_of_ml_dtypes_are_taken() -> None:
    module = entry("x = bf16[2] parameter(0)\n ROOT y = bf16[2] add(x, x)")

    result = evaluate(module, np.array([1.5, 3], ml_dtypes.bfloat16))

    assert np.asarray(result).tolist() == [3, 6]


def test_bf16_rounds_after_every_instruction() -> None:
    module = entry("""x = bf16[] constant(256)
      one = bf16[] constant(1)
      y = bf16[] add(x, one)
      ROOT z = bf16[] subtract(y, x)""")

    assert float(np.asarray(evaluate(module))) == 0.0  # 257 is no bf16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected 1 arguments for m, got 0"),
        ([[1, 2]], r"argument 0 \(x\): expected dimensions \[3\] of f32\[3\]\{0\}, got \[2\]"),
    ],
)
def test_wrong_arguments_are_input_errors(arguments: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(entry("ROOT x = f32[3] parameter(0)"), *arguments)


def test_several_devices_need_an_interpreter() -> None:
    module = parse_module("HloModule m, replica_count=2\nENTRY e { ROOT x = f32[] parameter(0) }")

    with pytest.raises(InputError, match="runs on 2 devices"):
        evaluate(module, 1)


def test_one_list_of_arguments_serves_all_devices() -> None:
    module = parse_module("HloModule m, replica_count=2\nENTRY e { ROOT x = f32[] parameter(0) }")

    assert [float(np.asarray(value)) for value in Interpreter(module).run([[3]])] == [3, 3]


# -- limits ----------------------------------------------------------------------------------------------------------------


def test_a_large_value_is_refused() -> None:
    module = entry("x = f32[] constant(0)\n ROOT b = f32[1000000,1000000] broadcast(x), dimensions={}")

    with pytest.raises(
        EvaluationError, match=r"e/b: f32\[1000000,1000000\]\{1,0\} is larger than the limit of 2147483648 bytes"
    ):
        evaluate(module)


def test_an_endless_loop_is_given_up() -> None:
    more = (
        "c { p = f32[] parameter(0)  ROOT t = pred[] constant(true) }\nb { p = f32[] parameter(0)  ROOT q = f32[] copy(p) }\n"
    )
    module = entry("x = f32[] parameter(0)\n ROOT w = f32[] while(x), condition=c, body=b", more)

    with pytest.raises(EvaluationError, match="e/w: still running after 10 iterations"):
        evaluate(module, 1, options=Options(max_trips=10))


# -- constants and custom calls --------------------------------------------------------------------------------------------

ELIDED = "ROOT x = f32[2,3] constant({...})"


def test_an_elided_constant_is_refused() -> None:
    with pytest.raises(ElidedLiteralError, match="printed without its elements"):
        evaluate(entry(ELIDED))


def test_an_elided_constant_can_be_zeros_or_seeded() -> None:
    zeros = evaluate(entry(ELIDED), options=Options(elided_constants=Elided.ZEROS))
    first, second = (evaluate(entry(ELIDED), options=Options(elided_constants=Elided.SEEDED)) for _ in range(2))

    assert np.asarray(zeros).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert np.asarray(first).tolist() == np.asarray(second).tolist() != np.asarray(zeros).tolist()


CALL = 'x = f32[2] parameter(0)\n ROOT y = f32[2] custom-call(x), custom_call_target="mine"'


def test_an_unknown_custom_call_is_named() -> None:
    with pytest.raises(UnsupportedError, match='y: no handler for custom call target "mine"'):
        evaluate(entry(CALL), [1, 2])


def test_an_unknown_custom_call_may_give_zeros() -> None:
    result = evaluate(entry(CALL), [1, 2], options=Options(unknown_custom_calls=UnknownCustomCall.ZEROS))

    assert np.asarray(result).tolist() == [0, 0]


def test_users_register_custom_calls() -> None:
    def twice(_instruction: Instruction, operands: tuple[Value, ...]) -> Value:
        return np.asarray(operands[0]) * np.float32(2)

    result = evaluate(entry(CALL), [1, 2], options=Options(custom_calls={"mine": twice}))

    assert np.asarray(result).tolist() == [2, 4]


def test_a_handler_must_keep_the_shape() -> None:
    def wrong(_instruction: Instruction, operands: tuple[Value, ...]) -> Value:
        return operands[0], operands[0]

    with pytest.raises(EvaluationError, match=r'custom call target "mine" gave no value of shape f32\[2\]'):
        evaluate(entry(CALL), [1, 2], options=Options(custom_calls={"mine": wrong}))


# -- state of a run --------------------------------------------------------------------------------------------------------


def test_infeed_and_outfeed_are_queues() -> None:
    module = entry("""t = token[] after-all()
      a = (f32[2], token[]) infeed(t)
      x = f32[2] get-tuple-element(a), index=0
      u = token[] get-tuple-element(a), index=1
      b = (f32[2], token[]) infeed(u)
      y = f32[2] get-tuple-element(b), index=0
      z = f32[2] subtract(x, y)
      ROOT o = token[] outfeed(z, u)""")
    interpreter = Interpreter(module, Options(infeed=([5, 6], [1, 1])))

    interpreter.run([[]])

    assert [(device, np.asarray(value).tolist()) for device, value in interpreter.outfeed] == [(0, [4, 5])]


def test_random_numbers_depend_on_the_seed_only() -> None:
    module = entry("a = f32[] constant(2)\n b = f32[] constant(3)\n ROOT r = f32[100] rng(a, b), distribution=rng_uniform")

    first, same, other = (np.asarray(evaluate(module, options=Options(seed=s))) for s in (1, 1, 2))

    assert (first >= 2).all() and (first < 3).all()
    assert first.tolist() == same.tolist() != other.tolist()


def test_the_state_of_rng_get_and_update_state_counts_on() -> None:
    module = entry("""a = u64[2] rng-get-and-update-state(), delta=3
      b = u64[2] rng-get-and-update-state(), delta=3, control-predecessors={a}
      ROOT t = (u64[2], u64[2]) tuple(a, b)""")

    assert [np.asarray(part).tolist() for part in evaluate(module)] == [[0, 0], [3, 0]]


def test_dynamic_sizes_below_the_bound_are_not_modelled() -> None:
    module = entry(
        "x = f32[4] parameter(0)\n n = s32[] constant(2)\n ROOT y = f32[<=4] set-dimension-size(x, n), dimensions={0}"
    )

    with pytest.raises(UnsupportedError, match="y: dynamic size 2 below the bound 4 is not modelled"):
        evaluate(module, [1, 2, 3, 4])


def test_bodies_that_are_not_elementwise_run_element_by_element() -> None:
    more = """body { a = f32[] parameter(0)  b = f32[] parameter(1)  p = pred[] compare(a, b), direction=LT
      ROOT r = f32[] conditional(p, b, a), true_computation=same, false_computation=same }
      """
    module = entry(
        "x = f32[2,3] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=body",
        "same { x = f32[] parameter(0)  ROOT y = f32[] copy(x) }\n" + more,
    )

    assert np.asarray(evaluate(module, [[1, 5, 2], [-1, -2, -3]])).tolist() == [5, 0]


def test_strict_sequential_reductions_round_every_step() -> None:
    more = "add { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }\n"
    body = "x = bf16[512] parameter(0)\n z = bf16[] constant(0)\n ROOT r = bf16[] reduce(x, z), dimensions={0}, to_apply=add"
    ones = np.ones(512)

    wide = evaluate(entry(body, more), ones)
    strict = evaluate(entry(body, more), ones, options=Options(strict_sequential=True))

    assert (float(np.asarray(wide)), float(np.asarray(strict))) == (512, 256)  # 256 + 1 is 256 in bf16


def test_packed_types_are_reinterpreted_from_the_low_bits_up() -> None:
    """As jax 0.10.2 does on CPU."""
    module = parse_module(
        "HloModule m\nENTRY e {\n x = u4[2,2] constant({{1,2},{3,15}})\n y = s4[1,4] constant({{1,2,3,-4}})\n"
        " a = u8[2] bitcast-convert(x)\n b = s16[1] bitcast-convert(y)\n c = s4[1,4] bitcast-convert(b)\n"
        " ROOT t = (u8[2], s16[1], s4[1,4]) tuple(a, b, c)\n}"
    )

    a, b, c = evaluate(module)

    assert (a.tolist(), b.tolist()) == ([0x21, 0xF3], [0xC321 - 0x10000])
    assert c.tolist() == [[1, 2, 3, -4]]
