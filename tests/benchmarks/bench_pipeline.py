"""How long each stage takes, against the real compiler in the same run, and per instruction as modules grow.

    python tests/benchmarks/bench_pipeline.py [FILE.hlo[.gz] ...]

The real compiler runs the bare pipeline (layout assignment and copy insertion, then its scheduler and buffer assignment) in a
process of its own, started anew, as ours would be on the command line. It is asked through the ``oracle`` extra; without it
only our own times are printed. Without files, the largest recorded modules are taken if the shared material is there.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from module_generator import module_text

from layoutsim.garbage import no_collection
from layoutsim.ir import Module
from layoutsim.load import load
from layoutsim.memory.assignment import assign_buffers
from layoutsim.memory.profile import GPU
from layoutsim.oracle import BARE_PIPELINE, Oracle, OracleMissingError
from layoutsim.passes.presets import preset
from layoutsim.text import parse_module

SHARED = Path(os.environ.get("LAYOUTSIM_SHARED", Path(__file__).parents[3] / "shared"))
LARGEST = [
    SHARED / f"oracle/{case}/gpu-0.10.2-bare/before_layout.hlo.gz" for case in ("mixtral_8x7b_1x8", "llama31_8b_bf16_1x8")
]
SIZES = (1_000, 10_000, 50_000, 100_000, 200_000)


def _seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def stages(module: Module) -> dict[str, float]:
    """CPU seconds of each pass and of buffer assignment, on a module that is changed."""
    times: dict[str, float] = {}
    with no_collection():
        for step in preset("xla-gpu-0.10.2").passes:
            times[step.name] = _seconds(lambda step=step: step.run(module))
        times["buffer assignment"] = _seconds(lambda: assign_buffers(module, GPU))
    return times


def compare_with_xla(path: Path) -> None:
    """Print our stages, and the wall time of the command line next to the compiler's."""
    start = time.process_time()
    module = load(path)
    times = {"read": time.process_time() - start, **stages(module)}
    print(f"{path.parent.parent.name}: {module.instruction_count:,} instructions after the pipeline")
    for name, seconds in times.items():
        print(f"  {name:36} {seconds:7.2f} s")
    print(f"  {'together (CPU time)':36} {sum(times.values()):7.2f} s")
    ours = _wall(
        lambda: subprocess.run(
            [sys.executable, "-m", "layoutsim", "run", str(path), "--json"], stdout=subprocess.DEVNULL, check=True
        )
    )
    print(f"  {'`layoutsim run` (wall time)':36} {ours:7.2f} s")
    try:
        theirs = _wall(lambda: _ask(path))
    except OracleMissingError as error:
        print(f"  the real compiler was not measured: {error}")
        return
    print(f"  {'the real compiler (wall time)':36} {theirs:7.2f} s; ratio {ours / theirs:.2f} (wanted: at most 3)")


def _ask(path: Path) -> None:
    with Oracle("gpu", BARE_PIPELINE, 8) as oracle:
        oracle.ask(load(path))


def _wall(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def growth() -> None:
    """Print the time per instruction of reading and layout assignment as modules grow, and the memory of the largest."""
    layouts = next(p for p in preset("xla-gpu-0.10.2").passes if p.name == "layout-assignment")
    base: float | None = None
    for size in SIZES:
        text = module_text(size)
        start = time.process_time()
        module = parse_module(text)
        read = time.process_time() - start
        assigned = _seconds(lambda module=module: layouts.run(module))
        each = (read + assigned) / size * 1e6
        base = base or each
        print(f"  {size:8,} instructions: read {read:6.2f} s, layouts {assigned:6.2f} s, {each:6.1f} us each", end="")
        print(f", {each / base:.2f} times the first (wanted: at most 1.5)")
        del module
        gc.collect()
    print(f"  most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB (wanted: under 2,048)")


def main() -> None:
    """Run both parts."""
    files = [Path(argument) for argument in sys.argv[1:]] or [path for path in LARGEST if path.exists()]
    for path in files:
        compare_with_xla(path)
    print("growth:")
    growth()


if __name__ == "__main__":
    main()
