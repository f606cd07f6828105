"""The fast path takes a line only if the slow path would read it the same way."""

import random
from pathlib import Path

import pytest

from layoutsim.errors import ParseError
from layoutsim.ir import Module
from layoutsim.ir.equality import module_differences
from layoutsim.text import ParseOptions, parse_module
from layoutsim.text.instruction_parser import InstructionParser
from tests.fuzz.mutations import mutated
from tests.text.asking import SLOW, complaint, in_entry, parse_both

FIXTURES = Path(__file__).parents[2] / "fixtures" / "text"
SEEDS = [file.read_text() for file in sorted(FIXTURES.glob("*.hlo"))]
CASES = 600


def _result(text: str, options: ParseOptions) -> Module | str:
    try:
        return parse_module(text, options=options)
    except ParseError as error:
        return str(error)


def _assert_paths_agree(text: str) -> None:
    fast, slow = _result(text, ParseOptions()), _result(text, SLOW)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
    else:
        assert module_differences(fast, slow) == []


@pytest.mark.parametrize("number", range(0, CASES, 50))
def test_both_paths_agree_on_damaged_texts(number: int) -> None:
    for each in range(number, number + 50):
        source = random.Random(each)
        _assert_paths_agree(mutated(source, SEEDS))


@pytest.fixture
def read_slowly(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the instructions that the slow path reads."""
    names: list[str] = []
    original = InstructionParser.read_instruction

    def spying(self: InstructionParser, scope: object) -> object:
        instruction = original(self, scope)  # pyright: ignore[reportArgumentType]
        names.append(instruction.name)
        return instruction

    monkeypatch.setattr(InstructionParser, "read_instruction", spying)
    return names


def _entry(*lines: str) -> str:
    return "HloModule m\n\nENTRY %e (x: f32[2]) -> f32[2] {\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"


COMMON = (
    '%x = f32[2]{0} parameter(0), metadata={op_name="a" source_line=3}',
    "%c = f32[2]{0} constant({1, 2})",
    '%t = (f32[2]{0}, (f32[2]{0:T(8)}, f32[2]{0})) custom-call(%x, %c), custom_call_target="t", backend_config={"a":{}}',
    "%s = f32[1]{0} slice(%x), slice={[0:1]}, sharding={replicated}",
    "ROOT %a = f32[2]{0} add(%x, %c)",
)


def test_common_lines_are_not_read_slowly(read_slowly: list[str]) -> None:
    module = parse_module(_entry(*COMMON))

    assert module.entry.instruction_count == 5
    assert read_slowly == []


@pytest.mark.parametrize(
    "line",
    [
        "%y = f32[2]{0} negate(%x)\n  , metadata={}",
        "%y = f32[2]{0} negate(%x), metadata={}\n  , sharding={replicated}",
        "%y = f32[2]{0} negate(%x) // , sharding={manual}",
        "%y = f32[2]{0} negate(%x) /* to be\n  %y = f32[2]{0} tanh(%x)\n continued */",
        "%y = f32[2]//{\n{0} negate(%x)",
        "%y = f32[2]{0} negate(%x //)\n )",
        "%y = f32[2]{0} negate ( %x )",
        "%y = f32[2]{0} negate(f32[2] %x)",
        "%y = f32[2]{0} negate(/*index=0*/%x)",
        "%y = (f32[2]{0}) tuple(%x), sharding={{replicated}}",
        "y = negate(x)",
        "%y = f32[2]{0} negate(%x), backend_config='{\"a\": 1}'",
        "%y = f32[2]{0} negate(%x), metadata={op_name='a'}",
        "%y = f32[2]{0} negate(%x), metadata={source_line=3 op_name=\"a\"}",
        "%y = f32[2]{0} negate(%x), metadata={op_name=\"a\\\"b\"}",
        "%y = f32[2]{0} negate(%x), frontend_attributes={b=\"1\",a=\"2\"}",
        "%y = f32[2]{0} negate(%x), control-predecessors={%x}",
    ],
)  # fmt: skip
def test_unusual_lines_mean_the_same_on_both_paths(line: str) -> None:
    parse_both(_entry("%x = f32[2]{0} parameter(0)", line, "ROOT %z = f32[2]{0} negate(%x)"))


def test_line_endings_of_other_systems_are_read() -> None:
    text = _entry(*COMMON)

    assert module_differences(parse_both(text.replace("\n", "\r\n")), parse_both(text)) == []


def test_a_layout_on_the_next_line_belongs_to_the_signature() -> None:
    text = "HloModule m\nENTRY %e (x: f32[]) -> f32[] {\n 7 %x = f32[] parameter(0)\n}\n"

    assert complaint(text)[:2] == (2, 30)


def test_the_transpose_of_a_list_of_devices_may_stand_on_the_next_line() -> None:
    line = "y = f32[8] all-to-all(x), replica_groups=[2,4]<=[4,2]\n T(1,0), dimensions={0}"
    module = in_entry(f"x = f32[8] parameter(0)\n {line}")

    assert "[2,4]<=[4,2]T(1,0)" in module.to_text()


def test_an_error_behind_many_fast_lines_is_found_at_its_place() -> None:
    lines = [f"%y.{i} = f32[2]{{0}} negate(%x)" for i in range(100)]
    text = _entry("%x = f32[2]{0} parameter(0)", *lines, "%z = f32[2]{0} negate(%y.100)")

    assert complaint(text)[:2] == (105, 25)
