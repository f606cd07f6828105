import pytest

from layoutsim.errors import InputError, UnsupportedError
from layoutsim.memory.heaps import BestFit
from layoutsim.memory.problem import Interval
from layoutsim.memory.problem_csv import print_problem_csv, read_problem_csv
from tests.memory.packing import problem_from

FIVE = """\
id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
"""


def test_half_open_times_become_closed_intervals():
    problem = read_problem_csv(FIVE).problem

    assert problem.intervals[:2] == (Interval(0, 0, 2, 4, name="b1"), Interval(1, 3, 8, 4, name="b2"))
    assert read_problem_csv(FIVE).placement is None


def test_reading_and_printing_gives_the_same_text():
    assert print_problem_csv(read_problem_csv(FIVE).problem) == FIVE


def test_offsets_are_read_and_printed():
    with_offsets = "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\n"
    read = read_problem_csv(with_offsets)

    assert read.placement is not None
    assert read.placement.size == 12
    assert print_problem_csv(read.problem, read.placement) == with_offsets


def test_a_packed_problem_prints_its_offsets():
    problem = read_problem_csv(FIVE).problem
    read = read_problem_csv(print_problem_csv(problem, BestFit().pack(problem)))

    assert read.placement == BestFit().pack(problem)


def test_columns_come_in_any_order():
    assert read_problem_csv("size,upper,id,lower\n4,3,b1,0\n").problem.intervals == (Interval(0, 0, 2, 4, name="b1"),)


def test_a_column_named_end_includes_the_last_tick():
    assert read_problem_csv("buffer_id,start,end,size\nb1,0,3,4\n").problem.intervals == (Interval(0, 0, 3, 4, name="b1"),)


def test_alignment_is_that_of_the_problem():
    text = "id,lower,upper,size,alignment\nb1,0,3,4,32\nb2,0,3,4,32\n"

    assert read_problem_csv(text).problem.alignment == 32
    assert print_problem_csv(read_problem_csv(text).problem) == text


def test_gaps_separate_the_members_of_a_group():
    text = "id,lower,upper,size,gaps\na,0,20,4,3-5 9-12\nb,3,5,4,\n"
    problem = read_problem_csv(text).problem

    assert [[(m.start, m.end) for m in group.members] for group in problem.groups] == [[(0, 2), (5, 8), (12, 19)], [(3, 4)]]
    assert BestFit().pack(problem).size == 4
    assert print_problem_csv(problem) == text


def test_a_group_is_a_row_with_gaps():
    # a is live at ticks 0 and 1, c (which shares) at 4 and 5
    assert print_problem_csv(problem_from("a4 -a b8 -b c=a:6 -c")) == "id,lower,upper,size,gaps\na,0,6,6,2-4\nb,2,4,8,\n"


def test_names_with_commas_are_replaced_by_ids():
    assert print_problem_csv(read_problem_csv(FIVE).problem.__class__((Interval(7, 0, 1, 2, name="f{0,1}"),))) == (
        "id,lower,upper,size\n7,0,2,2\n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected a header"),
        ("id,lower,size\n", "line 1: column upper is missing"),
        ("id,lower,begin,upper,size\n", "line 1: column lower occurs twice"),
        ("id,lower,upper,size,weight\n", "line 1: expected a column of .*, got 'weight'"),
        ("id,lower,upper,size\na,0,1\n", "line 2: expected 4 fields, got 3"),
        ("id,lower,upper,size\n\na,0,1,4\n", "line 2: expected 4 fields, got 1"),
        ("id,lower,upper,size\na,0,x,4\n", "line 2: expected a number in column upper, got 'x'"),
        ("id,lower,upper,size\na,3,3,4\n", "line 2: expected a time of at least one tick"),
        ("id,lower,upper,size\na,0,3,-4\n", "line 2: expected a time of at least one tick and numbers that are not negative"),
        ("id,lower,upper,size,gaps\na,0,9,4,37\n", "line 2: expected a gap like 4-9, got '37'"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, message: str):
    with pytest.raises(InputError, match=message):
        read_problem_csv(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,lower,upper,size,gaps\na,0,9,4,3-7@0:2\n", "gap 3-7@0:2 has a window"),
        ("id,lower,upper,size,alignment\na,0,9,4,8\nb,0,9,4,16\n", r"rows have alignments \[8, 16\]"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(text: str, message: str):
    with pytest.raises(UnsupportedError, match=message):
        read_problem_csv(text)
