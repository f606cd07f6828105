"""A small run of the fuzzer, hostile inputs by hand, what earlier runs found, and that the fuzzer sees what it should."""

import gzip
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from layoutsim.errors import InputError, ParseError
from layoutsim.load import parse_bytes
from layoutsim.memory.report_format import parse_assignment_report
from layoutsim.text import parse_module
from tests.fuzz.fuzz_reader import Run, input_of
from tests.fuzz.limits import run_one
from tests.fuzz.readers import (
    FIXTURES,
    Reader,
    binary_seeds,
    proto_reader,
    random_texts,
    report_reader,
    seed_texts,
    text_reader,
)

SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


@pytest.fixture(scope="module")
def text() -> Reader:
    return text_reader(seed_texts([FIXTURES / "verify"], (".hlo",), 6000)[:20] + random_texts(20))


def _findings(reader: Reader, count: int) -> list[str]:
    outcomes = {number: run_one(reader, input_of(reader, 0, number)) for number in range(count)}
    return [f"{number}: {o.finding.key}\n{o.finding.details}" for number, o in outcomes.items() if o.finding is not None]


def test_damaged_texts_are_read_or_refused(text: Reader) -> None:
    assert _findings(text, 600) == []


def test_damaged_protos_are_read_or_refused() -> None:
    pytest.importorskip("google.protobuf")

    assert _findings(proto_reader(binary_seeds(8)), 250) == []


def test_damaged_reports_are_read_or_refused() -> None:
    names = ("-assignment.txt", "live-range.txt")
    seeds = seed_texts([FIXTURES / "xla" / "gathers", FIXTURES / "xla" / "sorts"], names, 20_000)

    assert _findings(report_reader([*seeds, "layout-assignment{backend=gpu},schedule"]), 120) == []


# -- by hand ---------------------------------------------------------------------------------------------------------------


def _entry(line: str, before: str = "") -> str:
    return f"{before}ENTRY e {{\n  p = f32[2]{{0}} parameter(0)\n  ROOT r = {line}\n}}\n"


DEEP = 50_000
HOSTILE = {
    "nested tuples": f"ENTRY e {{\n  ROOT p = {'(' * DEEP}f32[2]{')' * DEEP} parameter(0)\n}}",
    "open tuples": "ENTRY e {\n  ROOT p = " + "(" * DEEP,
    "nested operands": _entry("f32[2] negate(" * DEEP + "p" + ")" * DEEP),
    "nested literal": _entry(f"f32[] constant({'{' * DEEP}1{'}' * DEEP})"),
    "nested sharding": _entry(f"f32[2] negate(p), sharding={'{' * DEEP}replicated{'}' * DEEP}"),
    "nested configuration": _entry("f32[2] negate(p), backend_config=" + '{"a":' * DEEP + "1" + "}" * DEEP + "x"),
    "nested buffers": f"ENTRY e {{\n  ROOT p = {'b(' * DEEP}f32[2]{')' * DEEP} parameter(0)\n}}",
    "nested computations": "to_apply={" * DEEP,
    "open comment": "ENTRY e { /*" + "*" * DEEP,
    "open string": _entry('f32[2] negate(p), metadata={op_name="' + "x" * DEEP),
    "huge number": _entry(f"f32[{'9' * DEEP}] negate(p)"),
    "huge index": _entry(f"f32[2] get-tuple-element(p), index={'9' * 40}"),
    "huge exponent": _entry(f"f32[] constant(1e{'9' * DEEP})"),
    "huge parameter number": "ENTRY e {\n  ROOT p = f32[2] parameter(9000000000000000000)\n}",
    "huge shape in a literal": _entry("f32[4611686018427387904] constant({1, 2})"),
    "huge dimension beside an empty one": _entry(f"f32[0,{2**63 - 1}] constant({{}})"),
    "too many elements": "ENTRY e {\n  ROOT p = f32[2147483648,2147483648] parameter(0)\n}",
    "many dimensions": f"ENTRY e {{\n  ROOT p = f32[{'2,' * DEEP}2] parameter(0)\n}}",
    "self reference": "ENTRY e {\n  ROOT r = f32[2] negate(r)\n}",
    "cycle": "ENTRY e {\n  a = f32[2] negate(b)\n  b = f32[2] negate(a)\n  ROOT r = f32[2] add(a, b)\n}",
    "computation that calls itself": "ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] call(p), to_apply=e\n}",
    "computations that call each other": "a {\n  ROOT x = f32[] call(), to_apply=b\n}\n"
    "b {\n  ROOT y = f32[] call(), to_apply=a\n}",
    "name twice": "ENTRY e {\n  p = f32[2] parameter(0)\n  p = f32[2] negate(p)\n}",
    "computation twice": f"{SUM}{SUM}{_entry('f32[2] negate(p)')}",
    "parameter twice": "ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT q = f32[2] parameter(0)\n}",
    "many devices": _entry("f32[2] all-reduce(p), replica_groups=[1,9999999999]<=[9999999999], to_apply=sum", SUM),
    "groups of negative numbers": _entry("f32[2] all-reduce(p), replica_groups=[-1,-4]<=[4], to_apply=sum", SUM),
    "many devices in a mesh": _entry("f32[2] all-reduce(p), replica_groups=mesh['a'=99999999,'b'=4]{'b'}, to_apply=sum", SUM),
    "endless product of tiles": _entry(f"f32[2] negate(p), sharding={{devices=[{'99,' * 3000}1]<=[2]}}"),
    "nothing": "",
    "zero byte": "ENTRY e {\0}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_at_once(name: str) -> None:
    start = time.process_time()
    with pytest.raises(ParseError):
        parse_module(HOSTILE[name])

    assert time.process_time() - start < 2


def test_large_shapes_cost_nothing() -> None:
    module = parse_module(
        "ENTRY e {\n  p = f32[1000000,1000000]{1,0} parameter(0)\n  ROOT c = f32[1000000000]{0} constant({...})\n}"
    )

    assert module.instruction_count == 2


# -- what earlier runs found -------------------------------------------------------------------------------------------------


def _damaged(text: str, damage: Callable[[Any], None]) -> bytes:
    """A module's proto after ``damage`` to its message."""
    pytest.importorskip("google.protobuf")
    from layoutsim.proto import module_to_bytes
    from layoutsim.proto.schema import new

    proto = new("HloModuleProto")
    proto.ParseFromString(module_to_bytes(parse_module(text)))
    damage(proto)
    return proto.SerializeToString()


def _of(proto: Any, opcode: str) -> Any:
    return next(i for c in proto.computations for i in c.instructions if i.opcode == opcode)


def _huge_dimension(proto: Any) -> None:
    for shape in (_of(proto, "constant").shape, _of(proto, "constant").literal.shape):
        shape.dimensions[1] = 2**63 - 1


def _constant_token(proto: Any) -> None:
    _of(proto, "after-all").opcode = "constant"


def _loop_of_nothing(proto: Any) -> None:
    _of(proto, "negate").opcode = "while"


def _thrice(proto: Any) -> None:
    fusion = _of(proto, "fusion")
    fusion.called_computation_ids.extend([fusion.called_computation_ids[0]] * 2)


def _far_feature(proto: Any) -> None:
    _of(proto, "convolution").convolution_dimension_numbers.output_feature_dimension = 2**31 - 1


CONVOLUTION = "f32[1,2,2] convolution(p, p), window={size=1}, dim_labels=bf0_oi0->bf0"
PROTOS = {
    "empty constant": ("f32[0,3] constant({})", _huge_dimension, r"dimensions other than 0 fit into 2\*\*63 bytes"),
    "constant token": ("token[] after-all()", _constant_token, r"of an array or tuple shape, got token\[\]"),
    "loop of nothing": ("f32[2]{0} negate(p)", _loop_of_nothing, "while calls 0 computations, expected 2"),
    "three bodies": (
        "f32[] fusion(q, q), kind=kLoop, calls=sum",
        _thrice,
        "fusion calls 3 computations, expected 1",
    ),
    "far feature": (CONVOLUTION, _far_feature, "2147483647 in the dimension numbers of a convolution"),
}


@pytest.mark.parametrize("name", PROTOS)
def test_a_proto_that_no_compiler_writes_is_refused(name: str) -> None:
    line, damage, says = PROTOS[name]
    shape = "f32[1,2,2]{2,1,0}" if name == "far feature" else "f32[2]{0}"
    text = f"{SUM}ENTRY e {{\n  p = {shape} parameter(0)\n  q = f32[] parameter(1)\n  ROOT r = {line}\n}}\n"

    with pytest.raises(ParseError, match=says):
        parse_bytes(_damaged(text, damage), "x.pb")


def test_endless_numbers_in_reports_are_refused() -> None:
    with pytest.raises(ParseError, match="expected numbers of less than 1,000 digits"):
        parse_assignment_report(f"BufferAssignment:\nallocation 0: size {'1' * 5000}, preallocated-temp:\n")


def test_gzip_takes_memory_as_it_is_unpacked() -> None:
    with pytest.raises(InputError, match="damaged gzip data"):
        parse_bytes(b"\x1f\x8b\x08", "x.hlo.gz")
    with pytest.raises(ParseError):
        parse_bytes(gzip.compress(b"a" * 1000), "x.hlo.gz")


# -- the fuzzer itself -------------------------------------------------------------------------------------------------------


def _reader(feed: object) -> Reader:
    return Reader(feed, (ParseError,), lambda source: str(source.randrange(100)))


def _loops(_data: str) -> None:
    while True:
        pass


def _recurses(data: str) -> None:
    _recurses(data + "x")


@pytest.mark.parametrize(
    ("feed", "key"),
    [
        (int, ""),
        (lambda data: int(data + "x"), "ValueError in "),
        (_loops, "TooSlowError in "),
        (_recurses, "RecursionError in "),
    ],
    ids=["in order", "wrong error", "endless", "too deep"],
)
def test_fuzzer_sees_what_a_reader_does_wrong(feed: object, key: str) -> None:
    outcome = run_one(_reader(feed), "7")

    assert (outcome.finding.key if outcome.finding else "").startswith(key)
    assert bool(outcome.finding) is bool(key)


GREEDY = """
from tests.fuzz.limits import peak_bytes, run_one
from tests.fuzz.readers import Reader

# A process may begin with the peak of the one that started it.
print(run_one(Reader(lambda data: len(b"x" * (peak_bytes() + (300 << 20))), (), str), "7").finding.key)
"""


def test_fuzzer_sees_a_greedy_reader() -> None:
    """In a process of its own: the peak of this one may be high already, and what it starts itself begins with that peak."""
    started = ["sh", "-c", '"$0" -c "$1"; exit', sys.executable, GREEDY]
    done = subprocess.run(started, cwd=FIXTURES.parent, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("TooLargeError in ")


def test_inputs_follow_from_their_numbers(text: Reader) -> None:
    assert [input_of(text, 0, n) for n in range(5)] == [input_of(text, 0, n) for n in range(5)]
    assert input_of(text, 0, 1) != input_of(text, 1, 1)


def test_smallest_input_of_a_finding_is_kept(tmp_path: Path) -> None:
    def feed(data: str | bytes) -> None:
        if len(data) > 3:
            raise ValueError(data)

    def inputs(source: random.Random) -> str:
        return "x" * source.randrange(12)

    found = Run(Reader(feed, (ParseError,), inputs), 0, tmp_path).run(0, 60)

    assert found > 10
    assert [path.read_bytes() for path in tmp_path.glob("*.input")] == [b"xxxx"]
