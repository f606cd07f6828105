from hypothesis import given
from hypothesis import strategies as st

from layoutsim.memory.occupancy import Occupancy, bits_descending

STEPS = 13
RANGES = st.tuples(st.integers(0, STEPS), st.integers(0, STEPS)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(RANGES, max_size=12), RANGES)
def test_it_names_what_overlaps_like_a_comparison_with_every_range(
    taken: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    occupancy = Occupancy(STEPS)
    for number, (first, end) in enumerate(taken):
        occupancy.add(number, first, end)

    expected = [n for n, (first, end) in enumerate(taken) if max(first, asked[0]) < min(end, asked[1])]

    assert list(bits_descending(occupancy.taken(*asked))) == expected[::-1]


def test_an_instant_takes_no_step() -> None:
    occupancy = Occupancy(4)
    occupancy.add(0, 2, 2)

    assert occupancy.taken(0, 4) == 0
