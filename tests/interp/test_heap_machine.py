"""The heap machine on placements made by hand: it accepts right ones, and sees each kind of fault that is planted."""

import numpy as np
import pytest

from layoutsim.errors import InputError
from layoutsim.interp.arena import Fault, Finding
from layoutsim.interp.heap_machine import HeapRun, run_in_memory
from layoutsim.interp.options import Options
from layoutsim.interp.places import Block, Place, Places
from layoutsim.ir import Module
from layoutsim.text import parse_module

CHAIN = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] negate(x)
  b = f32[4] abs(x)
  c = f32[4] add(a, b)
  ROOT d = f32[4] multiply(c, c)
}
"""


def places_of(
    module: Module, table: dict[str, tuple[int, int, int]], sizes: list[int], *, lent: tuple[int, ...] = ()
) -> Places:
    """Places by name (``while.1{0}`` for parts): allocation, offset, size."""
    by_name = {i.name: i for c in module.computations for i in c.instructions}
    defined = {}
    for text, place in table.items():
        name, _, index = text.partition("{")
        parts = tuple(int(i) for i in index.rstrip("}").split(",") if i)
        defined[by_name[name], parts] = Place(*place)
    return Places(module, tuple(Block(i, size, i in lent) for i, size in enumerate(sizes)), defined)


def run(
    text: str, table: dict[str, tuple[int, int, int]], sizes: list[int], *arguments: object, lent: tuple[int, ...] = ()
) -> HeapRun:
    return run_in_memory(places_of(parse_module(text), table, sizes, lent=lent), [arguments])


def only(run: HeapRun) -> Finding:
    (finding,) = run.findings
    return finding


X = [1.0, 2.0, 3.0, 4.0]
GOOD = {"x": (0, 0, 16), "a": (1, 0, 16), "b": (1, 16, 16), "c": (2, 0, 16), "d": (2, 0, 16)}
SIZES = [16, 32, 16]


def test_a_right_placement_is_clean_and_gives_the_reference_results() -> None:
    result = run(CHAIN, GOOD, SIZES, X, lent=(0,))

    assert result.is_clean
    assert np.asarray(result.results[0]).tolist() == [0, 0, 0, 0]


def test_a_value_that_overwrites_a_living_one_is_seen() -> None:
    finding = only(run(CHAIN, GOOD | {"b": (1, 8, 16)}, SIZES, X))

    # b writes bytes 8 to 24, and a (0 to 16) is read after that
    assert (finding.fault, finding.instruction, finding.position, finding.writer) == (Fault.CLOBBERED, "c", "a", "b")
    assert (finding.allocation, finding.first_byte, finding.end_byte) == (1, 8, 16)
    assert (finding.expected, finding.found) == (-3.0, 1.0)
    assert str(finding) == (
        "time 2, device 0, c: a (allocation 1, bytes 8:16) was overwritten: 1.0, expected -3.0, last written by b"
    )


def test_overwriting_is_seen_even_where_the_numbers_agree() -> None:
    same = CHAIN.replace("abs(x)", "negate(x)")

    finding = only(run(same, GOOD | {"b": (1, 0, 16)}, SIZES, [0.0, 0.0, 0.0, 0.0]))

    assert (finding.fault, finding.position, finding.writer) == (Fault.CLOBBERED, "a", "b")


def test_memory_may_be_reused_as_soon_as_a_value_is_dead() -> None:
    assert run(CHAIN, GOOD | {"d": (1, 16, 16)}, SIZES, X).is_clean  # b's place; b is dead after c


def test_a_place_that_is_too_small_is_seen() -> None:
    finding = only(run(CHAIN, GOOD | {"b": (1, 16, 12)}, SIZES, X))

    assert (finding.fault, finding.instruction) == (Fault.TOO_SMALL, "b")


def test_a_place_outside_of_its_allocation_is_seen() -> None:
    finding = only(run(CHAIN, GOOD | {"b": (1, 24, 16)}, SIZES, X))

    assert (finding.fault, finding.first_byte, finding.end_byte) == (Fault.OUTSIDE, 24, 40)


def test_a_value_without_a_place_is_seen() -> None:
    finding = only(run(CHAIN, {name: place for name, place in GOOD.items() if name != "b"}, SIZES, X))

    assert (finding.fault, finding.position) == (Fault.NO_PLACE, "b")


def test_writing_into_a_lent_parameter_is_seen() -> None:
    finding = only(run(CHAIN, GOOD | {"d": (0, 0, 16)}, SIZES, X, lent=(0,)))

    assert (finding.fault, finding.instruction) == (Fault.READ_ONLY, "d")


def test_a_donated_parameter_may_be_overwritten() -> None:
    assert run(CHAIN, GOOD | {"d": (0, 0, 16)}, SIZES, X).is_clean


def test_a_result_must_be_in_the_parameter_that_it_is_aliased_with() -> None:
    text = CHAIN.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {}: (0, {}, must-alias) }")

    finding = only(run(text, GOOD, SIZES, X))

    assert (finding.fault, finding.position, finding.allocation) == (Fault.MISPLACED, "d", 2)


# -- in place --------------------------------------------------------------------------------------------------------------


def in_place(instruction: str, *, shift: int = 0) -> HeapRun:
    text = f"HloModule m, is_scheduled=true\nENTRY e {{\n x = f32[4,4] parameter(0)\n ROOT y = f32[4,4] {instruction}\n}}\n"
    return run(text, {"x": (0, 0, 64), "y": (0, shift, 64)}, [128], np.arange(16).reshape(4, 4))


def test_elementwise_operations_work_in_place() -> None:
    assert in_place("negate(x)").is_clean


@pytest.mark.parametrize(
    ("instruction", "shift"),
    [("transpose(x), dimensions={1,0}", 0), ("reverse(x), dimensions={0}", 0), ("negate(x)", 4)],
)
def test_a_result_over_an_operand_that_is_still_being_read_is_seen(instruction: str, shift: int) -> None:
    finding = only(in_place(instruction, shift=shift))

    assert (finding.fault, finding.instruction, finding.position) == (Fault.IN_PLACE, "y", "operand x")


def test_an_update_in_place_of_a_slice_that_reads_itself_is_seen() -> None:
    text = """HloModule m, is_scheduled=true
      ENTRY e {
        x = f32[8] parameter(0)
        u = f32[4] parameter(1)
        z = s32[] constant(2)
        ROOT y = f32[8] dynamic-update-slice(x, u, z)
      }"""
    good = {"x": (0, 0, 32), "u": (1, 0, 16), "z": (2, 0, 4), "y": (0, 0, 32)}

    assert run(text, good, [32, 16, 4], np.arange(8), np.arange(4)).is_clean
    finding = only(run(text, good | {"y": (1, 0, 32)}, [32, 32, 4], np.arange(8), np.arange(4)))
    assert (finding.fault, finding.position) == (Fault.IN_PLACE, "operand u")


# -- layouts and bitcasts ----------------------------------------------------------------------------------------------------


def test_values_lie_in_the_order_of_their_layouts() -> None:
    text = """HloModule m, is_scheduled=true
      ENTRY e {
        x = f32[2,3]{1,0} parameter(0)
        a = f32[2,3]{0,1} copy(x)
        b = f32[3,2]{1,0} bitcast(a)
        ROOT c = f32[3,2]{1,0} negate(b)
      }"""

    result = run(text, {"x": (0, 0, 24), "a": (1, 0, 24), "c": (2, 0, 24)}, [24, 24, 24], [[1, 2, 3], [4, 5, 6]])

    assert result.is_clean
    assert np.asarray(result.results[0]).tolist() == [[-1, -4], [-2, -5], [-3, -6]]


# -- control flow ------------------------------------------------------------------------------------------------------------

LOOP = """HloModule m, is_scheduled=true
cond { s = (s32[], f32[2]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)  ROOT less = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[2]) parameter(0)  j = s32[] get-tuple-element(p), index=0  one = s32[] constant(1)
  k = s32[] add(j, one)  y = f32[2] get-tuple-element(p), index=1  z = f32[2] add(y, y)
  ROOT t = (s32[], f32[2]) tuple(k, z) }
ENTRY e {
  x = f32[2] parameter(0)
  zero = s32[] constant(0)
  i0 = s32[] copy(zero)
  x0 = f32[2] copy(x)
  init = (s32[], f32[2]) tuple(i0, x0)
  loop = (s32[], f32[2]) while(init), condition=cond, body=body
  ROOT result = f32[2] get-tuple-element(loop), index=1
}
"""
LOOP_PLACES = {
    "x": (0, 0, 8),
    "zero": (1, 0, 4),
    "n": (1, 4, 4),
    "one": (1, 8, 4),
    "i0": (2, 0, 4),
    "k": (2, 0, 4),
    "x0": (3, 0, 8),
    "z": (3, 0, 8),
    "init": (2, 8, 16),
    "t": (2, 8, 16),
    "less": (2, 24, 1),
}
LOOP_SIZES = [8, 12, 32, 8]


def test_a_loop_runs_in_its_carried_buffers() -> None:
    result = run(LOOP, LOOP_PLACES, LOOP_SIZES, [1.0, 3.0], lent=(0, 1))

    assert result.is_clean
    assert np.asarray(result.results[0]).tolist() == [8, 24]


def test_a_body_that_leaves_its_result_elsewhere_is_seen() -> None:
    result = run(LOOP, LOOP_PLACES | {"z": (2, 24, 8)}, LOOP_SIZES, [1.0, 3.0])

    finding = result.findings[0]
    # the second iteration looks for y where the first found it; x0 died there
    assert (finding.fault, finding.instruction, finding.position, finding.allocation) == (Fault.POISON, "z", "y", 3)


def test_a_condition_that_overwrites_what_is_carried_is_seen() -> None:
    finding = run(LOOP, LOOP_PLACES | {"less": (3, 4, 1)}, LOOP_SIZES, [1.0, 3.0]).findings[0]

    assert (finding.fault, finding.position, finding.first_byte, finding.end_byte) == (Fault.POISON, "y", 4, 5)


def test_a_table_of_pointers_that_is_overwritten_is_seen() -> None:
    finding = run(LOOP, LOOP_PLACES | {"less": (2, 10, 1)}, LOOP_SIZES, [1.0, 3.0]).findings[0]

    assert (finding.instruction, finding.position) == ("j", "p{}")


def test_a_constant_that_is_overwritten_is_seen() -> None:
    findings = run(LOOP, LOOP_PLACES | {"less": (1, 8, 1)}, LOOP_SIZES, [1.0, 3.0]).findings

    assert (findings[0].fault, findings[0].instruction, findings[0].position) == (Fault.POISON, "k", "one")


def test_a_branch_that_leaves_its_result_elsewhere_is_seen() -> None:
    text = """HloModule m, is_scheduled=true
      yes { a = f32[2] parameter(0)  ROOT b = f32[2] negate(a) }
      no { c = f32[2] parameter(0)  ROOT d = f32[2] copy(c) }
      ENTRY e {
        p = pred[] parameter(0)
        x = f32[2] parameter(1)
        r = f32[2] conditional(p, x, x), true_computation=yes, false_computation=no
        ROOT s = f32[2] add(r, r)
      }"""
    good = {"p": (0, 0, 1), "x": (1, 0, 8), "b": (2, 0, 8), "d": (2, 0, 8), "r": (2, 0, 8), "s": (3, 0, 8)}
    bad = good | {"d": (2, 8, 8)}

    assert [run(text, good, [1, 8, 16, 8], flag, [1, 2]).is_clean for flag in (True, False)] == [True, True]
    assert [run(text, bad, [1, 8, 16, 8], flag, [1, 2]).is_clean for flag in (True, False)] == [True, False]


# -- asynchronous ------------------------------------------------------------------------------------------------------------

ASYNC = """HloModule m, is_scheduled=true
ENTRY e {
  x = f32[2] parameter(0)
  a = f32[2] negate(x)
  s = ((f32[2]), f32[2]) exponential-start(a)
  b = f32[2] abs(x)
  d = f32[2] exponential-done(s)
  ROOT c = f32[2] add(b, d)
}
"""


def test_operands_of_a_start_must_stay_until_its_done() -> None:
    table = {"x": (0, 0, 8), "a": (1, 0, 8), "async_op": (1, 8, 8), "s": (2, 0, 16), "s{0}": (2, 16, 8), "b": (1, 16, 8)}
    table["c"] = (3, 0, 8)
    sizes = [8, 24, 24, 8]

    assert run(ASYNC, table, sizes, [1, 2]).is_clean
    findings = run(ASYNC, table | {"b": (1, 0, 8)}, sizes, [1, 2]).findings
    assert (findings[0].fault, findings[0].instruction, findings[0].position) == (Fault.CLOBBERED, "d", "s{0,0}")


# -- devices and limits ------------------------------------------------------------------------------------------------------


def test_every_device_has_its_own_memory() -> None:
    module = parse_module(CHAIN)
    places = places_of(module, GOOD | {"b": (1, 8, 16)}, SIZES)

    result = run_in_memory(places, [[X]], options=Options(replicas=2))
    watched = run_in_memory(places, [[X]], options=Options(replicas=2), watched=[1])

    assert [finding.device for finding in result.findings] == [0, 1]
    assert [finding.device for finding in watched.findings] == [1]


def test_findings_are_cut_at_a_maximum() -> None:
    table = GOOD | {"a": (1, 0, 4), "b": (1, 0, 4), "c": (1, 0, 4)}  # three places that are too small

    assert len(run_in_memory(places_of(parse_module(CHAIN), table, SIZES), [[X]], max_findings=2).findings) == 2


def test_an_assignment_that_is_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="more than the heap machine's limit"):
        run(CHAIN, GOOD, [16, 1 << 40, 16], X)
