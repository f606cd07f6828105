"""A compiler in a process of its own, which survives modules that abort it (:class:`Oracle`)."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

from layoutsim.errors import InputError
from layoutsim.ir import Module
from layoutsim.oracle.dumps import DUMPED_PASSES, clear_dumps, read_dumps
from layoutsim.oracle.listed_groups import with_listed_groups

Backend = Literal["gpu", "cpu"]
Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]

LAYOUT_ASSIGNMENT = ("layout-assignment",)
BARE_PIPELINE = ("layout-assignment", "sub-byte-size-setter", "copy-insertion")
"""The passes that layoutsim models from end to end; scheduling and buffer assignment follow in any case."""
WHOLE_PIPELINE = ()

PYTHON_VARIABLE = "LAYOUTSIM_ORACLE_PYTHON"
"""Environment variable: the Python of an environment with jax, where layoutsim's own has none."""

_START_SECONDS = 300.0
"""Importing jax takes a second, on a loaded machine many."""

_GRACE_SECONDS = 20.0
"""The process ends a compilation itself when its time is up; after so much longer it is taken to be stuck."""

_HERE = Path(__file__).parent
_INSTALL = {"gpu": "pip install 'jax[cuda12]==0.10.2'", "cpu": "pip install jax==0.10.2"}


class OracleMissingError(InputError):
    """The real compiler is not installed; the message says what to install."""


@frozen
class Answer:
    """What the real compiler did with one module; ``None`` where it did not get that far.

    Attributes:
        release: of jax, such as ``0.10.2``.
        before_layout: the module as it entered layout assignment.
        before_layout_proto: the same as a binary proto, which tells in which order instructions are stored; CPU only.
        sizes: bytes by kind when code was generated, else empty.
        note: the compiler's own words when it refused. After single passes, code generation nearly always refuses; that
            is no failure of what came before.
        aborted: the compiler died or did not end in time; ``note`` is what it printed.
        timed_out: it did not end in time.
    """

    release: str
    before_layout: str | None = None
    after_layout: str | None = None
    final: str | None = None
    buffer_assignment: str | None = None
    memory_usage_report: str | None = None
    live_range: str | None = None
    sizes: Mapping[str, int] = field(factory=dict[str, int])
    before_layout_proto: bytes | None = None
    note: str = ""
    aborted: bool = False
    timed_out: bool = False


@frozen(eq=False)
class Execution:
    """What a module computed on the real CPU compiler's devices.

    Attributes:
        results: for each device its result leaves, tokens left out; ``None`` where it did not get that far.
        note: the compiler's own words when it refused, or what it printed before it died.
        aborted: it died or did not end in time.
    """

    results: tuple[tuple[Array, ...], ...] | None = None
    note: str = ""
    aborted: bool = False
    timed_out: bool = False


@frozen
class _Death:
    """The compiler died or did not end in time."""

    note: str
    timed_out: bool


class Oracle:
    """The real compiler, restricted to some passes; use as a context manager and ask many times.

    Args:
        passes: names of the passes that run, all of them when empty.
        devices: compile for this many replicas.
        target: description of the GPU, H100 unless given.
        python: interpreter that has jax; ``$LAYOUTSIM_ORACLE_PYTHON`` or this one unless given.
        timeout: seconds for one module.

    Raises:
        OracleMissingError: jax or the CUDA plugin is not installed there (when the first question is asked).
    """

    def __init__(
        self,
        backend: Backend = "gpu",
        passes: Sequence[str] = LAYOUT_ASSIGNMENT,
        devices: int = 1,
        *,
        target: Path | None = None,
        python: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.backend: Backend = backend
        self.devices = devices
        self.release = ""
        self._python = python or os.environ.get(PYTHON_VARIABLE) or sys.executable
        self._target = target or _HERE / "h100.txtpb"
        self._timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="layoutsim-oracle-")
        self._dumps = Path(self._folder.name, "dumps")
        self._dumps.mkdir()
        self._errors = Path(self._folder.name, "errors")
        self._environment = _environment(backend, passes, devices, self._dumps)
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start the compiler if it does not run yet; returns its release, such as ``0.10.2``."""
        self._running()
        return self.release

    def ask(self, module: Module | str) -> Answer:
        """Compile one module."""
        reply = self._reply_to({"text": self._text(module)})
        if isinstance(reply, _Death):
            return Answer(self.release, note=reply.note, aborted=True, timed_out=reply.timed_out, **self._dumped())
        return Answer(self.release, sizes=reply["sizes"], note=reply["note"], **self._dumped())

    def execute(self, module: Module | str, arguments: Sequence[Sequence[Array]], types: Sequence[str]) -> Execution:
        """Compile one module for the CPU with all passes, and run it once.

        Intermediate values are rounded to their types, where XLA by default may keep them wider.

        Args:
            arguments: for each device its argument leaves; types that numpy does not have are widened to ``float32``, ``int8``
                or ``uint8``, and so are results.
            types: element types of the leaves, as HLO spells them.
        """
        assert self.backend == "cpu", "there is no GPU to run on"
        given, results = Path(self._folder.name, "arguments.npz"), Path(self._folder.name, "results.npz")
        leaves = {f"{d}/{leaf}": array for d, row in enumerate(arguments) for leaf, array in enumerate(row)}
        np.savez(given, allow_pickle=False, **leaves)
        paths = {"arguments": str(given), "results": str(results)}
        reply = self._reply_to({"text": self._text(module), "types": list(types), **paths})
        if isinstance(reply, _Death):
            return Execution(note=reply.note, aborted=True, timed_out=reply.timed_out)
        if reply["note"]:
            return Execution(note=reply["note"])
        with np.load(results) as found:
            count = len(found.files) // self.devices
            return Execution(tuple(tuple(found[f"{d}/{leaf}"] for leaf in range(count)) for d in range(self.devices)))

    def _text(self, module: Module | str) -> str:
        text = module if isinstance(module, str) else module.to_text()
        return with_listed_groups(text) if self.backend == "cpu" else text

    def _reply_to(self, request: dict[str, object]) -> dict[str, Any] | _Death:
        process = self._running()
        clear_dumps(self._dumps)
        printed = self._errors.stat().st_size
        assert process.stdin is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        reply = self._read(process, self._timeout + _GRACE_SECONDS)
        if reply is not None and "note" in reply:
            return reply
        timed_out = reply is None or reply.get("timed_out", False)
        if reply is None:
            self.close_process()
        return _Death(self._errors.read_bytes()[printed:].decode(errors="replace")[-4000:], timed_out)

    def _dumped(self) -> dict[str, Any]:
        return {**read_dumps(self._dumps)}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = self._spawn()
            hello = self._read(self._process, _START_SECONDS) or {}
            if "release" not in hello:
                reason = hello.get("missing") or self._last_words(self._process)
                self.close_process()
                raise OracleMissingError(
                    f"the real {self.backend.upper()} compiler needs jax: {_INSTALL[self.backend]}, or set "
                    f"{PYTHON_VARIABLE} to the Python of an environment that has it ({self._python}: {reason})"
                )
            self.release = hello["release"]
        return self._process

    def _spawn(self) -> subprocess.Popen[str]:
        command = [self._python, str(_HERE / "worker"), self.backend, str(self._target), str(self.devices)]
        with self._errors.open("w") as errors:
            return subprocess.Popen(
                [*command, str(self._timeout)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                text=True,
                start_new_session=True,
            )

    def _last_words(self, process: subprocess.Popen[str]) -> str:
        """The last line that a process printed, or how it ended if it printed nothing."""
        printed = self._errors.read_text(errors="replace").strip().rpartition("\n")[2]
        return printed or f"exit code {process.poll()}"

    def _read(self, process: subprocess.Popen[str], timeout: float) -> dict[str, Any] | None:
        """The next answer, or ``None`` when the process ended or took too long."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], timeout)
        line = process.stdout.readline() if ready else ""
        return json.loads(line) if line else None

    def close_process(self) -> None:
        """End the compiler's process; the next question starts a new one."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # with the fork that compiles
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        self.close_process()
        self._folder.cleanup()

    def __enter__(self) -> Oracle:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _environment(backend: Backend, passes: Sequence[str], devices: int, dumps: Path) -> dict[str, str]:
    flags = [
        f"--xla_dump_to={dumps}",
        "--xla_dump_hlo_as_text",
        "--xla_dump_hlo_as_proto",
        f"--xla_dump_hlo_pass_re={DUMPED_PASSES}",
        "--xla_pjrt_allow_auto_layout_in_hlo=true",
        "--xla_gpu_autotune_level=0",  # there is no GPU to measure on
        f"--xla_force_host_platform_device_count={devices}",
    ]
    if passes:
        flags.append(f"--xla_enable_hlo_passes_only={','.join(passes)}")
    settings = {"XLA_FLAGS": " ".join(flags), "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if backend == "cpu":
        settings["JAX_PLATFORMS"] = "cpu"
    return {**os.environ, **settings}


def device_count(text: str) -> int:
    """Partitions or replicas that a module's header states, at least 1."""
    header = text[: text.find("\n\n")] if "\n\n" in text else text
    counts = re.findall(r"(?:num_partitions|replica_count)=(\d+)", header)
    return max(map(int, counts), default=1)
