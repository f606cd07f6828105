"""Ask the real XLA what it does with a module: the GPU compiler without a GPU, or the CPU compiler (extra ``oracle``).

    from layoutsim.oracle import ask
    answer = ask(module, backend="gpu")          # only layout assignment runs
    answer.before_layout, answer.after_layout    # HLO text

One process per backend, passes and device count stays open between questions, since starting jax takes a second and a
small module twenty milliseconds. :class:`Oracle` gives control over that process.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence

from layoutsim.ir import Module
from layoutsim.oracle.process import (
    BARE_PIPELINE,
    LAYOUT_ASSIGNMENT,
    WHOLE_PIPELINE,
    Answer,
    Backend,
    Execution,
    Oracle,
    OracleMissingError,
    device_count,
)

__all__ = [
    "BARE_PIPELINE",
    "LAYOUT_ASSIGNMENT",
    "WHOLE_PIPELINE",
    "Answer",
    "Backend",
    "Execution",
    "Oracle",
    "OracleMissingError",
    "ask",
]

_open: dict[tuple[Backend, tuple[str, ...], int], Oracle] = {}


def ask(
    module: Module | str,
    backend: Backend = "gpu",
    passes: Sequence[str] = LAYOUT_ASSIGNMENT,
    devices: int | None = None,
) -> Answer:
    """Compile a module with the real compiler.

    Args:
        module: HLO text is passed on as it is.
        passes: the only passes to run, see :data:`LAYOUT_ASSIGNMENT`, :data:`BARE_PIPELINE`, :data:`WHOLE_PIPELINE`.
        devices: replicas to compile for; as many as the module's header states unless given.

    Raises:
        OracleMissingError: jax (or for the GPU its CUDA plugin) is not installed.
    """
    text = module if isinstance(module, str) else module.to_text()
    key = (backend, tuple(passes), devices or device_count(text))
    if key not in _open:
        _open[key] = Oracle(*key)
        atexit.register(_open[key].close)
    return _open[key].ask(text)
