"""The process that holds the real compiler: ``python .../worker BACKEND TARGET DEVICE_COUNT SECONDS``.

It needs jax and nothing of layoutsim, so that any environment's Python can run it. Requests and answers are one JSON
object a line on standard input and output; the compiler's own prints go to standard error. ``XLA_FLAGS`` come from the
process that started it, which also reads the dumps.

Some modules abort the compiler, and on some it does not end. So this process only imports jax, which takes a second, and a
fork of it compiles, with an alarm clock set for each module. When the fork dies, the answer is ``{"aborted": true}``, with
``"timed_out"`` if it was the clock, and the next fork goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

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
    while code := _compile_in_a_fork(answers, is_first=is_first):
        _say(answers, {"aborted": True, "timed_out": code == -signal.SIGALRM})
        is_first = False


def _compile_in_a_fork(answers: TextIO, *, is_first: bool) -> int:
    """Exit code of the fork: 0 when the other side closed, negative the signal that ended the compiler."""
    fork = os.fork()
    if not fork:
        _serve(answers, is_first=is_first)
        os._exit(0)  # compilers without a machine do not shut down cleanly
    _, status = os.waitpid(fork, 0)
    return os.waitstatus_to_exitcode(status)


def _serve(answers: TextIO, *, is_first: bool) -> None:
    backend, target, device_count, seconds = sys.argv[1:]
    try:
        compiler = _compiler(backend, Path(target), int(device_count))
    except Exception as error:  # whatever keeps the compiler from starting is the answer
        _say(answers, {"missing": f"{type(error).__name__}: {error}"})
        return
    if is_first:
        _say(answers, {"release": release()})
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_REAL, float(seconds))
        answer = _answer(compiler, json.loads(line))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _say(answers, answer)


def _own_standard_output() -> TextIO:
    """Keep the real standard output for answers, and let everything else print to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _compiler(backend: str, target: Path, device_count: int) -> Compiler:
    return GpuCompiler(target, device_count) if backend == "gpu" else CpuCompiler(device_count)


def _answer(compiler: Compiler, request: dict[str, Any]) -> dict[str, object]:
    """Compile, or where the request names arguments, run."""
    try:
        if "arguments" not in request:
            return {"sizes": compiler.compile(request["text"]), "note": ""}
        assert isinstance(compiler, CpuCompiler), "there is no GPU to run on"
        compiler.execute(request["text"], request["types"], Path(request["arguments"]), Path(request["results"]))
        return {"sizes": {}, "note": ""}
    except Exception as error:  # a refusal is an answer; after single passes, code generation nearly always refuses
        return {"sizes": {}, "note": str(error)}


def _say(answers: TextIO, what: dict[str, object]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


main()
