"""What the fuzzer feeds, and what each reader promises.

1. A reader returns, or raises one of its own errors; nothing else.
2. A module that was read prints; its text is read again, to an equal module that prints the same.
3. The verifier answers with findings, whatever was read.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from attrs import frozen

from layoutsim.errors import InputError, LayoutsimError, ParseError
from layoutsim.ir import Module
from layoutsim.ir.equality import module_differences
from layoutsim.load import parse_bytes
from layoutsim.memory.problem_csv import read_problem_csv
from layoutsim.memory.report_format import parse_assignment_report
from layoutsim.memory.report_format_live_range import parse_live_range_report
from layoutsim.passes import parse_pipeline
from layoutsim.testing import Limits, random_module
from layoutsim.text import ParseOptions, parse_module
from layoutsim.text.printer import print_module
from layoutsim.verify import AFTER_LAYOUT_ASSIGNMENT, verify
from tests.fuzz.mutations import mutated, mutated_bytes
from tests.fuzz.proto_mutations import mutated_proto

FIXTURES = Path(__file__).parents[2] / "fixtures"


class BrokenPromiseError(Exception):
    """A module was read, but what comes next does not hold."""


@frozen
class Reader:
    """A reader under test.

    Attributes:
        feed: reads one input; raises what the reader raises, or :class:`BrokenPromiseError`.
        errors: what it may raise.
        inputs: the input of a random number generator.
    """

    feed: Callable[[str | bytes], None]
    errors: tuple[type[LayoutsimError], ...]
    inputs: Callable[[random.Random], str | bytes]


def text_reader(seeds: Sequence[str]) -> Reader:
    """Modules as text."""
    return Reader(_feed_text, (ParseError,), lambda source: mutated(source, seeds))


def proto_reader(seeds: Sequence[bytes]) -> Reader:
    """Files of unknown kind: gzip, binary protos, text in any bytes; two thirds are protos with a few fields changed."""
    plain = [seed for seed in seeds if not seed.startswith(b"\x1f\x8b")]

    def inputs(source: random.Random) -> bytes:
        return mutated_proto(source, plain) if source.random() < 0.66 else mutated_bytes(source, seeds)

    return Reader(_feed_bytes, (ParseError, InputError), inputs)


def report_reader(seeds: Sequence[str]) -> Reader:
    """XLA's memory reports, CSV problems, pipeline texts: whatever the seed was, all of them read it."""
    return Reader(_feed_report, (), lambda source: mutated(source, seeds))


_LENIENT = ParseOptions(strict=False, fill_missing_layouts=False, keep_module_auto_layouts=True, signature_without_header=True)


def _feed_text(data: str | bytes) -> None:
    assert isinstance(data, str)
    try:
        parse_module(data, options=_LENIENT)
    except ParseError:
        pass
    _check_module(parse_module(data))


def _check_module(module: Module) -> None:
    """Promises (2) and (3)."""
    text = print_module(module)
    try:
        again = parse_module(text, options=ParseOptions(keep_module_auto_layouts=True))
    except ParseError as error:
        raise BrokenPromiseError(f"what was printed is not read: {error}") from error
    if (printed := print_module(again)) != text:
        raise BrokenPromiseError(f"printing is not stable: {_first_difference(text, printed)}")
    if differences := module_differences(module, again):
        raise BrokenPromiseError(f"read back as another module: {differences}")
    verify(module)
    verify(module, AFTER_LAYOUT_ASSIGNMENT)


def _first_difference(a: str, b: str) -> tuple[str, str]:
    pairs = zip(a.split("\n"), b.split("\n"), strict=False)
    return next(((x, y) for x, y in pairs if x != y), ("", "lengths differ"))


def _feed_bytes(data: str | bytes) -> None:
    assert isinstance(data, bytes)
    module = parse_bytes(data, "input.pb" if data[:1] != b"H" else "input.hlo")
    print_module(module)
    verify(module)


def _feed_report(data: str | bytes) -> None:
    assert isinstance(data, str)
    for read in (parse_assignment_report, parse_live_range_report, read_problem_csv, parse_pipeline):
        try:
            read(data)
        except LayoutsimError:
            pass


# -- seeds ---------------------------------------------------------------------------------------------------------------


def seed_texts(folders: Iterable[Path], names: Sequence[str], max_bytes: int) -> list[str]:
    """Texts of the files with these endings (or these and ``.gz``) that are small enough, in order of their paths."""
    out: list[str] = []
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.name.removesuffix(".gz").endswith(tuple(names)) and path.is_file():
                data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                if len(data) <= max_bytes:
                    out.append(data.decode("utf-8", "surrogateescape"))
    return out


def random_texts(count: int) -> list[str]:
    """Texts of random modules, of one device and of four."""
    return [print_module(random_module(i, Limits(devices=4 if i % 2 else 1))) for i in range(count)]


def binary_seeds(count: int) -> list[bytes]:
    """Random modules as protos, packed ones among them."""
    from layoutsim.proto import module_to_bytes

    plain = [module_to_bytes(random_module(i)) for i in range(count)]
    return [*plain, *map(gzip.compress, plain[:3])]
