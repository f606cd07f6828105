"""What XLA wrote into its dump folder during one compilation, by meaning; names differ between backends and releases."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

DUMPED_PASSES = "layout-assignment|flatten-call-graph"
"""Passes around which modules are dumped; the second stands before the first and changes few modules."""

_STAGES = {
    "after_layout": r"\.after_layout-assignment\.",
    "final": r"after_optimizations\.txt$",
    "buffer_assignment": r"buffer-assignment\.txt$",
    "memory_usage_report": r"memory-usage-report\.txt$",
    "live_range": r"live-range\.txt$",
}
_BEFORE = (r"\.before_layout-assignment", r"layout_assignment\.after_pipeline-start", r"\.after_flatten-call-graph\.")


def read_dumps(folder: Path) -> dict[str, str | bytes]:
    """The texts of the last compilation by stage: ``before_layout``, ``after_layout``, ``final`` and the reports.

    Where the compiler dumps protos, ``before_layout_proto`` is that of the first.

    Stages that the compiler did not reach are missing. A pass that changes nothing dumps nothing after it, so
    ``after_layout`` is ``before_layout`` then, provided that the compiler got further.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix != ".pb")
    found: dict[str, str | bytes] = {
        stage: path.read_text() for stage, pattern in _STAGES.items() if (path := _largest(files, pattern))
    }
    before = next((path for pattern in _BEFORE if (path := _largest(files, pattern))), None)
    if before is not None:
        found["before_layout"] = before.read_text()
        proto = before.with_suffix(".hlo.pb")
        if proto.exists():
            found["before_layout_proto"] = proto.read_bytes()
        if "final" in found:
            found.setdefault("after_layout", found["before_layout"])
    return found


def clear_dumps(folder: Path) -> None:
    """Empty the folder for the next compilation; the CPU client leaves the program it was given in a folder of its own."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _largest(files: list[Path], pattern: str) -> Path | None:
    matching = [path for path in files if re.search(pattern, path.name)]
    return max(matching, key=lambda path: path.stat().st_size, default=None)
