"""Fuzz the readers, by hand: ``python -m tests.fuzz.fuzz_reader --count 200000 --seeds ../shared/oracle --out /tmp/findings``.

Every input has a number, and follows from it, the seeds and ``--seed`` alone: ``--only N`` runs one again, under a debugger if
need be. Inputs run in a child process of low priority, which is replaced every 20,000 inputs (interned shapes stay) and where
it dies. What is found lies in ``--out``: the input and the traceback, the smallest input of each kind of finding.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import random
import struct
import sys
import time
from pathlib import Path

from attrs import define, field

from tests.fuzz.limits import Finding, limit_address_space, run_one
from tests.fuzz.readers import (
    FIXTURES,
    Reader,
    binary_seeds,
    proto_reader,
    random_texts,
    report_reader,
    seed_texts,
    text_reader,
)

BATCH = 20_000
_STATE = struct.Struct("qqq")  # the next number, how many were read, how many findings


def make_reader(target: str, folders: list[Path], max_bytes: int) -> Reader:
    """The reader under test, with its seeds."""
    match target:
        case "text":
            return text_reader(seed_texts([FIXTURES, *folders], (".hlo",), max_bytes) + random_texts(60))
        case "proto":
            return proto_reader(binary_seeds(60))
        case _:
            names = ("-assignment.txt", "live-range.txt", "usage-report.txt", ".csv")
            pipelines = ["layout-assignment{backend=gpu all-gather=positional},schedule,copy-insertion"]
            return report_reader(seed_texts([FIXTURES, *folders], names, max_bytes) + pipelines)


def input_of(reader: Reader, seed: int, number: int) -> str | bytes:
    """The input of a number."""
    return reader.inputs(random.Random(f"{seed}:{number}"))


@define
class Run:
    """One run of the fuzzer; the state is shared with the child."""

    reader: Reader
    seed: int
    out: Path
    smallest: dict[str, int] = field(factory=dict[str, int])
    state: mmap.mmap = field(factory=lambda: mmap.mmap(-1, _STATE.size))

    def run(self, start: int, count: int) -> int:
        """Feed ``count`` inputs; how many findings there were."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.state[:] = _STATE.pack(start, 0, 0)
        began = time.monotonic()
        while (number := _STATE.unpack(self.state[:])[0]) < start + count:
            self._run_child(min(start + count, number + BATCH))
            number, read, found = _STATE.unpack(self.state[:])
            print(f"{number - start} inputs, {read} read, {found} findings, {time.monotonic() - began:.0f} s", flush=True)
        return _STATE.unpack(self.state[:])[2]

    def _run_child(self, end: int) -> None:
        child = os.fork()
        if not child:
            limit_address_space()
            self._feed_until(end)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            number, read, found = _STATE.unpack(self.state[:])
            self._keep(number, Finding(f"the process died with status {status}", ""), input_of(self.reader, self.seed, number))
            self.state[:] = _STATE.pack(number + 1, read, found + 1)

    def _feed_until(self, end: int) -> None:
        number, read, found = _STATE.unpack(self.state[:])
        while number < end:
            data = input_of(self.reader, self.seed, number)
            outcome = run_one(self.reader, data)
            if outcome.finding is not None:
                self._keep(number, outcome.finding, data)
            number, read, found = number + 1, read + outcome.was_read, found + (outcome.finding is not None)
            self.state[:] = _STATE.pack(number, read, found)

    def _keep(self, number: int, finding: Finding, data: str | bytes) -> None:
        """Write the finding down, unless a smaller input has shown the same."""
        name = "".join(c if c.isalnum() else "_" for c in finding.key)
        note = self.out / f"{name}.txt"
        if note.exists() and int(note.read_text("utf-8").split(maxsplit=4)[3]) <= len(data):
            return
        raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
        note.write_text(f"number {number}, bytes {len(data)} \n{finding.key}\n{finding.details}", "utf-8", "replace")
        (self.out / f"{name}.input").write_bytes(raw)


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=("text", "proto", "report"), default="text")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this number alone, in this process")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=Path, action="append", default=[], help="folder with more seeds")
    parser.add_argument("--max-bytes", type=int, default=12_000, help="of a seed")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    arguments = parser.parse_args()
    faulthandler.enable()
    os.nice(19)
    reader = make_reader(arguments.target, arguments.seeds, arguments.max_bytes)
    if arguments.only is not None:
        data = input_of(reader, arguments.seed, arguments.only)
        print(repr(data[:3000]), run_one(reader, data))
        return 0
    return 1 if Run(reader, arguments.seed, arguments.out).run(arguments.start, arguments.count) else 0


if __name__ == "__main__":
    sys.exit(main())
