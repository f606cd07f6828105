"""Bad modules in ``fixtures/verify``: each names in its first lines everything that the verifier has to say about it."""

import ast
from pathlib import Path

import pytest

from layoutsim.text import parse_module
from layoutsim.verify import VerifyOptions, verify

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "verify").glob("*.hlo"))


def _header(text: str, key: str) -> list[str]:
    prefix = f"// {key}: "
    return [line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)]


def _options(text: str) -> VerifyOptions:
    words = [word.partition("=") for line in _header(text, "options") for word in line.split()]
    return VerifyOptions(**{name: ast.literal_eval(value) for name, _, value in words})


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_bad_module_has_exactly_the_findings_it_states(path: Path) -> None:
    text = path.read_text()
    expected = _header(text, "finding")
    assert expected, "a fixture without a finding proves nothing"

    assert expected == [str(finding) for finding in verify(parse_module(text), _options(text))]
