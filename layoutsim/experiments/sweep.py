"""Many dumps under many rule sets, over processes or a Dask cluster, into a CSV file.

1. A row is one file under one preset. Rows are written as they come and flushed, so that an interrupted sweep goes on where it
   stopped: pairs that the table holds already are not run again, and a line that was cut off is dropped.
2. A file that cannot be read or simulated gives a row with its error; the others go on. So it is if the process that works
   on it dies (a module too large for the machine): what was in work then is tried again, each alone, to tell which one it was.
3. The order of rows is that in which results come; sort by ``file`` and ``preset`` for a stable one.
"""

from __future__ import annotations

import csv
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from attrs import asdict, fields, frozen

from layoutsim.errors import InputError, LayoutsimError
from layoutsim.experiments.joint import Distance, Effort, distance_for_report
from layoutsim.experiments.joint.distance import UNASKED
from layoutsim.experiments.simulate import simulate
from layoutsim.load import BEFORE_LAYOUT, list_dump, load
from layoutsim.passes.presets import resolve_preset

_SUFFIXES = (".hlo", ".txt", ".pb", ".gz", ".tgz", ".tar")


@frozen
class SweepRow:
    """One file under one preset: a line of the table. What an error left open is ``None`` (empty in the table).

    Attributes:
        file: as it was found, and so relative where the folder was given so.
        preset: with its changed rules.
        instructions: in the module as read.
        transposing_copies: those that layout assignment inserts.
        transposing_bytes: of these, each counted once.
        moved_bytes: of these, each times the trips of the loops around it; ``None`` where a trip count is unknown.
        temp_bytes: temporaries that XLA preallocates.
        peak_bytes: parameters, constants and outputs plus the most temporaries alive at once.
        lower_bound_bytes: no packing of the same live ranges needs less.
        over_best_bytes: what copies, transposes and reshapes move beyond the best layouts found (``Distance``); ``None`` where
            that is not known.
        best_proven: whether the best layouts found are proven to be the best.
        seconds: from the file to the row.
        error: why the others are empty; ``""`` if all went well.
    """

    file: str
    preset: str
    instructions: int | None = None
    transposing_copies: int | None = None
    transposing_bytes: int | None = None
    moved_bytes: int | None = None
    temp_bytes: int | None = None
    peak_bytes: int | None = None
    lower_bound_bytes: int | None = None
    over_best_bytes: int | None = None
    best_proven: bool | None = None
    seconds: float | None = None
    error: str = ""


COLUMNS = tuple(field.name for field in fields(SweepRow))


Pair = tuple[str, str]
"""File and preset."""

Measure = Callable[[str, str], SweepRow]
"""What makes a row: :func:`measure` with its effort settled."""


class Pending(Protocol):
    """A row to come: what futures of the standard library and of Dask have in common."""

    def result(self) -> SweepRow: ...

    def exception(self) -> BaseException | None: ...

    def add_done_callback(self, fn: Callable[[Pending], object], /) -> object: ...


class Submits(Protocol):
    """What a cluster offers: ``submit`` like an executor's (a Dask ``Client`` does)."""

    def submit(self, function: Measure, path: str, preset: str, /) -> Pending: ...


def find_dumps(folder: Path) -> list[Path]:
    """Modules below ``folder``: those from before layout assignment where there are any, else every file that may hold one.

    Raises:
        InputError: there is none.
    """
    folders = [folder, *sorted(path for path in folder.rglob("*") if path.is_dir())]
    chosen = [path for place in folders for path in _before_layout(place)] or sorted(
        path for path in folder.rglob("*") if path.is_file() and path.name.endswith(_SUFFIXES)
    )
    if not chosen:
        raise InputError(f"{folder} holds no modules ({', '.join(_SUFFIXES)})")
    return chosen


def _before_layout(folder: Path) -> list[Path]:
    try:
        return [folder / found.file for found in list_dump(folder) if found.stage == BEFORE_LAYOUT]
    except InputError:
        return []  # not a dump


def measure(path: str, preset: str, effort: Effort | None = UNASKED) -> SweepRow:
    """One row; never raises for what is wrong with the file.

    Args:
        effort: how hard to look for the best layouts, if at all.
    """
    start = time.perf_counter()
    try:
        module = load(path)
        count = module.instruction_count
        best = None if effort is None else distance_for_report(module, preset, effort)
        result = simulate(module, preset, in_place=True)
    except LayoutsimError as error:
        return SweepRow(path, preset, error=str(error).splitlines()[0])
    except (AssertionError, ArithmeticError, LookupError, MemoryError, OSError, RecursionError, TypeError, ValueError) as error:
        # Ours to mend, but one bad file must not end the sweep.
        return SweepRow(path, preset, error=_internal_error(error))
    moved = [copy.moved_bytes for copy in result.transposing_copies]
    return SweepRow(
        file=path,
        preset=preset,
        instructions=count,
        transposing_copies=len(result.transposing_copies),
        transposing_bytes=result.transposing_bytes,
        moved_bytes=None if None in moved else sum(size for size in moved if size is not None),
        temp_bytes=result.memory.temp_bytes,
        peak_bytes=result.memory.peak_bytes,
        lower_bound_bytes=result.memory.lower_bound_bytes,
        over_best_bytes=best.xla_bytes - best.best_bytes if isinstance(best, Distance) else None,
        best_proven=best.is_optimal if isinstance(best, Distance) else None,
        seconds=round(time.perf_counter() - start, 3),
    )


def _internal_error(error: BaseException) -> str:
    return f"internal error: {type(error).__name__}: {error}".splitlines()[0][:300]


def sweep(
    files: Sequence[Path],
    presets: Sequence[str],
    output: Path,
    *,
    workers: int | None = None,
    cluster: Submits | None = None,
    effort: Effort | None = UNASKED,
    on_row: Callable[[SweepRow], None] | None = None,
) -> int:
    """Measure every file under every preset that ``output`` does not hold yet.

    Args:
        files: modules.
        presets: as ``simulate`` takes them.
        output: CSV file, appended to.
        workers: processes; as many as there are processors by default.
        cluster: used instead of processes on this machine; its workers must have ``layoutsim`` and see the files.
        effort: how hard to look for the best layouts of each module, if at all.
        on_row: called with each row after it was written.

    Returns:
        The number of rows written.

    Raises:
        PassError: a preset is unknown (before anything runs).
        InputError: ``output`` is something else than a table of a sweep.
    """
    for preset in presets:
        resolve_preset(preset)
    pairs = pairs_left(files, presets, output)
    with output.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        if not stream.tell():
            writer.writeheader()
        for row in _results(partial(measure, effort=effort), pairs, workers, cluster):
            writer.writerow(asdict(row))
            stream.flush()
            if on_row is not None:
                on_row(row)
    return len(pairs)


def pairs_left(files: Sequence[Path], presets: Sequence[str], output: Path) -> list[Pair]:
    """What a table does not hold yet.

    Raises:
        InputError: ``output`` is something else than a table of a sweep.
    """
    done = _rows_in(output)
    return [(str(file), preset) for file in files for preset in presets if (str(file), preset) not in done]


def _rows_in(output: Path) -> set[Pair]:
    if not output.exists():
        return set()
    _drop_unfinished_line(output)
    if not output.stat().st_size:
        return set()
    with output.open(newline="") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{output} is not a table of `layoutsim sweep`: its first line is not {','.join(COLUMNS)}")
        return {(row["file"], row["preset"]) for row in reader}


def _drop_unfinished_line(output: Path) -> None:
    """What a killed sweep may have left behind; texts in the table hold no line breaks."""
    content = output.read_bytes()
    header = ",".join(COLUMNS).encode()
    if not content.endswith(b"\n") and (content.startswith(header) or header.startswith(content)):
        os.truncate(output, content.rfind(b"\n") + 1)


def _results(work: Measure, pairs: Sequence[Pair], workers: int | None, cluster: Submits | None) -> Iterator[SweepRow]:
    if cluster is not None:
        return _from_cluster(work, pairs, cluster)
    if workers == 1 or len(pairs) <= 1:
        return (work(*pair) for pair in pairs)
    return _from_processes(work, pairs, workers or os.cpu_count() or 1)


def _from_cluster(work: Measure, pairs: Sequence[Pair], cluster: Submits) -> Iterator[SweepRow]:
    finished = SimpleQueue[Pending]()
    pending = {cluster.submit(work, *pair): pair for pair in pairs}
    for future in pending:
        future.add_done_callback(finished.put)
    for _ in pairs:
        future = finished.get()
        error = future.exception()
        yield future.result() if error is None else SweepRow(*pending[future], error=_internal_error(error))


def _from_processes(work: Measure, pairs: Sequence[Pair], workers: int) -> Iterator[SweepRow]:
    """Rule (2): as long as processes die, start new ones, and look at what they were working on one by one."""
    waiting = deque(pairs)
    while waiting:
        suspects: list[Pair] = []
        yield from _until_broken(work, waiting, workers, suspects)
        for pair in suspects:
            died: list[Pair] = []
            yield from _until_broken(work, deque([pair]), 1, died)
            if died:
                yield SweepRow(*pair, error="the process died, perhaps for lack of memory")


def _until_broken(work: Measure, waiting: deque[Pair], workers: int, broken: list[Pair]) -> Iterator[SweepRow]:
    """Take pairs from ``waiting`` until none is left or a process dies; ``broken`` receives those without a row then."""
    # The default action of an interrupt lets workers end without a traceback each.
    pool = ProcessPoolExecutor(workers, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL))
    running: dict[Future[SweepRow], Pair] = {}
    try:
        while (waiting and not broken) or running:
            if not broken:
                _submit(work, pool, waiting, running, workers)
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                pair = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    broken.append(pair)
                else:
                    yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _submit(
    work: Measure, pool: ProcessPoolExecutor, waiting: deque[Pair], running: dict[Future[SweepRow], Pair], workers: int
) -> None:
    """Keep as many pairs in work as there are workers, so that few are suspects when one dies."""
    try:
        while waiting and len(running) < workers:
            running[pool.submit(work, *waiting[0])] = waiting[0]
            waiting.popleft()
    except BrokenProcessPool:
        return  # a process died meanwhile; those that run tell
