"""Opcodes that the real CPU compiler cannot run, so that nothing is recorded of them; refused forms; the whole list."""

import re
from pathlib import Path

import numpy as np
import pytest

from layoutsim.errors import UnsupportedError
from layoutsim.interp import Options, evaluate
from layoutsim.ir import Module, Opcode
from layoutsim.text import parse_module

FIXTURES = Path(__file__).parents[2] / "fixtures" / "interp"
ADD = "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
STEP = """step {
  x = f32[] parameter(0)
  c = f32[] parameter(1)
  s = f32[] add(x, c)
  ROOT t = (f32[], f32[]) tuple(s, s)
}
"""
NEGATED = "negated {\n x = f32[2] parameter(0)\n ROOT n = f32[2] negate(x)\n}\n"


def entry(body: str, more: str = "") -> Module:
    lines = body.split("\n")
    lines[-1] = f"ROOT {lines[-1].strip()}"
    return parse_module(f"HloModule m\n{more}ENTRY e {{\n" + "\n".join(lines) + "\n}")


def value_of(body: str, more: str = "") -> object:
    result = evaluate(entry(body, more))
    return [np.asarray(part).tolist() for part in result] if isinstance(result, tuple) else np.asarray(result).tolist()


X = "x = f32[3] constant({0.5, -0.25, 1})\n"
INVERSES = {
    "acos": [np.pi / 3, np.arccos(-0.25), 0.0],
    "asin": [np.pi / 6, np.arcsin(-0.25), np.pi / 2],
    "asinh": [np.log(0.5 + np.sqrt(1.25)), -np.log(0.25 + np.sqrt(1.0625)), np.log(1 + np.sqrt(2))],
    "atanh": [0.5 * np.log(3), -0.5 * np.log(1.25 / 0.75), np.inf],
    "cosh": [(np.exp(x) + np.exp(-x)) / 2 for x in (0.5, -0.25, 1)],
    "sinh": [(np.exp(x) - np.exp(-x)) / 2 for x in (0.5, -0.25, 1)],
    "acosh": [np.nan, np.nan, 0.0],
}


@pytest.mark.parametrize("opcode", INVERSES)
def test_inverses_and_hyperbolic_functions_are_what_mathematics_says(opcode: str) -> None:
    np.testing.assert_allclose(value_of(f"{X}y = f32[3] {opcode}(x)"), INVERSES[opcode], rtol=1e-6, atol=1e-7)


TEXTS = {
    # 2**31 * 2**31 = 2**62, whose upper half is 2**30; -1 * 1 is all ones
    "mulhi": (
        "a = s32[2] constant({-2147483648, -1})\nb = s32[2] constant({-2147483648, 1})\nm = s32[2] mulhi(a, b)",
        "",
        [1 << 30, -1],
    ),
    # -2.25 becomes -3 where the random number is below a quarter of 2**32
    "stochastic-convert": (
        "a = f32[4] constant({2.25, 2.25, -2.25, 3})\n"
        "r = u32[4] constant({0, 1073741824, 1073741823, 0})\n"
        "s = s32[4] stochastic-convert(a, r)",
        "",
        [3, 2, -3, 3],
    ),
    "topk": (
        "a = f32[4] constant({1, 4, 2, 4})\nt = (f32[2], s32[2]) topk(a), k=2, largest=true",
        "",
        [[4, 4], [1, 3]],
    ),
    "scan": (
        "a = f32[3] constant({1, 2, 3})\n"
        "z = f32[] constant(10)\n"
        "s = (f32[3], f32[]) scan(a, z), dimensions={0}, num_carries=1, to_apply=step",
        STEP,
        [[11, 13, 16], 16],
    ),
    # rows 0 and 1 meet the first matrix, row 2 the second; row 3 belongs to no group
    "ragged-dot": (
        "a = f32[4,1] constant({{1},{2},{3},{4}})\n"
        "b = f32[2,1,1] constant({{{10}},{{100}}})\n"
        "g = s32[2] constant({2, 1})\n"
        "d = f32[4,1] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}",
        "",
        [[10], [20], [300], [0]],
    ),
    # the left operand is scaled in blocks of two columns, by 2 and 10; the right one in blocks of two rows, by 1 and 3
    "scaled-dot": (
        "a = f32[1,4] constant({{1,2,3,4}})\n"
        "b = f32[4,1] constant({{1},{1},{1},{1}})\n"
        "u = f32[1,2] constant({{2,10}})\n"
        "v = f32[2,1] constant({{1},{3}})\n"
        "d = f32[1,1] scaled-dot(a, b, u, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "",
        [[(1 + 2) * 2 * 1 + (3 + 4) * 10 * 3]],
    ),
    "dynamic-reshape": (
        "a = f32[4] constant({1,2,3,4})\nn = s32[] constant(2)\nr = f32[<=2,2] dynamic-reshape(a, n, n)",
        "",
        [[1, 2], [3, 4]],
    ),
    "set-dimension-size": (
        "a = f32[2] constant({1,2})\nn = s32[] constant(2)\nr = f32[<=2] set-dimension-size(a, n), dimensions={0}",
        "",
        [1, 2],
    ),
    "get-dimension-size": (
        "a = f32[5,2] iota(), iota_dimension=0\nn = s32[] get-dimension-size(a), dimensions={0}",
        "",
        5,
    ),
    "domain": (
        'a = f32[2] constant({1,2})\nd = f32[2] domain(a), domain={kind="sharding", entry={replicated}, exit={replicated}}',
        "",
        [1, 2],
    ),
    "add-dependency": (
        "a = f32[2] constant({1,2})\nt = token[] after-all()\nd = f32[2] add-dependency(a, t)",
        "",
        [1, 2],
    ),
    "fusion": (
        "a = f32[2] constant({1,2})\nf = f32[2] fusion(a), kind=kLoop, calls=negated",
        NEGATED,
        [-1, -2],
    ),
    "async-start": (
        "a = f32[2] constant({1,2})\n"
        "s = ((f32[2]), f32[2]) async-start(a), calls=negated\n"
        "u = ((f32[2]), f32[2]) async-update(s)\n"
        "d = f32[2] async-done(u)",
        NEGATED,
        [-1, -2],
    ),
    "copy-start": (
        "a = f32[2] constant({1,2})\ns = (f32[2], f32[2], u32[]) copy-start(a)\nd = f32[2] copy-done(s)",
        "",
        [1, 2],
    ),
    "all-reduce-done": (
        "a = f32[2] constant({1,2})\n"
        "s = f32[2] all-reduce-start(a), replica_groups={}, to_apply=sum\n"
        "d = f32[2] all-reduce-done(s)",
        ADD,
        [1, 2],
    ),
    "collective-permute-done": (
        "a = f32[2] constant({1,2})\n"
        "s = (f32[2], f32[2]) collective-permute-start(a), source_target_pairs={{0,0}}\n"
        "d = f32[2] collective-permute-done(s)",
        "",
        [1, 2],
    ),
}


@pytest.mark.parametrize("opcode", TEXTS)
def test_values_are_as_defined(opcode: str) -> None:
    body, more, expected = TEXTS[opcode]

    assert value_of(body, more) == expected


REFUSED = {
    "a send to a host": (
        "a = f32[] constant(0)\n"
        "t = token[] after-all()\n"
        "s = (f32[], u32[], token[]) send(a, t), channel_id=1, is_host_transfer=true",
        "s: transfers to the host",
    ),
    "a receive from a host": (
        "t = token[] after-all()\nr = (f32[], u32[], token[]) recv(t), channel_id=1, is_host_transfer=true",
        "r: transfers from the host",
    ),
    "a send without pairs": (
        "a = f32[] constant(0)\nt = token[] after-all()\ns = (f32[], u32[], token[]) send(a, t), channel_id=1",
        "s: needs the frontend attribute _xla_send_recv_source_target_pairs",
    ),
    "a dynamic size below its bound": (
        "a = f32[2] constant({1,2})\nn = s32[] constant(1)\nr = f32[<=2] set-dimension-size(a, n), dimensions={0}",
        "r: dynamic size 1 below the bound 2",
    ),
    "a stochastic conversion to a float": (
        "a = f32[1] constant({1})\nn = u32[1] constant({1})\ns = bf16[1] stochastic-convert(a, n)",
        "s: stochastic-convert to bf16",
    ),
    "random floats": (
        "a = u64[2] constant({1,2})\nr = (u64[2], f32[2]) rng-bit-generator(a), algorithm=rng_three_fry",
        "r: random bits of type f32",
    ),
    "group sizes for each batch": (
        "a = f32[2,4,1] iota(), iota_dimension=1\n"
        "b = f32[3,2,1,1] iota(), iota_dimension=0\n"
        "g = s32[2,3] iota(), iota_dimension=0\n"
        "d = f32[2,4,1] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}",
        "d: ragged-dot with group sizes for each batch",
    ),
    "an unknown call": (
        'a = f32[] constant(1)\nc = f32[] custom-call(a), custom_call_target="mine"',
        'target "mine"',
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_not_modelled_is_named(form: str) -> None:
    body, says = REFUSED[form]

    with pytest.raises(UnsupportedError, match=re.escape(says)):
        evaluate(entry(body), options=Options())


def test_every_opcode_is_evaluated_by_a_recorded_module_or_a_test() -> None:
    recorded = [parse_module(path.read_text()) for path in sorted(FIXTURES.glob("*.hlo"))]
    found = {i.opcode for module in recorded for c in module.computations for i in c.instructions}
    texts = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("*.py")))

    assert {o for o in set(Opcode) - found if not re.search(rf"\b{o}\(", texts)} - {Opcode(name) for name in INVERSES} == set()
