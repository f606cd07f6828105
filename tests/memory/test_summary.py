import pytest
from attrs import evolve

from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.buffers import BufferAssignment
from layoutsim.memory.profile import CPU
from layoutsim.memory.summary import find_peak, summarize
from layoutsim.text import parse_module


def _assign(body: str, header: str = "", alignment: int = 1) -> BufferAssignment:
    module = parse_module(f"HloModule m, is_scheduled=true{header}\n\nENTRY main {{\n{body}\n}}\n")
    return assign_buffers(module, evolve(CPU, alignment=alignment))


# The peak example of XLA's own tests: log and its reverse, the negation, both concatenated.
PEAK = """
  p = f32[100] parameter(0)
  log = f32[100] log(p)
  rev = f32[100] reverse(log), dimensions={0}
  neg = f32[100] negate(p)
  both = f32[200] concatenate(rev, neg), dimensions={0}
  ROOT part = f32[1] slice(both), slice={[0:1]}
"""


@pytest.mark.checklist(57)
def test_the_peak_is_where_most_is_alive() -> None:
    peak = find_peak(_assign(PEAK))

    # Parameter 400, output 4, and rev 400, neg 400, both 800.
    assert peak.bytes == 2004
    assert peak.at is not None and peak.at.name == "both"
    assert [(value.instruction.name, size) for value, size in peak.alive] == [
        ("both", 800),
        ("p", 400),
        ("rev", 400),
        ("neg", 400),
        ("part", 4),
    ]


@pytest.mark.checklist(57)
def test_peak_values_of_an_allocation_are_those_of_its_heap() -> None:
    temp = next(a for a in _assign(PEAK).allocations if a.is_temp)

    assert [value.instruction.name for value in temp.peak_values] == ["rev", "neg", "both"]


def test_figures_of_a_small_program() -> None:
    summary = summarize(_assign(PEAK))

    assert summary.argument_bytes == 400 and summary.output_bytes == 4 and summary.aliased_bytes == 0
    assert summary.temp_bytes == 1600 and summary.total_bytes == 2004
    assert summary.peak_bytes == 2004
    # Between two instructions at most rev and neg, or both, are alive: 404 + 800.
    assert summary.lower_bound_bytes == 1204
    assert summary.fragmentation_bytes == 0


def test_a_donated_parameter_is_argument_output_and_aliased() -> None:
    summary = summarize(
        _assign("p = f32[100] parameter(0)\nROOT n = f32[100] negate(p)", ", input_output_alias={ {}: (0, {}, may-alias) }")
    )

    assert (summary.argument_bytes, summary.output_bytes, summary.aliased_bytes, summary.total_bytes) == (400, 400, 400, 400)
    assert summary.peak_bytes == 400


def test_alignment_counts_as_fragmentation() -> None:
    summary = summarize(
        _assign(
            "p = f32[3] parameter(0)\na = f32[3] reverse(p), dimensions={0}\nb = f32[3] reverse(a), dimensions={0}\n"
            "c = f32[3] reverse(b), dimensions={0}\nROOT r = f32[6] concatenate(c, c), dimensions={0}",
            alignment=16,
        )
    )

    # Two of a, b and c at a time: 12 bytes, 4 lost, 12 bytes.
    assert summary.temp_bytes == 28 and summary.fragmentation_bytes == 4


def test_a_program_without_temporaries_peaks_where_it_begins() -> None:
    peak = find_peak(_assign("p = f32[4] parameter(0)\nROOT n = f32[4] negate(p)"))

    assert peak.bytes == 32 and peak.at is None
