"""Running one input within limits of time and memory, and naming what went wrong.

1. Time is CPU time of this process: a second, and 40 microseconds a byte (a slow machine reads a 20 KB dump in a few
   milliseconds). A reader that overruns is interrupted where it stands, and the stack is the finding.
2. Memory is the growth of the process's peak: 64 MB, and 2 KB a byte. The address space is limited on top of that, so that an
   attempt to allocate a huge array is a ``MemoryError`` and not the end of the machine.
3. Two findings are the same if the error's type and the innermost line of layoutsim are.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from attrs import frozen

from tests.fuzz.readers import Reader

SECONDS, SECONDS_A_BYTE = 1.0, 40e-6
GROWTH, GROWTH_A_BYTE = 64 << 20, 2 << 10
ADDRESS_SPACE = 3 << 30


class TooSlowError(Exception):
    """The reader took more time than it may."""


class TooLargeError(Exception):
    """The reader took more memory than it may."""


@frozen
class Finding:
    """What a reader did with an input that it should not do.

    Attributes:
        key: findings with equal keys are the same (3).
        details: the traceback.
    """

    key: str
    details: str


@frozen
class Outcome:
    """What became of one input."""

    finding: Finding | None
    was_read: bool
    seconds: float


def run_one(reader: Reader, data: str | bytes) -> Outcome:
    """Feed one input."""
    start = time.process_time()
    peak = peak_bytes()
    was_read, finding = False, None
    try:
        with _time_limit(SECONDS + SECONDS_A_BYTE * len(data)):
            reader.feed(data)
        was_read = True
        if peak_bytes() - peak > GROWTH + GROWTH_A_BYTE * len(data):
            raise TooLargeError(f"{(peak_bytes() - peak) >> 20} MB for {len(data)} bytes")
    except reader.errors:
        if peak_bytes() - peak > GROWTH + GROWTH_A_BYTE * len(data):
            finding = Finding("TooLargeError on refusal", f"{(peak_bytes() - peak) >> 20} MB for {len(data)} bytes")
    except Exception as error:
        finding = _finding(error)
    return Outcome(finding, was_read, time.process_time() - start)


def limit_address_space() -> None:
    """Limit this process for good; see (2)."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlowError(f"more than {seconds:.1f} seconds")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def _finding(error: Exception) -> Finding:
    place = _innermost(error.__traceback__)
    kind = type(error).__name__
    # A reader that is too slow is interrupted anywhere; the function says more than the line.
    key = f"{kind} in {place[0]}:{place[2] if isinstance(error, TooSlowError) else place[1]}"
    lines = traceback.format_exception(error)
    return Finding(key, "".join(lines)[-6000:])


def _innermost(trace: TracebackType | None) -> tuple[str, int, str]:
    """File, line and function of the last frame that is in layoutsim, or the last of all."""
    frames = traceback.extract_tb(trace)
    ours = [f for f in frames if "layoutsim/" in f.filename and "tests/" not in f.filename] or list(frames)
    last = ours[-1]
    return last.filename.rpartition("layoutsim/")[2], last.lineno or 0, last.name
