"""How fast HLO text is read: against XLA's own parser in the same run, and per instruction as modules grow.

    python tests/benchmarks/bench_parse.py [FILE.hlo[.gz] ...]

Without files, the largest recorded module is read if the shared material is there. CPU times are compared, the best of
several runs each, because other work on the machine would decide wall times.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from module_generator import module_text

from layoutsim.text import parse_module

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
LARGEST = SHARED / "oracle/mixtral_8x7b_1x8/gpu-0.10.2/before_layout.hlo.gz"
SIZES = (1_000, 5_000, 20_000, 50_000, 100_000, 200_000)
RATIO_WANTED = 4.0
GROWTH_WANTED = 1.5


def _seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def compare_with_xla(path: Path, runs: int = 5) -> None:
    """Print our time, XLA's and their ratio for one file."""
    text = _text(path)
    try:
        from jaxlib import _hlo
    except ImportError:
        _hlo = None
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(_seconds(lambda: parse_module(text)))
        if _hlo is not None:
            theirs.append(_seconds(lambda: _hlo.hlo_module_from_text(text)))
    count = parse_module(text).instruction_count
    print(f"{path.parent.parent.name}/{path.parent.name}/{path.name}: {count} instructions, {len(text) / 1e6:.1f} MB")
    print(f"  layoutsim {min(ours):.3f} s ({min(ours) / count * 1e6:.1f} us per instruction)")
    if theirs:
        print(f"  XLA       {min(theirs):.3f} s; ratio {min(ours) / min(theirs):.2f} (wanted: at most {RATIO_WANTED})")
    else:
        print("  XLA       not measured: jaxlib is not installed (pip install 'layoutsim[oracle]')")


def growth(runs: int = 3) -> None:
    """Print the time per instruction for modules of 1,000 to 200,000 instructions."""
    best: dict[int, float] = {}
    for size in SIZES:
        text = module_text(size)
        count = parse_module(text).instruction_count
        repeats = max(runs, 20_000 // size)
        best[size] = min(_seconds(lambda text=text: parse_module(text)) for _ in range(repeats)) / count
        print(f"  {count:7d} instructions: {best[size] * 1e6:6.2f} us per instruction")
    print(f"  growth {max(best.values()) / best[SIZES[0]]:.2f} (wanted: at most {GROWTH_WANTED})")


def main(arguments: list[str]) -> None:
    """Run the benchmarks on the files named, or on the largest recorded module."""
    for path in [Path(a) for a in arguments] or ([LARGEST] if LARGEST.exists() else []):
        compare_with_xla(path)
    print("time per instruction as the module grows:")
    growth()


if __name__ == "__main__":
    main(sys.argv[1:])
