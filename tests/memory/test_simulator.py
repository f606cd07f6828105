import pytest

from layoutsim.analysis.alias import Aliases
from layoutsim.analysis.alias_rules import DEFAULT_RULES
from layoutsim.analysis.liveness import LiveRanges
from layoutsim.memory.profile import size_in_bytes
from layoutsim.memory.simulator import HeapEvents, minimum_memory, simulate_heap
from layoutsim.text import parse_module


def _run(body: str, header: str = "", *, with_constants: bool = False) -> HeapEvents:
    module = parse_module(f"HloModule m, is_scheduled=true{header}\n\nENTRY main {{\n{body}\n}}\n")
    aliases = Aliases.run(module, DEFAULT_RULES)
    return simulate_heap(aliases, LiveRanges(aliases), size_in_bytes, with_constants=with_constants)


def _events(run: HeapEvents) -> list[str]:
    return [
        f"{e.kind.value} {e.value.definition}" + (f" with {e.source.definition}" if e.source is not None else "")
        for e in run.events
    ]


A_X_M_Y = """
  a = f32[4] parameter(0)
  x = f32[4] parameter(1)
  m = f32[4] multiply(a, x)
  y = f32[4] parameter(2)
"""


@pytest.mark.checklist(44)
def test_constants_have_no_events_unless_asked_for() -> None:
    body = "ROOT c = f32[] constant(1)"

    assert _events(_run(body)) == []
    assert _events(_run(body, with_constants=True)) == ["alloc c", "free c"]


@pytest.mark.checklist(44)
def test_a_single_parameter_is_allocated_and_freed() -> None:
    assert _events(_run("ROOT p = f32[] parameter(0)")) == ["alloc p", "free p"]


@pytest.mark.checklist(45)
def test_an_operand_that_dies_gives_its_place_to_the_result() -> None:
    run = _run(A_X_M_Y + "ROOT s = f32[4] add(m, y)")

    assert _events(run) == [
        "alloc a",
        "alloc x",
        "alloc y",
        "alloc m",
        "free m",
        "share s with m",
        "free a",
        "free x",
        "free y",
        "free s",
    ]
    # a, x, y, and one of m and s: 4 x 16 bytes.
    assert run.peak_bytes == 64


@pytest.mark.checklist(47)
def test_without_a_rule_the_result_is_allocated_before_the_operand_is_freed() -> None:
    run = _run(A_X_M_Y + "ROOT s = f32[] dot(m, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}")
    events = _events(run)

    assert events.index("alloc s") < events.index("free m")
    # a, x, y, m of 16 bytes and s of 4.
    assert run.peak_bytes == 68


@pytest.mark.checklist(46)
def test_only_one_output_of_a_fusion_takes_over_an_operand() -> None:
    module = parse_module(
        "HloModule m, is_scheduled=true\n\nfused {\n x = f32[4] parameter(0)\n n = f32[4] negate(x)\n"
        " e = f32[4] exponential(x)\n ROOT t = (f32[4], f32[4]) tuple(n, e)\n}\n\nENTRY main {\n p = f32[4] parameter(0)\n"
        " m = f32[4] negate(p)\n ROOT f = (f32[4], f32[4]) fusion(m), kind=kLoop, calls=fused\n}\n"
    )
    aliases = Aliases.run(module, DEFAULT_RULES)
    events = _events(simulate_heap(aliases, LiveRanges(aliases), size_in_bytes))

    assert events[2:6] == ["alloc f {}", "free m", "share f {0} with m", "alloc f {1}"]


def test_values_of_one_buffer_share_and_take_over_nothing() -> None:
    run = _run(
        "p = f32[8] parameter(0)\nu = f32[2] parameter(1)\ni = s32[] parameter(2)\nn = f32[8] negate(p)\n"
        "d = f32[8] dynamic-update-slice(n, u, i)\nROOT r = f32[8] exponential(d)"
    )
    events = _events(run)

    assert "share d with n" in events
    assert "alloc r" in events


def test_a_copy_never_takes_over_its_operand() -> None:
    events = _events(_run("p = f32[4] parameter(0)\nn = f32[4] negate(p)\nROOT c = f32[4] copy(n)"))

    assert "alloc c" in events


def test_chosen_values_only() -> None:
    module = parse_module(f"HloModule m, is_scheduled=true\n\nENTRY main {{{A_X_M_Y} ROOT s = f32[4] add(m, y)\n}}\n")
    aliases = Aliases.run(module, DEFAULT_RULES)
    chosen = [aliases.dataflow.value_at(module.entry.find("m"))]

    assert _events(simulate_heap(aliases, LiveRanges(aliases), size_in_bytes, chosen=chosen)) == ["alloc m", "free m"]


def test_minimum_memory_counts_parameters_and_tuple_tables() -> None:
    module = parse_module(
        "HloModule m, is_scheduled=true\n\nENTRY main {\n p = f32[4] parameter(0)\n n = f32[4] negate(p)\n"
        " ROOT t = (f32[4], f32[4]) tuple(p, n)\n}\n"
    )
    aliases = Aliases.run(module, DEFAULT_RULES)

    # p and n of 16 bytes, a table of two pointers.
    assert minimum_memory(aliases, LiveRanges(aliases), size_in_bytes) == 48
