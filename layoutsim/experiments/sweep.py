"""Many dumps under many rule sets, over processes or a Dask cluster, into a CSV file.

1. A row is one file under one preset. Rows are written as they come and flushed, so that an interrupted sweep goes on where it
   stopped: pairs that the table holds already are not run again.
2. A file that cannot be read or simulated gives a row with its error; the others go on.
3. The order of rows is that in which results come; sort by ``file`` and ``preset`` for a stable one.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Protocol

from attrs import asdict, fields, frozen

from layoutsim.errors import InputError, LayoutsimError
from layoutsim.experiments.simulate import simulate
from layoutsim.load import BEFORE_LAYOUT, load
from layoutsim.passes.presets import resolve_preset

_SUFFIXES = (".hlo", ".txt", ".pb", ".gz", ".tgz", ".tar")


@frozen
class SweepRow:
    """One file under one preset; sizes in bytes, ``None`` where there was an error."""

    file: str
    preset: str
    instructions: int | None = None
    transposing_copies: int | None = None
    transposing_bytes: int | None = None
    moved_bytes: int | None = None
    temp_bytes: int | None = None
    peak_bytes: int | None = None
    lower_bound_bytes: int | None = None
    seconds: float | None = None
    error: str = ""


COLUMNS = tuple(field.name for field in fields(SweepRow))


class Submits(Protocol):
    """What a cluster offers: ``submit`` like an executor's (a Dask ``Client`` does)."""

    def submit(self, function: Callable[[str, str], SweepRow], path: str, preset: str) -> Future[SweepRow]: ...


def find_dumps(folder: Path) -> list[Path]:
    """Modules below ``folder``: ``before_layout`` files where there are any, else every file that may hold one.

    Raises:
        InputError: there is none.
    """
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name.endswith(_SUFFIXES))
    chosen = [p for p in files if p.name.startswith(BEFORE_LAYOUT)] or files
    if not chosen:
        raise InputError(f"{folder} holds no modules ({', '.join(_SUFFIXES)})")
    return chosen


def measure(path: str, preset: str) -> SweepRow:
    """One row; never raises for what is wrong with the file."""
    start = time.perf_counter()
    try:
        module = load(path, BEFORE_LAYOUT) if Path(path).is_dir() else load(path)
        count = module.instruction_count
        result = simulate(module, preset, in_place=True)
    except LayoutsimError as error:
        return SweepRow(path, preset, error=str(error).splitlines()[0])
    except (AssertionError, RecursionError, MemoryError) as error:  # ours to fix, but one bad file must not end the sweep
        return SweepRow(path, preset, error=f"internal error: {type(error).__name__}: {error}"[:300])
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
        seconds=round(time.perf_counter() - start, 3),
    )


def sweep(
    files: Sequence[Path],
    presets: Sequence[str],
    output: Path,
    *,
    workers: int | None = None,
    cluster: Submits | None = None,
    on_row: Callable[[SweepRow], None] | None = None,
) -> int:
    """Measure every file under every preset that ``output`` does not hold yet.

    Args:
        files: modules.
        presets: as ``simulate`` takes them.
        output: CSV file, appended to.
        workers: processes; as many as there are processors by default.
        cluster: used instead of processes on this machine.
        on_row: called with each row after it was written.

    Returns:
        The number of rows written.

    Raises:
        PassError: a preset is unknown (before anything runs).
    """
    for preset in presets:
        resolve_preset(preset)
    done = _rows_in(output)
    pairs = [(str(f), p) for f in files for p in presets if (str(f), p) not in done]
    with output.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        if not done:
            writer.writeheader()
        for row in _results(pairs, workers, cluster):
            writer.writerow(asdict(row))
            stream.flush()
            if on_row is not None:
                on_row(row)
    return len(pairs)


def _rows_in(output: Path) -> set[tuple[str, str]]:
    if not output.exists() or not output.stat().st_size:
        return set()
    with output.open(newline="") as stream:
        reader = csv.DictReader(stream)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{output} is not a table of `layoutsim sweep`: its first line is not {','.join(COLUMNS)}")
        return {(row["file"], row["preset"]) for row in reader}


def _results(pairs: Sequence[tuple[str, str]], workers: int | None, cluster: Submits | None) -> Iterator[SweepRow]:
    if cluster is not None:
        futures = [cluster.submit(measure, *pair) for pair in pairs]
        yield from (future.result() for future in futures)
        return
    if workers == 1 or len(pairs) <= 1:
        yield from (measure(*pair) for pair in pairs)
        return
    pool: Executor
    with ProcessPoolExecutor(workers) as pool:
        for future in as_completed([pool.submit(measure, *pair) for pair in pairs]):
            yield future.result()
