import pytest

from layoutsim.errors import InputError
from layoutsim.memory.problem import EventRecorder, Interval, Placement, Problem
from tests.memory.packing import problem_from


def test_every_event_takes_one_tick():
    problem = problem_from("a10 b20 -a c=b:20 -b -c")

    assert [(i.name, i.start, i.end) for i in problem.intervals] == [("a", 0, 2), ("b", 1, 4), ("c", 3, 5)]


def test_sharers_are_mates_of_what_they_share_with():
    problem = problem_from("a10 b=a:10 c=b:10 d=a:10 -a -b -c -d")

    assert [(i.name, i.mates, i.need) for i in problem.intervals] == [
        ("a", (1, 3), True),
        ("b", (2,), False),
        ("c", (), False),
        ("d", (), False),
    ]
    assert [[m.name for m in group.members] for group in problem.groups] == [["a", "b", "c", "d"]]


def test_what_is_never_freed_lives_to_the_last_tick():
    recorder = EventRecorder()
    recorder.alloc(0, 4)
    recorder.alloc(1, 4)
    recorder.free(1)

    assert [i.end for i in recorder.finish().intervals] == [2, 2]


def test_the_alignment_must_be_positive():
    with pytest.raises(InputError, match="alignment must be positive, got 0"):
        Problem((), alignment=0)


def test_an_id_occurs_once():
    with pytest.raises(InputError, match="interval 4 occurs twice"):
        _ = Problem((Interval(4, 0, 1, 8), Interval(4, 2, 3, 8))).by_id


def test_a_sharer_without_source_is_refused():
    with pytest.raises(InputError, match="shares with no interval that does"):
        _ = Problem((Interval(4, 0, 1, 8, need=False),)).groups


def test_a_mate_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="interval 4 has mate 5, which is not in the problem"):
        _ = Problem((Interval(4, 0, 1, 8, mates=(5,)),)).groups


def test_a_mate_of_two_groups_is_refused():
    shared = Interval(3, 0, 1, 8, need=False)
    with pytest.raises(InputError, match="is a mate of 1 and also of 2"):
        _ = Problem((Interval(1, 0, 1, 8, (3,)), Interval(2, 0, 1, 8, (3,)), shared)).groups


def test_offsets_alone_name_no_place_in_several_heaps():
    with pytest.raises(InputError, match="expected a placement in one heap, got 0 heaps"):
        _ = Placement(()).chunks
