"""The live compiler. Tests that need one run where ``LAYOUTSIM_ORACLE_PYTHON`` names a Python that has jax."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from layoutsim.errors import InputError
from layoutsim.oracle import BARE_PIPELINE, WHOLE_PIPELINE, Answer, Backend, Oracle, OracleMissingError
from layoutsim.oracle.process import PYTHON_VARIABLE, device_count

PYTHON = os.environ.get(PYTHON_VARIABLE, "")

TRANSPOSED = """HloModule m, entry_computation_layout={(f32[4,6]{0,1}, f32[6,4])->f32[6,4]{1,0}}
ENTRY main {
  a = f32[4,6] parameter(0)
  b = f32[6,4] parameter(1)
  n = f32[4,6] negate(a)
  t = f32[6,4] transpose(n), dimensions={1,0}
  ROOT s = f32[6,4] add(t, b)
}
"""

TRANSPOSE_IN_A_FUSION = """HloModule m
f {
  p = f32[4,6] parameter(0)
  t = f32[6,4] transpose(p), dimensions={1,0}
  ROOT n = f32[6,4] negate(t)
}
ENTRY main {
  p = f32[4,6] parameter(0)
  n = f32[4,6] negate(p)
  ROOT r = f32[6,4] fusion(n), kind=kLoop, calls=f
}
"""

GATHER = """HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,12]{1,0}}, num_partitions=4
ENTRY main {
  p = f32[2,3] parameter(0), sharding={replicated}
  ROOT g = f32[2,12] all-gather(p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}, use_global_device_ids=true
}
"""


def has_compiler(backend: str) -> bool:
    module = {"gpu": "jax_plugins.xla_cuda12", "cpu": "jax"}[backend]
    return bool(PYTHON) and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module", params=["gpu", "cpu"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if not has_compiler(request.param):
        pytest.skip(f"no {request.param} compiler: set {PYTHON_VARIABLE} to a Python that has jax")
    return request.param


@pytest.fixture(scope="module")
def oracle(backend: Backend) -> Iterator[Oracle]:
    with Oracle(backend) as opened:
        yield opened


def test_without_jax_one_line_says_what_to_install(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # -S: no installed packages
    python.chmod(0o755)

    with Oracle("gpu", python=str(python)) as oracle, pytest.raises(OracleMissingError) as caught:
        oracle.ask(TRANSPOSED)

    assert isinstance(caught.value, InputError)
    assert str(caught.value) == (
        "the real GPU compiler needs jax: pip install 'jax[cuda12]==0.10.2', or set LAYOUTSIM_ORACLE_PYTHON to the "
        f"Python of an environment that has it ({python}: ModuleNotFoundError: No module named 'jax')"
    )


@pytest.mark.parametrize(("header", "count"), [("num_partitions=8", 8), ("replica_count=4", 4), ("is_scheduled=true", 1)])
def test_devices_are_read_off_the_header(header: str, count: int) -> None:
    assert device_count(f"HloModule m, {header}\n\nENTRY e {{ ROOT p = f32[] parameter(0) }}") == count


def test_fixed_and_automatic_entry_layouts_arrive(oracle: Oracle) -> None:
    answer = oracle.ask(TRANSPOSED)

    assert answer.release == "0.10.2"
    assert answer.before_layout is not None
    assert "{(f32[4,6]{0,1}, f32[6,4])->f32[6,4]{1,0}}" in answer.before_layout.splitlines()[0]
    assert answer.after_layout is not None
    assert "{(f32[4,6]{0,1}, f32[6,4]{1,0})->f32[6,4]{1,0}}" in answer.after_layout.splitlines()[0]


def test_a_module_the_compiler_refuses_is_an_answer(oracle: Oracle) -> None:
    answer = oracle.ask("HloModule m\nENTRY e { ROOT p = f32[2] add(p, p) }")

    assert answer.before_layout is None
    assert answer.note
    assert not answer.aborted


def test_an_abort_leaves_the_next_module_alone(oracle: Oracle) -> None:
    answer = oracle.ask(TRANSPOSE_IN_A_FUSION)  # has no layout inside, which passes that did not run would mend
    following = oracle.ask(TRANSPOSED)

    assert answer.aborted
    assert following.after_layout is not None
    assert not following.aborted


@pytest.mark.skipif(not has_compiler("gpu"), reason=f"no GPU compiler: set {PYTHON_VARIABLE} to a Python that has it")
def test_partitioned_modules_are_compiled_as_replicas_by_the_passes_named() -> None:
    with Oracle("gpu", passes=BARE_PIPELINE, devices=4) as oracle:
        answer: Answer = oracle.ask(GATHER)

    assert answer.after_layout is not None
    assert "f32[2,12]{0,1} all-gather(" in answer.after_layout  # the gathered dimension is most major
    assert answer.final is not None
    assert "is_scheduled=true" in answer.final
    assert answer.buffer_assignment is not None
    assert answer.memory_usage_report is not None


EXCHANGE = """HloModule m, replica_count=2
ENTRY main {
  x = bf16[2] parameter(0)
  n = s4[2] parameter(1)
  y = bf16[2] collective-permute(x), source_target_pairs={{0,1},{1,0}}
  r = u32[] replica-id()
  ROOT t = (bf16[2], s4[2], u32[]) tuple(y, n, r)
}
"""


@pytest.mark.skipif(not has_compiler("cpu"), reason=f"no CPU compiler: set {PYTHON_VARIABLE} to a Python that has it")
def test_the_cpu_compilers_program_runs_on_devices_of_its_own() -> None:
    arguments = [[np.array([1 + device, 2], np.float32), np.array([-1, device], np.int8)] for device in range(2)]
    with Oracle("cpu", WHOLE_PIPELINE, devices=2) as oracle:
        done = oracle.execute(EXCHANGE, arguments, ["bf16", "s4"])
        refused = oracle.execute("HloModule m\nENTRY e { ROOT p = f32[2] add(p, p) }", [[], []], [])

    assert done.results is not None
    assert [[leaf.tolist() for leaf in row] for row in done.results] == [[[2, 2], [-1, 0], 0], [[1, 2], [-1, 1], 1]]
    assert refused.results is None
    assert refused.note
