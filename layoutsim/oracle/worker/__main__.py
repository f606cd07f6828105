"""The process that holds the real compiler: ``python .../worker BACKEND TARGET DEVICE_COUNT``.

It needs jax and nothing of layoutsim, so that any environment's Python can run it. Requests and answers are one JSON
object a line on standard input and output; the compiler's own prints go to standard error. ``XLA_FLAGS`` come from the
process that started it, which also reads the dumps.

Some modules abort the compiler. So this process only imports jax, which takes a second, and a fork of it compiles; when
that one dies, the answer is ``{"aborted": true}`` and the next fork goes on.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TextIO

from compilers import Compiler, CpuCompiler, GpuCompiler, preload, release


def main() -> None:
    """Answer until the other side closes."""
    answers = _own_standard_output()
    try:
        preload()
    except ImportError as error:
        _say(answers, {"missing": f"{type(error).__name__}: {error}"})
        return
    is_first = True
    while _compile_in_a_fork(answers, is_first=is_first):
        _say(answers, {"aborted": True})
        is_first = False


def _compile_in_a_fork(answers: TextIO, *, is_first: bool) -> bool:
    """Whether the compiler died of a request; otherwise the other side closed."""
    fork = os.fork()
    if not fork:
        _serve(answers, is_first=is_first)
        os._exit(0)  # compilers without a machine do not shut down cleanly
    _, status = os.waitpid(fork, 0)
    return os.waitstatus_to_exitcode(status) != 0


def _serve(answers: TextIO, *, is_first: bool) -> None:
    backend, target, device_count = sys.argv[1:]
    try:
        compiler = _compiler(backend, Path(target), int(device_count))
    except Exception as error:  # whatever keeps the compiler from starting is the answer
        _say(answers, {"missing": f"{type(error).__name__}: {error}"})
        return
    if is_first:
        _say(answers, {"release": release()})
    for line in sys.stdin:
        _say(answers, _answer(compiler, json.loads(line)["text"]))


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
