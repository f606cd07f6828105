from layoutsim.memory.buffers import Allocation
from layoutsim.memory.combine import combine_temps, partition


def _allocations(kinds: str) -> list[Allocation]:
    """One allocation per letter: ``t`` a temporary, anything else a constant."""
    return [Allocation(i, size=10, is_constant=kind != "t") for i, kind in enumerate(kinds)]


def _partitioned(kinds: str) -> tuple[list[int], int]:
    order = _allocations(kinds)
    first = partition(order, lambda allocation: not allocation.is_temp)
    return [allocation.index for allocation in order], first


def test_the_next_temporary_is_exchanged_with_the_last_other_allocation() -> None:
    # The worked example of the memory spec: parameters and output 0-2, tables 3 and 4, constant 5, heap 6, thread-local 7-9.
    assert _partitioned("xxxttxtxxx") == ([0, 1, 2, 9, 8, 5, 7, 6, 4, 3], 7)


def test_partitions_without_anything_to_exchange() -> None:
    assert _partitioned("") == ([], 0)
    assert _partitioned("xx") == ([0, 1], 2)
    assert _partitioned("tt") == ([0, 1], 0)
    assert _partitioned("xt") == ([0, 1], 1)
    assert _partitioned("tx") == ([1, 0], 1)


def test_temporaries_are_laid_end_to_end_at_aligned_offsets() -> None:
    combined = combine_temps(_allocations("txt"), alignment=16)

    # 10 bytes, rounded up to 16, and 10 more.
    assert [(a.index, a.size, a.is_temp) for a in combined] == [(0, 10, False), (1, 26, True)]


def test_colours_stay_apart() -> None:
    allocations = _allocations("ttt")
    allocations[1].color = 1

    assert [(a.color, a.size) for a in combine_temps(allocations, alignment=1)] == [(0, 20), (1, 10)]


def test_a_limit_is_never_reached() -> None:
    assert [a.size for a in combine_temps(_allocations("tttt"), alignment=1, limit=21)] == [20, 20]
    assert [a.size for a in combine_temps(_allocations("tttt"), alignment=1, limit=20)] == [10, 10, 10, 10]
