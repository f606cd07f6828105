"""Generated packing problems: streams of buffers, and rectangles cut into pieces that are known to fit without a gap."""

from __future__ import annotations

import random

from layoutsim.memory.problem import EventRecorder, Interval, Problem


def stream(buffers: int, live: int, seed: int) -> Problem:
    """Buffers of very different sizes that come and go, about ``live`` at a time."""
    generator = random.Random(seed)
    recorder = EventRecorder()
    alive: list[int] = []
    for interval_id in range(buffers):
        recorder.alloc(interval_id, int(2 ** generator.uniform(8, 24)))
        alive.append(interval_id)
        while len(alive) > live:
            recorder.free(alive.pop(generator.randrange(len(alive))))
    return recorder.finish(alignment=256)


def cut_rectangle(generator: random.Random, pieces: int, time: int, memory: int) -> Problem:
    """A rectangle of time and memory cut into pieces: they can be packed without a free byte, however hard that is."""
    rectangles = [(0, time, 0, memory)]
    while len(rectangles) < pieces:
        start, end, low, high = rectangles.pop(generator.randrange(len(rectangles)))
        if (end - start) * memory > (high - low) * time and end - start > 1:
            cut = generator.randrange(start + 1, end)
            rectangles += [(start, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = generator.randrange(low + 1, high)
            rectangles += [(start, end, low, cut), (start, end, cut, high)]
        else:
            rectangles.append((start, end, low, high))
    return Problem(tuple(Interval(i, start, end - 1, high - low) for i, (start, end, low, high) in enumerate(rectangles)))
