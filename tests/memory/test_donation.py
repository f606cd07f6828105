"""What became of donated parameters."""

from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.donation import Donation, Outcome, donation_report
from layoutsim.memory.profile import GPU
from layoutsim.text import parse_module

ONE = """
HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY e {
  p = f32[64,32]{1,0} parameter(0)
BODY
}
"""


def donations(text: str) -> tuple[Donation, ...]:
    return donation_report(assign_buffers(parse_module(text), GPU)).donations


def only(body: str, header: str = "") -> Donation:
    text = ONE.replace("BODY", body)
    if header:
        text = text.replace("input_output_alias={ {}: (0, {}, may-alias) }", header)
    (donation,) = donations(text)
    return donation


def test_a_result_computed_into_the_parameter_is_reuse():
    found = only("  ROOT n = f32[64,32]{1,0} negate(p)")

    assert (found.outcome, found.reason) == (Outcome.REUSED, "n puts the result into it")
    assert (found.label, found.output_index, found.size) == ("p", (), 8192)


def test_a_parameter_returned_as_it_is_is_reuse():
    found = only("  n = f32[64,32]{1,0} negate(p)\n  ROOT b = f32[64,32]{1,0} bitcast(p)")

    assert found.reason == "the parameter is returned as it is"


def test_a_transposing_copy_at_the_end_is_a_relayout():
    found = only(
        "  t = f32[64,32]{0,1} broadcast(z), dimensions={}\n  ROOT c = f32[64,32]{1,0} copy(t)".replace(
            "  t =", "  z = f32[] constant(0)\n  t ="
        )
    )

    assert found.outcome is Outcome.RELAYOUT
    assert found.reason == "the result is transposed into it by c ({0,1} to {1,0})"


def test_a_parameter_that_is_only_read_by_transposing_copies_is_a_relayout():
    found = only("  c = f32[64,32]{0,1} copy(p)\n  d = f32[32,64]{1,0} bitcast(c)\n  ROOT n = f32[64,32]{1,0} reshape(d)")

    assert found.outcome is not Outcome.NOT_USABLE
    found = only(
        "  c = f32[64,32]{0,1} copy(p)\n  s = f32[1,1]{0,1} slice(c), slice={[0:1], [0:1]}\n"
        "  x = f32[] bitcast(s)\n  ROOT n = f32[64,32]{1,0} broadcast(x), dimensions={}"
    )
    assert found.outcome is Outcome.RELAYOUT
    assert found.reason == "the parameter is only read by c ({1,0} to {0,1}); the array is kept in another layout"


def test_a_plain_copy_at_the_end_is_a_copy():
    found = only(
        "  z = f32[] constant(0)\n  t = f32[64,32]{1,0} broadcast(z), dimensions={}\n"
        "  u = f32[64,32]{1,0} add(t, p)\n  ROOT c = f32[64,32]{1,0} copy(t)"
    )

    assert (found.outcome, found.reason) == (Outcome.COPIED, "the result is computed elsewhere and copied into it by c")


DONOR = "buffer_donor={ (0, {}) }"


def test_a_donor_without_an_output_of_its_size_is_not_usable():
    found = only("  ROOT s = f32[1,32]{1,0} slice(p), slice={[0:1], [0:32]}", DONOR)

    assert (found.outcome, found.reason) == (Outcome.NOT_USABLE, "no output takes 8,192 bytes")
    assert found.output_index is None


def test_a_donor_whose_output_is_in_another_memory_space_is_not_usable():
    found = only("  ROOT n = f32[64,32]{1,0:S(5)} negate(p)", DONOR)

    assert found.reason == "the outputs that take 8,192 bytes are in another memory space"


def test_a_donor_that_the_compiler_passed_over_is_not_usable():
    found = only("  ROOT n = f32[64,32]{1,0} negate(p)", DONOR)

    assert found.reason == "output {} would fit, but the compiler gave it memory of its own"


def test_a_donor_whose_output_is_taken_is_not_usable():
    text = """
HloModule m, is_scheduled=true, input_output_alias={ {}: (1, {}, may-alias) }, buffer_donor={ (0, {}) }

ENTRY e {
  p = f32[64]{0} parameter(0)
  q = f32[64]{0} parameter(1)
  ROOT n = f32[64]{0} add(p, q)
}
"""
    first, second = donations(text)

    assert first.reason == "the only output that takes 256 bytes has the memory of other parameters"
    assert second.outcome is Outcome.REUSED


def test_the_report_says_whether_all_is_reused():
    good = donation_report(assign_buffers(parse_module(ONE.replace("BODY", "  ROOT n = f32[64,32]{1,0} negate(p)")), GPU))
    bad = donation_report(
        assign_buffers(
            parse_module(
                ONE.replace("BODY", "  ROOT n = f32[64,32]{1,0} negate(p)").replace(
                    "input_output_alias={ {}: (0, {}, may-alias) }", DONOR
                )
            ),
            GPU,
        )
    )

    assert (good.all_reused, good.all_usable) == (True, True)
    assert (bad.all_reused, bad.all_usable) == (False, False)


def test_a_donation_is_written_in_one_line():
    found = only("  ROOT n = f32[64,32]{1,0} negate(p)")

    assert found.to_text() == "parameter 0 (p, f32[64,32]{1,0}): reused: n puts the result into it"
    assert found.to_json()["outcome"] == "reused"
