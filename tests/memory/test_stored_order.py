"""Instruction order read off value ids. ``send-done`` and the like are guessed to be stored late; the ids say otherwise."""

from layoutsim.analysis.numbering import instruction_order
from layoutsim.memory.stored_order import stored_order
from layoutsim.text import parse_module

MODULE = """
HloModule m, is_scheduled=true

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  p = f32[4] parameter(0)
  a = f32[4] negate(p)
  b = f32[4] all-reduce-start(a), to_apply=add
  c = f32[4] all-reduce-done(b)
  d = f32[4] abs(p)
  ROOT e = f32[4] sine(d)
}
"""


def test_an_unused_done_is_guessed_to_be_stored_last() -> None:
    main = parse_module(MODULE).entry

    assert [i.name for i in instruction_order(main)] == ["p", "d", "e", "a", "b", "c"]


def test_ids_that_agree_with_the_guess_change_nothing() -> None:
    main = parse_module(MODULE).entry

    assert stored_order(main, {"p": 3, "d": 4, "e": 5, "a": 6, "b": 7}) == instruction_order(main)


def test_ids_tell_which_unused_instruction_is_stored_first() -> None:
    main = parse_module(MODULE).entry
    ids = {"p": 3, "a": 4, "b": 5, "d": 6, "e": 7}

    assert [i.name for i in stored_order(main, ids)] == ["p", "a", "b", "c", "d", "e"]


def test_values_that_several_reach_tell_nothing() -> None:
    # p is reached from c and from e; the smaller of its id and the others' would put e first.
    main = parse_module(MODULE).entry

    assert [i.name for i in stored_order(main, {"p": 9, "b": 5, "e": 7})] == ["p", "a", "b", "c", "d", "e"]


def test_stored_order_counts_where_it_is_not_that_of_the_schedule() -> None:
    # As after our own passes: c is stored before d, and scheduled behind it.
    module = parse_module(MODULE)
    main = module.entry
    p, a, b, c, d, e = main.instructions
    assert module.schedule is not None
    module.schedule.sequences[main] = [p, a, b, d, c, e]

    assert [i.name for i in instruction_order(main)] == ["p", "a", "b", "c", "d", "e"]
