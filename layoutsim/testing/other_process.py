"""Run passes on the same texts in a process of another hash seed: nothing that depends on hashes or addresses may show.

The other process gets the passes pickled, so their classes must be importable there. :func:`main` is its side: it reads passes
and texts from standard input and answers with texts.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence

from attrs import frozen

from layoutsim.errors import LayoutsimError
from layoutsim.passes import Pass
from layoutsim.testing.trial import SkippedError
from layoutsim.text import ParseOptions, parse_module

_AS_PRINTED = ParseOptions(keep_module_auto_layouts=True, fill_missing_layouts=False)
_TIMEOUT_SECONDS = 300


@frozen
class OtherOutcome:
    """A text that the other process made another module of."""

    message: str
    before: str
    after: str


def difference_in_other_process(passes: tuple[Pass, ...], texts: Sequence[str]) -> OtherOutcome | None:
    """The first text of which the two processes make different modules.

    Raises:
        SkippedError: the passes cannot be sent to another process.
    """
    here = outcomes(passes, texts)
    there = _ask(_pickled(passes, texts))
    for before, mine, other in zip(texts, here, there, strict=True):
        if mine != other:
            message = f"under another hash seed {_first_line_that_differs(mine, other)}"
            return OtherOutcome(message, before, mine)
    return None


def outcomes(passes: tuple[Pass, ...], texts: Sequence[str]) -> list[str]:
    """What the passes make of each text, ``changed`` and remarks included; the error where they refuse."""
    return [_outcome(passes, text) for text in texts]


def _outcome(passes: tuple[Pass, ...], text: str) -> str:
    module = parse_module(text, options=_AS_PRINTED)
    notes: list[str] = []
    try:
        for current in passes:
            result = current.run(module)
            notes += [f"// {current.name}: changed={result.changed}", *(f"// {remark}" for remark in result.remarks)]
    except LayoutsimError as error:
        return f"// {type(error).__name__}: {error}"
    return "\n".join([module.to_text(), *notes])


def _pickled(passes: tuple[Pass, ...], texts: Sequence[str]) -> bytes:
    for current in passes:
        if type(current).__module__ == "__main__":
            raise SkippedError(f"{type(current).__name__} is defined in the main program, where no other process can import it")
    try:
        return pickle.dumps((passes, list(texts)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SkippedError(f"the passes cannot be pickled: {error}") from error


def _ask(data: bytes) -> list[str]:
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", "from layoutsim.testing.other_process import main; main()"]
    answer = subprocess.run(command, input=data, env=environment, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    if answer.returncode:
        raise SkippedError(f"the other process failed: {answer.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return pickle.loads(answer.stdout)


def _first_line_that_differs(a: str, b: str) -> str:
    pairs = zip(a.split("\n"), b.split("\n"), strict=False)
    mine, other = next(((x, y) for x, y in pairs if x != y), ("the last line", "more lines"))
    return f"{mine.strip()!r} is {other.strip()!r}"


def main() -> None:
    """The other process's side."""
    passes, texts = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps(outcomes(passes, texts)))
