"""Modules in ``fixtures/text`` hold every opcode and every attribute; each must survive both paths and the printer."""

from pathlib import Path

import pytest

from layoutsim.ir import Opcode
from layoutsim.ir.equality import module_differences
from layoutsim.text import parse_module
from tests.text.asking import parse_both

FOLDER = Path(__file__).parents[2] / "fixtures" / "text"
FILES = sorted(FOLDER.glob("*.hlo"))
NOT_IN_FIXTURES: set[Opcode] = set()


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_fixture_reads_back_as_an_equal_module(file: Path) -> None:
    module = parse_both(file.read_text())
    text = module.to_text()
    again = parse_both(text)

    assert module_differences(module, again) == []
    assert again.to_text() == text


def test_every_opcode_is_in_a_fixture() -> None:
    modules = [parse_module(file.read_text()) for file in FILES]
    found = {i.opcode for module in modules for computation in module.computations for i in computation.instructions}

    assert set(Opcode) - found == NOT_IN_FIXTURES
