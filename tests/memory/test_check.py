"""The judge accepts right placements and refuses broken ones, naming pair and bytes."""

import random

import pytest
from attrs import evolve

from layoutsim.memory.check import Claim, Fault, check_placement, find_overlaps
from layoutsim.memory.heaps import BestFit, ConstrainedBestFit, LowerBound, Order
from layoutsim.memory.problem import Chunk, Heap, Placement, Problem
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from

PROBLEM = problem_from("a40 b20 -a c=a:40 -b -c d10 -d", alignment=10)
RIGHT = {0: Chunk(0, 40), 1: Chunk(40, 20), 2: Chunk(0, 40), 3: Chunk(50, 10)}


def faults(changes: dict[int, Chunk], size: int = 60, problem: Problem = PROBLEM) -> list[tuple[Fault, tuple[str, ...]]]:
    placement = Placement((Heap(RIGHT | changes, size),))
    return [(finding.fault, finding.names) for finding in check_placement(problem, placement)]


def test_a_right_placement_is_accepted():
    assert faults({}) == []


def test_overlapping_buffers_are_refused_with_pair_ticks_and_bytes():
    placement = Placement((Heap(RIGHT | {1: Chunk(30, 20)}, 60),))

    assert [str(finding) for finding in check_placement(PROBLEM, placement)] == [
        "a and b are both live at 1..2 and both at bytes 30..40 of heap 0",
    ]


def test_one_common_byte_is_an_overlap_and_touching_is_none():
    problem = problem_from("a10 b10 -a -b")

    def found(offset: int) -> int:
        return len(check_placement(problem, Placement((Heap({0: Chunk(0, 10), 1: Chunk(offset, 10)}, 20),))))

    assert (found(9), found(10)) == (1, 0)


def test_a_chunk_smaller_than_its_interval_is_refused():
    assert faults({3: Chunk(50, 9)}) == [(Fault.TOO_SMALL, ("d",))]


def test_a_chunk_beyond_its_heap_is_refused():
    assert faults({3: Chunk(60, 10)}) == [(Fault.OUTSIDE, ("d",))]
    assert faults({3: Chunk(-10, 10)}) == [(Fault.OUTSIDE, ("d",))]


def test_a_chunk_off_the_alignment_is_refused():
    assert faults({3: Chunk(45, 10)}) == [(Fault.MISALIGNED, ("d",))]


def test_mates_at_different_places_are_refused():
    assert faults({2: Chunk(60, 40)}, size=100) == [(Fault.SPLIT, ("a", "c"))]


def test_a_missing_chunk_is_refused():
    chunks = {i: chunk for i, chunk in RIGHT.items() if i != 3}
    findings = check_placement(PROBLEM, Placement((Heap(chunks, 60),)))

    assert [(finding.fault, finding.names) for finding in findings] == [(Fault.MISSING, ("d",))]


def test_a_chunk_for_an_unknown_interval_is_refused():
    assert faults({9: Chunk(0, 1)}) == [(Fault.UNKNOWN, ("9",))]


def test_chunks_in_two_heaps_are_refused():
    placement = Placement((Heap(RIGHT, 60), Heap({3: Chunk(0, 10)}, 10)))

    assert check_placement(PROBLEM, placement)[0].fault is Fault.TWICE


def test_a_bound_is_no_placement():
    assert [finding.fault for finding in check_placement(PROBLEM, LowerBound().pack(PROBLEM))] == [Fault.MISSING]


def test_the_same_bytes_of_different_heaps_do_not_overlap():
    problem = problem_from("a10 b10 -a -b")
    placement = Placement((Heap({0: Chunk(0, 10)}, 10), Heap({1: Chunk(0, 10)}, 10)))

    assert check_placement(problem, placement) == ()


@pytest.mark.parametrize("order", list(Order))
def test_every_best_fit_is_accepted_and_found_out_when_one_chunk_moves(order: Order):
    generator = random.Random(3)
    for _ in range(60):
        problem = random_problem(generator, alignment=16)
        for placement in (BestFit(order).pack(problem), ConstrainedBestFit(order, 100).pack(problem)):
            assert check_placement(problem, placement) == ()
        heap = BestFit(order).pack(problem).heaps[0]
        moved = generator.choice(list(heap.chunks))
        chunk = evolve(heap.chunks[moved], offset=generator.randrange(0, heap.size, 16))
        broken = Placement((evolve(heap, chunks={**heap.chunks, moved: chunk}, size=heap.size + chunk.size),))

        found = {f.fault for f in check_placement(problem, broken)} & {Fault.OVERLAP, Fault.SPLIT}
        assert bool(found) == _is_broken(problem, broken)


def _is_broken(problem: Problem, placement: Placement) -> bool:
    """Compares every pair."""
    chunks = placement.chunks
    for number, group in enumerate(problem.groups):
        if len({chunks[member.id] for member in group.members}) > 1:
            return True
        for other in problem.groups[:number]:
            one, two = chunks[group.root.id], chunks[other.root.id]
            alive = any(a.start <= b.end and b.start <= a.end for a in group.members for b in other.members)
            if alive and one.offset < two.end and two.offset < one.end:
                return True
    return False


def claim(name: str, offset: int, size: int, start: int, end: int, group: int | None = None) -> Claim:
    return Claim(name, 0, offset, size, start, end, ord(name) if group is None else group)


def pairs(claims: list[Claim], allowed: str = "") -> list[str]:
    allowed_pairs = allowed.split()
    overlaps = find_overlaps(claims, lambda earlier, later: earlier.name + later.name in allowed_pairs)
    return [overlap.first.name + overlap.second.name for overlap in overlaps]


def test_claims_that_touch_in_time_overlap_unless_allowed():
    claims = [claim("a", 0, 8, 0, 5), claim("b", 0, 8, 5, 9)]

    assert pairs(claims) == ["ab"]
    assert pairs(claims, allowed="ab") == []


def test_being_allowed_to_touch_does_not_allow_a_longer_overlap():
    assert pairs([claim("a", 0, 8, 0, 6), claim("b", 0, 8, 5, 9)], allowed="ab") == ["ab"]


def test_only_one_successor_takes_over():
    claims = [claim("a", 0, 16, 0, 5), claim("b", 0, 8, 5, 9), claim("c", 8, 8, 5, 9)]

    assert pairs(claims, allowed="ab") == ["ac"]
    assert pairs(claims, allowed="ab ac") == []


def test_claims_of_one_group_may_be_live_together_at_one_place():
    claims = [claim("a", 0, 8, 0, 5, 1), claim("b", 0, 8, 3, 9, 1), claim("c", 0, 8, 8, 9, 2)]

    assert pairs(claims) == ["bc"]
    assert pairs([claims[0], claims[1], claim("c", 0, 8, 10, 12, 2)]) == []


def test_claims_of_one_group_at_different_places_clash():
    assert pairs([claim("a", 0, 8, 0, 5, 1), claim("b", 4, 8, 3, 9, 1)]) == ["ab"]


def test_claims_without_bytes_clash_with_nothing():
    assert pairs([claim("a", 0, 8, 0, 5), claim("b", 4, 0, 0, 5)]) == []
