"""How layout assignment goes about it: collective rules one by one, order, work list, priorities, comparison of copies."""

import pytest

from layoutsim.errors import PassError
from layoutsim.experiments import simulate
from layoutsim.ir import Module
from layoutsim.ir.traverse import post_order
from layoutsim.passes import parse_pipeline
from layoutsim.passes.layout_assignment.layout_pass import LayoutAssignment
from layoutsim.text import parse_module


def assigned(text: str, options: str = "") -> Module:
    module = parse_module(text)
    parse_pipeline(f"layout-assignment{{backend=gpu {options}}}").run(module, verify=True)
    return module


def lines(module: Module) -> list[str]:
    """Every instruction of the entry but parameters, operands first: ``name = shape opcode(operands)``."""
    return [
        f"{i.name} = {i.shape} {i.opcode}({', '.join(o.name for o in i.operands)})"
        for i in post_order(module.entry)
        if i.opcode != "parameter"
    ]


# -- collectives ---------------------------------------------------------------------------------------------------------

SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
HEADER = "HloModule m, replica_count=4\n"
COLLECTIVES = {
    "all-gather": (
        HEADER + "ENTRY e {\n  p = f32[1,4,8] parameter(0)\n"
        "  ROOT s = f32[1,16,8] all-gather(p), dimensions={1}, replica_groups={{0,1,2,3}}\n}",
        ["copy = f32[1,4,8]{2,0,1} copy(p)", "s = f32[1,16,8]{2,0,1} all-gather(copy)", "copy.1 = f32[1,16,8]{2,1,0} copy(s)"],
        ["s = f32[1,16,8]{2,1,0} all-gather(p)"],
    ),
    "reduce-scatter": (
        HEADER + SUM + "ENTRY e {\n  p = f32[1,16,8] parameter(0)\n"
        "  ROOT s = f32[1,4,8] reduce-scatter(p), dimensions={1}, replica_groups={{0,1,2,3}}, to_apply=add\n}",
        [
            "copy = f32[1,16,8]{2,0,1} copy(p)",
            "s = f32[1,4,8]{2,0,1} reduce-scatter(copy)",
            "copy.1 = f32[1,4,8]{2,1,0} copy(s)",
        ],
        ["s = f32[1,4,8]{2,1,0} reduce-scatter(p)"],
    ),
    "all-to-all": (
        HEADER + "ENTRY e {\n  p = f32[1,16,8] parameter(0)\n"
        "  ROOT s = f32[1,16,8] all-to-all(p), dimensions={1}, replica_groups={{0,1,2,3}}\n}",
        ["copy = f32[1,16,8]{2,0,1} copy(p)", "s = f32[1,16,8]{2,0,1} all-to-all(copy)", "copy.1 = f32[1,16,8]{2,1,0} copy(s)"],
        ["s = f32[1,16,8]{2,1,0} all-to-all(p)"],
    ),
}


@pytest.mark.parametrize("opcode", COLLECTIVES)
def test_each_collective_has_a_rule_of_its_own(opcode: str) -> None:
    text, positional, aware = COLLECTIVES[opcode]

    assert lines(assigned(text)) == positional
    assert lines(assigned(text, f"{opcode}=ignore-degenerate")) == aware
    for other in COLLECTIVES.keys() - {opcode}:
        assert lines(assigned(text, f"{other}=ignore-degenerate")) == positional


def test_a_ragged_all_to_all_ignores_them_too() -> None:
    text = """HloModule m, replica_count=2,
  entry_computation_layout={(f32[4,1,8]{2,0,1}, f32[4,1,8]{2,0,1}, s64[2]{0})->f32[4,1,8]{2,0,1}}
ENTRY e {
  p = f32[4,1,8]{2,0,1} parameter(0)
  o = f32[4,1,8]{2,0,1} parameter(1)
  n = s64[2] parameter(2)
  ROOT r = f32[4,1,8]{2,0,1} ragged-all-to-all(p, o, n, n, n, n), replica_groups={{0,1}}
}"""

    assert lines(assigned(text)) == [
        "copy = f32[4,1,8]{2,1,0} copy(p)",
        "copy.1 = f32[4,1,8]{2,1,0} copy(o)",
        "r = f32[4,1,8]{2,1,0} ragged-all-to-all(copy, copy.1, n, n, n, n)",
        "copy.2 = f32[4,1,8]{2,0,1} copy(r)",
    ]
    assert lines(assigned(text, "ragged-all-to-all=ignore-degenerate")) == [
        "r = f32[4,1,8]{2,0,1} ragged-all-to-all(p, o, n, n, n, n)"
    ]


def test_an_all_to_all_that_returns_a_tuple_demands_nothing() -> None:
    text = """HloModule m, replica_count=2,
  entry_computation_layout={(f32[4,8]{0,1}, f32[4,8]{0,1})->(f32[4,8]{0,1}, f32[4,8]{0,1})}
ENTRY e {
  p = f32[4,8] parameter(0)
  q = f32[4,8] parameter(1)
  ROOT a = (f32[4,8], f32[4,8]) all-to-all(p, q), replica_groups={{0,1}}
}"""
    expected = ["a = (f32[4,8]{0,1}, f32[4,8]{0,1}) all-to-all(p, q)"]

    assert lines(assigned(text)) == expected
    assert lines(assigned(text, "all-to-all=ignore-degenerate")) == expected


# -- order of computations -----------------------------------------------------------------------------------------------

CALL = """HloModule m, entry_computation_layout={(f32[4,8]{0,1})->f32[4,8]{0,1}}
callee {
  p = f32[4,8] parameter(0)
  ROOT n = f32[4,8] negate(p)
}
ENTRY e {
  w = f32[4,8] parameter(0)
  ROOT c = f32[4,8] call(w), to_apply=callee
}"""


def test_callers_first_lets_the_caller_choose() -> None:
    assert lines(assigned(CALL)) == [
        "copy = f32[4,8]{1,0} copy(w)",
        "c = f32[4,8]{1,0} call(copy)",
        "copy.1 = f32[4,8]{0,1} copy(c)",
    ]
    assert lines(assigned(CALL, "computation-order=reverse")) == ["c = f32[4,8]{0,1} call(w)"]


def test_callers_first_takes_partly_automatic_parameters() -> None:
    # Found by random modules: the element without layout of its own reached a reduce.
    text = """HloModule m, entry_computation_layout={((s32[1,32], f32[2,3], f32[5,3]{1,0}))->f32[2]}
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  p = (s32[1,32], f32[2,3], f32[5,3]) parameter(0)
  x = f32[2,3] get-tuple-element(p), index=1
  z = f32[] constant(0)
  ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=add
}"""

    assert assigned(text, "computation-order=reverse").find("e", "x").shape == assigned(text).find("e", "x").shape


# -- work list -----------------------------------------------------------------------------------------------------------

# cuBLAS wants s4 packed along what is contracted, so d wants c in {0,1}.
PACKED = """HloModule m, entry_computation_layout={(s4[8,4]{1,0}, bf16[2,8]{1,0})->bf16[2,4]{1,0}}
ENTRY e {
  w = s4[8,4] parameter(0)
  x = bf16[2,8] parameter(1)
  c = bf16[8,4] convert(w)
  ROOT d = bf16[2,4] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
DEEP = ["copy = s4[8,4]{0,1} copy(w)", "c = bf16[8,4]{0,1} convert(copy)", "d = bf16[2,4]{1,0} dot(x, c)"]
BROAD = ["c = bf16[8,4]{1,0} convert(w)", "copy = bf16[8,4]{0,1} copy(c)", "d = bf16[2,4]{1,0} dot(x, copy)"]


@pytest.mark.parametrize(("work_list", "expected"), [("xla", DEEP), ("depth-first", DEEP), ("breadth-first", BROAD)])
def test_how_far_a_demand_gets(work_list: str, expected: list[str]) -> None:
    assert lines(assigned(PACKED, f"work-list={work_list}")) == expected


def transposing_bytes(text: str, options: str) -> int:
    simulation = simulate(parse_module(text), f"layout-assignment{{backend=gpu {options}}}", measure_memory=False)
    return simulation.transposing_bytes


def test_breadth_first_can_copy_more_and_less() -> None:
    both = PACKED.replace("ENTRY e {", "ENTRY e {\n  y = bf16[8,4] parameter(2)").replace("dot(x, c)", "dot(x, m)")
    both = both.replace("  ROOT d", "  m = bf16[8,4] multiply(c, y)\n  ROOT d").replace(
        "bf16[2,8]{1,0})", "bf16[2,8]{1,0}, bf16[8,4]{1,0})"
    )

    # XLA copies w, 8*4 half bytes, and y, 64 bytes where y is multiplied.
    assert [transposing_bytes(t, "") for t in (PACKED, both)] == [32, 96]
    assert [transposing_bytes(t, "work-list=breadth-first") for t in (PACKED, both)] == [64, 64]


# -- priorities ----------------------------------------------------------------------------------------------------------

# g wants n, and by way of s also r, in {0,1}; the result wants r in {1,0}.
WISH = """HloModule m, replica_count=4, entry_computation_layout={(f32[8,4,1]{2,1,0})->(f32[8,16]{1,0}, f32[8,4]{1,0})}
ENTRY e {
  p = f32[8,4,1] parameter(0)
  n = f32[8,4] reshape(p)
  g = f32[8,16] all-gather(n), dimensions={1}, replica_groups={{0,1,2,3}}
  s = f32[8,4] sine(n)
  r = f32[8,4] reshape(s)
  ROOT t = (f32[8,16], f32[8,4]) tuple(g, r)
}"""


def test_a_wish_of_higher_priority_replaces_another() -> None:
    assert assigned(WISH).find("e", "r").shape.layout == assigned(WISH).find("e", "s").shape.layout
    changed = assigned(WISH, "priorities=use-to-definition:1")

    # The copy of r is saved, but only because the reshape moves the elements itself now.
    assert str(changed.find("e", "r").shape) == "f32[8,4]{1,0}"
    assert str(changed.find("e", "s").shape) == "f32[8,4]{0,1}"
    assert transposing_bytes(WISH, "") - transposing_bytes(WISH, "priorities=use-to-definition:1") == 8 * 4 * 4


def test_priorities_are_read_and_printed() -> None:
    text = "layout-assignment{priorities=reduce-operand:-1+loop-back-edge:1}"
    (read,) = parse_pipeline(text).passes

    assert read == LayoutAssignment(priorities=("reduce-operand:-1", "loop-back-edge:1"))
    assert read.to_text() == text


@pytest.mark.parametrize("word", ["dot:1", "reduce-operand", "reduce-operand:x"])
def test_what_is_no_wish_is_refused(word: str) -> None:
    with pytest.raises(PassError, match="priorities: expected STEP:NUMBER with a step of use-to-definition, "):
        LayoutAssignment(priorities=(word,))


# -- comparison of copies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", COLLECTIVES)
def test_copies_that_move_nothing_are_bitcasts(opcode: str) -> None:
    text, positional, _ = COLLECTIVES[opcode]

    assert lines(assigned(text, "copies=modulo-degenerate")) == [line.replace("copy", "bitcast") for line in positional]


def test_copies_that_move_something_stay() -> None:
    assert lines(assigned(CALL, "copies=modulo-degenerate")) == lines(assigned(CALL))


def test_a_copy_in_a_branch_is_a_bitcast_too() -> None:
    text = """HloModule m, entry_computation_layout={(pred[], f32[1,4,8]{2,0,1})->f32[32]{0}}
yes {
  x = f32[1,4,8] parameter(0)
  ROOT r = f32[32] reshape(x)
}
no {
  y = f32[1,4,8] parameter(0)
  f = f32[32] reshape(y)
  ROOT n = f32[32] negate(f)
}
ENTRY e {
  p = pred[] parameter(0)
  q = f32[1,4,8] parameter(1)
  s = f32[1,4,8] sine(q)
  ROOT c = f32[32] conditional(p, q, s), true_computation=yes, false_computation=no
}"""
    exact, modulo = assigned(text), assigned(text, "copies=modulo-degenerate")
    opcodes = [[i.opcode.value for c in m.computations for i in c.instructions] for m in (exact, modulo)]

    assert opcodes[0].count("copy") > 0
    assert opcodes[1] == ["bitcast" if opcode == "copy" else opcode for opcode in opcodes[0]]
