import random

from layoutsim.memory.heaps.conflicts import ConflictGraph
from layoutsim.memory.problem import EventRecorder, Group
from tests.memory.heaps.test_best_fit import random_problem
from tests.memory.packing import problem_from


def live_together(one: Group, other: Group) -> bool:
    return any(a.start <= b.end and b.start <= a.end for a in one.members for b in other.members)


def test_neighbours_are_the_groups_live_together():
    generator = random.Random(2)
    for _ in range(60):
        problem = random_problem(generator, alignment=16)
        graph = ConflictGraph(problem)
        for number, group in enumerate(problem.groups):
            expected = [n for n, other in enumerate(problem.groups) if n != number and live_together(group, other)]

            assert graph.neighbours(number).tolist() == expected


def test_neighbours_are_found_across_blocks_of_ranks():
    # a lives through everything, each other buffer only with it; there are more starts than a block of ranks holds
    recorder = EventRecorder()
    recorder.alloc(0, 1)
    for interval_id in range(1, 300):
        recorder.alloc(interval_id, 1)
        recorder.free(interval_id)
    recorder.free(0)
    graph = ConflictGraph(recorder.finish())

    assert graph.neighbours(0).tolist() == list(range(1, 300))
    assert [graph.neighbours(n).tolist() for n in (1, 64, 128, 299)] == [[0]] * 4


def test_sizes_are_rounded_up_to_the_alignment():
    assert ConflictGraph(problem_from("a10 b16 -a -b", alignment=16)).sizes.tolist() == [16, 16]


def test_the_peak_of_a_group_is_the_most_live_during_its_life():
    # a: 10 alone, then 10 + 20; c: 30 alone after both; d with c: 30 + 5
    graph = ConflictGraph(problem_from("a10 b20 -a -b c30 d5 -c -d"))

    assert graph.peaks.tolist() == [30, 30, 35, 35]
