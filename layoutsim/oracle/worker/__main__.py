"""The process that holds the real compiler: ``python .../worker BACKEND TARGET DEVICE_COUNT``.

It needs jax and nothing of layoutsim, so that any environment's Python can run it. Requests and answers are one JSON
object a line on standard input and output; the compiler's own prints go to standard error. ``XLA_FLAGS`` come from the
process that started it, which also reads the dumps. A module that aborts the compiler ends this process.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TextIO

from compilers import Compiler, CpuCompiler, GpuCompiler, release


def main() -> None:
    """Start the compiler, then answer until the other side closes."""
    backend, target, device_count = sys.argv[1:]
    answers = _own_standard_output()
    try:
        compiler = _compiler(backend, Path(target), int(device_count))
    except Exception as error:  # whatever keeps the compiler from starting is the answer
        _say(answers, {"missing": f"{type(error).__name__}: {error}"})
        return
    _say(answers, {"release": release()})
    for line in sys.stdin:
        _say(answers, _answer(compiler, json.loads(line)["text"]))
    os._exit(0)  # compilers without a machine do not shut down cleanly


def _own_standard_output() -> TextIO:
    """Keep the real standard output for answers, and let everything else print to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _compiler(backend: str, target: Path, device_count: int) -> Compiler:
    return GpuCompiler(target, device_count) if backend == "gpu" else CpuCompiler(device_count)


def _answer(compiler: Compiler, text: str) -> dict[str, object]:
    try:
        return {"sizes": compiler.compile(text), "note": ""}
    except Exception as error:  # a refusal is an answer; after single passes, code generation nearly always refuses
        return {"sizes": {}, "note": str(error)}


def _say(answers: TextIO, what: dict[str, object]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


main()
