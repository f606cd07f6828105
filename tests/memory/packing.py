"""Helpers for packing tests: write a problem as a list of events, and a slow best fit to compare with."""

from layoutsim.memory.problem import EventRecorder, Group, Problem


def problem_from(events: str, alignment: int = 1) -> Problem:
    """``"a10 b20 -a c=b:30 -b -c"``: allocate a (10 bytes) and b, free a, let c (30 bytes) share with b, free both.

    Ids are 0 for a, 1 for b, and so on.
    """
    recorder = EventRecorder()
    for event in events.split():
        if event.startswith("-"):
            recorder.free(_id(event[1]))
        elif "=" in event:
            recorder.share_with(_id(event[0]), _id(event[2]), int(event[4:]), name=event[0])
        else:
            recorder.alloc(_id(event[0]), int(event[1:]), name=event[0])
    return recorder.finish(alignment)


def _id(letter: str) -> int:
    return ord(letter) - ord("a")


def slow_best_fit(problem: Problem, order: list[Group]) -> dict[int, int]:
    """Offsets by root id, from comparing every pair of groups: what the index must agree with."""
    placed: list[tuple[Group, int]] = []
    for group in order:
        taken = sorted((o, o + g.size) for g, o in placed if _live_together(g, group))
        holes: list[tuple[int, int]] = []
        free_from = 0
        for low, high in taken:
            if low - free_from >= group.size:
                holes.append((low - free_from, free_from))
            aligned = (high + problem.alignment - 1) // problem.alignment * problem.alignment
            free_from = max(free_from, aligned)
        placed.append((group, min(holes)[1] if holes else free_from))
    return {group.root.id: offset for group, offset in placed}


def _live_together(one: Group, other: Group) -> bool:
    return any(a.start <= b.end and b.start <= a.end for a in one.members for b in other.members)
