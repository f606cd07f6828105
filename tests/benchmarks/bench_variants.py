"""Every variant beside XLA on every recorded GPU module, with the proven optimum where the solver finishes.

    python tests/benchmarks/bench_variants.py [-o docs/variants.md] [--table TABLE.csv] [--preset P] [--seconds S] [--most N]

Modules are the ``before_layout`` of every ``gpu-0.10.2`` folder of the shared material (``LAYOUTSIM_SHARED``), else of
``fixtures/xla``. Variants are those that ``layoutsim advise`` tries (:mod:`layoutsim.experiments.advice.rule_sets`): other
releases, single options, single passes; and the two joint assignments, for fewest bytes moved and for the lowest peak.

The table (CSV) has a row for each module and variant, and goes on where it stopped; the page sums it up:

1. *moved* are bytes that copies, transposes and reshapes move to change layouts, times runs, before copy insertion;
2. *copies* and their *bytes*, each once, are the transposing ones at the same place;
3. *temporaries* and *peak* as ``layoutsim run`` measures them.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import asdict, evolve, field, fields, frozen

sys.path.insert(0, str(Path(__file__).parents[2]))

from layoutsim.errors import LayoutsimError
from layoutsim.experiments.advice.rule_sets import rule_sets
from layoutsim.experiments.joint import Objective, assign_jointly
from layoutsim.experiments.joint.measure import Moved, measure, moving, runs_of
from layoutsim.experiments.simulate import profile_of
from layoutsim.ir import Module, Opcode
from layoutsim.ir.clone import clone_module
from layoutsim.load import load
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.summary import MemorySummary, summarize
from layoutsim.passes import Pipeline
from layoutsim.passes.copy_insertion import CopyInsertion
from layoutsim.passes.layout_assignment import LayoutAssignment
from layoutsim.passes.presets import DEFAULT_PRESET, resolve_preset
from layoutsim.report.units import human_bytes

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", ROOT.parent / "shared"))
JOINT = {"joint, fewest bytes moved": Objective.MOVED, "joint, lowest peak": Objective.PEAK}


@frozen
class Row:
    """One module under one variant; bytes."""

    model: str
    variant: str
    copies: int | None = None
    copied_once: int | None = None
    moved: int | None = None
    temp: int | None = None
    peak: int | None = None
    bound: int | None = None
    proven: bool | None = field(default=None, kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    note: str = field(default="", kw_only=True)


COLUMNS = [column.name for column in fields(Row)]
_NUMBERS = ("copies", "copied_once", "moved", "temp", "peak", "bound")


def modules() -> Iterator[tuple[str, Path]]:
    """Names and files."""
    root = SHARED / "oracle" if (SHARED / "oracle").is_dir() else ROOT / "fixtures/xla"
    for folder in sorted(root.glob("*/gpu-0.10.2")):
        for file in sorted(folder.glob("before_layout*.hlo*"))[:1]:
            yield folder.parent.name, file


# -- measuring -----------------------------------------------------------------------------------------------------------------


def rows_of(model: str, file: Path, preset: str, seconds: float, done: Mapping[tuple[str, str], Row]) -> Iterator[Row]:
    """The rows that are missing; XLA's first."""
    module = load(file)
    variants = {preset: resolve_preset(preset)} | {r.text: r.pipeline for r in rule_sets(module, preset)}
    base: tuple[str, tuple[Row, Pipeline]] | None = None
    for name, pipeline in variants.items():
        start = time.perf_counter()
        work = clone_module(module)
        try:
            layouts, rest, moved = _laid_out(work, pipeline)
        except LayoutsimError as error:
            yield Row(model, name, note=str(error).splitlines()[0])
            continue
        text = work.to_text()
        if base is not None and text == base[0] and rest == base[1][1]:
            yield Row(model, name, note="as XLA")
            continue
        if (model, name) in done and base is not None:
            continue
        memory = _memory(work, rest, pipeline)
        row = Row(model, name, layouts, moved.copied_once, moved.total, memory.temp_bytes, memory.peak_bytes)
        row = _timed(row, start)
        if base is None:
            base = text, (row, rest)
        yield row
    yield from (row for row in _joint_rows(model, module, preset, seconds, done))


def _timed(row: Row, start: float, note: str = "") -> Row:
    return evolve(row, seconds=round(time.perf_counter() - start, 2), note=note)


def _laid_out(work: Module, pipeline: Pipeline) -> tuple[int, Pipeline, Moved]:
    before = pipeline.parted_at(LayoutAssignment)[0]
    before.run(work)
    runs = runs_of(work)
    front, insertion, back = pipeline.parted_at(CopyInsertion)
    Pipeline(front.passes[len(before.passes) :], pipeline.name).run(work)
    copies = sum(i.opcode is Opcode.COPY for c in work.computations if runs.get(c.name) for i in moving(c))
    return copies, Pipeline((insertion, *back.passes), pipeline.name), measure(work, runs)


def _memory(work: Module, rest: Pipeline, pipeline: Pipeline) -> MemorySummary:
    rest.run(work)
    return summarize(assign_buffers(work, profile_of(pipeline)))


def _joint_rows(model: str, module: Module, preset: str, seconds: float, done: Mapping[tuple[str, str], Row]) -> Iterator[Row]:
    for name, objective in JOINT.items():
        if (model, name) in done:
            continue
        start = time.perf_counter()
        result = assign_jointly(module, preset, time_limit=seconds, objective=objective)
        memory = result.memory[1]
        copies = sum(i.opcode is Opcode.COPY for c in result.module.computations for i in moving(c))
        row = Row(model, name, copies, result.joint.copied_once, result.joint.total, memory.temp_bytes, memory.peak_bytes)
        row = evolve(row, bound=result.bound, proven=result.is_optimal)
        yield _timed(row, start, "" if result.covers_all_orders else "among the orders offered")


# -- the table -----------------------------------------------------------------------------------------------------------------


def read_table(path: Path) -> dict[tuple[str, str], Row]:
    """Rows by model and variant."""
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        rows = [_parsed(row) for row in csv.DictReader(stream)]
    return {(row.model, row.variant): row for row in rows}


def _parsed(row: Mapping[str, str]) -> Row:
    numbers = [int(row[name]) if row[name] else None for name in _NUMBERS]
    proven = {"True": True, "False": False}.get(row["proven"])
    return Row(row["model"], row["variant"], *numbers, proven=proven, seconds=float(row["seconds"]), note=row["note"])


def measure_all(table: Path, preset: str, seconds: float, most: int) -> dict[tuple[str, str], Row]:
    """Fill the table."""
    done = read_table(table)
    with table.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if not stream.tell():
            writer.writeheader()
        for model, file in modules():
            if all((model, name) in done for name in JOINT) or load(file).instruction_count > most:
                continue
            for row in rows_of(model, file, preset, seconds, done):
                if (row.model, row.variant) not in done:
                    done[row.model, row.variant] = row
                    writer.writerow(asdict(row))
                    stream.flush()
            print(f"{model}: done", file=sys.stderr)
    return done


# -- the page ------------------------------------------------------------------------------------------------------------------


_HEAD = """# Variants beside XLA

Made by `tests/benchmarks/bench_variants.py` from {count} GPU modules of 0.10.2; every figure is in
[`variants.csv`](variants.csv). *Moved*: bytes that copies, transposes and reshapes move to change layouts, times the runs of
their loops. *Peak*: as `layoutsim run` has it.

## By variant

How many modules it changes, and in how many of them a figure falls or rises. Sums are over the modules that it changes.

| variant | changed | moved: fewer / more | sum | peak: lower / higher | sum |
|---|--:|--:|--:|--:|--:|
{variants}

Without effect on any of these modules: {idle}.

## By model

*Best variant*: the lowest of those above, joint assignments aside. *Joint*: `layoutsim joint`, for fewest bytes moved and for
the lowest peak; ✓ where no layouts do better, proven, (✓) where none of those offered to each array do (for the peak: by the
live ranges of one schedule). Joint assignments only choose layouts; variants that change the module or the rules of memory can
go below them. Left out: {left_out} modules in which XLA moves nothing and nothing lowers the peak.

| model | moved: XLA | best variant | joint | peak: XLA | best variant | joint |
|---|--:|--:|--:|--:|--:|--:|
{models}
"""


def page(rows: Mapping[tuple[str, str], Row], preset: str) -> str:
    """Two tables in Markdown: by variant, by model."""
    models = list(dict.fromkeys(model for model, variant in rows if variant == preset))
    variants = sorted(dict.fromkeys(variant for _, variant in rows if variant != preset), key=lambda name: name in JOINT)
    active = [name for name in variants if _changed(name, rows, models, preset)]
    lines = list(_model_lines(rows, models, variants, preset))
    return _HEAD.format(
        count=len(models),
        variants="\n".join(_variant_line(name, rows, models, preset) for name in active),
        idle=", ".join(_label(name, preset) for name in variants if name not in active),
        left_out=len(models) - len(lines),
        models="\n".join(lines),
    )


def _label(name: str, preset: str) -> str:
    """A joint assignment's name, or the options of a variant."""
    return name if name in JOINT else f"`{name.removeprefix(preset).strip('{}')}`"


def _changed(name: str, rows: Mapping[tuple[str, str], Row], models: Sequence[str], preset: str) -> list[tuple[Row, Row]]:
    pairs = [(rows[model, preset], rows[model, name]) for model in models if (model, name) in rows]
    return [(xla, row) for xla, row in pairs if row.moved is not None and _figures(xla) != _figures(row)]


def _figures(row: Row) -> tuple[int | None, ...]:
    return row.copies, row.copied_once, row.moved, row.temp, row.peak


def _variant_line(name: str, rows: Mapping[tuple[str, str], Row], models: Sequence[str], preset: str) -> str:
    pairs = _changed(name, rows, models, preset)
    cells: list[str] = []
    for figure in ("moved", "peak"):
        changes = [(getattr(row, figure) or 0) - (getattr(xla, figure) or 0) for xla, row in pairs]
        cells += [f"{sum(c < 0 for c in changes)} / {sum(c > 0 for c in changes)}", _signed(sum(changes))]
    return f"| {_label(name, preset)} | {len(pairs)} | {' | '.join(cells)} |"


def _signed(size: int) -> str:
    return "=" if not size else ("-" if size < 0 else "+") + human_bytes(abs(size))


def _model_lines(
    rows: Mapping[tuple[str, str], Row], models: Sequence[str], variants: Sequence[str], preset: str
) -> Iterator[str]:
    for model in models:
        xla = rows[model, preset]
        tried = [rows[model, v] for v in variants if (model, v) in rows and v not in JOINT and rows[model, v].moved is not None]
        moved, peak = (rows.get((model, name)) for name in JOINT)
        best_moved = min([xla, *tried], key=lambda row: row.moved or 0)
        best_peak = min([xla, *tried], key=lambda row: row.peak or 0)
        lowest = min(row.peak or 0 for row in (best_peak, peak) if row is not None)
        if not xla.moved and lowest >= (xla.peak or 0):
            continue
        cells = [
            human_bytes(xla.moved or 0),
            _versus(xla.moved, best_moved.moved),
            _versus(xla.moved, moved and moved.moved) + _mark(moved),
            human_bytes(xla.peak or 0),
            _versus(xla.peak, best_peak.peak),
            _versus(xla.peak, peak and peak.peak) + _mark(peak),
        ]
        yield f"| `{model}` | {' | '.join(cells)} |"


def _versus(xla: int | None, other: int | None) -> str:
    if other is None:
        return "?"
    return "=" if other == xla else human_bytes(other)


def _mark(row: Row | None) -> str:
    if row is None or not row.proven:
        return ""
    return " (✓)" if row.note else " ✓"


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs/variants.md")
    parser.add_argument("--table", type=Path, default=ROOT / "docs/variants.csv")
    parser.add_argument("--preset", default=DEFAULT_PRESET)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--most", type=int, default=100_000, help="leave out larger modules")
    options = parser.parse_args(None if arguments is None else list(arguments))
    rows = measure_all(options.table, options.preset, options.seconds, options.most)
    options.output.write_text(page(rows, options.preset))
    return 0


if __name__ == "__main__":
    sys.exit(main())
